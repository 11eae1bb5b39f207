"""Every key of `onward top`, pressed in the program itself; what is on the screen is what a person would read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from onward.errors import HostUnreachable, StorageFull
from onward.tui.app import TopApp
from onward.tui.keys.bindings import KEYS
from onward.tui.sources.interface import ListedAlert
from tests.sandbox import NOON
from tests.screens import HOSTILE, FakeSource, cluster, row

SIZE = (80, 24)
LOG = [f"line {n}" for n in range(400)]


class Seat:
    """A person in front of the program."""

    def __init__(self, app: TopApp, pilot: Any) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def text(self) -> str:
        return self.app.canvas.text

    async def press(self, *keys: str) -> str:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()
        return self.text

    async def type(self, words: str) -> str:
        return await self.press(*("space" if char == " " else char for char in words), "enter")

    async def settle(self) -> None:
        """Until nothing is being asked any more."""
        for _ in range(2000):
            await self.pilot.pause()
            if not self.app.asking:
                break
            await asyncio.sleep(0.005)
        assert "internal error" not in self.text

    async def resize(self, width: int, height: int) -> str:
        await self.pilot.resize_terminal(width, height)
        await self.settle()
        return self.text


def sit(source: FakeSource, play: Callable[[Seat], Any], size: tuple[int, int] = SIZE) -> list[str] | None:
    """The addresses that the program leaves behind."""
    app = TopApp(source, every=3600, now=lambda: NOON + 60)

    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            seat = Seat(app, pilot)
            await seat.settle()
            await play(seat)

    asyncio.run(go())
    return app.return_value


def first(text: str) -> str:
    """The first line of a log that has the screen to itself."""
    return text.splitlines()[3].strip()


def drawn(source: FakeSource) -> tuple[str, ...]:
    """The runs of the chart that was asked for last."""
    return source.drawn[-1][0]


@pytest.fixture
def source() -> FakeSource:
    found = FakeSource(row("alpha"), row("beta", "failed"), row("gamma", "waiting", experiment="other"), log=LOG)
    found.clusters = {"slurm": cluster(), "local": None}
    return found


def test_the_list_has_a_run_under_the_cursor_with_its_chart_and_log(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "3 runs" in seat.text and "▶ alpha" in seat.text and "50%" in seat.text
        assert "running: why of alpha" in seat.text
        assert "train/loss = 2" in seat.text and "line 399" in seat.text

    sit(source, play)


def test_arrows_home_and_end_move_the_cursor(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "failed: why of beta" in await seat.press("down")
        assert "waiting: why of gamma" in await seat.press("down", "down", "down")
        assert "why of alpha" in await seat.press("home")
        assert "why of gamma" in await seat.press("end")
        assert "why of alpha" in await seat.press("pageup")

    sit(source, play)


def test_question_mark_lists_every_key_and_escape_closes_it(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        text = await seat.press("question_mark")
        assert [key.shown for key in KEYS if key.shown and key.shown not in text] == []
        assert "show these keys" not in await seat.press("escape")

    sit(source, play)


def test_enter_opens_the_run_and_escape_goes_back(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        text = await seat.press("down", "enter")
        assert "beta" in text and "✗ failed" in text and "python train.py" in text
        assert "3 runs" in await seat.press("escape")

    sit(source, play)


def test_numbers_open_the_five_screens(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "overview" in await seat.press("2")
        assert "slurm · mine 1 job ·" in await seat.press("3")
        assert "slurm · 3 nodes" in await seat.press("4")
        assert "no rules: add them on the web page" in await seat.press("5")
        assert "3 runs" in await seat.press("1")

    sit(source, play)


def test_tab_goes_through_the_panes_of_a_run_and_back(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "charts · 2 metrics" in await seat.press("2", "tab")
        assert "stdout of leg 2/2 · follows" in await seat.press("tab")
        text = await seat.press("tab")
        assert "GPUs · 1" in text and "50%" in text and "1.0G/4.0G" in text
        assert "stdout of leg" in await seat.press("shift+tab")

    sit(source, play)


def test_slash_filters_and_escape_clears_it(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        await seat.press("slash")
        text = await seat.type("gam")
        assert "1 run · /gam" in text and "alpha" not in text
        assert source.filters[-1] == "gam"
        assert "3 runs" in await seat.press("escape")

    sit(source, play)


def test_escape_leaves_a_filter_that_was_begun_as_it_was(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        text = await seat.press("slash", "x", "escape")
        assert "3 runs" in text and "/x" not in text

    sit(source, play)


def test_a_filter_that_nothing_matches_says_so(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        await seat.press("slash")
        assert "no run matches 'nothing'" in await seat.type("nothing")

    sit(source, play)


def test_space_selects_and_c_draws_the_selected_together(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "nothing is selected" in await seat.press("c")
        text = await seat.press("space", "space")
        assert "2 selected" in text and "*▶ alpha" in text and "*✗ beta" in text
        text = await seat.press("c")
        assert drawn(source) == ("id-alpha", "id-beta", "id-gamma")
        assert "a alpha 2" in text and "c gamma" in text
        await seat.press("c")
        assert drawn(source) == ("id-gamma",)

    sit(source, play)


def test_l_opens_the_log_and_e_goes_through_its_streams(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "═ stdout of leg 2/2" in await seat.press("l")
        assert "nothing on stderr" in await seat.press("e")
        assert "nothing on supervisor" in await seat.press("e")
        assert "line 399" in await seat.press("e")
        assert "stdout of leg 1/2" in await seat.press("left")
        assert "stdout of leg 2/2" in await seat.press("right")

    sit(source, play)


def test_f_holds_the_log_and_follows_it_again(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        await seat.press("2", "l", "f")
        source.text += b"something new\n"
        text = await seat.press("r")
        assert "paused at" in text and "something new" not in text
        text = await seat.press("f")
        assert "follows" in text and "something new" in text

    sit(source, play)


def test_a_log_is_scrolled_up_to_its_beginning_and_down_to_its_end(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "line 361" in await seat.press("2", "l", "pageup")
        assert first(await seat.press("home")) == "line 0"
        assert first(await seat.press("down")) == "line 1"
        text = await seat.press("end")
        assert "line 399" in text and "follows" in text

    sit(source, play)


def test_slash_in_a_log_searches_and_n_goes_on_forwards_and_backwards(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        await seat.press("2", "l", "slash")
        assert first(await seat.type("line 12")) == "line 12"
        assert first(await seat.press("n")) == "line 120"
        assert first(await seat.press("N")) == "line 12"
        await seat.press("slash", *["backspace"] * 7)
        assert "no line with 'nowhere'" in await seat.type("nowhere")
        assert "/nowhere" not in await seat.press("escape")
        assert "nothing to search for" in await seat.press("n")

    sit(source, play)


def test_m_shows_the_next_metric_and_capital_m_the_one_before(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "val/loss = 2" in await seat.press("m")
        assert "train/loss = 2" in await seat.press("M")

    sit(source, play)


def test_y_x_and_s_change_the_axes_and_the_smoothing(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "train/loss = 2 · log" in await seat.press("y")
        assert "by relative time" in await seat.press("y", "x")
        assert "by wall time" in await seat.press("x")
        assert "by " not in (await seat.press("x")).splitlines()[1]
        for weight in ("0.6", "0.9", "0.99"):
            assert f"smooth {weight}" in await seat.press("s")
        assert "smooth" not in await seat.press("s")

    sit(source, play)


def test_g_groups_the_runs(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        text = await seat.press("g")
        assert "grouped by state" in text and "state running (1)" in text
        assert "experiment other (1)" in await seat.press("g")

    sit(source, play)


def test_p_pins_a_run_to_the_top_and_into_the_chart(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        text = await seat.press("end", "p", "home", "down")
        lines = text.splitlines()
        assert "gamma" in lines[3] and "^" in lines[3]
        assert drawn(source) == ("id-gamma", "id-alpha")

    sit(source, play)


def test_p_pins_a_metric_on_the_charts_and_enter_shows_it_alone() -> None:
    source = FakeSource(row("alpha"), keys=[f"m{n:02d}" for n in range(40)])

    async def play(seat: Seat) -> None:
        text = await seat.press("2", "tab", "end", "m", "p")
        assert "m02 is pinned" in text and "1 pinned" in text
        assert source.drawn[-1][1][0] == "m02"
        await seat.press("enter")
        assert source.drawn[-1][1] == ("m02",)
        await seat.press("escape")
        assert len(source.drawn[-1][1]) > 1

    sit(source, play)


def test_r_looks_again(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        source.rows = (*source.rows, row("delta"))
        assert "delta" in await seat.press("r")

    sit(source, play)


def test_k_stops_a_run_only_when_the_word_was_typed(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        await seat.press("k")
        assert "not stopped" in await seat.type("yes")
        await seat.press("k", "escape")
        assert source.stopped == []
        await seat.press("k")
        assert "asked to save and stop" in await seat.type("stop")
        assert source.stopped == ["id-alpha"]
        assert "beta is failed: nothing to stop" in await seat.press("down", "k")

    sit(source, play)


def test_the_run_that_is_stopped_is_the_one_that_was_asked_about(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        await seat.press("k")
        source.rows = (row("zeta"), *source.rows[1:])
        seat.app.news()
        await seat.settle()
        await seat.type("stop")
        assert source.stopped == ["id-alpha"]

    sit(source, play)


def test_o_says_the_address_of_the_page_and_leaves_it_behind(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        assert "http://lab:8765/runs/id-alpha" in await seat.press("o")
        source.page = None
        assert "the page needs a server" in await seat.press("o")
        await seat.pilot.press("q")

    assert sit(source, play) == ["http://lab:8765/runs/id-alpha"]


def test_q_quits(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        await seat.pilot.press("q")

    assert sit(source, play) == []


def test_the_queue_shows_mine_or_all_with_reason_and_expected_start(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        text = await seat.press("3")
        assert "digits.1.ab" in text and "it waits for room" in text and "~" in text and "other" not in text
        text = await seat.press("tab", "down")
        assert "all 2 jobs" in text and "bob in gpu: 1 node, 8 CPUs" in text
        text = await seat.press("right")
        assert "local" in text and "no snapshot yet" in text and "gamma" in text  # which waits, as its journal says

    sit(source, play)


def test_enter_on_a_job_of_mine_opens_its_run() -> None:
    source = FakeSource(row("digits"))
    source.clusters = {"slurm": cluster()}

    async def play(seat: Seat) -> None:
        text = await seat.press("3", "enter")
        assert "overview" in text and "digits" in text

    sit(source, play)


def test_the_nodes_are_a_map_with_what_is_under_the_cursor(source: FakeSource) -> None:
    source.clusters = {"slurm": cluster()}

    async def play(seat: Seat) -> None:
        text = await seat.press("4")
        assert "■ n1" in text and "4/4g" in text and "d n3" in text and "jobs: 11 bob" in text
        assert "bad fan" in await seat.press("end")
        assert "no jobs run here" in await seat.press("left")

    sit(source, play)


def test_alerts_name_the_runs_that_failed_and_enter_opens_one(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        text = await seat.press("5")
        assert "1 run failed" in text and "✗ beta" in text and "alpha" not in text
        assert "✗ failed" in await seat.press("enter")

    sit(source, play)


def test_alerts_list_what_rules_told_and_enter_opens_the_run(source: FakeSource) -> None:
    source.notices = tuple(
        ListedAlert(
            at=NOON - n, level="error", title=f"told {n}", text=f"all about {n}", run="id-alpha", sent=n > 0, error="" if n else "refused"
        )
        for n in range(60)
    )

    async def play(seat: Seat) -> None:
        text = await seat.press("5")
        assert "60 notices" in text and "not sent  told 0" in text and "sent      told 1" in text and "all about 0 refused" in text
        assert "told 40" not in text and "told 40" in await seat.press(*["down"] * 40)
        assert "beta" in await seat.press("end")
        assert "alpha ▶ running" in await seat.press("home", "enter")

    sit(source, play)


def test_with_no_runs_every_screen_and_key_says_what_to_do() -> None:
    async def play(seat: Seat) -> None:
        assert "no runs yet: onward submit" in seat.text
        for key in ("down", "end", "space", "c", "enter", "l", "e", "f", "n", "m", "y", "x", "s", "g", "p", "k", "o", "tab", "escape"):
            await seat.press(key)
        for screen in "2345":
            await seat.press(screen, "down", "right", "enter", "tab", "home")
        assert "no run is selected" in await seat.press("2")

    sit(FakeSource(), play)


def test_names_cannot_break_the_screen() -> None:
    source = FakeSource(*(row(name, id=f"h{n}") for n, name in enumerate(HOSTILE)), words=HOSTILE[1], log=HOSTILE, keys=HOSTILE[:7])

    async def play(seat: Seat) -> None:
        for key in ("down", "down", "down", "down", "down", "space", "c", "g", "2", "tab", "tab", "tab", "3", "4", "5", "k", "escape", "o"):
            text = await seat.press(key)
            assert not {"\x1b", "\x07", "\u202e", "\x00"} & set(text)
            assert [len(text.splitlines())] == [24 if not seat.app.line.display else 23]
        assert "[red]loud[/red]" in await seat.press("1", "g", "g", "g", "g")

    sit(source, play)


def test_a_server_that_goes_away_leaves_what_was_shown_and_comes_back(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        source.away = HostUnreachable("the server at http://lab does not answer: refused", hint="is `onward up` running there?")
        text = await seat.press("r")
        assert "no answer for 0s" in text and "does not answer: refused" in text and "▶ alpha" in text
        source.away = None
        text = await seat.press("r")
        assert "no answer" not in text and "refused" not in text

    sit(source, play)


def test_while_a_source_reads_it_is_asked_again_at_once(source: FakeSource) -> None:
    source.parts = 3

    async def play(seat: Seat) -> None:
        assert source.parts == 0 and "train/loss" in seat.text and "reading" not in seat.text

    sit(source, play)


def test_runs_show_even_if_their_metrics_cannot_be_read(source: FakeSource) -> None:
    source.unread = StorageFull("there is no room for /tmp/top.db", hint="make room")

    async def play(seat: Seat) -> None:
        assert "▶ alpha" in seat.text and "no room for /tmp/top.db – make room" in seat.text
        source.unread = None
        assert "train/loss" in await seat.press("r")

    sit(source, play)


def test_a_server_that_was_never_there_is_said_so(source: FakeSource) -> None:
    source.away = HostUnreachable("the server at http://lab does not answer")

    async def play(seat: Seat) -> None:
        for key in ("2", "3", "4", "5", "1", "down", "enter", "k"):
            assert "does not answer" in await seat.press(key) or "no run is selected" in seat.text

    sit(source, play)


@pytest.mark.parametrize("screen", "12345")
def test_any_size_is_borne(source: FakeSource, screen: str) -> None:
    async def play(seat: Seat) -> None:
        await seat.press(screen)
        for width, height in ((200, 60), (80, 24), (40, 10), (20, 5), (1, 1), (300, 12), (41, 80), (80, 24)):
            lines = (await seat.resize(width, height)).splitlines()
            assert len(lines) == height
        assert "1 Runs" in seat.text

    sit(source, play)


def test_on_a_large_terminal_a_run_shows_all_its_panes_at_once(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        text = await seat.press("2")
        assert all(words in text for words in ("overview", "charts · 2 metrics", "GPUs · 1", "stdout of leg 2/2", "line 399"))

    sit(source, play, size=(200, 60))


def test_a_run_that_leaves_the_list_leaves_the_cursor_to_another(source: FakeSource) -> None:
    async def play(seat: Seat) -> None:
        await seat.press("down")
        source.rows = tuple(replace(one) for one in source.rows if one.name != "beta")
        assert "why of alpha" in await seat.press("r")

    sit(source, play)
