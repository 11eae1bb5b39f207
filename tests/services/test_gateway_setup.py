"""`onward gateway init` on a real broker: the commands that it prints are enough, and no more than enough."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from beds.rabbitmq import RabbitMQ
from beds.waiting import until
from tests.needs import missing

PATIENCE = 90.0


class NewMachine:
    """A home with nothing in it, and a `rabbitmqctl` for the bed's broker."""

    def __init__(self, home: Path, broker: RabbitMQ) -> None:
        if os.geteuid() != 0:
            missing("root, to act as the broker's administrator")
        self.home = home
        self.broker = broker
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "RABBITMQ_", "RODAN_", "XDG_", "SSL_"))}
        self.env = {**kept, "HOME": str(home), "ONWARD_ROOT": f"{home}/runs", "ONWARD_STATE_DIR": f"{home}/state", "NO_COLOR": "1"}

    def onward(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "onward", *words]
        return subprocess.run(
            argv,
            env={**self.env, **env},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def administrate(self, line: str) -> None:
        words = shlex.split(line)
        assert words.pop(0) == "rabbitmqctl"
        at = words.index("<") if "<" in words else len(words)
        self.broker.control(*words[:at], stdin="".join(Path(file).read_text() for file in words[at + 1 :]))

    def start(self) -> subprocess.Popen[bytes]:
        with (self.home / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "onward", "gateway"], env=self.env, cwd=self.home, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        assert until(lambda: "onward gateway: listening" in self.log or process.poll() is not None, timeout=PATIENCE)
        assert process.poll() is None, self.log
        return process

    @property
    def log(self) -> str:
        return (self.home / "log").read_text()


@pytest.fixture
def machine(tmp_path: Path, broker: RabbitMQ) -> NewMachine:
    return NewMachine(tmp_path, broker)


def test_a_gateway_listens_on_a_bare_machine_after_init_and_what_it_prints(machine: NewMachine, broker: RabbitMQ) -> None:
    name = f"new-{os.getpid()}"
    words = ["gateway", "init", "--broker", broker.url().rstrip("/"), "--vhost", name, "--user", name, "--v1", "--recipe", "patchwise"]
    asked = machine.onward(*words)
    assert asked.returncode == 1 and "write this?" in asked.stderr
    assert not (machine.home / ".config").exists(), "nobody said yes"
    made = machine.onward(*words, "--yes")
    assert made.returncode == 0, made.stderr
    again = machine.onward(*words)
    assert again.returncode == 0 and "kept as it is" in again.stderr and "wrote" not in again.stderr
    assert made.stdout == again.stdout

    for line in made.stdout.splitlines():
        machine.administrate(line)
    declared = machine.onward("gateway", "declare")
    assert declared.returncode == 0, declared.stderr
    assert "queue hpc-jobs: made" in declared.stdout
    process = machine.start()
    try:
        status = machine.onward("request", "--status", "nobody")
        assert "the gateway has no request nobody" in status.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
