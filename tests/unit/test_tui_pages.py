"""What the pages say before anything was heard, and of what they lack. Drawn by pure functions, so without a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onward.model.analysis.timeline import Mark, Segment, Timeline
from onward.tui.drawing.frame import failure_frame, frame
from onward.tui.drawing.text import Block, width_of
from onward.tui.drawing.timeline import timeline_block
from onward.tui.sources.interface import ListedRuns, LogWindow, ShownCluster, ShownRun
from onward.tui.sources.run_facts import facts_of
from onward.tui.state import ALERTS, NODES, QUEUE, RUN, RUNS, ScreenData, ScreenState
from tests.sandbox import NOON
from tests.screens import HOSTILE, cluster, row


def shown(block: Block) -> str:
    return "\n".join("".join(text for text, _ in spans) for spans in block)


def page(view: ScreenState, board: ScreenData, width: int = 80, height: int = 24) -> str:
    block = frame(view, board.of(view.chosen), width=width, height=height, now=NOON)
    assert len(block) == height and {width_of(spans) for spans in block} == {width}
    return shown(block)


@pytest.mark.parametrize("screen", [RUNS, RUN, QUEUE, NODES, ALERTS])
def test_before_anything_was_heard_a_page_looks_and_claims_nothing(screen: int) -> None:
    text = page(ScreenState(screen=screen, chosen="a"), ScreenData())
    assert "looking …" in text and "no runs" not in text and "nothing printed" not in text and "no metrics" not in text


def test_a_run_under_the_cursor_is_not_shown_with_the_log_and_chart_of_the_one_before() -> None:
    log = LogWindow(leg=1, stream="out", lines=(), size=0, end=0, legs=(1,))
    board = ScreenData(runs=ListedRuns(rows=(row("a"), row("b"))), run="id-a", log=log, metrics=("loss",))
    assert "stdout of leg 1" in page(ScreenState(chosen="id-a"), board)
    text = page(ScreenState(chosen="id-b"), board)
    assert "stdout of leg 1" not in text and "looking …" in text


def test_while_metrics_are_read_a_page_says_so_and_does_not_call_the_run_without() -> None:
    board = ScreenData(runs=ListedRuns(rows=(row("a"),)), run="id-a", reading=True)
    for screen in (RUNS, RUN):
        view = ScreenState(screen=screen, chosen="id-a", panes={RUN: 1})
        text = page(view, board)
        assert "looking …" in text and "no metrics" not in text and "logged yet" not in text
        assert "reading … · loss" in page(view, replace(board, metrics=("loss",)))


def test_what_the_list_leaves_out_is_said() -> None:
    assert "the newest 500 of 9000" in page(ScreenState(), ScreenData(runs=ListedRuns(rows=(), note="the newest 500 of 9000"), heard=NOON))
    assert "1 of 9000 runs" in page(ScreenState(), ScreenData(runs=ListedRuns(rows=(row("a"),), total=9000), heard=NOON))


def test_old_news_are_told_their_age() -> None:
    assert "as of 60s ago" in page(ScreenState(), ScreenData(runs=ListedRuns(rows=()), heard=NOON - 60, words="lab"))


def test_a_cluster_without_a_picture_says_what_to_do_and_an_old_one_its_age() -> None:
    board = ScreenData(picture=ShownCluster(name="big", trouble="no snapshot yet: `onward cluster big` takes one"))
    assert "`onward cluster big` takes one" in page(ScreenState(screen=NODES), board)
    board = ScreenData(picture=ShownCluster(name="big", snapshot=cluster(), age=7200, trouble="slurm is silent"))
    assert "seen 2h ago · slurm is silent" in page(ScreenState(screen=QUEUE), board)


def test_a_timeline_has_lanes_for_waits_legs_and_checkpoints() -> None:
    answer = Timeline(
        start=NOON,
        end=NOON + 100,
        checkpoints=1,
        segments=(
            Segment(kind="queue", leg=1, start=NOON, end=NOON + 20, words="waited"),
            Segment(kind="leg", leg=1, start=NOON + 20, end=NOON + 60, words="leg 1"),
            Segment(kind="leg", leg=2, start=NOON + 60, end=None, words="leg 2"),
        ),
        marks=(
            Mark(kind="checkpoint", leg=1, at=NOON + 40, words="checkpoint of step 9", step=9),
            Mark(kind="end", leg=1, at=NOON + 60, words="leg 1 ended: time limit"),
        ),
    )
    lines = shown(timeline_block(answer, width=60, now=NOON + 100)).splitlines()
    assert lines[0].startswith("timeline  ░░░░░") and lines[0].rstrip().endswith("█") and "2" in lines[0]
    assert lines[1].index("●") < lines[1].index("┤")
    assert "checkpoint of step 9" in lines[3] and "leg 1 ended: time limit" in lines[4]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("screen", [RUNS, RUN, QUEUE, NODES, ALERTS])
def test_hostile_words_keep_every_line_at_its_width(name: str, screen: int) -> None:
    hostile = row(name, "failed", why=name, next=name, experiment=name, cluster=name, user=name)
    board = ScreenData(words=name, runs=ListedRuns(rows=(hostile,), note=name), run=hostile.id, metrics=(name,), trouble=name, heard=NOON)
    board.detail = ShownRun(row=hostile, evidence=(name,), facts=((name, name),))
    board.picture = ShownCluster(name=name, trouble=name, others=(name,))
    for width, height in ((80, 24), (200, 60), (40, 10)):
        page(ScreenState(screen=screen, chosen=hostile.id, filter=name, find=name, group=2), board, width, height)


def test_facts_that_are_not_known_are_left_out() -> None:
    assert facts_of({}, now=NOON) == (("progress", "no step logged yet"),)
    fields = {"pace": {"step": 9, "total": 100, "rate": 0.5}, "code": {"git_commit": "a" * 40, "git_branch": "main", "git_dirty": True}}
    assert facts_of(fields, now=NOON) == (("progress", "step 9 of 100, 0.5 steps/s"), ("code", "aaaaaaaaaaaa main with changes"))


def test_when_a_run_will_be_done_is_said_with_its_legs_once() -> None:
    fields = {"finish": {"at": NOON + 3000, "legs": 1, "words": "at the pace of the last steps, in 1 more leg"}}
    words = dict(facts_of(fields, now=NOON))["finish"]
    assert words.endswith(" (50m); at the pace of the last steps, in 1 more leg") and words.count("leg") == 1


def test_a_page_that_cannot_be_drawn_says_so_in_its_place() -> None:
    block = failure_frame(ValueError("[red]"), width=40, height=6)
    assert len(block) == 6 and "internal error" in shown(block) and "[red]" in shown(block)
