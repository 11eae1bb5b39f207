"""The one widget that is drawn on: lines of styled spans, of which only those that changed are sent to the terminal."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from onward.tui.drawing.text import Block
from onward.tui.keys.bindings import KEYS

_PLAIN = {
    "dim": Style(dim=True),
    "head": Style(bold=True),
    "focus": Style(bold=True),
    "cursor": Style(reverse=True),
    "match": Style(reverse=True),
    "bad": Style(bold=True),
    "state.failed": Style(bold=True),
    "state.running": Style(bold=True),
}
_COLOURS = {
    **_PLAIN,
    "focus": Style(bold=True, color="cyan"),
    "bad": Style(color="red"),
    "good": Style(color="green"),
    "state.running": Style(color="cyan"),
    "state.waiting": Style(color="yellow"),
    "state.submitted": Style(color="yellow"),
    "state.finished": Style(color="green"),
    "state.failed": Style(color="red"),
    "state.cancelled": Style(color="magenta"),
    "node.free": Style(color="green"),
    "node.partly": Style(color="cyan"),
    "node.full": Style(color="yellow"),
    "node.draining": Style(color="red"),
    "node.drained": Style(color="red"),
    "node.down": Style(color="red", bold=True),
    **{
        f"line{n}": Style(color=name)
        for n, name in enumerate(("cyan", "yellow", "magenta", "green", "blue", "red", "white", "bright_cyan"))
    },
}
_NONE = Style()


class Canvas(Widget, can_focus=True):
    DEFAULT_CSS = "Canvas { width: 1fr; height: 1fr; background: ansi_default; color: ansi_default; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(name, f"app.{key.act}({name})" if key.act == "screen" else f"app.{key.act}", show=False)
        for key in KEYS
        for name in key.key.split(",")
    ]

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._styles = _COLOURS if colour else _PLAIN
        self._lines: Block = []

    def show(self, lines: Block) -> None:
        before, self._lines = self._lines, lines
        if len(before) != len(lines):
            self.refresh()
            return
        changed = [y for y, (old, new) in enumerate(zip(before, lines, strict=True)) if old != new]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        spans = self._lines[y] if y < len(self._lines) else ()
        strip = Strip([Segment(text, self._styles.get(style, _NONE)) for text, style in spans if text])
        return strip.adjust_cell_length(self.size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return container.height

    @property
    def text(self) -> str:
        """What it shows, for tests."""
        return "\n".join("".join(text for text, _ in spans) for spans in self._lines)
