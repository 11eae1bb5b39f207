"""The parts of a page that needs nothing else: its frame, sections and tables. All that others named is escaped here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape

from onward import __version__
from onward.operations.reports.page_style import STYLE
from onward.operations.reports.svg_charts import line_style


def whole_page(title: str, sections: Sequence[str], *, now: float) -> str:
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
    )
    written = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    top = f"<header><h1><bdi>{escape(title)}</bdi></h1><p>Written {written} by Onward {escape(__version__)}.</p></header><main>"
    return "".join([head, top, *sections, "</main></body></html>\n"])


def section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>" if body else ""


def table(heads: Sequence[str], rows: Sequence[str], kind: str = "") -> str:
    head = f"<thead><tr>{''.join(f'<th scope=col>{isolated_text(word)}</th>' for word in heads)}</tr></thead>" if heads else ""
    return f'<div class="wide {kind}" tabindex="0"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def line_key(number: int) -> str:
    """How the nth line is drawn."""
    colour, dash = line_style(number)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<svg class="key" viewBox="0 0 24 8" aria-hidden="true"><line class="line c{colour}"{dashed} x1="0" x2="24" y1="4" y2="4"/></svg>'
    )


def isolated_text(words: str) -> str:
    """What others named, kept from turning the text around it."""
    return f"<bdi>{escape(words)}</bdi>"


def time_text(moment: float | None) -> str:
    return "–" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment))
