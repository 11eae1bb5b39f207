"""Pushing: a job's journals and spools reach a server that may be away, refuse, or have some of them already."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from onward.clock import ManualClock
from onward.errors import NotAllowed
from onward.rundir.layout import LegLocal, RunDir
from onward.supervisor.relay.http_messages import RelayAnswer, RelayRequest
from onward.supervisor.relay.server import LoopbackServer
from onward.supervisor.telemetry.changed_files import ChangedPushFiles
from onward.supervisor.telemetry.push import Push, PushRefused, push_last, push_of
from onward.supervisor.telemetry.push_files import push_areas
from onward.supervisor.telemetry.tracker_server import TrackerConnection, TrackerUnreachable, read_token, tracker_connection_of


class FakeServer:
    """Takes pieces as the real one does."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.status = 200
        self.packed_status: int | None = None  # None: it is a server of before, which knows no packed lines
        self.asked = self.refused_packed = 0
        self.authorization = ""
        self._server = LoopbackServer(self._answer)
        self.url = f"http://127.0.0.1:{self._server.port}"

    def close(self) -> None:
        self._server.close()

    def _answer(self, request: RelayRequest) -> RelayAnswer:
        self.asked += 1
        self.authorization = request.headers.get("authorization", "")
        if self.status != 200:
            return RelayAnswer.of({"detail": "no"}, self.status)
        if "/packed-pieces" in request.target:
            self.refused_packed += 1
            return RelayAnswer.of({"detail": "no"}, self.packed_status or 404)
        asked = parse_qs(urlsplit(request.target).query)
        name, offset = asked["file"][0], int(asked["offset"][0])
        data, held = request.body.read(1 << 24) or b"", self.files.get(name, b"")
        if offset <= len(held):
            new = data[len(held) - offset :]
            lines = name.startswith(("journal/", "spool/"))
            self.files[name] = held + (new[: new.rfind(b"\n") + 1] if lines else new)
        return RelayAnswer.of({"next": len(self.files.get(name, b""))} | ({"packed": True} if self.packed_status else {}))


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.close()


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    made.make()
    made.leg_journal(1).write_text('{"kind": "claimed"}\n')
    return made


def with_token(run: RunDir) -> RunDir:
    run.tracker_token.parent.mkdir(mode=0o700)
    run.tracker_token.write_text("owr_1_secret\n")
    run.tracker_token.chmod(0o600)
    return run


def lines(count: int, start: int = 0) -> str:
    return "".join(json.dumps({"n": n, "t": 1.0, "s": n, "m": {"loss": 0.5}}) + "\n" for n in range(start, start + count))


def test_all_files_arrive_whole_lines_first_and_the_rest_later(server: FakeServer, run: RunDir, tmp_path: Path) -> None:
    local = LegLocal(tmp_path / "local")
    local.make()
    name = "leg-0001.train-7.jsonl"
    (run.spool / name).write_text(lines(2))
    (local.spool / name).write_text(lines(5) + '{"n": 5, "to')  # the node's copy is ahead
    push = push_of(server.url, "abc", with_token(run), local)
    assert push
    push.work()
    assert server.files == {"journal/leg-0001.jsonl": b'{"kind": "claimed"}\n', f"spool/{name}": lines(5).encode()}
    assert server.authorization == "Bearer owr_1_secret"
    (local.spool / name).write_text(lines(9))
    push.work()
    assert server.files[f"spool/{name}"] == lines(9).encode()
    before = server.asked
    push.work()
    assert server.asked == before  # nothing new, nobody asked


@pytest.mark.parametrize("status", [None, 400, 403, 404, 413])
def test_a_server_that_takes_no_packed_lines_gets_plain_ones(server: FakeServer, run: RunDir, status: int | None) -> None:
    server.packed_status = status
    path = run.spool / "leg-0001.train-7.jsonl"
    path.write_text(lines(40_000))
    Push(TrackerConnection(server.url, "t"), "abc", {"spool": [run.spool]}).send_all()
    assert server.files["spool/leg-0001.train-7.jsonl"] == lines(40_000).encode()
    assert server.refused_packed == (0 if status is None else 1)


def test_what_the_server_has_is_not_sent_again(server: FakeServer, run: RunDir) -> None:
    path = run.spool / "leg-0001.train-7.jsonl"
    path.write_text(lines(4000))
    server.files["spool/leg-0001.train-7.jsonl"] = lines(3990).encode()
    assert Push(TrackerConnection(server.url, "t"), "abc", {"spool": [run.spool]}).send_all() == len(lines(10, 3990))
    assert server.files["spool/leg-0001.train-7.jsonl"] == path.read_bytes()


def test_a_server_that_is_away_is_left_alone_for_a_while_and_then_gets_all(
    server: FakeServer, run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    now = [1000.0]
    monkeypatch.setattr("onward.supervisor.telemetry.push.time.monotonic", lambda: now[0])
    push = Push(TrackerConnection(server.url, "t"), "abc", {"journal": [run.journals]})
    server.status = 503
    asked = []
    for _ in range(600):
        push.work()
        now[0] += 1
        asked.append(server.asked)
    assert 8 < server.asked < 30  # ten minutes: seldom, and never given up
    assert caplog.text.count("does not answer") == 1
    server.status = 200
    now[0] += 120
    push.work()
    assert list(server.files) == ["journal/leg-0001.jsonl"]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_server_that_refuses_is_asked_no_more(server: FakeServer, run: RunDir, status: int, caplog: pytest.LogCaptureFixture) -> None:
    server.status = status
    push = Push(TrackerConnection(server.url, "t"), "abc", {"journal": [run.journals]})
    for _ in range(3):
        push.work()
    assert server.asked == 1 and f"{status}, no" in caplog.text
    with pytest.raises(PushRefused):
        push.send_all()


def test_one_file_that_is_refused_keeps_no_other(server: FakeServer, run: RunDir) -> None:
    server.status = 400
    push = Push(TrackerConnection(server.url, "t"), "abc", {"journal": [run.journals], "spool": [run.spool]})
    push.work()
    server.status = 200
    (run.spool / "leg-0001.train-7.jsonl").write_text(lines(1))
    push.work()
    assert list(server.files) == ["spool/leg-0001.train-7.jsonl"]


def test_a_leg_that_ends_sends_its_last_words_and_waits_for_nobody(server: FakeServer, run: RunDir) -> None:
    push_last(server.url, "abc", with_token(run), within=10)
    assert list(server.files) == ["journal/leg-0001.jsonl"]
    server.close()
    run.leg_journal(2).write_text("{}\n")
    push_last("http://127.0.0.1:9", "abc", run, within=10)
    push_last(None, "abc", run, within=10)


def test_no_server_or_no_token_means_no_pushing(run: RunDir) -> None:
    assert push_of(None, "abc", run) is None
    push = push_of("http://127.0.0.1:9", "abc", run)
    assert push
    push.work()
    assert push.send_all() == 0
    with pytest.raises(TrackerUnreachable):
        TrackerConnection("http://127.0.0.1:9", "t").call("GET", "/")


def test_a_token_that_comes_after_the_job_has_started_is_used_from_then_on(server: FakeServer, run: RunDir) -> None:
    push = push_of(server.url, "abc", run)
    assert push
    push.work()
    assert server.asked == 0
    with_token(run)
    push.work()
    assert list(server.files) == ["journal/leg-0001.jsonl"]


def test_a_leg_that_ends_before_its_token_is_there_waits_for_it_a_moment_if_the_run_is_young(server: FakeServer, run: RunDir) -> None:
    bringing = threading.Timer(0.3, with_token, [run])
    bringing.start()
    push_last(server.url, "abc", run, within=60, age=2.0)
    bringing.join()
    assert list(server.files) == ["journal/leg-0001.jsonl"]


def test_a_token_that_cannot_be_used_is_said_once(server: FakeServer, run: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    with_token(run).tracker_token.chmod(0o644)
    push = push_of(server.url, "abc", run)
    assert push
    for _ in range(3):
        push.work()
    assert (server.asked, caplog.text.count("is not used")) == (0, 1)


def test_logs_and_event_files_follow_as_they_grow_and_nothing_else_does(server: FakeServer, run: RunDir) -> None:
    push = push_of(server.url, "abc", with_token(run))
    assert push
    run.log(1, "out").write_bytes(b"epoch 1\nepo")
    (run.logs / "core").write_bytes(b"not ours")
    (run.logs / "leg-0001.gpu-n1.csv").write_bytes(b"of another node\n")
    (run.tensorboard / "train").mkdir()
    events = run.tensorboard / "train" / "events.out.tfevents.1.node"
    events.write_bytes(b"\0\1\2")
    (run.tensorboard / "notes.txt").write_text("no event file")
    (run.tensorboard / "link.tfevents").symlink_to(events)
    push.send_all()
    with run.log(1, "out").open("ab") as file:
        file.write(b"ch 2\n")
    push.send_all()
    fields = {name: data for name, data in server.files.items() if not name.startswith("journal/")}
    assert fields == {
        "logs/leg-0001.out": b"epoch 1\nepoch 2\n",
        "logs/leg-0001.gpu-n1.csv": b"of another node\n",
        "results/tensorboard/train/events.out.tfevents.1.node": b"\0\1\2",
    }
    before = server.asked
    assert (push.send_all(), server.asked) == (0, before)


def test_a_long_log_keeps_no_other_file_waiting_and_records_go_first(server: FakeServer, run: RunDir) -> None:
    run.log(1, "out").write_bytes(b"x" * (5 << 20))
    run.log(1, "err").write_bytes(b"why")
    (run.spool / "leg-0001.train-7.jsonl").write_text(lines(1))
    push = Push(TrackerConnection(server.url, "t"), "abc", push_areas(run))
    turns = iter([False] * 9)
    push.send_all(until=lambda: next(turns, True))
    assert list(server.files)[:2] == ["spool/leg-0001.train-7.jsonl", "journal/leg-0001.jsonl"]
    assert len(server.files["logs/leg-0001.out"]) < 5 << 20
    assert server.files["logs/leg-0001.err"] == b"why"
    push.send_all()
    assert len(server.files["logs/leg-0001.out"]) == 5 << 20


def test_a_runs_end_is_not_told_before_its_last_points(server: FakeServer, run: RunDir) -> None:
    spool, last = run.spool / "leg-0001.train-7.jsonl", lines(1, start=5)
    spool.write_text(lines(5))
    push = Push(TrackerConnection(server.url, "t"), "abc", push_areas(run))

    def leg_ends_meanwhile() -> bool:
        if len(server.files.get(f"spool/{spool.name}", b"")) == len(lines(5)) and "closed" not in run.leg_journal(1).read_text():
            run.leg_journal(1).write_text('{"kind": "claimed"}\n{"kind": "closed"}\n')
            spool.write_text(lines(5) + last)
            return True
        return False

    push.send_records(until=leg_ends_meanwhile)
    assert server.files["journal/leg-0001.jsonl"] == b'{"kind": "claimed"}\n'
    push.send_records()
    assert server.files["journal/leg-0001.jsonl"].endswith(b'{"kind": "closed"}\n')
    assert server.files[f"spool/{spool.name}"] == lines(6).encode()


def test_where_no_time_is_left_the_end_is_told_all_the_same(server: FakeServer, run: RunDir) -> None:
    (run.spool / "leg-0001.train-7.jsonl").write_text(lines(5))
    Push(TrackerConnection(server.url, "t"), "abc", push_areas(run)).send_all(until=lambda: True)
    assert server.files["journal/leg-0001.jsonl"] == b'{"kind": "claimed"}\n'


@pytest.mark.parametrize(("readable", "mode"), [("file", 0o640), ("file", 0o604), ("folder", 0o750), ("folder", 0o701)])
def test_a_token_that_others_may_read_is_not_used(run: RunDir, readable: str, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    token = with_token(run).tracker_token
    (token if readable == "file" else token.parent).chmod(mode)
    with pytest.raises(NotAllowed, match=f"mode {mode:o}"):
        read_token(token)
    assert tracker_connection_of("http://127.0.0.1:9", token) is None
    assert "is not used" in caplog.text


def test_a_token_of_somebody_else_is_not_used(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    token = with_token(run).tracker_token
    assert read_token(token) == "owr_1_secret"
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(NotAllowed):
        read_token(token)


def test_a_link_in_a_tokens_place_is_not_followed(run: RunDir, tmp_path: Path) -> None:
    token = with_token(run).tracker_token
    (tmp_path / "other").write_text("x")
    (tmp_path / "other").chmod(0o600)
    token.unlink()
    token.symlink_to(tmp_path / "other")
    with pytest.raises(NotAllowed):
        read_token(token)


# ── what a living leg's pushing asks of shared storage ────────────────────────


class Living:
    """The second leg of a run, with files of the first."""

    def __init__(self, server: FakeServer, run: RunDir, folder: Path) -> None:
        self.local, self.clock = LegLocal(folder / "leg-0002"), ManualClock(1000.0)
        self.local.make()
        (run.spool / "leg-0001.train-1.jsonl").write_text(lines(3))
        run.log(1, "out").write_text("of the first\n")
        run.leg_journal(2).write_text('{"kind": "claimed"}\n')
        looks = ChangedPushFiles(run, self.local, now=self.clock.now)
        self.push = Push(TrackerConnection(server.url, "t"), "run", push_areas(run, self.local), looks=looks)

    def work(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.push._files_not_before = self.push._not_before = 0.0
        self.push.work()


def test_a_living_leg_pushes_what_lies_on_its_node_and_its_journal_and_the_rest_now_and_then(
    server: FakeServer, run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leg = Living(server, run, tmp_path)
    leg.work(2)
    assert sorted(server.files) == ["journal/leg-0001.jsonl", "journal/leg-0002.jsonl", "logs/leg-0001.out", "spool/leg-0001.train-1.jsonl"]
    looked: list[str] = []
    for name in ("stat", "scandir", "listdir"):
        real = getattr(os, name)

        def look(path: Any, *more: Any, real: Any = real, **named: Any) -> Any:
            if str(path).startswith(str(run.path)):
                looked.append(os.path.relpath(path, run.path))
            return real(path, *more, **named)

        monkeypatch.setattr(os, name, look)
    (leg.local.spool / "leg-0002.train-7.jsonl").write_text(lines(2))
    leg.local.log(2, "out").write_text("said\n")
    with run.leg_journal(2).open("a") as journal:
        journal.write('{"kind": "published"}\n')
    for _ in range(15):
        leg.work(2)
    assert server.files["spool/leg-0002.train-7.jsonl"] == lines(2).encode()
    assert server.files["logs/leg-0002.out"] == b"said\n"
    assert b"published" in server.files["journal/leg-0002.jsonl"]
    assert set(looked) == {"journal", "journal/leg-0002.jsonl"} and len(looked) <= 16, "half an operation a second"
    run.desk_journal("1").write_text('{"kind": "stop"}\n')
    leg.work(4)
    assert server.files["journal/desk-1.jsonl"] == b'{"kind": "stop"}\n'


def test_files_handed_over_on_the_node_are_looked_for_in_the_runs_folder_soon(server: FakeServer, run: RunDir, tmp_path: Path) -> None:
    leg = Living(server, run, tmp_path)
    leg.work(2)
    (leg.local.artifacts / "picture.png").write_bytes(b"p")
    (leg.local.artifacts / "picture.png").rename(run.artifacts / "picture.png")
    leg.work(19)
    assert "results/artifacts/picture.png" not in server.files
    leg.work(2)
    assert server.files["results/artifacts/picture.png"] == b"p"


def test_what_a_server_that_is_away_did_not_take_is_not_forgotten_until_the_next_look(
    server: FakeServer, run: RunDir, tmp_path: Path
) -> None:
    leg = Living(server, run, tmp_path)
    server.status = 503
    leg.work(2)
    assert server.files == {}
    server.status = 200
    leg.work(2)
    assert server.files["spool/leg-0001.train-1.jsonl"] == lines(3).encode()
