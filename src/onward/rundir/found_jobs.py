"""Jobs of a run that only the scheduler knew of, written into its journals."""

from __future__ import annotations

from onward.model.policy.unrecorded_jobs import unrecorded_events, unrecorded_jobs
from onward.model.run import Run
from onward.rundir.journal import Journal


def record_found(run: Run, journal: Journal) -> str:
    """Write down the jobs of this run that only the scheduler knew of. Which, in words."""
    for event in unrecorded_events(run):
        journal.write(event)
    record = [f"found job {entry.job} of leg {leg.number}, which was not recorded" for leg, entry in unrecorded_jobs(run)]
    for _, entry in unrecorded_jobs(run):
        entry.unrecorded = False
    return "; ".join(record)
