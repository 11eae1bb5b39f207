"""Runs that a server knows only by what their jobs send: logs, event files, artifacts and checkpoints are shown all the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.api.access.allowed_hosts import HostRules
from onward.api.app import ApiServer, make_server
from onward.api.background.chores import read_folders
from onward.model import events as ev
from onward.model.run import LegEnd
from onward.model.spec import spec_to_json
from onward.operations.runs import control
from onward.operations.tracker_access import server as announcing
from onward.operations.tracker_access.location import tracker_location
from onward.rundir.journal import Journal, desk_journal
from onward.rundir.layout import RunDir
from onward.supervisor.telemetry.push import Push, PushRefused
from onward.supervisor.telemetry.push_files import LARGEST_ARTIFACT, push_areas
from onward.supervisor.telemetry.tracker_server import TrackerConnection
from onward.tracker.access.tokens import AFTER_END, Rights, Scope
from onward.tracker.ingest.folders.ownership import user_name
from onward.tracker.runs.registry import NewRun
from tests import event_files
from tests.api import Client
from tests.databases import tracker_in
from tests.histories import make_spec
from tests.sandbox import NOON, Sandbox


class InProcess(TrackerConnection):
    """The way to a server without a network."""

    def __init__(self, client: Client) -> None:
        super().__init__("http://localhost", "unused")
        self._client = client
        self.sent: list[str] = []

    def call(
        self, method: str, target: str, body: bytes | None = None, *, kind: str = "application/json", timeout: float = 10.0
    ) -> tuple[int, bytes, str]:
        self.sent.append(target)
        answer = self._client.ask(method, target, body=body, headers={"content-type": kind})
        return answer.status, answer.body, kind


class Harness:
    def __init__(self, folder: Path, opened: Any) -> None:
        self.sandbox = Sandbox(folder / "desk")
        self.at = tracker_location({"HOME": str(folder)}, str(folder / "tracker.db"))
        self.opened = opened
        self.server: ApiServer = make_server(opened.tracker, opened.tokens, self.sandbox.context, self.at, hosts=HostRules(), tend=False)
        _, secret = opened.tokens.create(Scope.USER, rights=Rights.ADMIN, name="ada", now=self.sandbox.clock.now())
        self.client = Client(self.server.gate, secret.text)
        self.spec = make_spec(id="k0farrun", created=NOON, tracker="http://localhost", user=user_name(os.getuid()))
        self.dir = RunDir(folder / "far" / "2026-11-15_A_digits")  # under no root of the server's
        self.dir.make()
        self.dir.spec.write_text(json.dumps(spec_to_json(self.spec)))
        journal = Journal(self.dir.leg_journal(1))
        journal.write(ev.Claimed(leg=1, at=NOON, job="7", hosts=["n1"], gpus=[], deadline=None, local="/tmp"))
        journal.write(ev.Published(leg=1, at=NOON + 9, step=100, bytes=4096, save_seconds=0.1, stage_seconds=0.2))
        journal.close()
        assert self.client.ask("PUT", f"/api/v1/runs/{self.spec.id}/spec", json=spec_to_json(self.spec)).status == 200
        run_token = opened.tokens.create(Scope.RUN, name="jobs", run=self.spec.id, now=self.sandbox.clock.now())[1].text
        self.upstream = InProcess(Client(self.server.gate, run_token))
        self.push = Push(self.upstream, self.spec.id, push_areas(self.dir))

    def get(self, path: str) -> Any:
        answer = self.client.get(f"/api/v1/runs/{self.spec.id}/{path}")
        assert answer.status == 200, answer.text
        return answer


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def test_the_logs_of_a_run_that_is_elsewhere_are_listed_and_read_as_they_grow(harness: Harness) -> None:
    assert harness.get("logs").json["logs"] == []
    assert harness.client.get(f"/api/v1/runs/{harness.spec.id}/logs/1/out").status == 404
    harness.dir.log(1, "out").write_bytes(b"epoch 1\n\xffepo")
    harness.dir.supervisor_log.write_bytes(b"started\n")
    (harness.dir.logs / "leg-0001.gpu-n1.csv").write_bytes(b"time\n")
    harness.push.send_all()
    with harness.dir.log(1, "out").open("ab") as file:
        file.write(b"ch 2\n")
    Push(harness.upstream, harness.spec.id, push_areas(harness.dir)).send_all()  # another process, which remembers nothing
    listed = [(log["leg"], log["stream"], log["bytes"]) for log in harness.get("logs").json["logs"]]
    assert listed == [(0, "supervisor", 8), (1, "out", 17)]
    assert harness.get("logs/1/out").body == b"epoch 1\n\xffepoch 2\n"
    assert harness.get("logs/1/out?offset=-5").body == b"ch 2\n"
    kept = harness.at.files / ".pushed" / harness.spec.id / "logs" / "leg-0001.out"
    assert kept.with_name("leg-0001.gpu-n1.csv").read_bytes() == b"time\n"
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_event_files_that_were_sent_become_series_whoever_reads_them_and_after_a_restart(harness: Harness) -> None:
    file = harness.dir.tensorboard / "events.out.tfevents.1794744001.node"
    event_files.training(file, range(5), at=NOON + 1)
    harness.push.send_all()
    read_folders(harness.server.services)
    assert len(harness.get("points?metric=loss").json["points"]) == 5
    event_files.training(file, range(5, 8), at=NOON + 2, fresh=False)
    harness.push.send_all()
    again = make_server(harness.opened.tracker, harness.opened.tokens, harness.sandbox.context, harness.at, hosts=HostRules(), tend=False)
    read_folders(again.services)
    assert [point["step"] for point in harness.get("points?metric=loss").json["points"]] == list(range(8))


def test_small_artifacts_come_whole_are_replaced_whole_and_large_ones_stay(harness: Harness) -> None:
    plot = harness.dir.artifacts / "plots" / "a.png"
    plot.parent.mkdir()
    plot.write_bytes(b"first")
    with (harness.dir.artifacts / "large.bin").open("wb") as file:
        file.truncate(LARGEST_ARTIFACT + 1)
    (harness.dir.artifacts / "empty").touch()
    harness.push.send_all()
    assert [one["path"] for one in harness.get("artifacts").json["artifacts"]] == ["empty", "plots"]
    assert harness.get("artifacts/plots/a.png").body == b"first"
    sent = len(harness.upstream.sent)
    harness.push.send_all()
    assert len(harness.upstream.sent) == sent  # nothing new, nobody asked
    plot.write_bytes(b"later")
    os.utime(plot, ns=(1, 2_000_000_000))
    harness.push.send_all()
    assert harness.get("artifacts/plots/a.png").body == b"later"
    [body] = harness.get("artifacts?path=plots").json["artifacts"]
    assert (body["bytes"], len(body["sha256"])) == (5, 64)
    harness.upstream.sent.clear()
    assert Push(harness.upstream, harness.spec.id, push_areas(harness.dir)).send_all() == 0  # another process: it asks, and sends nothing
    assert sum("a.png" in target for target in harness.upstream.sent) == 1


def test_checkpoints_are_told_from_the_journals_that_were_sent(harness: Harness) -> None:
    assert harness.get("checkpoints").json["checkpoints"] == []
    harness.push.send_all()
    [body] = harness.get("checkpoints").json["checkpoints"]
    assert (body["step"], body["leg"], body["bytes"], body["state"]) == (100, 1, 4096, "told")


def test_of_a_run_whose_folder_the_server_sees_no_file_is_sent(harness: Harness) -> None:
    here = RunDir(harness.sandbox.root / harness.dir.path.name)
    here.path.parent.mkdir(parents=True, exist_ok=True)
    harness.dir.path.rename(here.path)
    here.log(1, "out").write_bytes(b"epoch 1\n")
    read_folders(harness.server.services)
    push = Push(harness.upstream, harness.spec.id, push_areas(here))
    push.send_all()
    assert not (harness.at.files / ".pushed").exists()
    assert harness.get("logs/1/out").body == b"epoch 1\n"


@pytest.mark.parametrize(
    ("file", "status"),
    [
        *(("logs/../../x", 400), ("logs/leg-0001.out/x", 400), ("params/spec.json", 400), ("results/tensorboard/a.txt", 400)),
        *(("results/tensorboard/../tfevents", 400), ("results/artifacts/a", 400), ("code/a.py", 400), ("logs/.fresh", 400)),
    ],
)
def test_a_piece_of_anything_else_is_refused_and_touches_nothing(harness: Harness, file: str, status: int) -> None:
    target = f"/api/v1/runs/{harness.spec.id}/pieces?file={file}&offset=0"
    assert harness.client.ask("POST", target, body=b"x").status == status
    assert not (harness.at.files / ".pushed").exists()


def test_a_runs_token_sends_files_of_its_own_run_alone(harness: Harness) -> None:
    other = harness.client.post("/api/v1/runs", {"name": "other"}).json["id"]
    push = Push(harness.upstream, other, push_areas(harness.dir))
    with pytest.raises(Exception, match="403"):
        push.send_all()


def _wide(n: int) -> str:
    metrics = {f"layer/{i:04d}": 1 / (7 + n + i) for i in range(300)}
    return json.dumps({"n": n, "t": NOON + n, "s": n, "m": metrics}, separators=(",", ":")) + "\n"


def _doors(harness: Harness) -> list[str]:
    """Where pieces of spools were sent."""
    return [target.split("?")[0].rsplit("/", 1)[1] for target in harness.upstream.sent if "spool" in target]


def test_the_last_job_of_a_run_sends_its_end_and_what_is_left_then_its_token_ends(harness: Harness) -> None:
    journal = Journal(harness.dir.leg_journal(1))
    journal.write(ev.Ended(leg=1, at=NOON + 20, end=LegEnd.CRASHED, reason="exit code 1"))
    journal.write(ev.Closed(leg=1, at=NOON + 20, state="failed", cause="it crashed"))
    journal.close()
    harness.sandbox.clock.sleep(30)
    harness.push.send_records()
    assert harness.opened.tracker.runs.get(harness.spec.id).state == "failed"
    harness.sandbox.clock.sleep(5)
    harness.dir.log(1, "out").write_text("the last words\n")
    harness.push.send_all()
    assert harness.get("logs/1/out").text == "the last words\n"
    harness.sandbox.clock.sleep(AFTER_END)
    harness.dir.log(1, "out").write_text("the last words\nand more, by whoever has found the token\n")
    with pytest.raises(PushRefused, match="401"):
        harness.push.send_all()
    # resumed: its jobs get another token, and the old one is valid again once the server knows
    secret = harness.client.post(f"/api/v1/runs/{harness.spec.id}/tokens", {}).json["secret"]
    harness.sandbox.clock.sleep(3 * 86400)
    acts = desk_journal(harness.dir)
    acts.write(ev.Resumed(leg=2, at=NOON + 90_000, by="ada"))
    acts.close()
    Push(InProcess(Client(harness.server.gate, secret)), harness.spec.id, push_areas(harness.dir)).send_all()
    assert harness.opened.tracker.runs.get(harness.spec.id).state not in ("finished", "failed", "cancelled")
    harness.sandbox.clock.sleep(60 * 86400)
    harness.dir.log(2, "out").write_text("it goes on\n")
    harness.push.send_all()
    assert harness.get("logs/2/out").text == "it goes on\n"


def test_a_run_that_is_resumed_gets_a_new_token_for_its_jobs(harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "token"
    mine.write_text(harness.opened.tokens.create(Scope.USER, now=NOON)[1].text)
    mine.chmod(0o600)
    monkeypatch.setattr(announcing, "TrackerConnection", lambda _, token: InProcess(Client(harness.server.gate, token)))
    sandbox = Sandbox(tmp_path / "other", {"ONWARD_TRACKER_URL": "http://localhost", "ONWARD_TOKEN_FILE": str(mine)})
    played = sandbox.play(tracker="http://localhost")
    control.cancel(sandbox.context, played.dir)
    assert not played.dir.tracker_token.exists()
    control.resume(sandbox.context, played.dir, changes={})
    assert played.dir.tracker_token.stat().st_mode & 0o777 == 0o600
    client = Client(harness.server.gate, played.dir.tracker_token.read_text())
    assert Push(InProcess(client), played.spec.id, push_areas(played.dir)).send_all() > 0
    assert client.get(f"/api/v1/runs/{played.spec.id}").json["state"] == "submitted"


def test_an_agent_sends_records_of_runs_of_its_cluster_alone(harness: Harness) -> None:
    runs = harness.opened.tracker.runs
    here, there, nowhere = (
        runs.create(NewRun(experiment="digits", name="digits", source="onward", cluster=cluster)).run_id
        for cluster in ("slurm", "elsewhere", None)
    )
    agent = Client(harness.server.gate, harness.opened.tokens.create(Scope.AGENT, cluster="slurm", now=NOON)[1].text)

    def sent(run: str) -> int:
        record = {"n": 1, "t": 1.7e9, "s": 1, "m": {"loss": 1.0}}
        return agent.post("/api/v1/records", {"run": run, "leg": 1, "writer": "train-1", "records": [record]}).status

    assert [sent(run) for run in (here, there, nowhere, "absent00")] == [200, 403, 403, 404]
    assert [bool(runs.view(run).metrics) for run in (here, there, nowhere)] == [True, False, False]


def test_spools_come_packed_from_the_second_piece_on_and_are_taken_as_they_are(harness: Harness) -> None:
    spool = harness.dir.spool / "leg-0001.train-7.jsonl"
    for n in range(4):
        with spool.open("a") as file:
            file.write(_wide(n))
        harness.push.send_records()
    assert _doors(harness) == ["pieces", *["packed-pieces"] * 4]
    points = harness.opened.tracker.series.points(harness.spec.id, "layer/0007")
    assert [(point.step, point.value) for point in points] == [(n, 1 / (14 + n)) for n in range(4)]


def test_a_server_that_was_restarted_gets_the_names_again(harness: Harness) -> None:
    spool = harness.dir.spool / "leg-0001.train-7.jsonl"
    spool.write_text(_wide(0))
    harness.push.send_records()
    harness.opened.tracker.push = type(harness.opened.tracker.push)(harness.opened.tracker.database, harness.opened.tracker._writer)
    for n in (1, 2):
        with spool.open("a") as file:
            file.write(_wide(n))
        harness.push.send_records()
    assert _doors(harness) == ["pieces", "packed-pieces", "packed-pieces", "pieces", "packed-pieces"]
    assert len(harness.opened.tracker.series.points(harness.spec.id, "layer/0007")) == 3


def test_packed_lines_that_are_none_are_refused_and_change_nothing(harness: Harness) -> None:
    target = f"/api/v1/runs/{harness.spec.id}/packed-pieces?file=spool/leg-0001.train-7.jsonl&offset=0"
    answer = harness.client.ask("POST", target, body=b"noise" * 20, headers={"content-type": "application/x-onward-lines"})
    assert (answer.status, "cannot be unpacked" in answer.text) == (400, True)
    assert harness.opened.tracker.series.metrics(harness.spec.id) == {}
