"""Handover: see to it that a leg has exactly one job, whatever the scheduler answers and whoever dies meanwhile.

Names carry identity. Before the scheduler is asked, the name to be used is in a journal; after any unclear answer it
is looked up before anything is submitted again. Where two jobs come of it all the same, the claim on the leg lets one
of them live.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onward.clock import Clock
from onward.errors import Conflict, SchedulerError, SchedulerUnavailable, SubmitLimitReached, SubmitRefused, SubmitUnclear
from onward.model import events as ev
from onward.model.job import JobId, JobState, JobStatus, job_name
from onward.model.policy.leg_history import cancelled_by_others
from onward.model.policy.lifecycle import MOST_CANCELLED_BY_OTHERS, Continue
from onward.model.policy.storage_patience import storage_patience
from onward.model.policy.unrecorded_jobs import note_unrecorded
from onward.model.run import Leg, Run, Submission
from onward.rundir.found_jobs import record_found
from onward.rundir.home import refuse_copy
from onward.rundir.journal import Journal
from onward.rundir.layout import RunDir
from onward.schedulers.base import Scheduler, advice_of, capabilities_of, live_jobs_of
from onward.schedulers.job_script import job_script
from onward.sdk.atomic_files import write_whole

log = logging.getLogger(__name__)

SCHEDULER_PATIENCE = 120.0  # seconds to go on asking a scheduler that does not answer
_TEND = "`onward tend` looks again and submits only if there is no such job"
_RETRY_PAUSE, _LONGEST_RETRY_PAUSE = 1.0, 30.0  # seconds before a submit of which no job came is made again: growing
_HELD_PATIENCE = 3.0  # seconds: a job held on us cannot have begun, and we may have no more
_LIMIT_PAUSE, _LONGEST_LIMIT_PAUSE = 60.0, 600.0  # seconds between submits while the number of jobs is limited: growing
_LOOKUPS_BEFORE_AGAIN = 2  # answered, empty, and at least twice the settling time apart


class QueuedLegCancelled(Conflict):
    """The job that was queued for the next leg was cancelled by its owner, or too often by another user: the run is not to go on."""

    def __init__(self, message: str, *, by: str = "") -> None:
        super().__init__(message)
        self.by = by  # the other user


@dataclass(frozen=True, kw_only=True)
class QueuedJob:
    """A job that was queued."""

    leg: int
    name: str
    job: str


@dataclass(kw_only=True)
class Handover:
    dir: RunDir
    scheduler: Scheduler
    journal: Journal
    clock: Clock
    own: str | None = None  # the job that this process is in: it leaves by itself, and deleting it would end what it still has to do
    patience: float = SCHEDULER_PATIENCE
    limit_patience: float = 0.0  # seconds to go on trying while as many jobs are submitted as the site allows
    on_limit: Callable[[], object] = lambda: None  # called when that limit is met
    abandoned: Callable[[], bool] = lambda: False
    live: Mapping[JobId, JobStatus] | None = None  # all jobs that the scheduler lists, where the caller has asked it already
    waited: float = 0.0  # seconds for the storage, by jobs that could not begin the leg: the next one goes on counting
    made: list[QueuedJob] = field(default_factory=list)  # what was queued here, by this very object

    def ensure(self, run: Run, wanted: Continue, *, after: str | None) -> str:
        """The id of the one job that stands for this leg: the one that is queued, one found by name, or a new one."""
        refuse_copy(self.dir)
        self._note_unrecorded(run, patience=self.patience)
        return self._ensure(run, wanted, after=after)

    def _ensure(self, run: Run, wanted: Continue, *, after: str | None) -> str:
        leg = run.legs.get(wanted.leg)
        if leg:
            self._disown(leg)
        for standing in leg.standing if leg else ():
            job = standing.job or self._adopt(wanted.leg, standing.name)
            if job and self._still_good(run, wanted, standing, job, held=after is not None):
                return job
            if job is None and standing.limited and _same_request(standing, run, wanted):
                return self._ask_for(wanted.leg, standing.name, after, script=self._script(run, wanted), noted=True)
            if job is None:
                self._write_off(wanted.leg, standing.name, "no job was created")
        return self._submit(run, wanted, after=after)

    def ensure_ahead(self, run: Run, wanted: Continue, *, after: str | None, legs: int | None = None) -> str:
        """The same, and on a cluster whose jobs may not submit as many legs as its profile says, each held on the one before.

        Only the first is a must: where the scheduler takes no more, `onward tend` tops up.
        """
        first = job = self.ensure(run, wanted, after=after)
        most = run.spec.cluster.legs_ahead if legs is None else legs
        last = min(wanted.leg + most, run.first_leg + run.limits.max_legs) - 1
        for number in range(wanted.leg + 1, last + 1):
            try:
                job = self._ensure(run, replace(wanted, leg=number), after=job)
            except SubmitLimitReached as error:
                log.warning("%s", error)
                break
            except (SchedulerError, QueuedLegCancelled) as error:
                log.warning("%s", error)
                words = f"{number - wanted.leg} of {last - wanted.leg + 1} legs could be queued ahead: {error}"
                self.journal.write(ev.Warned(leg=wanted.leg, at=self.clock.now(), text=words))
                break
        return first

    def take_back_made(self, *, reason: str) -> None:
        """Cancel what was queued here, the last first: each may hold the one before."""
        while self.made:
            made = self.made[-1]
            self._take_back(made.leg, made.name, made.job, reason)
            self.made.pop()

    def advise(self, run: Run) -> None:
        """Note what the scheduler has to say about such jobs, for whoever reads the run's record."""
        for words in advice_of(self.scheduler, run.resources):
            self.journal.write(ev.Warned(leg=run.first_leg, at=self.clock.now(), text=words))

    def withdraw(self, run: Run, *, from_leg: int, reason: str) -> None:
        """Take back every leg that is queued and was never claimed: the last first, since each holds the next."""
        refuse_copy(self.dir)
        self._note_unrecorded(run, patience=0.0)
        waiting = [(number, leg) for number, leg in sorted(run.legs.items(), reverse=True) if number >= from_leg and not leg.claimed]
        for number, standing in [(number, entry) for number, leg in waiting for entry in leg.standing]:
            job = standing.job or self._adopt(number, standing.name)
            if job:
                self._take_back(number, standing.name, job, reason)
            elif standing.limited:
                self._write_off(number, standing.name, f"it could not be queued, and {reason}")

    def _disown(self, leg: Leg) -> None:
        """The job that this process is in lives another leg, or leaves: it cannot be the one that is asked for. Noted in memory too,
        since the journals may not be writable now."""
        for own in [s for s in leg.submissions.values() if self.own and s.job == self.own and s.stands]:
            own.withdrawn = True
            words = "its job exits, or runs another leg"
            self.journal.write(ev.Withdrawn(leg=leg.number, at=self.clock.now(), name=own.name, job=own.job or "", reason=words))

    def _note_unrecorded(self, run: Run, *, patience: float) -> None:
        """Look up jobs that whoever queued them could not write down, and write that down. A scheduler that cannot be asked raises:
        unknown is not none. A run of which nothing was ever queued has none."""
        if not run.legs:
            return
        give_up = self.clock.now() + patience
        live, pause = self.live, _RETRY_PAUSE
        while live is None:
            try:
                live = live_jobs_of(self.scheduler)
            except SchedulerUnavailable as error:
                if self.clock.now() >= give_up:
                    raise
                log.warning("%s; asking again which jobs of the run there are, in %.0f s", error, pause)
                self._pause(pause, give_up)
                pause = min(2 * pause, _LONGEST_RETRY_PAUSE)
        note_unrecorded([run], live)
        if told := record_found(run, self.journal):
            log.warning("%s", told)

    # ── one job, surely ───────────────────────────────────────────────────────

    def _still_good(self, run: Run, wanted: Continue, standing: Submission, job: str, *, held: bool) -> bool:
        status = self._status_in_time(job, _HELD_PATIENCE if held else self.patience)
        if status is None and capabilities_of(self.scheduler).deletes_unseen:
            said = f"job {job}, queued for leg {wanted.leg}, was deleted while it waited; the scheduler does not say who deleted it"
            raise QueuedLegCancelled(said)
        if status is None or status.name != standing.name:
            self._write_off(wanted.leg, standing.name, f"the scheduler no longer knows job {job}")
            return False
        if status.state is JobState.CANCELLED:
            by = status.cancelled_by
            words = f" by {by}" if by else f" ({status.reason})" if status.reason else ""
            said = f"job {job}, queued for leg {wanted.leg}, was cancelled{words}"
            if not by or cancelled_by_others(run) + 1 >= MOST_CANCELLED_BY_OTHERS:
                raise QueuedLegCancelled(said, by=by)
            self._write_off(wanted.leg, standing.name, said, by=by)
            return False
        if not status.state.live:
            words = f" ({status.reason})" if status.reason else ""
            self._write_off(wanted.leg, standing.name, f"job {job} is {status.state} and never began{words}")
            self.scheduler.cancel([JobId(job)])  # one in an error state may still hold others
            return False
        if suits_next_leg(standing, wanted):
            return True
        self._take_back(wanted.leg, standing.name, job, "the next leg needs other resources")
        return False

    def _status_in_time(self, job: str, patience: float) -> JobStatus | None:
        """What is known of a job, with the time that a scheduler may take until it knows what became of one that has left its queue."""
        give_up = self.clock.now() + min(capabilities_of(self.scheduler).finishing_seconds, patience)
        while True:
            status = self.scheduler.status([JobId(job)]).get(JobId(job))
            if status is not None or self.clock.now() >= give_up:
                return status
            self._pause(1.0, give_up)

    def _submit(self, run: Run, wanted: Continue, *, after: str | None) -> str:
        spec = run.spec
        name = job_name(spec.name, wanted.leg, run=spec.id, token=secrets.token_hex(4))
        resources = run.resources.grown(mem=wanted.mem, exclude=wanted.exclude)
        script = self._script(run, wanted)
        self.journal.write(
            ev.Submitting(
                leg=wanted.leg,
                at=self.clock.now(),
                name=name,
                after=after,
                mem=resources.mem,
                time=resources.time,
                exclude=resources.exclude,
            )
        )
        return self._ask_for(wanted.leg, name, after, script=script)

    def _script(self, run: Run, wanted: Continue) -> Path:
        """The job's script, in the run's folder. A job that cannot write there has it on its node: a scheduler keeps a copy."""
        text = render_script(self.dir, run, self.scheduler, wanted, waited=self.waited)
        try:
            write_whole(self.dir.script(wanted.leg), text, mode=0o755)
            return self.dir.script(wanted.leg)
        except OSError as error:
            if self.own is None:
                raise
            log.warning("the script of leg %d cannot be written to the run's folder and is submitted from the node: %s", wanted.leg, error)
            with tempfile.NamedTemporaryFile("w", prefix="onward-", suffix=".sh", delete=False) as file:
                file.write(text)
            return Path(file.name)

    def _ask_for(self, leg: int, name: str, after: str | None, *, script: Path, noted: bool = False) -> str:
        """`noted`: it is in a journal already that the site's limit keeps this submit from being accepted."""
        try:
            job = self._submit_when_there_is_room(leg, name, after, script=script, noted=noted)
        except SubmitLimitReached:
            raise  # the submit stands, and is tried again
        except SubmitRefused as error:
            self.journal.write(ev.Refused(leg=leg, at=self.clock.now(), name=name, reason=error.message))
            raise
        finally:
            if script.parent != self.dir.params:
                script.unlink(missing_ok=True)
        self.made.append(QueuedJob(leg=leg, name=name, job=job))
        self.journal.write(ev.Submitted(leg=leg, at=self.clock.now(), name=name, job=job))
        return job

    def _submit_when_there_is_room(self, leg: int, name: str, after: str | None, *, script: Path, noted: bool) -> JobId:
        give_up = self.clock.now() + self.limit_patience
        pause = _LIMIT_PAUSE
        while True:
            try:
                return self._submit_surely(script, name, after)
            except SubmitLimitReached as error:
                if not noted:
                    self.journal.write(ev.Limited(leg=leg, at=self.clock.now(), name=name, reason=error.message))
                noted = True
                self.on_limit()
                if self.clock.now() >= give_up:
                    raise
                log.info("%s; leg %d is submitted again in %.0f s", error, leg, pause)
                try:
                    self._pause(pause, give_up)
                except SubmitUnclear:
                    raise error from None  # the leg is ending, and nothing was submitted
                pause = min(2 * pause, _LONGEST_LIMIT_PAUSE)

    def _submit_surely(self, script: Path, name: str, after: str | None) -> JobId:
        give_up = self.clock.now() + self.patience
        pause = _RETRY_PAUSE
        while True:
            try:
                return self.scheduler.submit(script, name=name, after=JobId(after) if after else None)
            except (SubmitUnclear, SchedulerUnavailable) as error:
                log.warning("%s; looking the job up by its name, for up to %.0f s", error, give_up - self.clock.now())
            found = self._look_up(name, give_up=give_up)
            if found:
                return found
            if self.clock.now() >= give_up:
                raise SubmitUnclear(f"the scheduler answered no submit, and it is unknown whether job {name} was accepted", hint=_TEND)
            log.warning("there is no job %s; submitting again under the same name", name)
            self._pause(pause, give_up)
            pause = min(2 * pause, _LONGEST_RETRY_PAUSE)

    def _look_up(self, name: str, *, give_up: float) -> JobId | None:
        """The job that an unclear submit made; None once the scheduler has twice said that there is none."""
        settle = self._settle_seconds()
        self._pause(settle, give_up)
        answered = 0
        while True:
            try:
                jobs = self._live_first(self.scheduler.find(name))
            except SchedulerUnavailable as error:
                if self.clock.now() >= give_up:
                    raise SubmitUnclear(
                        f"the scheduler does not answer, and it is unknown whether job {name} was accepted: {error}",
                        hint=_TEND,
                    ) from error
                self._pause(min(5.0, settle + 1), give_up)
                continue
            if jobs:
                self.scheduler.cancel(jobs[1:])  # all carry our token: duplicates of this very submit
                return jobs[0]
            answered += 1
            if answered >= _LOOKUPS_BEFORE_AGAIN:
                return None
            self._pause(2 * settle, give_up)

    def _live_first(self, jobs: Sequence[JobId]) -> list[JobId]:
        """Oldest first, but a job that can still run before one that has ended."""
        ids = list(jobs)
        if len(ids) < 2:
            return ids
        status = self.scheduler.status(ids)
        return sorted(ids, key=lambda job: (job not in status or not status[job].state.live, ids.index(job)))

    def _adopt(self, leg: int, name: str) -> JobId | None:
        """The job of a submit whose answer nobody wrote down."""
        found = self._live_first(self.scheduler.find(name))
        if not found:
            return None
        self.scheduler.cancel(found[1:])
        self.journal.write(ev.Submitted(leg=leg, at=self.clock.now(), name=name, job=found[0]))
        return found[0]

    def _take_back(self, leg: int, name: str, job: str, reason: str) -> None:
        """Written down first: a job of ours that is found cancelled without a word was cancelled by somebody else."""
        status = self.scheduler.status([JobId(job)]).get(JobId(job))
        self.journal.write(ev.Withdrawn(leg=leg, at=self.clock.now(), name=name, job=job, reason=reason))
        if job != self.own and status and status.name == name:  # else the id belongs to a stranger by now; and our own job leaves by itself
            self.scheduler.cancel([JobId(job)])

    def _write_off(self, leg: int, name: str, reason: str, *, by: str = "") -> None:
        log.warning("leg %d: %s (%s)", leg, reason, name)
        self.journal.write(ev.Gone(leg=leg, at=self.clock.now(), name=name, reason=reason, by=by))

    def _settle_seconds(self) -> float:
        try:
            return self.scheduler.settle_seconds
        except SchedulerError:
            return 15.0

    def _pause(self, seconds: float, give_up: float) -> None:
        until = min(self.clock.now() + seconds, max(give_up, self.clock.now()))
        while self.clock.now() < until:
            if self.abandoned():
                raise SubmitUnclear("gave up: the leg is ending")
            self.clock.sleep(min(0.5, until - self.clock.now()))


def suits_next_leg(standing: Submission, wanted: Continue) -> bool:
    """Whether a queued job has what the next leg needs."""
    excluded = (standing.exclude or "").split(",")
    return (standing.mem or 0) >= (wanted.mem or 0) and all(node in excluded for node in wanted.exclude)


def _same_request(standing: Submission, run: Run, wanted: Continue) -> bool:
    """Whether a submit that was not accepted yet asks for just what the leg needs now."""
    resources = run.resources.grown(mem=wanted.mem, exclude=wanted.exclude)
    return (standing.mem, standing.time, standing.exclude) == (resources.mem, resources.time, resources.exclude)


def queued_ahead(run: Run, wanted: Continue) -> bool:
    """Whether a job stands for this leg that has what it needs, as far as the journals know."""
    leg = run.legs.get(wanted.leg)
    standing = leg.submission if leg else None
    return standing is not None and standing.job is not None and suits_next_leg(standing, wanted)


def render_script(dir: RunDir, run: Run, scheduler: Scheduler, wanted: Continue, *, waited: float = 0.0) -> str:
    """The scheduler opens no file of the run's: where it cannot, it ends the job. The script does, and waits for it."""
    resources = run.resources.grown(mem=wanted.mem, exclude=wanted.exclude)
    directives = scheduler.directives(resources, output=Path(os.devnull))
    cluster = run.spec.cluster
    own = [python for python in (cluster.python, *cluster.other_pythons, sys.executable) if python]
    return job_script(
        directives,
        run=dir.path,
        archive=dir.supervisor.name,
        log=dir.supervisor_log,
        leg=wanted.leg,
        pythons=own,
        patience=storage_patience(resources.time),
        waited=waited,
    )
