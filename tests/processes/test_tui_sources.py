"""Where the screen's data comes from: run folders, and the server's API. Neither asks a scheduler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from onward.clock import ManualClock
from onward.errors import Conflict, HostUnreachable, NotAllowed, NotFound
from onward.model.run import LegEnd
from onward.operations.clusters.saved_snapshot import save_snapshot, saved_snapshot
from onward.operations.tracker_access.api_client import ApiClient
from onward.supervisor.telemetry.tracker_server import TrackerUnreachable
from onward.tracker.ingest.folders import tail
from onward.tracker.ingest.folders.spool_positions import read_piece
from onward.tui.sources.choice import open_source
from onward.tui.sources.interface import DataSource, ListedAlerts
from onward.tui.sources.log_lines import PIECE, lines_of
from onward.tui.sources.run_folders import FolderSource
from onward.tui.sources.server import ServerSource
from tests import event_files
from tests.sandbox import Sandbox
from tests.screens import cluster, metrics, populate
from tests.servers import Running

T = TypeVar("T")
PATIENCE = 60.0


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return populate(tmp_path)


@pytest.fixture
def opened() -> Iterator[Callable[[Sandbox], FolderSource]]:
    """Reads folders into a tracker of its own, which ends with the test."""
    with ExitStack() as sources:

        def open(sandbox: Sandbox) -> FolderSource:
            return sources.enter_context(closing(FolderSource(sandbox.context)))

        yield open


@pytest.fixture
def source(sandbox: Sandbox, opened: Callable[[Sandbox], FolderSource]) -> FolderSource:
    return opened(sandbox)


def read(source: DataSource, ask: Callable[[], T]) -> T:
    """The answer once all that it is about is read."""
    end = time.monotonic() + PATIENCE
    answer = ask()
    while source.reading:
        assert time.monotonic() < end
        answer = ask()
    return answer


def named(source: DataSource, name: str) -> str:
    return next(row.id for row in source.runs("").rows if row.name == name)


# ── run folders ───────────────────────────────────────────────────────────────


def test_folders_tell_of_runs_newest_first_without_asking_the_scheduler(sandbox: Sandbox, source: FolderSource) -> None:
    before = sandbox.scheduler.asked
    rows = source.runs("").rows
    assert [(row.name, row.state, row.legs) for row in rows] == [
        ("finished", "finished", 1),
        ("patient", "submitted", 0),
        ("broken", "failed", 1),
        ("digits", "running", 2),
    ]
    assert [row.fraction for row in rows] == [1.0, None, None, 0.22]
    for row in rows:
        source.detail(row.id)
        source.series([row.id], read(source, partial(source.metrics, row.id)), points=100)
        source.log(row.id, "out", leg=None, around=None)
    assert sandbox.scheduler.asked == before


def test_folders_are_filtered_by_words(source: FolderSource) -> None:
    assert [row.name for row in source.runs("FAILED bro").rows] == ["broken"]
    assert source.runs("nothing").rows == ()


def test_a_folder_that_cannot_be_read_is_counted_and_hides_no_other(sandbox: Sandbox, source: FolderSource) -> None:
    sandbox.play("torn").dir.spec.write_text("{")
    found = source.runs("")
    assert len(found.rows) == 4 and "1 cannot be read" in found.note


def test_what_changed_shows_at_the_next_look(sandbox: Sandbox, source: FolderSource) -> None:
    run = sandbox.play("fresh")
    assert source.runs("fresh").rows[0].state == "submitted"
    run.begin(1)
    metrics(run, 1, range(10), slope=5.0, total=20)
    assert (source.runs("fresh").rows[0].state, source.runs("fresh").rows[0].step) == ("running", 9)
    run.end(1, LegEnd.DONE)
    assert source.runs("fresh").rows[0].state == "finished"


def test_legs_are_stitched_where_the_later_one_went_on(source: FolderSource) -> None:
    run = named(source, "digits")
    (series,) = read(source, lambda: source.series([run], ["train/loss"], points=1000))
    assert list(series.steps) == [float(n) for n in range(220)]
    assert series.legs == (100,) and series.points == 220


def test_many_points_come_as_lowest_and_highest(source: FolderSource) -> None:
    run = named(source, "digits")
    (series,) = read(source, lambda: source.series([run], ["train/loss"], points=10))
    assert 5 < len(series.steps) <= 10 and series.points == 220
    assert series.highs[0] == 1.0 and all(low < high for low, high in zip(series.lows, series.highs, strict=True))


def test_new_points_are_read_from_where_the_last_look_ended(sandbox: Sandbox, source: FolderSource) -> None:
    run = sandbox.play("grows").begin(1)
    metrics(run, 1, range(5), slope=5.0)
    assert read(source, lambda: source.metrics(run.spec.id)) == ("train/loss", "val/accuracy")
    file = run.dir.spool / "leg-0001.train-7.jsonl"
    with file.open("a") as out:
        out.write(json.dumps({"n": 9, "t": run.now(), "s": 5, "m": {"new": 1.0}}) + '\nnoise\n{"n": 10, "t"')
    assert "new" in read(source, lambda: source.metrics(run.spec.id))
    with file.open("a") as out:
        out.write(f': {run.now()}, "s": 6, "m": {{"new": 2.0}}}}\n')
    assert read(source, lambda: source.series([run.spec.id], ["new"], points=10))[0].highs == (1.0, 2.0)


def test_a_history_that_takes_long_to_read_comes_in_parts_and_says_so(
    sandbox: Sandbox, source: FolderSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "TURN", 1)
    monkeypatch.setattr(tail, "read_piece", partial(read_piece, piece=20_000))
    run = sandbox.play("long").begin(1)
    run.log(1, *({"t": float(n), "s": n, "m": {"a": 1.0}, "x": "y" * 500} for n in range(10_000)))
    seen: list[int] = []

    def ask() -> None:
        found = source.series([run.spec.id], ["a"], points=10)
        seen.append(found[0].points if found else 0)

    read(source, ask)
    assert seen == sorted(seen) and seen[0] < seen[-1] == 10_000


def test_only_what_is_looked_at_is_read_and_once(sandbox: Sandbox, source: FolderSource, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[str] = []

    def counted(root: Path, path: Path, *others: Any) -> Any:
        pieces.append(f"{path.parents[1].name[13:]}/{path.name}")
        return read_piece(root, path, *others)

    monkeypatch.setattr(tail, "read_piece", counted)
    for run in (named(source, "finished"), named(source, "digits"), named(source, "finished")):
        read(source, partial(source.metrics, run))
    legs = [f"digits/leg-000{leg}.{writer}.jsonl" for leg in (1, 2) for writer in ("system", "train-7")]
    assert sorted(pieces) == [*legs, "finished/leg-0001.train-7.jsonl"]


def test_event_files_of_tensorboard_show_too(sandbox: Sandbox, source: FolderSource) -> None:
    run = sandbox.play("board").begin(1)
    event_files.training(run.dir.tensorboard / "events.out.tfevents.1.host", range(5), at=run.now(), tag="eval/acc")
    assert read(source, lambda: source.metrics(run.spec.id)) == ("eval/acc",)


def test_the_temporary_tracker_goes_with_the_screen(
    sandbox: Sandbox, source: FolderSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    read(source, partial(source.metrics, named(source, "digits")))
    assert [folder.name.startswith("onward-top-") for folder in scratch.iterdir()] == [True]
    source.close()
    assert list(scratch.iterdir()) == []


def test_without_room_for_a_temporary_tracker_it_is_said_and_tried_again(
    sandbox: Sandbox, source: FolderSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    run = named(source, "digits")
    with pytest.raises(OSError, match="nowhere"):
        while True:
            source.metrics(run)
    (tmp_path / "nowhere").mkdir()
    end = time.monotonic() + PATIENCE
    while True:
        try:
            assert "train/loss" in read(source, partial(source.metrics, run))
            break
        except OSError:  # of the try before
            assert time.monotonic() < end


def test_steps_out_of_order_are_drawn_in_order(sandbox: Sandbox, source: FolderSource) -> None:
    run = sandbox.play("jumps").begin(1)
    run.log(1, *({"t": float(n), "s": step, "m": {"a": float(step)}} for n, step in enumerate((3, 1, 2))))
    assert read(source, lambda: source.series([run.spec.id], ["a"], points=10))[0].highs == (1.0, 2.0, 3.0)


def test_a_detail_says_why_what_next_and_what_became_of_the_time(source: FolderSource) -> None:
    broken = source.detail(named(source, "broken"))
    assert broken.row.next == "onward resume it" and broken.evidence == ("ValueError: shapes",)
    digits = read(source, partial(source.detail, named(source, "digits")))
    facts = dict(digits.facts)
    assert facts["progress"].startswith("step 219 of 1000") and "checkpoint of step 199" in facts["at risk"]
    assert digits.timeline and [one.leg for one in digits.timeline.segments if one.kind == "leg"] == [1, 2]
    assert [(gpu.node, gpu.uuid, gpu.percent, gpu.mem_total) for gpu in digits.gpus] == [
        ("node1", "GPU-aaaa", 87.0, 81_920.0),
        ("node1", "GPU-bbbb", 87.0, 81_920.0),
    ]


def test_logs_are_the_newest_legs_unless_another_is_asked_for(source: FolderSource) -> None:
    run = named(source, "digits")
    newest = source.log(run, "out", leg=None, around=None)
    assert newest and (newest.leg, newest.legs) == (2, (1, 2)) and newest.lines[-1].text.startswith("leg 2 step 199")
    older = source.log(run, "err", leg=1, around=None)
    assert older and older.lines[-1].text == "warning 4 of leg 1"
    assert source.log(run, "supervisor", leg=None, around=None) is None


def test_a_log_is_searched_both_ways(source: FolderSource) -> None:
    run = named(source, "digits")
    log = source.log(run, "out", leg=None, around=None)
    assert log
    first = source.search(run, log, "STEP 15", after=0, back=False)
    last = source.search(run, log, "step 15", after=log.size, back=True)
    texts = {line.offset: line.text for line in log.lines}
    assert first is not None and last is not None
    assert texts[first].startswith("leg 2 step 150") and texts[last].startswith("leg 2 step 159")
    assert source.search(run, log, "nowhere", after=0, back=False) is None


def test_a_run_that_is_stopped_from_the_screen_is_stopped(sandbox: Sandbox, source: FolderSource) -> None:
    assert "asked to save and stop" in source.stop(named(source, "digits"))
    assert "is cancelled" in source.stop(named(source, "patient"))
    with pytest.raises(Conflict):
        source.stop(named(source, "broken"))


def test_a_run_that_is_gone_is_not_found(source: FolderSource) -> None:
    with pytest.raises(NotFound, match="is gone"):
        source.detail("nothing")


def test_without_a_picture_of_a_cluster_it_is_said_who_takes_one(tmp_path: Path, opened: Callable[[Sandbox], FolderSource]) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('cluster = "big"\n[clusters.big]\nscheduler = "slurm"\n')
    sandbox = Sandbox(tmp_path / "p", {"ONWARD_SETTINGS": str(settings), "ONWARD_STATE_DIR": str(tmp_path / "state")})
    source = opened(sandbox)
    assert "`onward cluster big` takes one" in source.picture(None).trouble
    save_snapshot(sandbox.context.env, "big", cluster())
    seen = source.picture("big")
    assert seen.snapshot == cluster() and seen.age == 0.0 and sandbox.scheduler.asked == 0


def test_onward_cluster_keeps_the_picture_it_took(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("")
    own = {"ONWARD_STATE_DIR": str(tmp_path / "state"), "ONWARD_ROOT": str(tmp_path), "ONWARD_SETTINGS": str(settings)}
    command = [sys.executable, "-m", "onward", "cluster", "local"]
    done = subprocess.run(command, env={**os.environ, **own}, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen = saved_snapshot(own, "local")
    assert seen and len(seen.nodes) == 1


def test_a_picture_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    env = {"ONWARD_STATE_DIR": str(tmp_path)}
    save_snapshot(env, "a/b", cluster())
    (file,) = (tmp_path / "clusters").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and saved_snapshot(env, "a/b") == cluster()
    file.write_text("{}")
    assert saved_snapshot(env, "a/b") is None and saved_snapshot(env, "other") is None


# ── lines of a log ────────────────────────────────────────────────────────────


def test_a_long_log_is_read_at_its_end_and_around_a_place() -> None:
    data = b"".join(b"%06d\n" % n for n in range(100_000))

    def read(offset: int, limit: int) -> bytes:
        assert limit <= PIECE
        return data[offset : offset + limit]

    lines, end = lines_of(read, len(data), None)
    assert lines[-1].text == "099999" and end == len(data) and all(len(line.text) == 6 for line in lines)
    lines, end = lines_of(read, len(data), 7 * 50_000)
    assert any(line.text == "050000" and line.offset == 7 * 50_000 for line in lines)
    assert end < len(data) and all(len(line.text) == 6 for line in lines)


def test_a_line_without_an_end_and_one_longer_than_all_are_shown() -> None:
    assert [line.text for line in lines_of(lambda at, limit: b"a\nb"[at : at + limit], 3, None)[0]] == ["a", "b"]
    long = b"x" * (3 * PIECE)
    assert len(lines_of(lambda at, limit: long[at : at + limit], len(long), None)[0]) == 1
    assert lines_of(lambda at, limit: b"", 0, None) == ((), 0)


# ── the server ────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Running]]:
    folder = tmp_path_factory.mktemp("served")
    place = populate(folder / "p")
    with Running(folder / "server", "--no-tend", root=place.root) as server:
        yield place, server


@pytest.fixture
def remote(served: tuple[Sandbox, Running]) -> ServerSource:
    place, server = served
    found = ServerSource(ApiClient(server.url, server.token()), place.context.clock)
    for _ in range(400):  # until it has read the folders
        if len(found.runs("").rows) == 4:
            return found
    raise AssertionError(server.log)


def test_a_server_and_the_folders_tell_the_same_of_runs(served: tuple[Sandbox, Running], remote: ServerSource) -> None:
    folders = FolderSource(served[0].context)
    mine = {row.name: row for row in folders.runs("").rows}
    theirs = {row.name: row for row in remote.runs("").rows}
    assert mine.keys() == theirs.keys()
    for name in mine:
        for what in ("id", "state", "why", "next", "experiment", "cluster", "user", "step", "total", "fraction", "legs", "saved_at"):
            assert getattr(mine[name], what) == getattr(theirs[name], what), (name, what)


def test_a_server_and_the_folders_draw_the_same(
    served: tuple[Sandbox, Running], remote: ServerSource, opened: Callable[[Sandbox], FolderSource]
) -> None:
    folders, run = opened(served[0]), named(remote, "digits")
    assert remote.metrics(run) == read(folders, lambda: folders.metrics(run))
    (theirs,), (mine,) = (read(one, partial(one.series, [run], ["train/loss"], points=1000)) for one in (remote, folders))
    assert (theirs.steps, theirs.times, theirs.legs, theirs.points) == (mine.steps, mine.times, mine.legs, mine.points)
    assert theirs.highs == pytest.approx(mine.highs, rel=1e-5) and theirs.began == mine.began
    assert remote.detail(run).gpus == read(folders, partial(folders.detail, run)).gpus


def test_a_server_tells_the_same_first_page_and_timeline(
    served: tuple[Sandbox, Running], remote: ServerSource, opened: Callable[[Sandbox], FolderSource]
) -> None:
    run = named(remote, "broken")
    theirs, mine = remote.detail(run), opened(served[0]).detail(run)
    assert theirs.evidence == mine.evidence and theirs.timeline == mine.timeline
    assert dict(theirs.facts)["command"] == dict(mine.facts)["command"]


def test_a_server_gives_and_searches_logs(served: tuple[Sandbox, Running], remote: ServerSource) -> None:
    run = named(remote, "digits")
    log = remote.log(run, "out", leg=None, around=None)
    assert log == FolderSource(served[0].context).log(run, "out", leg=None, around=None)
    assert log
    at = remote.search(run, log, "step 150", after=0, back=False)
    assert at is not None and next(line for line in log.lines if line.offset == at).text.startswith("leg 2 step 150")
    assert remote.log(run, "supervisor", leg=None, around=None) is None


def test_a_servers_filter_is_its_own_language_and_a_slip_in_it_is_told(remote: ServerSource) -> None:
    assert [row.name for row in remote.runs("state = failed").rows] == ["broken"]
    with pytest.raises(Exception, match="the server says"):
        remote.runs("metrics.loss < ")


def test_a_server_shows_its_clusters(remote: ServerSource) -> None:
    seen = remote.picture("local")
    assert seen.name == "local" and seen.snapshot and len(seen.snapshot.nodes) == 1 and "local" in seen.others


def test_a_server_tells_what_its_rules_told(served: tuple[Sandbox, Running], remote: ServerSource) -> None:
    assert remote.alerts() == ListedAlerts(note="no rules: add them on the web page")
    token = served[1].token("--rights", "admin")
    served[1].json("POST", "/api/v1/alerts/rules", token, {"name": "any", "kind": "failed"})
    assert remote.alerts().note == "1 rule, no alerts so far"


def test_a_notice_to_several_channels_is_one_and_sent_if_any_took_it() -> None:
    class Told:
        url = "http://lab"

        def get(self, path: str, query: Any = None) -> Any:
            one = {"rule": "r", "run_id": "a", "title": "t", "at": 1.0, "level": "error", "text": "x", "error": ""}
            sent, refused, waits = {**one, "sent": 2.0}, {**one, "sent": None, "error": "refused"}, {**one, "at": 9.0, "sent": None}
            return {"notices": [waits, refused, sent], "rules": []}

        def raw(self, path: str, query: Any = None) -> bytes:
            return b""

        def post(self, path: str, body: Any) -> Any:
            return {}

    found = ServerSource(Told(), ManualClock()).alerts().notices
    assert [(notice.at, notice.sent, notice.error) for notice in found] == [(9.0, False, ""), (1.0, True, "")]


def test_a_run_has_an_address_on_its_server(served: tuple[Sandbox, Running], remote: ServerSource) -> None:
    run = named(remote, "digits")
    assert remote.link(run) == f"{served[1].url}/runs/{run}"
    assert served[1].ask("GET", f"/runs/{run}", headers={"accept": "text/html"})[0] in (200, 401)


def test_the_server_of_this_machine_is_found_and_its_token_given_back(served: tuple[Sandbox, Running]) -> None:
    place, server = served
    context = Sandbox(place.folder / "other", {key: value for key, value in server.env.items() if key.startswith("ONWARD_")}).context
    source = open_source(context, folders=False)
    assert isinstance(source, ServerSource) and source.words == server.url.removeprefix("http://") and len(source.runs("").rows) == 4
    source.close()
    with pytest.raises(NotAllowed):
        for _ in range(10_000):
            source.runs("")
    assert isinstance(open_source(context, folders=True), FolderSource)


def test_without_a_server_the_folders_are_read(sandbox: Sandbox, tmp_path: Path) -> None:
    context = Sandbox(tmp_path / "q", {"ONWARD_STATE_DIR": str(tmp_path / "state")}).context
    assert isinstance(open_source(context, folders=False), FolderSource)


def test_a_server_that_is_named_is_used_and_a_missing_token_is_told(tmp_path: Path) -> None:
    token = tmp_path / "token"
    env = {"ONWARD_TRACKER_URL": "http://lab:1/", "ONWARD_TOKEN_FILE": str(token)}
    with pytest.raises(NotFound, match="token cannot be read"):
        open_source(Sandbox(tmp_path / "a", env).context, folders=False)
    token.write_text("secret\n")
    token.chmod(0o600)
    assert open_source(Sandbox(tmp_path / "b", env).context, folders=False).words == "lab:1"


def test_a_server_that_does_not_answer_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    api = ApiClient("http://127.0.0.1:9", "t")

    def nobody(*_: Any, **__: Any) -> Any:
        raise TrackerUnreachable("refused")

    monkeypatch.setattr(api._upstream, "call", nobody)
    with pytest.raises(HostUnreachable, match="does not answer: refused"):
        api.get("/api/v1/runs")
