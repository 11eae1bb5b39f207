"""Grid Engine's accounting: how jobs that left the queue ended. Reads the end of its file if possible, else asks qacct.

`qacct` reads the whole file for every question, which on a large site takes minutes; the file only ever grows at its end.
"""

from __future__ import annotations

import getpass
import logging
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from onward.errors import SchedulerUnavailable
from onward.model.job import JobId
from onward.schedulers.command import Answer
from onward.schedulers.gridengine.output_parsing import AccountingRecord, parse_accounting, parse_qacct

log = logging.getLogger(__name__)

_PIECE = 4 << 20  # bytes: some 20,000 jobs
_MOST = 64 << 20
_ONE_BY_ONE = 3  # jobs: above this, one qacct call for all jobs of this user
_DAYS = "30"

Ask = Callable[..., Answer]  # runs a program of Grid Engine's


class Accounting:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def of_jobs(self, jobs: Collection[JobId]) -> dict[JobId, list[AccountingRecord]]:
        """Their records, oldest first. A job id can have been issued twice: of two names under one id the newer counts."""
        wanted = set(jobs)
        found: dict[JobId, list[AccountingRecord]] = {}
        path = accounting_file()
        if path:
            for lines in _from_the_end(path):
                found = {}
                for record in parse_accounting(line for line in lines if _number(line) in wanted):
                    found.setdefault(record.job, []).append(record)
                if found.keys() == wanted:
                    break
        else:
            for record in self._qacct(wanted):
                if record.job in wanted:
                    found.setdefault(record.job, []).append(record)
        return {job: [r for r in records if r.name == records[-1].name] for job, records in found.items()}

    def named(self, name: str) -> list[JobId]:
        path = accounting_file()
        if path:
            every = [
                record for lines in _from_the_end(path, whole=True) for record in parse_accounting(x for x in lines if f":{name}:" in x)
            ]
        else:
            every = list(parse_qacct(self._ask("qacct", "-j", name).out))
        user = getpass.getuser()
        return list(dict.fromkeys(record.job for record in every if record.name == name and record.owner == user))

    def _qacct(self, jobs: Collection[JobId]) -> Iterator[AccountingRecord]:
        """An unknown job is answered with an error and exit code 1, as is an accounting file that is not there: both mean no record."""
        if len(jobs) > _ONE_BY_ONE:
            yield from parse_qacct(self._ask("qacct", "-o", getpass.getuser(), "-d", _DAYS, "-j").out)
            return
        for job in sorted(jobs):
            yield from parse_qacct(self._ask("qacct", "-j", job).out)


def accounting_file() -> Path | None:
    root = os.environ.get("SGE_ROOT")
    path = Path(root, os.environ.get("SGE_CELL") or "default", "common", "accounting") if root else None
    return path if path and os.access(path, os.R_OK) else None


def _number(line: str) -> JobId:
    parts = line.split(":", 6)
    return JobId(parts[5]) if len(parts) > 6 else JobId("")


def _from_the_end(path: Path, *, whole: bool = False) -> Iterator[list[str]]:
    """The last lines: a few, and if that is not enough, as many as are looked through at all. A line being written is left out."""
    try:
        size = path.stat().st_size
        for reach in (_MOST,) if whole or size <= _PIECE else (_PIECE, _MOST):
            with path.open("rb") as file:
                file.seek(max(0, size - reach))
                lines = file.read(reach).decode(errors="replace").split("\n")
            yield lines[1 if size > reach else 0 : -1]
    except OSError as error:
        raise SchedulerUnavailable(f"the accounting file {path} cannot be read: {error.strerror}") from error
