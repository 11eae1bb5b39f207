"""The chart in plain text, and the text it is made of."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from onward.tui.drawing.chart import ChartLine, chart, smoothed, sparkline
from onward.tui.drawing.text import Block, bar, beside, boxed, clock, fit, line, many, number, plain, short, span, width_of, wrapped
from tests.screens import HOSTILE


def shown(block: Block) -> list[str]:
    return ["".join(text for text, _ in spans) for spans in block]


def curve(*values: float, letter: str = "", style: str = "line0") -> ChartLine:
    return ChartLine(xs=[float(n) for n in range(len(values))], lows=values, highs=values, letter=letter, style=style)


def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right() -> None:
    assert shown(chart([curve(0, 1, 2, 3)], width=17, height=5)) == [
        "       3┤      ⡠⠊",
        "        │    ⡠⠊  ",
        "     1.5┤  ⡠⠊    ",
        "       0┤⡠⠊      ",
        "         0      3",
    ]


def test_a_bucket_shows_its_lowest_and_its_highest_value() -> None:
    spike = ChartLine(xs=[0.0, 1.0, 2.0], lows=[1.0, 0.0, 1.0], highs=[1.0, 9.0, 1.0])
    rows = shown(chart([spike], width=20, height=6))
    assert all(row[14:16].strip("⠀ │┤") for row in rows[:-1]), rows  # from top to bottom


def test_values_that_are_not_finite_leave_a_gap() -> None:
    rows = shown(chart([curve(1.0, math.nan, math.inf, 1.0)], width=20, height=4))
    assert "inf" not in "".join(rows) and "nan" not in "".join(rows)


def test_what_cannot_be_drawn_is_said() -> None:
    assert "no points yet" in "".join(shown(chart([], width=40, height=5)))
    assert "only NaN" in "".join(shown(chart([curve(math.nan, math.inf)], width=60, height=5)))
    assert "nothing above zero" in "".join(shown(chart([curve(0.0, -1.0)], width=60, height=5, log=True)))


def test_a_log_axis_has_its_middle_in_the_middle_of_the_magnitudes() -> None:
    rows = shown(chart([curve(1.0, 100.0)], width=30, height=6, log=True))
    assert rows[0].startswith("     100┤") and rows[2].startswith("      10┤") and rows[4].startswith("       1┤")


def test_lines_of_several_runs_end_in_their_letters() -> None:
    text = "".join(shown(chart([curve(0, 1, letter="a"), curve(1, 0, letter="b", style="line1")], width=30, height=8)))
    assert text.count("a") == 1 and text.count("b") == 1


def test_where_a_leg_began_there_is_an_upright_line() -> None:
    assert "┊" in "".join(shown(chart([curve(0, 1, 2, 3)], width=30, height=8, marks=[2.0])))


def test_a_constant_and_a_single_point_are_drawn() -> None:
    for values in ([5.0], [5.0, 5.0, 5.0], [0.0]):
        assert any("⠀" < char <= "⣿" for char in "".join(shown(chart([curve(*values)], width=30, height=6))))


@example([1.7e308], 40, 10, False)
@example([1.7e308], 40, 10, True)
@example([-1.7e308, 1.7e308], 40, 10, False)
@example([5e-324, 1.7e308], 40, 10, True)
@given(
    st.lists(st.floats(), max_size=60),
    st.integers(1, 120),
    st.integers(1, 40),
    st.booleans(),
)
def test_whatever_the_values_a_chart_is_as_wide_and_high_as_asked(values: list[float], width: int, height: int, log: bool) -> None:
    block = chart([curve(*values, letter="a")], width=width, height=height, log=log)
    assert len(block) == height
    assert {width_of(spans) for spans in block} == {width}


def test_smoothing_begins_at_the_first_value_and_keeps_gaps() -> None:
    assert smoothed([4.0, 4.0, math.nan, 4.0], 0.9)[:2] == pytest.approx([4.0, 4.0])
    assert math.isnan(smoothed([4.0, math.nan], 0.9)[1])
    assert smoothed([0.0, 1.0], 0.5)[1] == pytest.approx(2 / 3)


def test_a_sparkline_has_a_character_a_value_and_a_gap_for_none() -> None:
    assert sparkline([0.0, None, 1.0], 10) == "▁ █"
    assert sparkline([], 5) == ""
    assert len(sparkline([float(n) for n in range(100)], 20)) == 20
    assert sparkline([-1.7e308, 0.0, 1.7e308], 5) == "▁▅█"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_fits_and_holds_no_control(name: str) -> None:
    for width in (1, 5, 20, 400):
        text = fit(name, width)
        assert cell_len(text) == width
        assert all(char.isprintable() for char in text) and not {"\u202e", "\x1b", "\u200f"} & set(text)


@given(st.text(), st.integers(1, 60), st.integers(1, 6))
def test_wrapped_text_is_never_wider_or_longer_than_asked(text: str, width: int, most: int) -> None:
    lines = wrapped(text, width, most=most)
    assert len(lines) <= most and all(cell_len(one) <= width + 1 for one in lines)


def test_markup_is_text() -> None:
    assert plain("[red]x[/red]") == "[red]x[/red]"


def test_of_a_line_that_was_written_over_the_last_state_shows() -> None:
    assert plain("10%\r50%\r100%") == "100%"
    assert plain("windows\r") == "windows"


def test_blocks_are_put_side_by_side() -> None:
    left, right = boxed([line("a")], 3, 2), boxed([line("bcdef")], 4, 2)
    assert shown(beside(left, right)) == ["a   │ bcde", "    │     "]


def test_values_are_said_shortly() -> None:
    assert [span(s) for s in (0, 45, 720, 12_000, 200_000, None, math.inf)] == ["0s", "45s", "12m", "3h20", "2d7h", "–", "–"]
    assert [number(v) for v in (0.123456, 81920.0, 1e-9, 1e30, math.nan, -math.inf)] == ["0.1235", "81920", "1e-09", "1e+30", "NaN", "-∞"]
    assert bar(0.5, 4) == "██░░" and bar(None, 3) == "···" and bar(7.0, 2) == "██"
    assert [short(n) for n in (0, 897, 9999, 12_345, 999_000, 1_200_000, 250_000_000, -5)] == [
        "0",
        "897",
        "9999",
        "12k",
        "999k",
        "1.2M",
        "250M",
        "-5",
    ]
    assert (many(1, "run"), many(0, "run")) == ("1 run", "0 runs")
    assert clock(1e20, 0.0) == "–"
