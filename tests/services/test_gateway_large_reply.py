"""A reply of 90 MB, by the gateway as people start it: what it takes in memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

from beds.rabbitmq import RabbitMQ
from beds.waiting import until
from tests.gateway_old import OldProducer
from tests.gateway_site import PATIENCE, GatewaySite

LARGE = """\
import os, pathlib
pathlib.Path(os.environ["ONWARD_ARTIFACTS_DIR"], "said.txt").write_bytes(os.urandom(90_000_000))
"""


def test_a_reply_of_90_mb_takes_less_than_200_mib_of_memory(tmp_path: Path, broker: RabbitMQ, vhost: str) -> None:
    site = GatewaySite(tmp_path, broker, vhost)
    (tmp_path / "recipes" / "shout" / "shout.py").write_text(LARGE)
    process = site.start()
    try:
        with OldProducer(broker, vhost) as old:
            old.send({}, {})
            assert until(lambda: old.channel.queue_declare("hpc-results", passive=True).method.message_count == 1, timeout=PATIENCE), (
                site.log
            )
            _, _, body = old.channel.basic_get("hpc-results", auto_ack=True)
            assert body is not None and len(json.loads(body)["Said"]) > 120_000_000
            peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
            assert peak is not None
            print(f"peak memory: {int(peak[1]) / 1024:.0f} MiB")
            assert int(peak[1]) < 200 * 1024
    finally:
        process.terminate()
        process.wait()
    assert "Traceback" not in site.log
