"""Jobs that no journal names. A leg whose disk takes nothing queues its successor all the same, and only its memory knows that job.

The scheduler knows it too, and a job's name tells its run and its leg.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from onward.model import events as ev
from onward.model.job import JobId, JobLabels, JobStatus
from onward.model.run import Leg, Run, Submission


def note_unrecorded(runs: Iterable[Run], live: Mapping[JobId, JobStatus]) -> None:
    """Put each job that waits or runs, and that no journal names, into its run: as if its submission had been written down.

    `live`: all that the scheduler lists of this user's jobs.
    """
    named: dict[tuple[str, str], list[tuple[int, JobStatus]]] = defaultdict(list)
    for status in live.values():
        if status.state.live and (told := JobLabels.read(status.name)):
            named[told.run_name, told.run].append((told.leg, status))
    for run in runs:
        for number, status in named.get((run.spec.name, run.spec.id), ()):
            _note(run, _claimed_by(run, status) or run.legs.get(number) or Leg(number=number), status)
        for leg in run.legs.values():  # those of earlier versions have names that do not tell the run
            status_of_claim = live.get(JobId(leg.claimed.job)) if leg.claimed and not leg.end else None
            if status_of_claim and status_of_claim.name.startswith(f"{run.spec.name}."):
                _note(run, leg, status_of_claim)


def unrecorded_jobs(run: Run) -> Iterator[tuple[Leg, Submission]]:
    """Those that were put into the run from what the scheduler lists."""
    for _, leg in sorted(run.legs.items()):
        yield from ((leg, entry) for entry in leg.submissions.values() if entry.unrecorded)


def unrecorded_events(run: Run) -> list[ev.Event]:
    """What was to be written down of them."""
    told: list[ev.Event] = []
    for leg, entry in unrecorded_jobs(run):
        told.append(ev.Submitting(leg=leg.number, at=entry.at, name=entry.name, mem=entry.mem, time=entry.time, exclude=entry.exclude))
        told.append(ev.Submitted(leg=leg.number, at=entry.at, name=entry.name, job=entry.job or ""))
    return told


def _claimed_by(run: Run, status: JobStatus) -> Leg | None:
    """The leg that this job lives, where that is another than the one it was queued for."""
    return next((leg for leg in run.legs.values() if leg.claimed and leg.claimed.job == status.id and not leg.end), None)


def _note(run: Run, leg: Leg, status: JobStatus) -> None:
    if any(status.name in other.submissions and other.submissions[status.name].job == status.id for other in run.legs.values()):
        return
    entry = leg.submissions.get(status.name)  # its submit is written down, and the answer is not
    if entry is None:
        asked = run.resources  # no job of a leg asks for less
        newest = max([status.submitted or 0.0, *(other.at + 0.001 for other in leg.submissions.values())])
        entry = Submission(name=status.name, at=newest, mem=asked.mem, time=asked.time, exclude=asked.exclude)
    entry.job, entry.gone, entry.unrecorded = status.id, False, True
    leg.submissions = {**leg.submissions, status.name: entry}  # not changed in place: another thread may be reading them
    run.legs = {**run.legs, leg.number: leg}
