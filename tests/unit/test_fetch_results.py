"""`onward fetch`: a run's results are copied to a folder here, whole, nowhere else, and only what is new."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.errors import Conflict, HostUnreachable, InvalidInput, NotFound, StorageError, StorageFull
from onward.operations.fetch.result_files import RunFile, as_json
from onward.operations.fetch.target import FetchFolder, safe_parts
from onward.operations.fetch.transfer import Fetched, FetchPlan, fetch, plan_fetch
from onward.operations.hosts.all_hosts import LocatedRun
from onward.operations.hosts.local import LocalHost
from onward.operations.ssh.host import RemoteHost
from onward.rundir.layout import RunDir
from tests.disks import small_disk
from tests.sandbox import Sandbox


class Silent:
    def bytes(self, count: int) -> None:
        pass

    def done(self, file: RunFile) -> None:
        pass


class Case:
    """A run with some of everything, and a folder to fetch to."""

    def __init__(self, tmp_path: Path) -> None:
        self.sandbox = Sandbox(tmp_path)
        self.sandbox.write("lib/model.py", "x = 1\n")
        self.dir = self.sandbox.submit()
        self.to = tmp_path / "here"
        self.write("results/artifacts/plots/loss.png", "picture")
        self.write("results/tensorboard/events.out.tfevents.1", "events")
        self.write("code/out/samples.txt", "samples")
        self.write("logs/leg-0001.out", "step 1\n")

    def write(self, path: str, text: str) -> Path:
        file = self.dir.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def found(self, host: Any = None) -> LocatedRun:
        return LocatedRun(host=host or LocalHost(self.sandbox.context), run=str(self.dir.path))

    def plan(self, *paths: str, checkpoints: str | None = None, logs: bool = False, to: Path | None = None) -> FetchPlan:
        return plan_fetch(self.found(), paths, to=to or self.to, checkpoints=checkpoints, logs=logs)

    def fetch(self, *paths: str, host: Any = None, **asked: Any) -> Fetched:
        return fetch(self.found(host), self.plan(*paths, **asked), Silent())

    def fetched(self) -> dict[str, str]:
        files = (path for path in self.to.rglob("*") if not path.is_dir())
        return {str(path.relative_to(self.to)): path.read_text() for path in files}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


ALL = {
    "results/artifacts/plots/loss.png": "picture",
    "results/tensorboard/events.out.tfevents.1": "events",
    "code/out/samples.txt": "samples",
    "logs/leg-0001.out": "step 1\n",
}


# ── what is fetched ───────────────────────────────────────────────────────────


def test_results_written_files_and_logs_are_fetched_and_code_is_not(case: Case) -> None:
    case.fetch()
    assert case.fetched() == ALL
    source = case.dir.path / "code/out/samples.txt"
    assert (case.to / "code/out/samples.txt").stat().st_mtime_ns == source.stat().st_mtime_ns


def test_a_path_is_a_file_a_folder_or_a_pattern_named_with_its_kind_or_without(case: Case) -> None:
    for path in ("plots/loss.png", "results/artifacts/plots", "plots/", "./plots", "*.png"):
        assert [file.path for file in case.plan(path).to_copy] == ["results/artifacts/plots/loss.png"], path
    assert [file.path for file in case.plan("out", "leg-*").to_copy] == ["code/out/samples.txt", "logs/leg-0001.out"]


def test_a_path_that_matches_nothing_is_refused_with_what_there_is(case: Case) -> None:
    with pytest.raises(NotFound, match="'plot' matches no file of the run") as refused:
        case.plan("out", "plot")
    assert "code/out/ (1 file)" in refused.value.hint and "results/artifacts/plots/ (1 file)" in refused.value.hint


def test_only_the_logs(case: Case) -> None:
    assert [file.path for file in case.plan(logs=True).to_copy] == ["logs/leg-0001.out"]


def test_a_run_without_results_has_nothing_to_fetch(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    found = LocatedRun(host=LocalHost(sandbox.context), run=str(sandbox.submit().path))
    with pytest.raises(NotFound, match="has nothing to fetch"):
        plan_fetch(found, (), to=tmp_path / "here", checkpoints=None, logs=False)


def test_checkpoints_are_fetched_only_when_asked_for_and_their_size_is_said(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    played = sandbox.play("digits").begin(1)
    played.save(1, 10), played.save(1, 20)
    found = LocatedRun(host=LocalHost(sandbox.context), run=str(played.dir.path))
    (played.dir.artifacts / "a").write_text("a")

    def steps(checkpoints: str | None) -> set[str]:
        plan = plan_fetch(found, (), to=tmp_path / "here", checkpoints=checkpoints, logs=False)
        return {file.path.split("/")[2][-2:] for file in plan.to_copy if file.kind == "checkpoints"}

    [note] = [note for note in plan_fetch(found, (), to=tmp_path / "x", checkpoints=None, logs=False).notes if "checkpoint" in note]
    assert note.startswith("2 checkpoints (") and note.endswith("to get them: --checkpoints newest, all or a step")
    assert (steps(None), steps("newest"), steps("all"), steps("10")) == (set(), {"20"}, {"10", "20"}, {"10"})
    with pytest.raises(NotFound, match="matches no file") as refused:
        plan_fetch(found, ["results/checkpoints"], to=tmp_path / "here", checkpoints=None, logs=False)
    assert note in refused.value.hint
    with pytest.raises(NotFound, match="there is no checkpoint of step 11") as refused:
        steps("11")
    assert refused.value.hint == "there are those of step 10, 20"


# ── once, whole, resumed ──────────────────────────────────────────────────────


def test_what_is_here_with_its_size_and_time_is_not_copied_again(case: Case) -> None:
    case.fetch()
    case.write("logs/leg-0001.out", "step 1\nstep 2\n")
    plan = case.plan()
    assert ([file.path for file in plan.to_copy], len(plan.here)) == (["logs/leg-0001.out"], 3)
    case.fetch()
    assert case.fetched() == ALL | {"logs/leg-0001.out": "step 1\nstep 2\n"}


class Cut:
    """A host whose connection breaks after so many bytes of the first file; a byte a piece."""

    def __init__(self, here: LocalHost, after: int) -> None:
        self._here, self._after = here, after
        self.asked: list[list[Any]] = []

    hostname = None

    def file_pieces(self, *, run: str, files: list[list[Any]]) -> Iterator[dict[str, Any]]:
        self.asked = files
        for piece in self._here.file_pieces(run=run, files=files):
            for at, byte in enumerate(piece.get("data", b""), piece.get("at", 0)):
                if at == self._after:
                    return
                yield {"path": piece["path"], "at": at, "to": at + 1, "data": bytes([byte])}
            if "data" not in piece:
                yield piece


def test_a_file_that_was_cut_off_is_not_seen_and_goes_on_where_it_ended(case: Case) -> None:
    cut = Cut(LocalHost(case.sandbox.context), after=3)
    with pytest.raises(StorageError, match="1 file did not arrive"):
        case.fetch("out/samples.txt", host=cut)
    assert "code/out/samples.txt" not in case.fetched()
    again = Cut(LocalHost(case.sandbox.context), after=-1)
    case.fetch("out/samples.txt", host=again)
    assert [offset for _, offset, _, _ in again.asked] == [3]
    assert case.fetched() == {"code/out/samples.txt": "samples"}, "and nothing unfinished is left"


class BreakingHost(RemoteHost):
    """The files of this machine, through a connection that breaks once, after so many pieces."""

    def __init__(self, case: Case, after: int) -> None:
        self.said: list[str] = []
        super().__init__(case.sandbox.context, "lab", [], say=self.said.append)
        self._here, self._after = LocalHost(case.sandbox.context), after
        self.asked: list[list[list[Any]]] = []

    def _stream(self, request: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
        given = json.loads(json.dumps(request["with"]))
        self.asked.append(given["files"])
        for number, piece in enumerate(self._here.file_pieces(**given)):
            if number == self._after and len(self.asked) == 1:
                raise HostUnreachable("the connection to lab broke")
            yield dict(json.loads(json.dumps(as_json(piece))))


def test_a_connection_that_breaks_is_made_again_and_goes_on_at_that_byte(case: Case) -> None:
    data = os.urandom((2 << 20) + 5)
    (case.dir.path / "results/artifacts/large").write_bytes(data)
    host = BreakingHost(case, after=5)  # the three of the small file, the begin of the large one, and its first data
    fetch(case.found(host), case.plan("out", "large"), Silent())
    assert (case.to / "results/artifacts/large").read_bytes() == data
    first, second = host.asked
    assert [path for path, *_ in first] == ["code/out/samples.txt", "results/artifacts/large"]
    assert [(path, offset) for path, offset, *_ in second] == [("results/artifacts/large", 1 << 20)]
    assert any("retrying" in words for words in host.said) and "lab answers again" in host.said


def test_a_file_that_was_written_again_since_begins_anew(case: Case) -> None:
    with pytest.raises(StorageError):
        case.fetch("out/samples.txt", host=Cut(LocalHost(case.sandbox.context), after=3))
    case.write("code/out/samples.txt", "other words")
    case.fetch("out/samples.txt")
    assert case.fetched() == {"code/out/samples.txt": "other words"}


def test_a_file_that_changes_between_the_list_and_the_copy_is_copied_as_it_is_then(case: Case) -> None:
    plan = case.plan("leg-0001.out")
    log = case.write("logs/leg-0001.out", "step 1\nstep 2\n")
    fetch(case.found(), plan, Silent())
    assert case.fetched() == {"logs/leg-0001.out": log.read_text()}
    assert not case.plan("leg-0001.out").to_copy


def test_a_file_that_is_gone_is_named_and_the_others_are_fetched(case: Case) -> None:
    plan = case.plan()
    (case.dir.path / "code/out/samples.txt").unlink()
    done = fetch(case.found(), plan, Silent())
    assert done.problems == {"code/out/samples.txt": "No such file or directory"}
    assert case.fetched().keys() == ALL.keys() - {"code/out/samples.txt"}


def test_a_full_disk_is_said_and_what_is_whole_stays(case: Case, tmp_path: Path) -> None:
    case.write("results/artifacts/zeros", "0" * 500_000)
    with small_disk(tmp_path / "small", kilobytes=200) as small:
        with pytest.raises(StorageFull, match=r"no room left in .* for results/artifacts/zeros; the files fetched before it are whole"):
            case.fetch(to=small / "here")
        case.to = small / "here"
        assert {path: text for path, text in case.fetched().items() if not path.startswith(".fetch")} == {
            path: text for path, text in ALL.items() if path < "results/artifacts/zeros"
        }


def test_two_fetches_into_one_folder_are_refused(case: Case) -> None:
    with FetchFolder(case.to).held(), pytest.raises(Conflict, match="another fetch writes to"):
        case.fetch()


# ── nowhere else ──────────────────────────────────────────────────────────────


def test_links_of_the_run_are_not_followed(case: Case, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    (case.dir.path / "code/out/link").symlink_to(secret / "key")
    (case.dir.artifacts / "linked").symlink_to(secret)
    case.fetch()
    assert case.fetched() == ALL
    plan = case.plan()
    assert plan.notes == ["not fetched: links and special files: results/artifacts/linked, code/out/link"]
    os.rename(case.dir.artifacts / "plots", case.dir.artifacts / "moved")
    (case.dir.artifacts / "plots").symlink_to(secret)
    (secret / "loss.png").write_text("secret")
    [file] = [file for file in plan.here if file.path.endswith("loss.png")]
    done = fetch(case.found(), FetchPlan(folder=FetchFolder(tmp_path / "other"), to_copy=[file], here=[], notes=[]), Silent())
    assert "link" in done.problems[file.path] and not list((tmp_path / "other").rglob("*.png"))


def test_links_in_the_folder_here_are_not_written_through(case: Case, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    case.to.mkdir()
    (case.to / "code").symlink_to(outside)
    with pytest.raises(Conflict, match="code is a link, and fetch does not write through links"):
        case.fetch("out/samples.txt")
    (case.to / "logs").mkdir()
    (case.to / "logs/leg-0001.out").symlink_to(outside / "log")
    with pytest.raises(Conflict, match="is a folder or a link"):
        case.fetch(logs=True)
    assert not list(outside.iterdir())


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//x", "."])
def test_a_path_from_another_machine_cannot_lead_out(case: Case, path: str) -> None:
    with pytest.raises(InvalidInput, match="is not a path below the run's folder"):
        safe_parts(path)

    class Lying(LocalHost):
        def result_files(self, *, run: str, checkpoints: str | None) -> Iterator[dict[str, Any]]:
            yield {"files": [[path, "logs", 1, 1]], "skipped": [], "left": {"count": 0, "bytes": 0}}

    with pytest.raises(InvalidInput, match="is not a path below the run's folder"):
        plan_fetch(case.found(Lying(case.sandbox.context)), (), to=case.to, checkpoints=None, logs=False)


def test_a_runs_folder_is_no_place_to_fetch_to(case: Case) -> None:
    for to, which in ((case.dir.path, "the run's own folder"), (case.dir.path / "x", "the run's own folder")):
        with pytest.raises(Conflict, match=which):
            case.plan(to=to)
    other = RunDir(case.sandbox.submit(name="other").path)
    with pytest.raises(Conflict, match="is in a run's folder"):
        case.plan(to=other.path)


def test_a_file_in_the_place_of_the_folder_is_refused(case: Case) -> None:
    case.to.write_text("a file")
    with pytest.raises(Conflict, match="a file is where a folder must be"):
        case.fetch()
