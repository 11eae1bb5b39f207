"""What killed legs left on a node is found by later jobs of any run, and goes unless a checkpoint would be lost."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from onward.checkpoints.publishing.publish import publish
from onward.model.checkpoint import CheckpointName
from onward.model.run import LegEnd
from onward.model.spec import Cluster
from onward.operations.admin.cleanup import RemovableKind, remove_scanned, scan_node
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk.run import TrainingRun
from onward.supervisor.disk import leftovers
from onward.supervisor.disk.leftovers import leftover_folders
from onward.supervisor.disk.memory_disk import memory_words
from onward.supervisor.disk.owner import OWNER
from onward.supervisor.disk.skipped_saves import SkippedSaves
from onward.supervisor.preparation.environment import local_folder
from tests.histories import make_spec
from tests.sandbox import Sandbox


class Disk:
    """A node's disk with folders of legs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sandbox = Sandbox(folder / "desk")
        self.path = folder / "disk"
        self.path.mkdir()
        monkeypatch.setenv("SLURM_TMPDIR", str(self.path))
        monkeypatch.setattr("tempfile.tempdir", str(self.path))
        monkeypatch.setattr(leftovers, "_SYSTEM_DISKS", ())

    def leg(self, run: RunDir, leg: int = 1, *, id: str = "k01", alive: bool = False) -> LegLocal:
        spec = make_spec(id=id, cluster=Cluster(name="c", scheduler="slurm", local_disk=str(self.path)))
        local = local_folder(spec, leg, run=run)
        if not alive:
            mark = json.loads((local.path / OWNER).read_bytes())
            (local.path / OWNER).write_text(json.dumps({**mark, "pid": 2**22 + 1}))
        return local

    def save(self, local: LegLocal, step: int) -> None:
        run = TrainingRun(folder=local.path, leg=1, checkpoints=local.checkpoints, spool=local.spool, resume=None, by_hand=False)
        with run.checkpoint(step) as folder:
            (folder / "w").write_bytes(b"w" * 5000)

    @property
    def folders(self) -> Path:
        return self.path / f"onward-{os.getuid()}"

    def found(self) -> dict[str, str]:
        """By run: why it stays, or nothing where it may go."""
        return {left.run: left.keep for left in leftover_folders(self.folders, now=time.time())}


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


def test_a_folder_of_a_living_leg_is_not_even_named(disk: Disk) -> None:
    disk.leg(disk.sandbox.play("one").begin(1).dir, alive=True)
    assert disk.found() == {}


def test_a_folder_with_nothing_unpublished_may_go(disk: Disk) -> None:
    run = disk.sandbox.play("one").begin(1)
    local = disk.leg(run.dir)
    disk.save(local, 7)
    assert "leg-0001.step-00000007" in disk.found()[run.dir.path.name]
    (local.path / "w").write_text("w")
    publish({"w": local.path / "w"}, run.dir.checkpoints, CheckpointName(1, 8), created=1.0)
    assert disk.found() == {run.dir.path.name: ""}, "a newer one is published"


def test_an_unpublished_checkpoint_of_an_open_run_stays_and_is_named_with_its_size(disk: Disk) -> None:
    run = disk.sandbox.play("one").begin(1)
    disk.save(disk.leg(run.dir), 7)
    [why] = disk.found().values()
    assert "5.1 kB" in why or "5.0 kB" in why, why
    assert run.dir.path.name in why and "publishes it" in why and "step-00000007" in why


def test_of_a_run_that_failed_it_stays_and_of_one_that_finished_it_goes(disk: Disk) -> None:
    failed, finished = (
        disk.sandbox.play("failed").begin(1).end(1, LegEnd.CRASHED),
        disk.sandbox.play("finished").begin(1).end(1, LegEnd.DONE),
    )
    for number, run in enumerate((failed, finished)):
        disk.save(disk.leg(run.dir, id=f"k0{number}"), 7)
    finished.dir.done.write_text(json.dumps({"state": "finished", "at": 1.0}))
    failed.dir.done.write_text(json.dumps({"state": "failed", "at": 1.0}))
    found = disk.found()
    assert found[failed.dir.path.name] and not found[finished.dir.path.name]


def test_of_a_run_that_was_removed_it_goes_unless_its_root_cannot_be_seen(disk: Disk, tmp_path: Path) -> None:
    disk.sandbox.play("another")
    disk.save(disk.leg(RunDir(disk.sandbox.root / "2026-11-15_X_gone"), id="k01"), 7)
    disk.save(disk.leg(RunDir(tmp_path / "not-mounted" / "2026-11-15_Y_unseen"), id="k02"), 7)
    found = disk.found()
    assert found["2026-11-15_X_gone"] == "" and "cannot be read" in found["2026-11-15_Y_unseen"]


def test_clean_on_a_node_says_what_it_would_free_and_removes_it_with_its_logs_carried_over(disk: Disk) -> None:
    run, other = disk.sandbox.play("one").begin(1), disk.sandbox.play("two").begin(1)
    local, kept = disk.leg(run.dir, id="k01"), disk.leg(other.dir, id="k02")
    disk.save(kept, 7)
    (local.spool / "leg-0001.train-77.jsonl").write_text('{"n": 0}\n')
    found = scan_node(disk.sandbox.context)
    assert [(item.kind, item.path) for item in found.items] == [(RemovableKind.LEG, local.path)]
    assert [one.path for one in found.kept] == [kept.path]
    gone, problems = remove_scanned(disk.sandbox.context, found)
    assert [item.path for item in gone] == [local.path] and problems == []
    assert not local.path.exists() and not local.path.parent.exists() and kept.path.exists()
    assert (run.dir.spool / "leg-0001.train-77.jsonl").read_text() == '{"n": 0}\n'


def test_a_job_removes_what_other_runs_left_and_nothing_else(disk: Disk) -> None:
    mine = disk.sandbox.play("mine").begin(1)
    theirs, unpublished = disk.sandbox.play("theirs").begin(1), disk.sandbox.play("unpublished").begin(1)
    current, earlier = disk.leg(mine.dir, 2, id="k00", alive=True), disk.leg(mine.dir, 1, id="k00")
    left, kept = disk.leg(theirs.dir, id="k01"), disk.leg(unpublished.dir, id="k02")
    disk.save(kept, 7)
    leftovers._sweep(current)
    assert not left.path.exists()
    assert current.path.exists() and kept.path.exists()
    assert earlier.path.exists(), "the run's own are salvaged, not swept"


def test_a_folder_that_does_not_say_whose_it_is_goes_when_it_is_old_and_empty(disk: Disk) -> None:
    for name in ("old", "full", "new"):
        (disk.folders / name / "leg-0001" / "checkpoints").mkdir(parents=True)
    (disk.folders / "full" / "leg-0001" / "checkpoints" / "model.pt").write_text("x")
    for name in ("old", "full"):
        os.utime(disk.folders / name / "leg-0001", (1.0, 1.0))
    found = disk.found()
    assert found["old"] == "" and "whose it is" in found["full"] and "new" not in found


# ── what is said of a node's disk ─────────────────────────────────────────────


def test_skipped_saves_are_told_with_the_sizes_and_not_for_ever() -> None:
    skips = SkippedSaves()
    assert skips.new([], free=10**9, size=None) == []
    [first] = skips.new(["/tmp/x: No space left"], free=10**9, size=3 * 10**9)
    assert "/tmp/x: No space left" in first and "1.0 GB are free" in first and "takes 3.0 GB" in first
    assert skips.new(["/tmp/x: No space left"], free=None, size=None) == []
    more = skips.new(["r"] * 9, free=None, size=None)
    assert len(more) == 2 and "only in" in more[-1] and "only in" not in more[0]
    assert skips.new(["r"] * 20, free=None, size=None) == []


def test_a_node_without_a_disk_is_told_of_with_the_checkpoints_size_and_the_jobs_memory() -> None:
    words = memory_words("/dev/shm/x", 40 * 10**9, mem=64 * 1024)
    assert "/dev/shm/x is a tmpfs" in words and "takes 40.0 GB of the job's 68.7 GB" in words and "local-disk" in words
    assert "of the job's memory" in memory_words("/x", None, mem=None)
