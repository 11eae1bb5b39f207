"""The report: one page that needs nothing else, no script and no network; light and dark as the reader's system is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from onward.model.quantity import counted, duration_text
from onward.operations.reports.page_parts import isolated_text, line_key, section, table, time_text, whole_page
from onward.operations.reports.subjects import ReportSubject, chosen_metrics
from onward.operations.reports.svg_charts import chart, short_number, timeline_bar

_MOST_PARAMS = 300


def run_page(subjects: Sequence[ReportSubject], *, title: str, now: float) -> str:
    names = _names(subjects)
    parts = [
        section("Runs", _overview(subjects, names)),
        section("Timeline", "".join(_course(one, name) for one, name in zip(subjects, names, strict=True))),
        section("Metrics", _charts(subjects, names)),
        section("Params", _params(subjects, names)),
        section("Legs", "".join(_legs(one, name) for one, name in zip(subjects, names, strict=True))),
        section("Environment", "".join(_facts(one, name) for one, name in zip(subjects, names, strict=True))),
    ]
    return whole_page(title, parts, now=now)


def _names(subjects: Sequence[ReportSubject]) -> list[str]:
    """By name; with the id where several have the same."""
    all_names = [one.name for one in subjects]
    return [f"{one.name} {one.id}" if all_names.count(one.name) > 1 else one.name for one in subjects]


def _overview(subjects: Sequence[ReportSubject], names: Sequence[str]) -> str:
    rows = []
    for number, (one, name) in enumerate(zip(subjects, names, strict=True)):
        evidence = f"<pre>{escape(one.evidence)}</pre>" if one.evidence and one.state == "failed" else ""
        cells = [
            f"<th scope=row>{line_key(number)} {isolated_text(name)}</th>",
            f'<td class="state {escape(one.state)}">{escape(one.state)}</td>',
            f'<td class="why">{isolated_text(one.why)}{evidence}</td>',
            f'<td class="kept">{isolated_text(one.experiment)}</td>',
            f'<td class="kept">{time_text(one.created)}</td>',
            f"<td><code>{escape(one.id)}</code></td>",
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return table(("Run", "State", "Why", "Experiment", "Made", "Id"), rows)


def _course(one: ReportSubject, name: str) -> str:
    drawn = one.timeline
    if drawn is None or not drawn.segments:
        return ""
    saved = counted(drawn.checkpoints, "checkpoint")
    spans = f"{time_text(drawn.start)} to {time_text(drawn.end)}, {duration_text(drawn.end - drawn.start)}; {saved}"
    return f"<figure><figcaption>{isolated_text(name)} <small>{spans}</small></figcaption>{timeline_bar(drawn)}</figure>"


def _charts(subjects: Sequence[ReportSubject], names: Sequence[str]) -> str:
    keys = chosen_metrics(dict.fromkeys(key for one in subjects for key in one.curves), ())
    figures = []
    for metric in keys:
        held = [(number, names[number], one.curves[metric]) for number, one in enumerate(subjects) if metric in one.curves]
        drawn = chart(metric, held)
        points = sum(curve.points for _, _, curve in held)
        rows = [f"<li>{line_key(number)} {isolated_text(name)} <b>{_last(subjects[number], metric)}</b></li>" for number, name, _ in held]
        caption = f"<figcaption>{isolated_text(metric)} <small>{points:,} points</small></figcaption>"
        figures.append(f"<figure>{caption}{drawn or '<p>no finite value</p>'}<ul>{''.join(rows)}</ul></figure>")
    return f'<div class="grid-of-charts">{"".join(figures)}</div>' if figures else "<p>No metric was logged.</p>"


def _last(one: ReportSubject, key: str) -> str:
    value, step = one.last.get(key, (math.nan, 0))
    return f"{short_number(value)} at step {step:,}"


def _params(subjects: Sequence[ReportSubject], names: Sequence[str]) -> str:
    """Those that differ first."""
    keys = sorted({key for one in subjects for key in one.params})
    differing = [key for key in keys if len({one.params.get(key) for one in subjects}) > 1]
    ordered = (differing + [key for key in keys if key not in set(differing)])[:_MOST_PARAMS]
    rows = []
    for key in ordered:
        cells = "".join(f"<td>{isolated_text(one.params[key]) if key in one.params else '–'}</td>" for one in subjects)
        rows.append(f"<tr{' class=differs' if key in differing else ''}><th scope=row>{isolated_text(key)}</th>{cells}</tr>")
    more = f"<p>and {len(keys) - len(ordered)} more</p>" if len(keys) > len(ordered) else ""
    return table(("Param", *names), rows, "params") + more if rows else ""


def _legs(one: ReportSubject, name: str) -> str:
    rows = []
    for leg in one.legs:
        took = duration_text(leg.ended - leg.started) if leg.started is not None and leg.ended is not None else "–"
        words = (leg.job, leg.nodes, time_text(leg.started), took, leg.end.replace("_", " "), leg.reason)
        cells = zip(words, (*[" class=kept"] * 5, ""), strict=True)
        rows.append(f"<tr><th scope=row>{leg.number}</th>{''.join(f'<td{kept}>{isolated_text(word)}</td>' for word, kept in cells)}</tr>")
    return f"<h3>{isolated_text(name)}</h3>{table(('Leg', 'Job', 'Nodes', 'Began', 'Took', 'End', 'Why'), rows, 'legs')}" if rows else ""


def _facts(one: ReportSubject, name: str) -> str:
    rows = [f"<tr><th scope=row>{isolated_text(label)}</th><td>{isolated_text(words)}</td></tr>" for label, words in one.facts if words]
    return f"<h3>{isolated_text(name)}</h3>{table((), rows, 'facts')}" if rows else ""
