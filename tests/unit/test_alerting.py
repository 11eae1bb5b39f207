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
from tests.receivers import Hooks, hooks
from tests.sandbox import Sandbox


class Harness:
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
        fields: dict[str, Any] = {"name": str(kind), "channels": (self.channel.id,), **others}
        return self.tracker.alerts.save_rule(AlertRule(id="", kind=kind, **fields), now=self.clock.now())

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
def harness(tmp_path: Path) -> Iterator[Harness]:
    with Tracker.open(tmp_path / "x.db") as tracker, hooks() as kept:
        yield Harness(tmp_path, tracker, kept)


def test_a_finish_is_told_once_also_by_a_server_that_starts_anew(harness: Harness) -> None:
    harness.rule(AlertKind.FINISHED)
    run = harness.run()
    assert harness.later() == []
    harness.finish(run)
    assert harness.later() == [f"digits finished\nhttp://here/runs/{run}"]
    harness.tracker.runs.set_tags(run, {"seen": "1"})
    harness.alerting = harness.start()
    assert harness.later(SPACING) == []
    [entry] = harness.tracker.notices.history(limit=9)
    assert (entry.run_id, entry.rule, entry.channel, entry.tries, entry.due) == (run, "finished", "ops", 1, None)
    assert entry.sent is not None


def test_what_was_over_before_the_rule_was_made_is_not_told(harness: Harness) -> None:
    harness.finish(harness.run())
    harness.clock.sleep(1)
    harness.rule(AlertKind.FINISHED)
    assert harness.later() == []


def test_the_runs_of_a_sweep_come_as_one_message_and_later_ones_after_a_while(harness: Harness) -> None:
    harness.rule(AlertKind.FAILED)
    runs = [harness.run(f"sweep-{i}") for i in range(5)]
    for run in runs[:4]:
        harness.finish(run, "failed")
    [text] = harness.later()
    assert text.splitlines()[0] == "failed: 4 notices of night"
    assert text.splitlines()[-1] == "http://here/"
    harness.finish(runs[4], "failed")
    assert harness.later() == []  # so soon after the last
    assert harness.later(SPACING) == [f"sweep-4 failed\nhttp://here/runs/{runs[4]}"]


def test_what_could_not_be_sent_is_sent_again_as_the_same_message(harness: Harness) -> None:
    harness.rule(AlertKind.FINISHED)
    harness.finish(harness.run("one"))
    harness.kept.answers = [(500, {}), (503, {})]
    assert len(harness.later()) == 1
    harness.finish(harness.run("two"))  # joins no message that was tried before
    assert len(harness.later(1)) == 0  # not so soon
    waiting = harness.tracker.notices.history(limit=9)
    assert [(entry.title, entry.tries, entry.error) for entry in waiting] == [
        ("two finished", 0, ""),
        ("one finished", 1, "127.0.0.1 answered 500"),
    ]
    texts = [*harness.later(60), *harness.later(60), *harness.later(60)]
    assert [text.splitlines()[0] for text in texts] == ["one finished", "one finished", "two finished"]
    assert all(entry.sent for entry in harness.tracker.notices.history(limit=9))


def test_a_server_killed_after_sending_sends_the_same_id_again_and_never_a_third_time(harness: Harness) -> None:
    hook = harness.tracker.alerts.save_channel(Channel(id="", name="hook", kind="webhook", target={}), now=1.0)
    harness.secrets.keep(hook.id, {"url": harness.kept.url, "key": "aGVsbG8="})
    harness.rule(AlertKind.FINISHED, channels=(hook.id,))
    harness.finish(harness.run())
    carry = harness.alerting.carry

    def killed(*expected: Any, **more: Any) -> None:
        carry(*expected, **more)
        raise KeyboardInterrupt

    harness.alerting.carry = killed
    with pytest.raises(KeyboardInterrupt):
        harness.later()
    harness.alerting = harness.start()
    harness.later()
    harness.later()
    ids = [headers["webhook-id"] for _, headers, _ in harness.kept.posts]
    assert len(ids) == 2 and ids[0] == ids[1]


def test_a_refusal_for_good_is_kept_in_the_history_and_not_tried_again(harness: Harness) -> None:
    harness.rule(AlertKind.FINISHED)
    harness.finish(harness.run())
    harness.kept.answers = [(404, {})]
    assert len(harness.later()) == 1
    assert harness.later(9e4) == []
    [entry] = harness.tracker.notices.history(limit=9)
    assert (entry.sent, entry.due, entry.error) == (None, None, "127.0.0.1 answered 404")


def test_quiet_hours_of_a_channel_hold_its_messages_and_no_others(harness: Harness) -> None:
    hour = time.gmtime(harness.clock.now()).tm_hour
    quiet = QuietHours(begins=f"{hour:02d}:00", ends=f"{(hour + 2) % 24:02d}:00")
    asleep = harness.add("asleep", quiet=quiet)
    harness.rule(AlertKind.FINISHED, channels=(harness.channel.id, asleep.id))
    harness.finish(harness.run())
    harness.later()
    assert [path for path, _, _ in harness.kept.posts] == ["/ops"]
    harness.later(7200)
    assert [path for path, _, _ in harness.kept.posts] == ["/ops", "/asleep"]


def test_a_metric_rule_fires_when_its_filter_comes_true(harness: Harness) -> None:
    harness.rule(AlertKind.METRIC, name="diverges", filter="metrics.loss > 10 and params.lr = 0.1")
    run, other = harness.run("a", params={"lr": 0.1}), harness.run("b", params={"lr": 0.2})
    harness.log(run, "loss", 5.0)
    assert harness.later() == []
    harness.log(run, "loss", 5.0, 11.0)
    harness.log(other, "loss", 5.0, 11.0)
    assert harness.later() == [f"a meets diverges\nmetrics.loss &gt; 10 and params.lr = 0.1\nhttp://here/runs/{run}"]
    harness.log(run, "loss", 5.0, 11.0, 12.0)
    assert harness.later(SPACING) == []


def test_nan_and_silence_are_seen_and_samples_of_the_machine_are_no_sign_of_life(harness: Harness) -> None:
    harness.rule(AlertKind.NAN)
    harness.rule(AlertKind.STALLED, after=600.0)
    run = harness.run()
    harness.log(run, "loss", 1.0, math.nan)
    assert [text.splitlines()[0] for text in harness.later()] == ["digits logs NaN or infinity"]
    harness.clock.sleep(700)
    harness.log(run, "system/cpu_percent", 50.0)
    assert [text.splitlines()[0] for text in harness.later()] == ["digits shows no progress"]
    assert harness.later(SPACING) == []


def test_what_a_training_tells_goes_the_same_way(harness: Harness) -> None:
    harness.rule(AlertKind.TOLD)
    run = harness.run()
    harness.later()
    harness.tracker.runs.add_note(run, "INFO: a person wrote this", author="ada")
    fields = {"n": 0, "t": harness.clock.now(), "kind": "alert", "title": "low accuracy", "text": "0.9 is below 0.95", "level": "WARN"}
    assert harness.tracker.ingest.records(run, 1, "train-7", [fields]).refused == 0
    assert harness.later() == [f"digits says: low accuracy\n0.9 is below 0.95\nhttp://here/runs/{run}"]
    assert harness.later(SPACING) == []


def test_a_nearly_full_disk_is_told_also_of_a_folder_that_is_not_made_yet(harness: Harness) -> None:
    harness.rule(AlertKind.QUOTA, after=1e-9)
    [text] = harness.later()
    assert text.startswith(f"the disk of {harness.folder} is ")
    assert harness.later(SPACING) == []
    later = disk_use(harness.folder / "not" / "yet")
    assert later is not None and later.path.endswith("/not/yet")
    assert disk_use(Path("/proc")) is None  # which has no room to run out of


@pytest.mark.parametrize("lines", [False, True])
def test_what_a_crashed_program_said_is_sent_only_where_the_rule_allows_it(harness: Harness, tmp_path: Path, lines: bool) -> None:
    sandbox = Sandbox(tmp_path / "desk")
    harness.rule(AlertKind.FAILED, lines=lines)
    harness.clock.sleep(sandbox.clock.now() + 100 - harness.clock.now())  # the played run's day
    harness.rule(AlertKind.STARTED)  # one that tells nothing here
    harness.tracker.write(lambda batch: batch.connection.exec_driver_sql("UPDATE alert_rules SET since = 0"))
    played = sandbox.play(limits=Limits(max_restarts=0)).begin(1)
    played.end(1, LegEnd.CRASHED, reason="the training failed (exit code 1): password=hunter2")
    harness.tracker.files.look([sandbox.root])
    [text] = harness.later()
    assert text.startswith("digits failed\nleg 1 crashed\nnext: ")
    assert ("hunter2" in text) is lines


def test_a_rule_or_channel_that_is_off_or_deleted_tells_nothing(harness: Harness) -> None:
    off = harness.rule(AlertKind.FINISHED, enabled=False)
    gone = harness.rule(AlertKind.FINISHED, name="gone")
    other = harness.add("other")
    harness.rule(AlertKind.FINISHED, name="two", channels=(other.id, harness.channel.id))
    harness.finish(harness.run())
    harness.alerting.look()
    harness.tracker.alerts.delete_rule(gone.id)
    harness.tracker.alerts.delete_channel(other.id)
    assert len(harness.later()) == 1
    assert [rule.channels for rule in harness.tracker.alerts.rules() if rule.id != off.id] == [(harness.channel.id,)]
    entries = {(entry.rule, entry.channel): entry for entry in harness.tracker.notices.history(limit=9)}
    assert entries["gone", "ops"].error == "its rule was deleted"
    assert entries["two", "other"].error == "its channel was deleted"
    assert entries["two", "ops"].sent is not None


def test_a_channel_that_is_switched_off_while_something_waits_gives_it_up(harness: Harness) -> None:
    harness.rule(AlertKind.FINISHED)
    harness.finish(harness.run())
    harness.alerting.look()
    harness.tracker.alerts.save_channel(Channel(id=harness.channel.id, name="ops", kind="slack", target={}, enabled=False), now=1.0)
    assert harness.later() == []
    assert harness.tracker.notices.history(limit=9)[0].error == "the channel is switched off"


def test_the_history_forgets_what_is_old(harness: Harness) -> None:
    harness.rule(AlertKind.FINISHED)
    harness.finish(harness.run())
    harness.later()
    harness.later(91 * 86400)
    assert harness.tracker.notices.history(limit=9) == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"kind": AlertKind.METRIC}, "a rule about a metric needs a condition"),
        ({"kind": AlertKind.QUOTA, "after": 90.0}, "a disk is never 90.0 full"),
        ({"kind": AlertKind.FAILED, "filter": "metrics.loss <"}, "a value"),
        ({"kind": AlertKind.FAILED, "channels": ("none",)}, "there is no channel 'none'"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_words(harness: Harness, rule: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        harness.rule(**{"name": "x", **rule})


def test_names_are_unique_and_there_is_a_bound(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    made = harness.rule(AlertKind.FAILED, name="a")
    with pytest.raises(Conflict, match="already a rule named 'a'"):
        harness.rule(AlertKind.NAN, name="a")
    assert harness.tracker.alerts.save_rule(made, now=harness.clock.now()).name == "a"  # itself, again
    monkeypatch.setattr(alerts_module, "MOST", 1)
    with pytest.raises(InvalidInput, match="there are already 1 rules"):
        harness.rule(AlertKind.FAILED, name="b")
    with pytest.raises(NotFound, match="no rule 'x'"):
        harness.tracker.alerts.delete_rule("x")
    with pytest.raises(NotFound, match="no channel 'x'"):
        harness.tracker.alerts.delete_channel("x")
