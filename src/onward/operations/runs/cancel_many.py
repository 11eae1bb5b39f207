"""Cancel many: what is open and this user's, by words in its name; then all of it, though one cannot be ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from onward.errors import OnwardError, SchedulerError, SchedulerUnavailable, StorageError
from onward.operations.context import OperationsContext
from onward.operations.pipelines.control import cancel_pipeline
from onward.operations.pipelines.record import pipeline_line
from onward.operations.runs.control import ask_to_cancel, cancel
from onward.operations.runs.open_run import CancelResult, OpenRun
from onward.operations.runs.record import is_ours, read_folder
from onward.rundir.home import home_elsewhere
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir, pipelines_under
from onward.rundir.run_end import is_over


def open_runs(context: OperationsContext, *, words: str) -> tuple[list[OpenRun], list[str]]:
    """Runs and pipelines of this user's that are not over and have all these words in their line; and what cannot be read.

    Pipelines first: one that is open would queue more when its runs are cancelled.
    """
    wanted = words.lower().split()
    found: list[OpenRun] = []
    broken: list[str] = []
    pipelines = [dir for root in context.roots for dir in pipelines_under(root) if not dir.over.exists() and _is_mine(dir.path)]
    runs = [run for run in context.runs() if not is_over(run) and is_ours(run) and home_elsewhere(run) is None]
    readers: list[Callable[[], OpenRun | None]] = [*(partial(_pipeline, dir) for dir in pipelines), *(partial(_run, run) for run in runs)]
    for read in readers:
        try:
            run = read()
        except StorageError as error:
            broken.append(error.message)
            continue
        if run and all(word in " ".join((run.id, run.name, run.state, run.experiment, run.cluster)).lower() for word in wanted):
            found.append(run)
    return found, broken


def cancel_many(context: OperationsContext, folders: Sequence[str], *, silent: set[str]) -> Iterator[CancelResult]:
    """Each as it was ended, or with the `error` that was in the way.

    A cluster that did not answer joins `silent` and is not asked again: its other runs are marked, so that no leg begins, and `tend`
    ends their jobs.
    """
    for folder in folders:
        try:
            yield CancelResult(folder=folder, state=_cancel_one(context, Path(folder), silent))
        except OnwardError as error:
            yield CancelResult(folder=folder, error=error.message, hint=error.hint, exit_code=error.exit_code)
        except OSError as error:  # the others are still to be ended
            yield CancelResult(folder=folder, error=str(error), hint=f"check {folder}", exit_code=StorageError.exit_code)


def _cancel_one(context: OperationsContext, folder: Path, silent: set[str]) -> str:
    if (pipeline := PipelineDir(folder)).is_pipeline():
        cancel_pipeline(context, pipeline)
        return str(pipeline_line(pipeline)["state"])
    dir = RunDir(folder)
    cluster = read_folder(dir).spec.cluster.name
    if cluster in silent:
        run = ask_to_cancel(context, dir)
        raise SchedulerUnavailable(f"{run.spec.name} starts no more legs, but its jobs are not ended yet", hint="`onward tend` ends them")
    try:
        return str(cancel(context, dir).state)
    except SchedulerError:
        silent.add(cluster)
        raise


def _is_mine(folder: Path) -> bool:
    return os.lstat(folder).st_uid == os.getuid()


def _run(dir: RunDir) -> OpenRun | None:
    run = read_folder(dir)
    if run.closed:
        return None
    spec, cluster = run.spec, run.spec.cluster.name
    return OpenRun(id=spec.id, name=spec.name, state=str(run.state), experiment=spec.experiment, cluster=cluster, folder=str(dir.path))


def _pipeline(dir: PipelineDir) -> OpenRun:
    line = pipeline_line(dir)
    fields = {key: str(line[key]) for key in ("experiment", "cluster", "state", "folder")}
    return OpenRun(id="pipeline", name=dir.path.name, **fields)
