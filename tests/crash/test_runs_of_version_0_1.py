"""What version 0.1 left behind works under this version: its folders are read, its cut run goes on, its database is upgraded."""

from __future__ import annotations

import json
import lzma
import tarfile
from pathlib import Path

import pytest

from onward.tracker.runs.registry import RunQuery
from onward.tracker.store import Tracker
from tests.crash.conftest import LocalRun, Machine

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "version-0.1"
WAS_AT = "/home/ada/project"


def sum_of_squares(steps: int) -> int:
    return sum(step * step for step in range(steps))


@pytest.fixture
def runs(machine: Machine) -> Path:
    """The recorded runs folder, as if it had been written where it now is."""
    folder = Path(machine.environment["ONWARD_ROOT"])
    with tarfile.open(RECORDED / "runs.tar.xz") as archive:
        archive.extractall(folder.parent)
    for pattern in ("params/*.json", "params/*.sh", "params/claims/*", "journal/*"):
        for path in folder.glob(f"*/{pattern}"):
            path.write_text(path.read_text().replace(WAS_AT, str(folder.parent)))
    for path in folder.glob("*/params/environment.json"):
        path.write_text(json.dumps(machine.environment))
    return folder


def recorded_run(machine: Machine, folder: Path) -> LocalRun:
    return LocalRun(machine=machine, id=json.loads((folder / "params" / "spec.json").read_text())["id"], folder=folder)


def test_a_finished_run_of_version_0_1_reads_as_it_ended(machine: Machine, runs: Path) -> None:
    run = recorded_run(machine, next(runs.glob("*_A_counted")))
    shown = run.show()
    assert (shown["state"], [leg["end"] for leg in shown["legs"]]) == ("finished", ["time_limit", "done"])
    assert run.output().strip().splitlines()[-1] == f"sum {sum_of_squares(60)}"
    assert "59" in machine.onward("checkpoints", run.id).stdout


def test_a_run_that_version_0_1_began_goes_on_under_its_own_supervisor_to_the_same_result(machine: Machine, runs: Path) -> None:
    run = recorded_run(machine, next(runs.glob("*_B_counted")))
    frozen = (run.folder / "params" / "supervisor.pyz").read_bytes()
    machine.onward("tend")
    shown = run.until_over(within=180)
    assert shown["state"] == "finished", shown
    assert shown["legs"][1]["end"] == "lost"
    assert [event["step"] for event in run.events("restored") if event["leg"] == 3] == [44]
    assert run.output().strip().splitlines()[-1] == f"sum {sum_of_squares(120)}"
    assert (run.folder / "params" / "supervisor.pyz").read_bytes() == frozen


def test_a_database_of_version_0_1_is_upgraded_with_its_runs_and_their_metrics(tmp_path: Path) -> None:
    database = tmp_path / "tracker.db"
    database.write_bytes(lzma.decompress((RECORDED / "tracker.db.xz").read_bytes()))
    with Tracker.open(database) as tracker:
        found = {Path(view.info.folder or "").name: view for view in tracker.runs.search(RunQuery(standings=True)).runs}
        assert sorted(found) == ["2026-11-19_A_counted", "2026-11-19_B_counted"]
        finished = found["2026-11-19_A_counted"]
        assert finished.info.state == "finished"
        points = tracker.series.points(finished.info.run_id, "sum")
        assert [(point.step, point.value) for point in points] == [(step, float(sum_of_squares(step + 1))) for step in range(60)]
