"""The metrics that a run's first page shows: few, and those that people look at first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlalchemy import Connection, select

from onward.tracker import schema
from onward.tracker.runs.rows import Metric, RunInfo, metric_of
from onward.tracker.series.stitch import SYSTEM_PREFIX

_series = schema.series
_LOOKED_AT = 300
_WORDS = re.compile(r"loss|acc|err|score|reward|f1|auc|iou|bleu|ppl|perplexity", re.IGNORECASE)


def key_metrics(connection: Connection, info: RunInfo, *, first: Sequence[str] = (), limit: int = 12) -> list[Metric]:
    """Those of `first`, then losses and scores, then the others; shallow names before deep ones."""
    c = _series.c
    mine = select(_series).where(c.run == info.inner, c.last_step.is_not(None), ~c.key.startswith(SYSTEM_PREFIX))
    found = [metric_of(row) for row in connection.execute(mine.order_by(c.last_time.desc(), c.key).limit(_LOOKED_AT))]
    if first and not any(metric.key in first for metric in found):
        found += [metric_of(row) for row in connection.execute(mine.where(c.key.in_(list(first))))]
    found.sort(key=lambda m: (m.key not in first, _WORDS.search(m.key) is None, m.key.count("/"), m.key))
    return found[:limit]
