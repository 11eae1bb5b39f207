from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from onward.rundir.layout import LegLocal
from onward.supervisor.background import Repeating, SystemSampler
from onward.supervisor.telemetry.gpu import GpuSample, GpuSampler
from onward.supervisor.telemetry.host import HostSampler


def test_what_fails_again_and_again_is_said_once_and_so_is_that_it_works_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    called, done = 0, threading.Event()

    def work() -> None:
        nonlocal called
        called += 1
        if called <= 5:
            raise PermissionError(13, "Permission denied", "logs/leg-0001.out")
        if called > 8:
            done.set()

    repeating = Repeating("mirroring", work, every=0.001)
    assert done.wait(60)
    repeating.stop(within=60)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "logs/leg-0001.out" in said[0] and said[1] == "mirroring works again"
    assert not any(record.exc_info for record in caplog.records), "no traceback for a disk that is closed to us"


# ── samples ───────────────────────────────────────────────────────────────────


class OneCard(GpuSampler):
    def __init__(self) -> None:
        super().__init__(("0",))

    def sample(self) -> GpuSample:
        self.names["GPU-a"] = "Card"
        return {"GPU-a": {"percent": 50.0, "power_w": 300.0}}


@pytest.fixture
def local(tmp_path: Path) -> LegLocal:
    made = LegLocal(tmp_path / "leg")
    made.make()
    return made


def sampler_of(local: LegLocal, *, node: str = "", number: int = 0) -> SystemSampler:
    return SystemSampler(local, 3, HostSampler(sessions=list, disk=local.path), OneCard(), node=node, number=number)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_samples_of_a_legs_only_node_name_none(local: LegLocal) -> None:
    sampler = sampler_of(local)
    sampler.sample()
    sampler.sample()
    first, second = lines(local.spool / "leg-0003.system.jsonl")
    assert (first["n"], second["n"], first["kind"]) == (0, 1, "system")
    assert first["m"]["gpu/GPU-a/percent"] == 50.0 and first["m"]["system/rss_mib"] == 0.0
    header, row, _ = (line.split(",") for line in (local.logs / "leg-0003.gpu.csv").read_text().splitlines())
    assert dict(zip(header, row, strict=True))["power_w"] == "300.0" and row[1:3] == ["GPU-a", "Card"]


def test_of_several_nodes_each_has_its_name_in_every_series_and_files_of_its_own(local: LegLocal) -> None:
    for number, node in enumerate(("g1", "g2.cluster")):
        sampler_of(local, node=node, number=number).sample()
    assert sorted(path.name for path in local.spool.iterdir()) == ["leg-0003.system-n1.jsonl", "leg-0003.system.jsonl"]
    assert sorted(path.name for path in local.logs.iterdir()) == ["leg-0003.gpu-n1.csv", "leg-0003.gpu.csv"]
    (own,), (other,) = (lines(local.spool / f"leg-0003.system{name}.jsonl") for name in ("", "-n1"))
    assert all(key.startswith("system/node/g1/") for key in own["m"])
    assert {"system/node/g2.cluster/rss_mib", "system/node/g2.cluster/gpu/GPU-a/percent"} <= set(other["m"])
    assert all(key.startswith("system/node/g2.cluster/") for key in other["m"])
