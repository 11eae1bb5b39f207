"""Tend: look after all runs at once, and repair what got lost. One batched query a cluster, whatever the number of runs.

A run carries itself; this is for what no leg can repair: a controller that forgot a queued job, a submit nobody heard
the answer of, a leg that died with no successor queued.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from onward.errors import CopiedFolder, OnwardError, SchedulerError, StorageError
from onward.model.analysis.why import why
from onward.model.run import Run
from onward.operations.context import OperationsContext
from onward.operations.pipelines.control import tend_pipelines
from onward.operations.repair.killed_submits import sweep_killed_submits
from onward.operations.repair.one_run import GRACE, RunRepair
from onward.operations.runs.control import cancel
from onward.operations.runs.home import HomeCheck
from onward.operations.runs.record import in_plain_words, is_ours, read_folder, with_reasons
from onward.operations.runs.unrecorded import unrecorded
from onward.rundir.layout import RunDir
from onward.rundir.run_end import is_over
from onward.schedulers.base import ask_about


class FolderSelection(Protocol):
    """Folders under the roots: of runs that may not be over, and those that hold no run (pipelines, and what a killed submit left)."""

    @property
    def runs(self) -> Sequence[RunDir]: ...
    @property
    def others(self) -> Sequence[Path]: ...


@dataclass(kw_only=True)
class TendReport:
    """What one pass did."""

    looked_at: int = 0
    acted: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)  # by run id: why it is as it is, now that its scheduler was asked
    unanswered: bool = False  # a scheduler was not to be reached


def tend(context: OperationsContext, *, grace: float = GRACE, among: FolderSelection | None = None, uploads: bool = True) -> TendReport:
    """`among`: the folders to look after, where the caller knows which of all may need it; else every root is searched.

    `uploads`: also see to what pipelines upload to other hosts.
    """
    done = TendReport()
    open_runs: dict[str, list[tuple[RunDir, Run]]] = {}
    if among is None:
        found = context.runs()
        done.problems += context.unread
    else:
        found = [dir for dir in among.runs if dir.is_run()]
        done.problems += [profile.trouble for profile in context.settings.clusters.values() if profile.trouble]
    for root in context.roots:
        with suppress(OSError):  # told above, or by the next pass
            done.acted += sweep_killed_submits(root, among.others if among else None)
    homes = HomeCheck(context)
    for dir in found:
        if not is_ours(dir) or _rests(dir):
            continue
        try:
            homes.ensure(dir)
        except CopiedFolder:  # somebody keeps it; `show` and `doctor` say what it is
            continue
        except (OnwardError, OSError) as error:
            done.problems.append(str(error))
            continue
        done.looked_at += 1
        try:
            run = read_folder(dir)
        except StorageError as error:
            done.problems.append(str(error))
            continue
        open_runs.setdefault(run.spec.cluster.name, []).append((dir, run))
    for name, runs in open_runs.items():
        cluster = runs[0][1].spec.cluster
        try:
            scheduler = context.scheduler(cluster)
            answers = ask_about(scheduler, [run for _, run in runs])
        except OnwardError as error:
            done.unanswered = True
            done.problems.append(f"{name}: {error}; its state is unknown, so nothing was done")
            continue
        reasons = with_reasons(scheduler, (run for _, run in runs), answers)
        for dir, run in runs:
            try:
                words = _repair(RunRepair(context=context, dir=dir, run=run, answers=answers, grace=grace))
            except OSError as error:
                left = f"what was found about {run.spec.name} ({run.spec.id}) is not recorded, and nothing was submitted for it"
                done.problems.append(_in_words(error, dir, left))
                continue
            except OnwardError as error:
                done.unanswered |= isinstance(error, SchedulerError) and error.transient
                done.problems.append(f"{run.spec.name} ({run.spec.id}): {error}")
                continue
            if words:
                done.acted.append(f"{run.spec.name} ({run.spec.id}): {words}")
            else:
                done.said[run.spec.id] = why(run, reasons, words=partial(in_plain_words, cluster))
    acted, problems = tend_pipelines(context, among.others if among else None, uploads=uploads)
    done.acted += acted
    done.problems += problems
    return done


def _in_words(error: OSError, dir: RunDir, left: str) -> str:
    try:
        told = unrecorded(error, dir.root, left=left, again="onward tend")
    except OSError:  # not a disk's
        return f"{dir.path}: {error}"
    return f"{told.message}; {told.hint}"


def _repair(case: RunRepair) -> str | None:
    run = case.run
    if run.cancel and not run.closed and not case.too_fresh():  # the scheduler did not answer when it was asked to end the jobs
        cancel(case.context, case.dir)
        return f"ended its jobs: cancelled by {run.cancel.by}"
    return case.repair()


def _rests(dir: RunDir) -> bool:
    """Over, or not to begin yet."""
    try:
        return is_over(dir) or dir.held.exists()
    except OSError:
        return False  # reading it will say why
