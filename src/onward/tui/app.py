"""The program: keys change the view, a clock asks for news, and what is new is drawn. What is drawn is decided elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Literal

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from onward.errors import OnwardError
from onward.tui.background import BackgroundThread
from onward.tui.drawing.canvas import Canvas
from onward.tui.drawing.frame import failure_frame, frame
from onward.tui.keys.actions import KeyActions
from onward.tui.refresh import ScreenSize, refresh_screen
from onward.tui.sources.interface import DataSource
from onward.tui.state import ScreenData, ScreenState

EVERY = 2.0  # seconds between two looks
Question = Literal["filter", "search", "stop"]


class TopApp(KeyActions, App[list[str]]):
    """Ends with the addresses that were asked for, so that they can be printed where they can be copied."""

    CSS = "Screen { background: ansi_default; } Input { dock: bottom; height: 1; border: none; padding: 0 1; display: none; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "leave", ""), ("ctrl+c", "quit", "")]

    def __init__(self, source: DataSource, *, every: float = EVERY, now: Callable[[], float] = time.time) -> None:
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.source = source
        self.view = ScreenState()
        self.board = ScreenData(words="")
        self.links: list[str] = []
        self._every = every
        self._now = now
        self._hand = BackgroundThread()
        self._busy = False
        self._again = False
        self._acts = 0
        self._question: Question | None = None
        self._asked_run: str | None = None
        self.canvas = Canvas(colour=not os.environ.get("NO_COLOR"))
        self.line = Input(select_on_focus=False)

    def compose(self) -> ComposeResult:
        yield self.canvas
        yield self.line

    def on_mount(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):  # the terminal is left as it was, and nothing of the source remains
            asyncio.get_running_loop().add_signal_handler(number, self.exit, self.links, 128 + number)
        self.canvas.focus()
        self.set_interval(self._every, self.news)
        self.news()

    def on_resize(self, event: events.Resize) -> None:
        self.draw()
        self.news()

    # ── news ──────────────────────────────────────────────────────────────────

    @property
    def asking(self) -> bool:
        """Whether something is still to be heard."""
        return self._busy or self._acts > 0

    def news(self) -> None:
        """Ask for what is shown; while one question is under way, once more after it."""
        if self._busy:
            self._again = True
            return
        self._busy = True
        view, board = replace(self.view), replace(self.board)
        size = ScreenSize(width=self.size.width, height=self.size.height)

        def ask() -> None:
            try:
                found = refresh_screen(self.source, view, board, size, self._now())
            except Exception as error:  # a thread has nobody to tell
                found = replace(board, trouble=f"internal error: {type(error).__name__}: {error}")
            self._tell(lambda: self._heard(view, found))

        self._hand.do(ask)

    def _heard(self, asked: ScreenState, found: ScreenData) -> None:
        self._busy = False
        if self.view.chosen is None or (self.view.chosen not in {row.id for row in found.runs.rows} if found.runs else False):
            self.view.choose(asked.chosen)
        found.message = self.board.message
        self.board = found
        self.draw()
        if self._again or asked.chosen != self.view.chosen or found.reading:  # a source that reads has made us wait
            self._again = False
            self.news()

    def do(self, work: Callable[[], str]) -> None:
        """Something that a person asked for; what comes of it is said at the bottom."""

        def act() -> None:
            try:
                words = work()
            except OnwardError as error:
                words = f"{error.message}{f' – {error.hint}' if error.hint else ''}"
            except Exception as error:
                words = f"internal error: {type(error).__name__}: {error}"
            self._tell(lambda: self._done(words))

        self._acts += 1
        self._hand.do(act)

    def _done(self, words: str) -> None:
        self._acts -= 1
        self.say(words)

    def _tell(self, what: Callable[[], None]) -> None:
        """From the other thread; after the end there is nobody to tell."""
        try:
            self.call_from_thread(what)
        except RuntimeError:
            return

    # ── drawing ───────────────────────────────────────────────────────────────

    def draw(self) -> None:
        height = self.size.height - (1 if self.line.display else 0)
        board = self.board.of(self.view.chosen)
        try:
            lines = frame(self.view, board, width=self.size.width, height=height, now=self._now())
        except Exception as error:  # a screen that cannot be drawn must not take the others with it
            lines = failure_frame(error, width=self.size.width, height=height)
        self.canvas.show(lines)

    def say(self, words: str) -> None:
        self.board.message = words
        self.draw()
        self.news()

    # ── the line at the bottom ────────────────────────────────────────────────

    def ask(self, question: Question, words: str, value: str = "") -> None:
        self._question, self._asked_run = question, self.view.chosen
        self.line.placeholder, self.line.value = words, value
        self.line.display = True
        self.line.focus()
        self.line.cursor_position = len(value)
        self.call_after_refresh(self.draw)

    def hush(self) -> bool:
        """Close the line; whether it was open."""
        if self._question is None:
            return False
        self._question = None
        self.line.display = False
        self.canvas.focus()
        self.call_after_refresh(self.draw)
        return True

    def on_input_submitted(self, event: Input.Submitted) -> None:
        question, run = self._question, self._asked_run
        self.hush()
        self.answered(question or "filter", event.value.strip(), run)
