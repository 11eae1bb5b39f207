"""The report: one page that needs nothing else, no script and no network; light and dark as the reader's system is."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from html import escape

from onward import __version__
from onward.model.alert import span
from onward.operations.report import Subject, chosen
from onward.operations.report_chart import bar, chart, look, short
from onward.operations.report_style import STYLE

_MOST_PARAMS = 300


def page(subjects: Sequence[Subject], *, title: str, now: float) -> str:
    names = _names(subjects)
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
    )
    written = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    parts = [
        f"<header><h1><bdi>{escape(title)}</bdi></h1><p>Written {written} by Onward {escape(__version__)}.</p></header><main>",
        _section("Runs", _overview(subjects, names)),
        _section("Timeline", "".join(_course(one, name) for one, name in zip(subjects, names, strict=True))),
        _section("Metrics", _charts(subjects, names)),
        _section("Params", _params(subjects, names)),
        _section("Legs", "".join(_legs(one, name) for one, name in zip(subjects, names, strict=True))),
        _section("Environment", "".join(_facts(one, name) for one, name in zip(subjects, names, strict=True))),
    ]
    return "".join([head, *parts, "</main></body></html>\n"])


def _names(subjects: Sequence[Subject]) -> list[str]:
    """By name; with the id where several have the same."""
    all_names = [one.name for one in subjects]
    return [f"{one.name} {one.id}" if all_names.count(one.name) > 1 else one.name for one in subjects]


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>" if body else ""


def _overview(subjects: Sequence[Subject], names: Sequence[str]) -> str:
    rows = []
    for number, (one, name) in enumerate(zip(subjects, names, strict=True)):
        evidence = f"<pre>{escape(one.evidence)}</pre>" if one.evidence and one.state == "failed" else ""
        cells = [
            f"<th scope=row>{_key(number)} {_text(name)}</th>",
            f'<td class="state {escape(one.state)}">{escape(one.state)}</td>',
            f'<td class="why">{_text(one.why)}{evidence}</td>',
            f'<td class="kept">{_text(one.experiment)}</td>',
            f'<td class="kept">{_when(one.created)}</td>',
            f"<td><code>{escape(one.id)}</code></td>",
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return _table(("Run", "State", "Why", "Experiment", "Made", "Id"), rows)


def _course(one: Subject, name: str) -> str:
    drawn = one.timeline
    if drawn is None or not drawn.segments:
        return ""
    saved = f"{drawn.checkpoints} checkpoint{'s' if drawn.checkpoints != 1 else ''}"
    spans = f"{_when(drawn.start)} to {_when(drawn.end)}, {span(drawn.end - drawn.start)}; {saved}"
    return f"<figure><figcaption>{_text(name)} <small>{spans}</small></figcaption>{bar(drawn)}</figure>"


def _charts(subjects: Sequence[Subject], names: Sequence[str]) -> str:
    keys = chosen(dict.fromkeys(key for one in subjects for key in one.curves), ())
    figures = []
    for key in keys:
        held = [(number, names[number], one.curves[key]) for number, one in enumerate(subjects) if key in one.curves]
        drawn = chart(key, held)
        points = sum(curve.points for _, _, curve in held)
        rows = [f"<li>{_key(number)} {_text(name)} <b>{_last(subjects[number], key)}</b></li>" for number, name, _ in held]
        caption = f"<figcaption>{_text(key)} <small>{points:,} points</small></figcaption>"
        figures.append(f"<figure>{caption}{drawn or '<p>no finite value</p>'}<ul>{''.join(rows)}</ul></figure>")
    return f'<div class="grid-of-charts">{"".join(figures)}</div>' if figures else "<p>No metric was logged.</p>"


def _last(one: Subject, key: str) -> str:
    value, step = one.last.get(key, (math.nan, 0))
    return f"{short(value)} at step {step:,}"


def _params(subjects: Sequence[Subject], names: Sequence[str]) -> str:
    """Those that differ first."""
    keys = sorted({key for one in subjects for key in one.params})
    differing = [key for key in keys if len({one.params.get(key) for one in subjects}) > 1]
    ordered = (differing + [key for key in keys if key not in set(differing)])[:_MOST_PARAMS]
    rows = []
    for key in ordered:
        cells = "".join(f"<td>{_text(one.params[key]) if key in one.params else '–'}</td>" for one in subjects)
        rows.append(f"<tr{' class=differs' if key in differing else ''}><th scope=row>{_text(key)}</th>{cells}</tr>")
    more = f"<p>and {len(keys) - len(ordered)} more</p>" if len(keys) > len(ordered) else ""
    return _table(("Param", *names), rows, "params") + more if rows else ""


def _legs(one: Subject, name: str) -> str:
    rows = []
    for leg in one.legs:
        took = span(leg.ended - leg.started) if leg.started is not None and leg.ended is not None else "–"
        words = (leg.job, leg.nodes, _when(leg.started), took, leg.end.replace("_", " "), leg.reason)
        told = zip(words, (*[" class=kept"] * 5, ""), strict=True)
        rows.append(f"<tr><th scope=row>{leg.number}</th>{''.join(f'<td{kept}>{_text(word)}</td>' for word, kept in told)}</tr>")
    return f"<h3>{_text(name)}</h3>{_table(('Leg', 'Job', 'Nodes', 'Began', 'Took', 'End', 'Why'), rows, 'legs')}" if rows else ""


def _facts(one: Subject, name: str) -> str:
    rows = [f"<tr><th scope=row>{_text(label)}</th><td>{_text(text)}</td></tr>" for label, text in one.facts if text]
    return f"<h3>{_text(name)}</h3>{_table((), rows, 'facts')}" if rows else ""


def _table(heads: Sequence[str], rows: Sequence[str], kind: str = "") -> str:
    head = f"<thead><tr>{''.join(f'<th scope=col>{_text(word)}</th>' for word in heads)}</tr></thead>" if heads else ""
    return f'<div class="wide {kind}" tabindex="0"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _key(number: int) -> str:
    colour, dash = look(number)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<svg class="key" viewBox="0 0 24 8" aria-hidden="true"><line class="line c{colour}"{dashed} x1="0" x2="24" y1="4" y2="4"/></svg>'
    )


def _text(words: str) -> str:
    """What others named, kept from turning the text around it."""
    return f"<bdi>{escape(words)}</bdi>"


def _when(moment: float | None) -> str:
    return "–" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment))
