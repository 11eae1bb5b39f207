"""What comes of a pipeline is uploaded as it comes: checked by what is there, tried again, once, whatever dies."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from onward.clock import ManualClock, SystemClock
from onward.errors import InvalidInput, NotDelivered
from onward.model.checkpoint import CheckpointName
from onward.model.pipelines.plan import PipelinePlan, Stage, StageKind, UploadRule, plan_to_json
from onward.model.pipelines.upload import UploadTargetKind, UploadTries, is_due, upload_target_kind
from onward.model.spec import Cluster, RunDraft
from onward.operations.context import OperationsContext
from onward.operations.pipelines.upload import check_upload, tend_upload, upload_record
from onward.pipelines.upload import destinations
from onward.pipelines.upload.destinations import Destination, FolderDestination, Sums, UrlDestination, checksums_of, destination_of
from onward.pipelines.upload.uploader import PassEnd, PipelineUpload, UploadProgress, has_all_arrived, upload_progress
from onward.rundir.pipeline.layout import PipelineDir

TASK = "train.00000019.odd.seed-0.shard-0-of-1"
WHAT = ("summary", "results", "checkpoints", "logs")


class Uploaded:
    """A pipeline as it lies there, with a task that is done, one that is not, a checkpoint, and a training that is over."""

    def __init__(self, folder: Path, to: str) -> None:
        self.root, self.to, self.clock = folder / "runs", to, ManualClock(time.time())
        self.dir = PipelineDir(self.root / "2026-11-16_A_digits")
        self.dir.make()
        self.dir.uploads.mkdir()
        self.write(f"results/tasks/{TASK}/result.json", "{}")
        self.write(f"results/tasks/{TASK}/files/deep/answers with spaces.txt", "seventeen")
        self.write("results/tasks/not-done/out-0001.txt", "half")
        self.write("results/checkpoints/train.step-00000019/weights", "w" * 100_000)
        self.write("results/checkpoints/train.seen-000001.json", "{}")
        self.write("logs/pipeline.log", "it began\n")
        train = self.dir.member("train")
        train.make()
        (train.logs / "leg-0001.out").write_text("step 1\n")
        (train.artifacts / "plot.svg").write_text("<svg/>")
        train.done.write_text(json.dumps({"state": "finished", "cause": "", "at": 7.0}))
        draft = RunDraft(name="d", experiment="d", cluster="local", command=("true",))
        stages = (Stage(name="train", kind=StageKind.TRAIN, draft=draft),)
        rule = UploadRule(to=to, what=WHAT, retries=2)
        self.plan = PipelinePlan(name="digits", experiment="digits", cluster="local", stages=stages, upload=rule)
        self.dir.plan.write_text(json.dumps(plan_to_json(self.plan)))

    def write(self, path: str, text: str) -> None:
        target = self.dir.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def one_pass(self, *, stubborn: bool = False, destination: Destination | None = None) -> PassEnd:
        assert self.plan.upload
        self.last = PipelineUpload(
            dir=self.dir,
            plan=self.plan,
            rule=self.plan.upload,
            destination=destination or destination_of(self.to),
            clock=self.clock,
            stubborn=stubborn,
        )
        return self.last.work()

    def end(self) -> None:
        """It is over, and there is a summary."""
        self.dir.over.write_text(json.dumps({"state": "finished", "cause": "", "at": self.clock.now()}))
        for format in ("md", "csv", "html", "json"):
            self.dir.summary(format).write_text("a table")

    def expected(self) -> set[str]:
        name = self.dir.path.name
        return {
            f"{name}/params/plan.json",
            f"{name}/results/tasks/{TASK}/result.json",
            f"{name}/results/tasks/{TASK}/files/deep/answers with spaces.txt",
            f"{name}/results/checkpoints/train.step-00000019/weights",
            f"{name}-train/logs/leg-0001.out",
            f"{name}-train/results/artifacts/plot.svg",
        }


def stand(made: Uploaded) -> UploadProgress:
    answer = upload_progress(made.dir, made.plan)
    assert answer
    return answer


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_of_a_stage_that_nothing_measures_the_last_checkpoint_arrives(made: Uploaded, there: Path) -> None:
    made.plan = replace(made.plan, stages=(replace(made.plan.stages[0], kind=StageKind.STAGE),))
    store = made.dir.member("train").checkpoints
    for step in (7, 9):
        (store / str(CheckpointName(1, step))).mkdir()
        (store / str(CheckpointName(1, step)) / "w").write_text("w")
    made.one_pass()
    assert [path.parent.name for path in (there / f"{made.dir.path.name}-train").rglob("w")] == [str(CheckpointName(1, 9))]


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def made(tmp_path: Path, there: Path) -> Uploaded:
    return Uploaded(tmp_path, str(there))


@pytest.fixture(params=list(UploadTargetKind))
def destination(request: pytest.FixtureRequest, there: Path) -> Destination:
    """The same folder, by each way that reaches it from here."""
    match request.param:
        case UploadTargetKind.FOLDER:
            return destination_of(str(there))
        case UploadTargetKind.RSYNC if shutil.which("rsync"):
            return destinations.RsyncDestination(str(there))  # between two folders it does the same, only without ssh
        case UploadTargetKind.URL if importlib.util.find_spec("fsspec"):
            return destination_of(f"file://{there}")
        case kind:
            pytest.skip(f"there is no {kind} here")


# ── what arrives ──────────────────────────────────────────────────────────────


def test_what_is_whole_arrives_under_its_path_and_what_is_not_stays(made: Uploaded, there: Path, destination: Destination) -> None:
    assert made.one_pass(destination=destination) is PassEnd.ALL
    assert files(there) == made.expected()
    target = there / made.dir.path.name / "results" / "checkpoints" / "train.step-00000019" / "weights"
    assert target.read_text() == "w" * 100_000
    made.end()
    assert made.one_pass(destination=destination) is PassEnd.ALL and has_all_arrived(made.dir)
    late = {
        f"{made.dir.path.name}/{path}"
        for path in ("logs/pipeline.log", "SHA256SUMS", *(f"results/summary.{one}" for one in ("md", "csv", "html", "json")))
    }
    assert files(there) == made.expected() | late
    assert subprocess.run(["sha256sum", "-c", "--quiet", f"{made.dir.path.name}/SHA256SUMS"], cwd=there, check=False).returncode == 0


def test_what_was_spoiled_on_its_way_is_seen_and_repaired(made: Uploaded, there: Path, destination: Destination) -> None:
    made.one_pass(destination=destination)
    spoiled = there / made.dir.path.name / "results" / "checkpoints" / "train.step-00000019" / "weights"
    before = spoiled.stat()
    spoiled.write_text("x" * 100_000)
    os.utime(spoiled, ns=(before.st_atime_ns, before.st_mtime_ns))  # of the same size and time: only its content tells
    made.dir.arrived("checkpoint-train.step-00000019").unlink()
    assert made.one_pass(destination=destination) is PassEnd.ALL
    assert spoiled.read_text() == "w" * 100_000


def test_files_with_odd_names_arrive_and_their_checksums_can_be_checked(made: Uploaded, there: Path, destination: Destination) -> None:
    odd = ["back\\slash", "two\nlines", "not \udce9 utf-8", "-e", "'$(x)'", "*"]
    for name in odd:
        made.write(f"results/tasks/{TASK}/files/{name}", name.encode(errors="replace").decode())
    made.end()
    assert made.one_pass(destination=destination) is PassEnd.ALL
    assert {path.name for path in (there / made.dir.tasks.relative_to(made.root) / TASK / "files").iterdir()} == {*odd, "deep"}
    assert subprocess.run(["sha256sum", "-c", "--quiet", f"{made.dir.path.name}/SHA256SUMS"], cwd=there, check=False).returncode == 0


def test_folders_that_somebody_took_away_are_not_missed(made: Uploaded, there: Path) -> None:
    shutil.rmtree(made.dir.tasks)
    shutil.rmtree(made.dir.member("train").artifacts)
    assert made.one_pass() is PassEnd.ALL
    assert len(files(there)) == 3


def test_the_note_has_the_checksums_of_what_arrived(made: Uploaded) -> None:
    made.one_pass()
    note = json.loads(made.dir.arrived("checkpoint-train.step-00000019").read_text())
    [digest] = note["files"].values()
    assert digest == hashlib.sha256(b"w" * 100_000).hexdigest()


def test_what_has_arrived_is_not_sent_again(made: Uploaded, there: Path) -> None:
    made.one_pass()
    shutil.rmtree(there)
    assert made.one_pass() is PassEnd.ALL
    assert not there.exists()


def test_logs_of_a_run_that_was_resumed_are_sent_again(made: Uploaded, there: Path) -> None:
    made.one_pass()
    train = made.dir.member("train")
    (train.logs / "leg-0002.out").write_text("step 2\n")
    train.done.write_text(json.dumps({"state": "finished", "cause": "", "at": 9.0}))
    made.one_pass()
    assert (there / f"{made.dir.path.name}-train" / "logs" / "leg-0002.out").exists()


def test_a_pipeline_that_was_made_to_go_on_is_not_all_there_any_more(made: Uploaded) -> None:
    made.end()
    assert made.one_pass() is PassEnd.ALL and has_all_arrived(made.dir)
    made.clock.sleep(10)
    made.end()
    assert not has_all_arrived(made.dir)
    assert made.one_pass() is PassEnd.ALL and has_all_arrived(made.dir)


def test_only_what_was_asked_for_is_uploaded(made: Uploaded, there: Path) -> None:
    assert made.plan.upload
    made.plan = replace(made.plan, upload=replace(made.plan.upload, what=("logs",)))
    made.one_pass()
    assert files(there) == {f"{made.dir.path.name}/params/plan.json", f"{made.dir.path.name}-train/logs/leg-0001.out"}


# ── what does not arrive ──────────────────────────────────────────────────────


def test_a_place_that_is_away_is_tried_ever_more_seldom_told_as_a_problem_and_gets_all_of_it_when_it_is_back(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    made = Uploaded(tmp_path, str(disk / "archive"))
    for tries in (1, 2, 3):
        assert made.one_pass() is PassEnd.LEFT
        assert made.one_pass() is PassEnd.LEFT and not made.last.said, "it is too early to try again"
        problems = stand(made).problems
        assert bool(problems) == (tries == 3)
        made.clock.sleep(3600)
    assert problems == (f"nothing can be uploaded to {disk}/archive, tried 3 times: {disk} does not exist",)
    assert not disk.exists(), "a disk that is not mounted is not filled"
    disk.mkdir()
    assert made.one_pass() is PassEnd.LEFT, "jobs have given it up"
    assert made.one_pass(stubborn=True) is PassEnd.ALL, "tend has not"
    assert files(disk / "archive") == made.expected()
    assert stand(made) == UploadProgress(arrived=4, waiting=0)


class Spoils:
    """A place that takes one thing only as something else."""

    def __init__(self, destination: Destination, name: str) -> None:
        self.destination, self.name = destination, name

    def put(self, root: Path, paths: Sequence[str], sums: Sums) -> None:
        if any(self.name in path for path in paths):
            sums = dict.fromkeys(sums, "0" * 64)
        self.destination.put(root, paths, sums)


def test_one_thing_that_never_arrives_holds_up_no_other(made: Uploaded, there: Path) -> None:
    spoils = Spoils(FolderDestination(there), "checkpoints")
    for _ in range(3):
        assert made.one_pass(destination=spoils) is PassEnd.LEFT
        made.clock.sleep(3600)
    assert files(there) == {path for path in made.expected() if "checkpoints" not in path}
    answer = stand(made)
    assert answer.waiting == 1 and "did not arrive unchanged" in answer.problems[0]
    assert "checkpoint-train.step-00000019 cannot be uploaded, tried 3 times" in answer.problems[0]


def test_rsync_tells_what_it_said_and_one_that_is_not_installed_is_named(
    made: Uploaded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = [f"{made.dir.path.name}/params/plan.json"]
    if shutil.which("rsync"):
        with pytest.raises(NotDelivered, match=r"rsync ended with exit code \d+: .*No such file"):
            destinations.RsyncDestination("/nowhere/at/all").put(made.root, paths, {})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotDelivered, match="rsync cannot be run"):
        destinations.RsyncDestination("host:/folder").put(made.root, paths, {})


def test_a_url_without_fsspec_or_with_an_unknown_protocol_is_told(made: Uploaded, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"{made.dir.path.name}/params/plan.json"]
    with pytest.raises(NotDelivered, match="nosuch"):
        UrlDestination("nosuch://bucket/x").put(made.root, paths, {})
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(NotDelivered, match="fsspec is not installed in the Python that uploads"):
        UrlDestination("s3://bucket/x").put(made.root, paths, {})


def test_an_object_store_is_read_back(made: Uploaded, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    paths = [f"{made.dir.path.name}/params/plan.json"]
    destination = destination_of("memory://bucket/uploads")
    destination.put(made.root, paths, checksums_of(made.root, paths))
    assert store.cat(f"/bucket/uploads/{paths[0]}") == made.dir.plan.read_bytes()
    monkeypatch.setattr(type(store), "put_file", lambda self, source, target: self.pipe_file(target, b"torn"))
    made.dir.plan.write_text("{}")
    with pytest.raises(NotDelivered, match="did not arrive unchanged"):
        destination.put(made.root, paths, checksums_of(made.root, paths))


# ── from outside ──────────────────────────────────────────────────────────────


def test_tend_has_uploaded_what_no_job_is_left_to_upload_and_says_what_fails(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    made = Uploaded(tmp_path, str(disk / "archive"))
    made.end()
    made.dir.summary("json").unlink()
    context = OperationsContext(env={"ONWARD_ROOT": str(made.root)}, clock=made.clock)
    started: list[PipelineDir] = []

    def start(context: OperationsContext, dir: PipelineDir) -> None:
        started.append(dir)
        made.one_pass(stubborn=True)

    problems: list[str] = []
    for _ in range(3):
        assert not problems
        problems = tend_upload(context, made.dir, start=start)
        tend_upload(context, made.dir, start=start)
        assert made.dir.summary("json").exists(), "the table is made where Onward is whole"
        made.clock.sleep(3600)
    assert len(started) == 3, "not before its time"
    assert f"{disk} does not exist" in problems[0]
    disk.mkdir()
    assert not tend_upload(context, made.dir, start=start) and has_all_arrived(made.dir)
    made.clock.sleep(3600)
    assert not tend_upload(context, made.dir, start=start) and len(started) == 4
    assert upload_record(made.dir, made.plan) == {"to": made.to, "arrived": 7, "waiting": 0, "problems": []}


def test_a_url_that_our_python_cannot_reach_is_refused_before_anything_starts(made: Uploaded) -> None:
    assert made.plan.upload
    plan = replace(made.plan, upload=replace(made.plan.upload, to="nosuch://bucket/x"))
    with pytest.raises(InvalidInput, match="nosuch:// is not supported by this Python"):
        check_upload(plan, Cluster(name="local", scheduler="local"))
    check_upload(plan, Cluster(name="far", scheduler="slurm", python="/opt/python"))  # who knows what that one has
    check_upload(made.plan, Cluster(name="local", scheduler="local"))


# ── one at a time, and killed ─────────────────────────────────────────────────


def test_of_two_at_once_one_uploads_and_the_place_of_one_that_died_is_taken(made: Uploaded) -> None:
    made.dir.uploader.write_text(json.dumps({"host": "elsewhere", "pid": 1}))
    assert made.one_pass() is PassEnd.BUSY
    made.clock.sleep(121)
    assert made.one_pass() is PassEnd.ALL
    assert not made.dir.uploader.exists()


def test_killed_in_the_middle_the_next_goes_on_and_leaves_nothing_half(made: Uploaded, there: Path) -> None:
    slow = f"""
import sys, time
from pathlib import Path
from onward.sdk.atomic_files import draft_name
from onward.pipelines.upload import destinations, uploader
def put(self, source, target, digest, real=destinations.FolderDestination._put):
    if "weights" in target.name:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.with_name(draft_name(target.name)).write_text("w" * 50_000)
        print("now", flush=True)
        time.sleep(60)
    real(self, source, target, digest)
destinations.FolderDestination._put = put
uploader.main([{str(made.dir.path)!r}])
"""
    process = subprocess.Popen([sys.executable, "-c", slow], stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "now\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert made.dir.uploader.exists(), "it had no time to say good-bye"
    made.clock = SystemClock()  # type: ignore[assignment]
    assert made.one_pass() is PassEnd.ALL, "on its own machine it is known to be dead at once"
    assert files(there) == made.expected()


# ── pure ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("to", "kind"),
    [
        ("/archive/digits", UploadTargetKind.FOLDER),
        ("~/archive", UploadTargetKind.FOLDER),
        ("files.example.org:/srv/results", UploadTargetKind.RSYNC),
        ("me@files:results", UploadTargetKind.RSYNC),
        ("rsync://files/module", UploadTargetKind.RSYNC),
        ("s3://bucket/results", UploadTargetKind.URL),
        ("file:///archive", UploadTargetKind.URL),
    ],
)
def test_a_place_is_known_by_how_it_is_written(to: str, kind: UploadTargetKind) -> None:
    assert upload_target_kind(to) is kind


@pytest.mark.parametrize("to", ["archive", "../archive", "-e:/x", "host:", "s3:", "", "/a\nb"])
def test_what_is_no_place_is_refused(to: str) -> None:
    with pytest.raises(InvalidInput, match="cannot upload to"):
        upload_target_kind(to)


def test_an_address_with_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidInput, match="contains a password") as caught:
        upload_target_kind("sftp://me:hunter2@host/folder")
    assert "hunter2" not in str(caught.value)


def test_tries_come_ever_later_and_jobs_end_them() -> None:
    tried = [UploadTries(count=count, at=0.0, reason="") for count in range(1, 40)]
    waits = [one.wait() for one in tried]
    assert waits == sorted(waits) and waits[0] == 15.0 and waits[-1] == 3600.0
    assert not is_due(tried[0], now=14.0, retries=5, stubborn=True) and is_due(tried[0], now=15.0, retries=5, stubborn=False)
    assert not is_due(tried[5], now=1e9, retries=5, stubborn=False) and is_due(tried[5], now=1e9, retries=5, stubborn=True)
