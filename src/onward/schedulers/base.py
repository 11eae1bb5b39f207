"""Scheduler: the one seam between Onward and whatever runs jobs. Small enough to fake on one screen.

Answers are three-valued: a job is found, or it is absent from the answer (the scheduler surely does not know it), or
the call raises `SchedulerUnavailable` and nothing is known. Absence is not an end: the caller decides what it means.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from onward.model.job import Allocation, JobId, JobStatus
from onward.model.spec import Resources


class Scheduler(Protocol):
    @property
    def settle_seconds(self) -> float:
        """Seconds after a submit without a clear answer until a lookup by name can be believed."""
        ...

    def directives(self, resources: Resources, *, output: Path) -> Sequence[str]:
        """The comment lines at the head of a job script that ask for these resources."""
        ...

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        """Queue a script, held until `after` has ended in whatever way. Never retried here: that is `supervisor.handover`'s.

        Raises SubmitRefused when the scheduler said no, SubmitUnclear when the job may have been accepted.
        """
        ...

    def submit_command(self, script: Path, *, name: str, after: JobId | None = None) -> Sequence[str]:
        """The exact program and arguments that `submit` runs: what `--dry-run` prints."""
        ...

    def find(self, name: str) -> Sequence[JobId]:
        """All jobs with exactly this name that the scheduler knows, ended ones too, oldest first."""
        ...

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        """What is known of these jobs, in as few calls as can be, whatever their number."""
        ...

    def cancel(self, jobs: Collection[JobId]) -> None:
        """End these jobs. A job that has ended or is unknown is no error."""
        ...

    def allocation(self) -> Allocation:
        """From inside a job: what it got."""
        ...

    def check(self) -> str:
        """One line about this scheduler (version, address), or SchedulerUnavailable."""
        ...
