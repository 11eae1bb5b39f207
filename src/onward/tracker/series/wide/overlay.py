"""Reading a few series of a run while its newest records are still in its tail: nothing is settled for a chart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection

from onward.tracker.db.raw_sql import fetch
from onward.tracker.series.chunks import Columns, in_order
from onward.tracker.series.wide.tails import WideRows, names_of, waiting

Tail = list[tuple[int, Columns]]  # leg, points in order


def tails_of(connection: Connection, wanted: Mapping[tuple[int, str], int]) -> dict[int, Tail]:
    """By series, of those (run and key) that are asked for. All queries of the connection must see one moment."""
    found: dict[int, Tail] = {}
    for run in sorted({run for run, _ in wanted} & set(waiting(connection))):
        rows = fetch(connection, "SELECT leg, keys, records, data FROM tails WHERE run = ? ORDER BY leg, keys, id", [run])
        for (leg, keys), same in groupby(rows, key=itemgetter(0, 1)):
            names = names_of(connection, keys)
            part = WideRows()
            for _, _, count, data in same:
                part.extend(data, count)
            for index, name in enumerate(names):
                if (run, name) in wanted:
                    found.setdefault(wanted[run, name], []).append((leg, in_order(part.column(index, len(names)))))
    return found
