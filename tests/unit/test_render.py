"""How things look: JSON that every parser reads, tables that fit, and nothing of others that moves a cursor."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.cli import output
from onward.cli.output import age_text, coloured, field, json_to_stdout, percent, progress_words, safe, table, time_text
from onward.cli.runs.follow import bar_text
from tests.sandbox import strict_json

Captured = pytest.CaptureFixture[str]


class Terminal:
    """Makes the module believe that stdout is a terminal so wide."""

    def __init__(self, patch: pytest.MonkeyPatch, width: int) -> None:
        patch.setattr("sys.stdout.isatty", lambda: True)
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "xterm")
        patch.delenv("NO_COLOR", raising=False)


# ── JSON ──────────────────────────────────────────────────────────────────────


def test_what_is_no_number_in_json_becomes_null(capsys: Captured) -> None:
    json_to_stdout({"metrics": {"loss": float("nan"), "best": float("inf"), "fine": 1.5}, "list": [float("-inf"), (1, 2)], "none": None})
    assert strict_json(capsys.readouterr().out) == {
        "metrics": {"loss": None, "best": None, "fine": 1.5},
        "list": [None, [1, 2]],
        "none": None,
    }


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_whatever_is_printed_a_strict_parser_reads(value: Any) -> None:
    strict_json(json.dumps(output._finite({"value": value}), allow_nan=False))


# ── text of others ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ümläuts and 語", "plain text, ümläuts and 語"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x1b]0;my title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPpayload\x1b\\text", "text"),
        ("\x1b[?25lhidden\x1b[?25h", "hidden"),
        ("\x1b(Bcharset", "charset"),
        ("\x1bcreset", "reset"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("\x9b31mc1", "31mc1"),
        ("right\u202eto left", "rightto left"),
        ("end\r", "end"),
        ("10%\r50%\r100%", "100%"),
        ("\x1b", ""),
    ],
)
def test_no_control_of_others_reaches_a_pipe(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text(alphabet=st.characters(max_codepoint=0x2100)))
def test_nothing_can_be_composed_that_escapes(text: str) -> None:
    assert [char for char in safe(text) if (ord(char) < 32 and char != "\t") or 127 <= ord(char) < 160] == []


def test_colours_of_others_stay_in_a_terminal_and_end_with_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    Terminal(monkeypatch, 80)
    assert safe("\x1b[31mred\x1b[2J") == "\x1b[31mred\x1b[0m"


# ── colours ───────────────────────────────────────────────────────────────────


def test_states_are_coloured_in_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert coloured("failed") == "failed"
    Terminal(monkeypatch, 80)
    assert coloured("failed") == "\x1b[31mfailed\x1b[0m"
    assert coloured("unheard of") == "unheard of"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_are_not_wanted_where_people_say_so(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    Terminal(monkeypatch, 80)
    monkeypatch.setenv(name, value)
    assert coloured("failed") == "failed"


def test_an_empty_no_color_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    Terminal(monkeypatch, 80)
    monkeypatch.setenv("NO_COLOR", "")
    assert coloured("failed") != "failed"


# ── tables ────────────────────────────────────────────────────────────────────


def test_columns_are_as_wide_as_they_must_be_and_a_pipe_gets_everything(capsys: Captured) -> None:
    table(("ID", "WHY"), [("a", "x" * 300), ("longer", "because")])
    assert capsys.readouterr().out.splitlines() == ["ID      WHY", "a       " + "x" * 300, "longer  because"]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_in_a_terminal_the_last_column_is_cut_to_what_is_left(monkeypatch: pytest.MonkeyPatch, capsys: Captured, width: int) -> None:
    Terminal(monkeypatch, width)
    monkeypatch.setenv("NO_COLOR", "1")
    table(("ID", "WHY"), [("a1b2c", "word " * 40), ("a", "short")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == width
    assert lines[1].endswith("…")
    assert lines[2].endswith("short")


def test_where_nothing_is_left_the_last_column_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    Terminal(monkeypatch, 30)
    monkeypatch.setenv("NO_COLOR", "1")
    table(("ID", "NAME", "WHY"), [("12345678", "a" * 15, "because of many things")])
    assert capsys.readouterr().out.splitlines() == ["ID        NAME", "12345678  " + "a" * 15]


def test_a_line_break_or_an_escape_in_a_cell_does_not_break_the_table(capsys: Captured) -> None:
    table(("A", "B"), [("one\ntwo", "\x1b[2Jthree\r\nfour")])
    assert capsys.readouterr().out.splitlines() == ["A        B", "one two  three four"]


def test_colour_does_not_count_for_the_width(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    Terminal(monkeypatch, 80)
    table(("STATE", "WHY"), [("failed", "x"), ("submitted", "y")], state_columns=(0,))
    lines = [output._SGR.sub("", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == ["STATE      WHY", "failed     x", "submitted  y"]


def test_an_empty_table_is_its_header(capsys: Captured) -> None:
    table(("A", "B"), [])
    assert capsys.readouterr().out == "A  B\n"


def test_a_field_is_wrapped_under_itself_and_a_path_is_never_broken(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    Terminal(monkeypatch, 40)
    monkeypatch.setenv("NO_COLOR", "1")
    field("why", "a reason that is longer than a line\n    indented\n/a/path/" + "x" * 40)
    assert capsys.readouterr().out.splitlines() == [
        "  why         a reason that is longer",
        "              than a line",
        "                  indented",
        "              /a/path/" + "x" * 40,
    ]


def test_a_field_in_a_pipe_has_one_line_a_line(capsys: Captured) -> None:
    field("why", "word " * 50 + "end\nsecond")
    assert len(capsys.readouterr().out.splitlines()) == 2


# ── times and progress ────────────────────────────────────────────────────────


def test_moments_are_ago_and_never_in_the_future() -> None:
    assert age_text(None) == "–"
    assert age_text(time.time() + 100) == "0 s ago"


def test_a_moment_of_today_is_a_clock_and_another_has_its_date() -> None:
    assert len(time_text(time.time())) == 5
    assert len(time_text(time.time() + 3 * 86400)) == 16
    assert time_text(1e300) == "the distant future"


@pytest.mark.parametrize(
    ("progress", "words", "short"),
    [
        ({}, "no step logged yet", "no step yet"),
        ({"step": 5}, "step 5", "step 5"),
        ({"step": 29, "total": 60, "steps_per_second": 9.876}, "step 29 of 60 (50 %), 9.88 steps/s", "step 29 of 60 · 9.88/s"),
    ],
)
def test_progress_in_words(progress: dict[str, Any], words: str, short: str) -> None:
    whole = {"step": None, "total": None, "steps_per_second": None, "eta": None, **progress}
    assert progress_words(whole) == words
    assert bar_text(whole) == short


def test_the_time_of_arrival_is_said_with_its_condition() -> None:
    words = progress_words({"step": 1, "total": 9, "steps_per_second": 1.0, "eta": time.time()})
    assert words.endswith("if nothing waits")


@pytest.mark.parametrize(("step", "total", "whole"), [(0, 60, 1), (58, 60, 98), (998, 1000, 99), (999, 1000, 100), (2000, 1000, 100)])
def test_a_hundred_percent_is_the_last_step_and_not_before(step: int, total: int, whole: int) -> None:
    assert percent(step, total) == whole
