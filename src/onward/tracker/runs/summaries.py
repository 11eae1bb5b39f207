"""Standings as rows: written with the journals and the samples, read a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, select, update

from onward.model.analysis.run_summary import RunSummary, moving_mean, summarise_run
from onward.model.run import Run
from onward.model.storable_text import clean
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.runs.legs import upsert

_runs, _standings = schema.runs, schema.standings
_FROM_JOURNALS = ("why", "next", "legs_done", "legs_max", "saved_step", "saved_at", "queued_at", "begun_at", "trains")
_OPEN = ("submitted", "running", "waiting")


class RunSummaries:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def say_why(self, values: Mapping[str, str]) -> int:
        """By run id, what the scheduler has been found to say; how many runs that was new of."""
        c = _standings.c
        with self._database.reading() as connection:
            query = select(_runs.c.id, _runs.c.run_id, c.why).join(_standings, c.run == _runs.c.id).where(_runs.c.state.in_(_OPEN))
            new = [(row.id, clean(values[row.run_id])) for row in connection.execute(query) if values.get(row.run_id, row.why) != row.why]

        def job(batch: Batch) -> None:
            for run, words in new:
                batch.connection.execute(update(_standings).where(c.run == run).values(why=words))
                batch.connection.execute(update(_runs).where(_runs.c.id == run).values(version=batch.version, updated=batch.now))

        if new:
            self._writer.do(job)
        return len(new)


def write_summary(batch: Batch, run: int, folded: Run) -> None:
    summary = asdict(summarise_run(folded))
    row = {name: summary[name] for name in _FROM_JOURNALS}
    row |= {"run": run, "why": clean(row["why"]), "next": clean(row["next"])}
    upsert(batch, _standings, [row], keys=("run",), change=_FROM_JOURNALS)


def take_gpu_use(batch: Batch, run: int, samples: Sequence[tuple[float, float]]) -> None:
    """Times and uses (0 to 1), in order: into the mean of the last minutes."""
    if not samples:
        return
    c = _standings.c
    held = batch.connection.execute(select(c.gpu_use, c.gpu_at).where(c.run == run)).first()
    use, at = (held.gpu_use, held.gpu_at) if held else (None, None)
    for time, value in samples:
        use, at = moving_mean(use, at, value, time), max(at or time, time)
    upsert(batch, _standings, [{"run": run, "gpu_use": use, "gpu_at": at}], keys=("run",), change=("gpu_use", "gpu_at"))


def summaries_of(connection: Connection, runs: Sequence[int]) -> dict[int, RunSummary]:
    """By inner id; of those that have one."""
    found: dict[int, RunSummary] = {}
    for i in range(0, len(runs), 500):
        for row in connection.execute(select(_standings).where(_standings.c.run.in_(runs[i : i + 500]))).mappings():
            values: dict[str, Any] = {name: row[name] for name in (*_FROM_JOURNALS, "gpu_use")}
            found[row["run"]] = RunSummary(
                **{**values, "trains": bool(values["trains"])}
            )  # null: its journals were read by an older version
    return found
