"""Rules of alerts say once what there is to say, and nothing that a program printed unless they may; messages are gathered and wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from onward.errors import InvalidInput
from onward.model.alerts.message import GATHER, MOST_TRIES, SPACING, QuietHours, compose, retry_time, send_time
from onward.model.alerts.rules import (
    FRESH,
    AlertKind,
    AlertRule,
    DiskUsage,
    Notice,
    NoticeLevel,
    TrainingAlert,
    WatchedRun,
    notices_for,
    notices_for_disk,
)

NOW = 1_800_000_000.0
RUN = WatchedRun(run_id="abcdefgh", name="digits", experiment="night", state="running", leg=2, step=40)


def rule(kind: AlertKind, **others: object) -> AlertRule:
    return AlertRule(id="r", name="mine", kind=kind, channels=("c",), since=NOW - 1000, **others)  # type: ignore[arg-type]


def said(found: list[Notice]) -> list[tuple[str, str]]:
    return [(notice.title, notice.text) for notice in found]


def test_a_start_is_told_only_after_a_wait_that_was_long_enough() -> None:
    seen = replace(RUN, queued=NOW - 4000, begun=NOW - 100)
    assert said(notices_for(rule(AlertKind.STARTED), seen, NOW)) == [("digits started after 65 min in the queue", "leg 2 runs")]
    assert notices_for(rule(AlertKind.STARTED, after=5000.0), seen, NOW) == []
    assert notices_for(rule(AlertKind.STARTED), replace(seen, begun=NOW - 1001), NOW) == []  # before the rule was made


def test_a_failure_is_told_with_reason_and_next_step_and_lines_only_where_the_rule_allows_them() -> None:
    seen = replace(RUN, state="failed", ended=NOW - 5, reason="leg 2 crashed", next="onward resume abcdefgh", lines="KeyError: 'secret'")
    [answer] = notices_for(rule(AlertKind.FAILED), seen, NOW)
    assert (answer.title, answer.text, answer.level) == ("digits failed", "leg 2 crashed\nnext: onward resume abcdefgh", NoticeLevel.ERROR)
    [answer] = notices_for(rule(AlertKind.FAILED, lines=True), seen, NOW)
    assert answer.text.endswith("\n\nKeyError: 'secret'")
    assert notices_for(rule(AlertKind.FAILED), replace(seen, ended=NOW - 1001), NOW) == []
    assert notices_for(rule(AlertKind.FAILED), RUN, NOW) == []


def test_a_finish_is_told_with_its_legs_and_step() -> None:
    assert said(notices_for(rule(AlertKind.FINISHED), replace(RUN, state="finished", ended=NOW), NOW)) == [
        ("digits finished", "after 2 legs at step 40")
    ]
    assert said(notices_for(rule(AlertKind.FINISHED), replace(RUN, state="finished", ended=NOW, leg=1, step=None), NOW)) == [
        ("digits finished", "")
    ]


def test_a_run_is_stalled_when_nothing_was_logged_since_it_began_or_logged_or_saved() -> None:
    silent = replace(RUN, begun=NOW - 9000, heard=NOW - 1900)
    [answer] = notices_for(rule(AlertKind.STALLED), silent, NOW)
    assert answer.text == "running, but has logged nothing for 32 min, since step 40"
    assert notices_for(rule(AlertKind.STALLED), replace(silent, heard=NOW - 1700), NOW) == []
    assert notices_for(rule(AlertKind.STALLED), replace(silent, saved=NOW - 60), NOW) == []
    assert notices_for(rule(AlertKind.STALLED), replace(silent, state="waiting"), NOW) == []
    assert notices_for(rule(AlertKind.STALLED), replace(silent, begun=1.0, heard=NOW - FRESH - 1900), NOW) == []  # left behind long ago
    moved = notices_for(rule(AlertKind.STALLED), replace(silent, step=41), NOW)
    assert moved[0].key != answer.key  # it went on, and stalls again


def test_a_checkpoint_is_overdue_since_the_last_one_or_the_legs_beginning() -> None:
    [answer] = notices_for(rule(AlertKind.OVERDUE), replace(RUN, begun=NOW - 20000, saved=NOW - 7300), NOW)
    assert answer.text == "2 h 02 min of work since the last checkpoint would be lost if it died now"
    [answer] = notices_for(rule(AlertKind.OVERDUE, after=50.0), replace(RUN, begun=NOW - 60, saved=NOW - 7300), NOW)
    assert answer.text == "60 s of work since leg 2 began would be lost if it died now"
    assert notices_for(rule(AlertKind.OVERDUE), replace(RUN, begun=NOW - 60), NOW) == []


def test_nan_is_told_once_a_leg_with_the_first_of_many_metrics() -> None:
    [answer] = notices_for(rule(AlertKind.NAN), replace(RUN, nans=tuple("abcdefg"), heard=NOW), NOW)
    assert (answer.title, answer.text) == ("digits logs NaN or infinity", "a, b, c, d, e and 2 more at step 40")
    assert notices_for(rule(AlertKind.NAN), RUN, NOW) == []
    assert notices_for(rule(AlertKind.NAN), replace(RUN, nans=("a",), ended=NOW - 2000), NOW) == []


def test_a_metric_rule_tells_its_condition() -> None:
    [answer] = notices_for(rule(AlertKind.METRIC, filter="metrics.loss > 10"), RUN, NOW)
    assert (answer.title, answer.text, answer.key) == ("digits meets mine", "metrics.loss > 10", "abcdefgh:metric")
    assert notices_for(rule(AlertKind.METRIC, filter="x"), replace(RUN, state="finished", ended=1.0), NOW) == []


def test_a_trainings_own_words_are_told_and_the_same_again_within_minutes_is_the_same() -> None:
    words = [
        TrainingAlert(at=NOW - 3, level="WARN", text="low accuracy\n0.9 is below 0.95"),
        TrainingAlert(at=NOW - 2, level="INFO", text="hello"),
    ]
    found = notices_for(rule(AlertKind.TOLD), replace(RUN, alerts=(*words, words[0])), NOW)
    assert said(found[:2]) == [("digits says: low accuracy", "0.9 is below 0.95"), ("digits says: hello", "")]
    assert [notice.level for notice in found[:2]] == [NoticeLevel.WARNING, NoticeLevel.INFO]
    assert found[2].key == found[0].key
    assert notices_for(rule(AlertKind.TOLD), replace(RUN, alerts=(TrainingAlert(at=NOW - 1001, level="INFO", text="old"),)), NOW) == []


def test_a_disk_that_is_nearly_full_is_told_once_a_day() -> None:
    [answer] = notices_for_disk(rule(AlertKind.QUOTA), DiskUsage(path="/runs", used=0.93), NOW)
    assert (answer.title, answer.level) == ("the disk of /runs is 93% full", NoticeLevel.WARNING)
    assert notices_for_disk(rule(AlertKind.QUOTA), DiskUsage(path="/runs", used=0.99), NOW)[0].key == answer.key
    assert notices_for_disk(rule(AlertKind.QUOTA), DiskUsage(path="/runs", used=0.93), NOW + 86400)[0].key != answer.key
    assert notices_for_disk(rule(AlertKind.QUOTA), DiskUsage(path="/runs", used=0.89), NOW) == []
    assert notices_for_disk(rule(AlertKind.NAN), DiskUsage(path="/runs", used=1.0), NOW) == []
    assert notices_for(rule(AlertKind.QUOTA), RUN, NOW) == []


def test_many_notices_become_one_message_that_links_to_the_list_and_one_links_to_its_run() -> None:
    many = [Notice(key=f"k{i}", title=f"run {i} failed", text="leg 1\ncrashed", at=NOW, group="night", run_id=f"r{i}") for i in range(25)]
    many[3] = replace(many[3], level=NoticeLevel.ERROR)
    message = compose("failures", "night", many, channel="c", url="http://here:1")
    assert (message.title, message.link, message.level) == ("failures: 25 notices of night", "http://here:1/", NoticeLevel.ERROR)
    assert message.text.splitlines()[0] == "run 0 failed: leg 1 crashed"
    assert message.text.splitlines()[-1] == "and 5 more"
    one = compose("failures", "night", many[:1], channel="c", url="http://here:1")
    assert (one.title, one.link, one.text) == ("run 0 failed", "http://here:1/runs/r0", "leg 1\ncrashed")
    assert compose("failures", "night", many[:1], channel="c", url="").link == ""
    assert compose("failures", "night", many[:1], channel="d", url="").id != one.id
    assert compose("failures", "night", list(reversed(many)), channel="c", url="").id == message.id


def test_a_hostile_name_stays_on_one_line_of_a_title() -> None:
    hostile = Notice(key="k", title="a\r\nBcc: all@lab.org\u202e" + "x" * 400, text="", at=NOW, group="g")
    title = compose("r", "g", [hostile], channel="c", url="").title
    assert "\n" not in title and "\r" not in title and "\u202e" not in title
    assert len(title) <= 150


def at(text: str, zone: str = "Europe/Berlin") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def test_quiet_hours_hold_back_until_they_end_also_over_midnight() -> None:
    night = QuietHours(begins="22:00", ends="07:00", zone="Europe/Berlin")
    assert night.over(at("2026-11-15 21:59:59")) == at("2026-11-15 21:59:59")
    assert night.over(at("2026-11-15 22:00")) == at("2026-11-16 07:00")
    assert night.over(at("2026-11-16 06:59")) == at("2026-11-16 07:00")
    assert night.over(at("2026-11-16 07:00")) == at("2026-11-16 07:00")
    noon = QuietHours(begins="12:00", ends="13:00", zone="Europe/Berlin")
    assert noon.over(at("2026-11-16 12:30")) == at("2026-11-16 13:00")
    assert noon.over(at("2026-11-16 13:30")) == at("2026-11-16 13:30")


@pytest.mark.parametrize(
    ("quiet", "words"),
    [
        ({"begins": "25:00", "ends": "07:00"}, "'25:00' is not a time of day"),
        ({"begins": "07:00", "ends": "07:00"}, "cover the whole day"),
        ({"begins": "22:00", "ends": "07:00", "zone": "Mars/Base"}, "'Mars/Base' is not a time zone"),
        ({"begins": "22:00", "ends": "07:00", "zone": "../../etc/passwd"}, "is not a time zone"),
    ],
)
def test_quiet_hours_that_make_no_sense_are_refused_with_words(quiet: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        QuietHours(**quiet)


def test_a_notice_waits_for_others_like_it_and_keeps_a_distance_to_the_last_message() -> None:
    assert send_time(NOW, last=None, quiet=None) == NOW + GATHER
    assert send_time(NOW, last=NOW - 10, quiet=None) == NOW - 10 + SPACING
    assert send_time(at("2026-11-15 23:00"), last=None, quiet=QuietHours(begins="22:00", ends="07:00", zone="Europe/Berlin")) == at(
        "2026-11-16 07:00"
    )


def test_a_failed_message_is_tried_again_ever_later_and_given_up_in_the_end() -> None:
    waits = [(retry_time(NOW, tries) or 0) - NOW for tries in range(1, MOST_TRIES)]
    assert waits[:3] == [30.0, 60.0, 120.0]
    assert waits[-1] == 3600.0
    assert retry_time(NOW, MOST_TRIES) is None
