"""`onward help`: the how-to and reference pages, which the wheel carries; in a checkout they are read from `docs/`."""

from __future__ import annotations

import pydoc
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.output import table, to_stderr, to_stdout

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDERS = (".", "howto", "reference")
_NOT_TEXT = {"page": "."}  # pictures of the page; the how-to of the same name is text
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]*)\)")


def show_page(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help="A page, as `onward help` lists them.", show_default=False)] = "",
) -> None:
    """Show a page of the documentation; without a topic, list them."""
    from onward.errors import NotFound

    pages = help_topics()
    if not topic:
        table(("TOPIC", "WHAT IT IS ABOUT"), [(name, _title(path)) for name, path in pages.items()])
        to_stderr("onward help TOPIC shows one; onward VERB --help tells of a verb")
        return
    if topic.lower() not in pages:
        raise NotFound(f"there is no page on {topic!r}", hint=_instead(topic.lower(), list(pages), context))
    text = page_text(pages[topic.lower()], pages)
    if _is_long(text):
        pydoc.pager(text)
    else:
        to_stdout(text)


def help_topics() -> dict[str, Path]:
    """By the names of their files."""
    shipped = _PACKAGE / "help"
    base = shipped if shipped.is_dir() else _PACKAGE.parents[1] / "docs"
    found = [path for folder in _FOLDERS for path in sorted((base / folder).glob("*.md")) if _NOT_TEXT.get(path.stem) != folder]
    return {path.stem: path for path in found}


def page_text(path: Path, pages: Mapping[str, Path]) -> str:
    """With links as what to type: `[Watching](howto/watch.md)` is `Watching (onward help watch)`."""

    def words(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        if picture:
            return ""
        if "://" in target:
            return f"{text} ({target})"
        name = Path(target.partition("#")[0]).stem
        return f"{text} (onward help {name})" if name in pages and name != path.stem else text

    return _LINK.sub(words, path.read_text(encoding="utf-8")).strip()


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()


def _instead(topic: str, known: list[str], context: typer.Context) -> str:
    import difflib

    if topic in getattr(context.parent and context.parent.command, "commands", ()):
        return f"it is a verb: onward {topic} --help"
    near = [name for name in known if topic in name] or difflib.get_close_matches(topic, known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else "onward help lists them all"


def _is_long(text: str) -> bool:
    from onward.cli.output import terminal_height

    return 0 < terminal_height() <= text.count("\n")
