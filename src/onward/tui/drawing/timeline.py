"""A run's timeline as lanes of text: waits, legs, checkpoints, ends; and its newest moments in words. Pure."""

from __future__ import annotations

from onward.model.analysis.timeline import Timeline
from onward.tui.drawing.text import Block, clock, cut, fit, line, span

_LABEL = 10
_FILL = {"queue": "░", "prepare": "▒", "leg": "█", "sync": "▪", "stall": "×"}
_MARK = {"checkpoint": "●", "missed": "○", "end": "┤", "request": "?", "resume": "▶", "warning": "!", "closed": "■"}
_NEWEST = 4


def timeline_block(timeline: Timeline, *, width: int, now: float) -> Block:
    room = max(width - _LABEL, 8)
    whole = max(timeline.end - timeline.start, 1.0)

    def at(moment: float) -> int:
        return max(0, min(room - 1, int((moment - timeline.start) / whole * (room - 1) + 0.5)))

    legs, marks = [" "] * room, [" "] * room
    for kind in ("queue", "leg", "prepare", "stall"):
        for one in timeline.segments:
            if one.kind == kind:
                for x in range(at(one.start), at(one.end if one.end is not None else timeline.end) + 1):
                    legs[x] = _FILL[kind]
    starts = [at(one.start) for one in timeline.segments if one.kind == "leg"]
    for kind in ("checkpoint", "warning", "missed", "request", "resume", "end", "closed"):
        for mark in timeline.marks:
            if mark.kind == kind:
                marks[at(mark.at)] = _MARK[kind]
    for n, x in enumerate(starts):
        label = str(n + 1)
        if n and all(cell in "█▒" for cell in legs[x : x + len(label)]):
            legs[x : x + len(label)] = label
    axis = fit(clock(timeline.start, now), room - 8) + f"{span(whole):>8}"
    lines = [
        cut([(fit("timeline", _LABEL), "dim"), ("".join(legs), "line0")], width),
        cut([(fit("", _LABEL), "dim"), ("".join(marks), "focus")], width),
        cut([(fit("", _LABEL), "dim"), (axis, "dim")], width),
    ]
    newest = [mark for mark in timeline.marks if mark.kind != "checkpoint"][-_NEWEST:]
    saved = [mark for mark in timeline.marks if mark.kind == "checkpoint"][-1:]
    for mark in sorted([*newest, *saved], key=lambda one: one.at):
        style = "bad" if mark.kind in ("missed", "warning") else ""
        lines.append(line(fit(f"{clock(mark.at, now):>9} {_MARK[mark.kind]} {mark.words}", width), style))
    return lines
