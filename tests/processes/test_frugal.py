"""A small address space, as Grid Engine's h_vmem sets it: our own processes must live in it beside the training."""

from __future__ import annotations

import subprocess
import sys

import pytest

MANY = """
import json, resource, threading, time
{first}
resource.setrlimit(resource.RLIMIT_AS, (160 << 20, 160 << 20))
go = threading.Event()
def work():
    json.dumps(list(range(10_000)))
    go.wait()
threads = [threading.Thread(target=work, daemon=True) for _ in range(25)]
for thread in threads:
    thread.start()
bytes(1 << 20)
go.set()
print("all started")
"""


def started(first: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", MANY.format(first=first)], capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux alone")
def test_our_threads_fit_into_a_small_address_space() -> None:
    done = started("from onward.supervisor.processes.address_space import limit_address_space; limit_address_space()")
    assert "all started" in done.stdout, done.stderr
    assert "can't start new thread" in started("").stderr, "else this test shows nothing"
