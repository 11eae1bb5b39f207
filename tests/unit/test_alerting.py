"""From runs to messages: each notice once to each channel, whatever happens between; a digest where there are many."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.clock import ManualClock
from onward.errors import Conflict, InvalidInput, NotFound
from onward.model.alerts.message import GATHER, SPACING, QuietHours
from onward.model.alerts.rules import AlertKind, AlertRule
from onward.model.run import LegEnd
from onward.model.spec import Limits
from onward.operations.alerts.channel_secrets import ChannelSecrets
from onward.operations.alerts.service import AlertService, disk_use
from onward.tracker.alerts import rules as alerts_module
from onward.tracker.alerts.rules import Channel
from onward.tracker.runs.registry import NewRun
from onward.tracker.store import Tracker
from tests.desks import Place
from tests.receivers import Hooks, hooks


class Scene:
    def __init__(self, folder: Path, tracker: Tracker, kept: Hooks) -> None:
        self.folder, self.tracker, self.kept = folder, tracker, kept
        self.clock = ManualClock(time.time())
        self.secrets = ChannelSecrets(folder / "x.secrets")
        self.channel = self.add("ops")
        self.alerting = self.start()

    def add(self, name: str, **others: Any) -> Channel:
        made = self.tracker.alerts.save_channel(Channel(id="", name=name, kind="slack", target={}, **others), now=self.clock.now())
        self.secrets.keep(made.id, {"url": f"{self.kept.url}/{name}"})
        return made

    def start(self) -> AlertService:
        return AlertService(tracker=self.tracker, secrets=self.secrets, clock=self.clock, roots=lambda: [self.folder], url="http://here")

    def rule(self, kind: AlertKind, **others: Any) -> AlertRule:
        told: dict[str, Any] = {"name": str(kind), "channels": (self.channel.id,), **others}
        return self.tracker.alerts.save_rule(AlertRule(id="", kind=kind, **told), now=self.clock.now())

    def run(self, name: str = "digits", **others: Any) -> str:
        return self.tracker.runs.create(NewRun(name=name, experiment="night", started=self.clock.now(), **others)).run_id

    def finish(self, run: str, state: str = "finished") -> None:
        self.tracker.runs.update(run, state=state, ended=self.clock.now())

    def log(self, run: str, key: str, *values: float) -> None:
        self.tracker.ingest.points(run, [(key, step, self.clock.now(), value) for step, value in enumerate(values)])

    def later(self, seconds: float = GATHER) -> list[str]:
        """Look, let time pass, send; the texts that came since the last time."""
        before = len(self.kept.posts)
        self.alerting.look()
        self.clock.sleep(seconds)
        self.alerting.send()
        return [json.loads(body).get("text", "") for _, _, body in self.kept.posts[before:]]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Tracker.open(tmp_path / "x.db") as tracker, hooks() as kept:
        yield Scene(tmp_path, tracker, kept)


def test_a_finish_is_told_once_also_by_a_server_that_starts_anew(scene: Scene) -> None:
    scene.rule(AlertKind.FINISHED)
    run = scene.run()
    assert scene.later() == []
    scene.finish(run)
    assert scene.later() == [f"digits finished\nhttp://here/runs/{run}"]
    scene.tracker.runs.set_tags(run, {"seen": "1"})
    scene.alerting = scene.start()
    assert scene.later(SPACING) == []
    [entry] = scene.tracker.notices.history(limit=9)
    assert (entry.run_id, entry.rule, entry.channel, entry.tries, entry.due) == (run, "finished", "ops", 1, None)
    assert entry.sent is not None


def test_what_was_over_before_the_rule_was_made_is_not_told(scene: Scene) -> None:
    scene.finish(scene.run())
    scene.clock.sleep(1)
    scene.rule(AlertKind.FINISHED)
    assert scene.later() == []


def test_the_runs_of_a_sweep_come_as_one_message_and_later_ones_after_a_while(scene: Scene) -> None:
    scene.rule(AlertKind.FAILED)
    runs = [scene.run(f"sweep-{i}") for i in range(5)]
    for run in runs[:4]:
        scene.finish(run, "failed")
    [text] = scene.later()
    assert text.splitlines()[0] == "failed: 4 notices of night"
    assert text.splitlines()[-1] == "http://here/"
    scene.finish(runs[4], "failed")
    assert scene.later() == []  # so soon after the last
    assert scene.later(SPACING) == [f"sweep-4 failed\nhttp://here/runs/{runs[4]}"]


def test_what_could_not_be_sent_is_sent_again_as_the_same_message(scene: Scene) -> None:
    scene.rule(AlertKind.FINISHED)
    scene.finish(scene.run("one"))
    scene.kept.answers = [(500, {}), (503, {})]
    assert len(scene.later()) == 1
    scene.finish(scene.run("two"))  # joins no message that was tried before
    assert len(scene.later(1)) == 0  # not so soon
    waiting = scene.tracker.notices.history(limit=9)
    assert [(entry.title, entry.tries, entry.error) for entry in waiting] == [
        ("two finished", 0, ""),
        ("one finished", 1, "127.0.0.1 answered 500"),
    ]
    texts = [*scene.later(60), *scene.later(60), *scene.later(60)]
    assert [text.splitlines()[0] for text in texts] == ["one finished", "one finished", "two finished"]
    assert all(entry.sent for entry in scene.tracker.notices.history(limit=9))


def test_a_server_killed_after_sending_sends_the_same_id_again_and_never_a_third_time(scene: Scene) -> None:
    hook = scene.tracker.alerts.save_channel(Channel(id="", name="hook", kind="webhook", target={}), now=1.0)
    scene.secrets.keep(hook.id, {"url": scene.kept.url, "key": "aGVsbG8="})
    scene.rule(AlertKind.FINISHED, channels=(hook.id,))
    scene.finish(scene.run())
    carry = scene.alerting.carry

    def killed(*told: Any, **more: Any) -> None:
        carry(*told, **more)
        raise KeyboardInterrupt

    scene.alerting.carry = killed
    with pytest.raises(KeyboardInterrupt):
        scene.later()
    scene.alerting = scene.start()
    scene.later()
    scene.later()
    ids = [headers["webhook-id"] for _, headers, _ in scene.kept.posts]
    assert len(ids) == 2 and ids[0] == ids[1]


def test_a_refusal_for_good_is_kept_in_the_history_and_not_tried_again(scene: Scene) -> None:
    scene.rule(AlertKind.FINISHED)
    scene.finish(scene.run())
    scene.kept.answers = [(404, {})]
    assert len(scene.later()) == 1
    assert scene.later(9e4) == []
    [entry] = scene.tracker.notices.history(limit=9)
    assert (entry.sent, entry.due, entry.error) == (None, None, "127.0.0.1 answered 404")


def test_quiet_hours_of_a_channel_hold_its_messages_and_no_others(scene: Scene) -> None:
    hour = time.gmtime(scene.clock.now()).tm_hour
    quiet = QuietHours(begins=f"{hour:02d}:00", ends=f"{(hour + 2) % 24:02d}:00")
    asleep = scene.add("asleep", quiet=quiet)
    scene.rule(AlertKind.FINISHED, channels=(scene.channel.id, asleep.id))
    scene.finish(scene.run())
    scene.later()
    assert [path for path, _, _ in scene.kept.posts] == ["/ops"]
    scene.later(7200)
    assert [path for path, _, _ in scene.kept.posts] == ["/ops", "/asleep"]


def test_a_metric_rule_fires_when_its_filter_comes_true(scene: Scene) -> None:
    scene.rule(AlertKind.METRIC, name="diverges", filter="metrics.loss > 10 and params.lr = 0.1")
    run, other = scene.run("a", params={"lr": 0.1}), scene.run("b", params={"lr": 0.2})
    scene.log(run, "loss", 5.0)
    assert scene.later() == []
    scene.log(run, "loss", 5.0, 11.0)
    scene.log(other, "loss", 5.0, 11.0)
    assert scene.later() == [f"a meets diverges\nmetrics.loss &gt; 10 and params.lr = 0.1\nhttp://here/runs/{run}"]
    scene.log(run, "loss", 5.0, 11.0, 12.0)
    assert scene.later(SPACING) == []


def test_nan_and_silence_are_seen_and_samples_of_the_machine_are_no_sign_of_life(scene: Scene) -> None:
    scene.rule(AlertKind.NAN)
    scene.rule(AlertKind.STALLED, after=600.0)
    run = scene.run()
    scene.log(run, "loss", 1.0, math.nan)
    assert [text.splitlines()[0] for text in scene.later()] == ["digits logs NaN or infinity"]
    scene.clock.sleep(700)
    scene.log(run, "system/cpu_percent", 50.0)
    assert [text.splitlines()[0] for text in scene.later()] == ["digits shows no progress"]
    assert scene.later(SPACING) == []


def test_what_a_training_tells_goes_the_same_way(scene: Scene) -> None:
    scene.rule(AlertKind.TOLD)
    run = scene.run()
    scene.later()
    scene.tracker.runs.add_note(run, "INFO: a person wrote this", author="ada")
    told = {"n": 0, "t": scene.clock.now(), "kind": "alert", "title": "low accuracy", "text": "0.9 is below 0.95", "level": "WARN"}
    assert scene.tracker.ingest.records(run, 1, "train-7", [told]).refused == 0
    assert scene.later() == [f"digits says: low accuracy\n0.9 is below 0.95\nhttp://here/runs/{run}"]
    assert scene.later(SPACING) == []


def test_a_nearly_full_disk_is_told_also_of_a_folder_that_is_not_made_yet(scene: Scene) -> None:
    scene.rule(AlertKind.QUOTA, after=1e-9)
    [text] = scene.later()
    assert text.startswith(f"the disk of {scene.folder} is ")
    assert scene.later(SPACING) == []
    later = disk_use(scene.folder / "not" / "yet")
    assert later is not None and later.path.endswith("/not/yet")
    assert disk_use(Path("/proc")) is None  # which has no room to run out of


@pytest.mark.parametrize("lines", [False, True])
def test_what_a_crashed_program_said_is_sent_only_where_the_rule_allows_it(scene: Scene, tmp_path: Path, lines: bool) -> None:
    place = Place(tmp_path / "desk")
    scene.rule(AlertKind.FAILED, lines=lines)
    scene.clock.sleep(place.clock.now() + 100 - scene.clock.now())  # the played run's day
    scene.rule(AlertKind.STARTED)  # one that tells nothing here
    scene.tracker.write(lambda batch: batch.connection.exec_driver_sql("UPDATE alert_rules SET since = 0"))
    played = place.play(limits=Limits(max_restarts=0)).begin(1)
    played.end(1, LegEnd.CRASHED, reason="the training failed (exit code 1): password=hunter2")
    scene.tracker.files.look([place.root])
    [text] = scene.later()
    assert text.startswith("digits failed\nleg 1 crashed\nnext: ")
    assert ("hunter2" in text) is lines


def test_a_rule_or_channel_that_is_off_or_deleted_tells_nothing(scene: Scene) -> None:
    off = scene.rule(AlertKind.FINISHED, enabled=False)
    gone = scene.rule(AlertKind.FINISHED, name="gone")
    other = scene.add("other")
    scene.rule(AlertKind.FINISHED, name="two", channels=(other.id, scene.channel.id))
    scene.finish(scene.run())
    scene.alerting.look()
    scene.tracker.alerts.delete_rule(gone.id)
    scene.tracker.alerts.delete_channel(other.id)
    assert len(scene.later()) == 1
    assert [rule.channels for rule in scene.tracker.alerts.rules() if rule.id != off.id] == [(scene.channel.id,)]
    entries = {(entry.rule, entry.channel): entry for entry in scene.tracker.notices.history(limit=9)}
    assert entries["gone", "ops"].error == "its rule was deleted"
    assert entries["two", "other"].error == "its channel was deleted"
    assert entries["two", "ops"].sent is not None


def test_a_channel_that_is_switched_off_while_something_waits_gives_it_up(scene: Scene) -> None:
    scene.rule(AlertKind.FINISHED)
    scene.finish(scene.run())
    scene.alerting.look()
    scene.tracker.alerts.save_channel(Channel(id=scene.channel.id, name="ops", kind="slack", target={}, enabled=False), now=1.0)
    assert scene.later() == []
    assert scene.tracker.notices.history(limit=9)[0].error == "the channel is switched off"


def test_the_history_forgets_what_is_old(scene: Scene) -> None:
    scene.rule(AlertKind.FINISHED)
    scene.finish(scene.run())
    scene.later()
    scene.later(91 * 86400)
    assert scene.tracker.notices.history(limit=9) == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"kind": AlertKind.METRIC}, "a rule about a metric needs a condition"),
        ({"kind": AlertKind.QUOTA, "after": 90.0}, "a disk is never 90.0 full"),
        ({"kind": AlertKind.FAILED, "filter": "metrics.loss <"}, "a value"),
        ({"kind": AlertKind.FAILED, "channels": ("none",)}, "there is no channel 'none'"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_words(scene: Scene, rule: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        scene.rule(**{"name": "x", **rule})


def test_names_are_unique_and_there_is_a_bound(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scene.rule(AlertKind.FAILED, name="a")
    with pytest.raises(Conflict, match="already a rule named 'a'"):
        scene.rule(AlertKind.NAN, name="a")
    assert scene.tracker.alerts.save_rule(made, now=scene.clock.now()).name == "a"  # itself, again
    monkeypatch.setattr(alerts_module, "MOST", 1)
    with pytest.raises(InvalidInput, match="there are already 1 rules"):
        scene.rule(AlertKind.FAILED, name="b")
    with pytest.raises(NotFound, match="no rule 'x'"):
        scene.tracker.alerts.delete_rule("x")
    with pytest.raises(NotFound, match="no channel 'x'"):
        scene.tracker.alerts.delete_channel("x")
