"""What a run needs of a machine and its clusters, looked at before it is needed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from onward.errors import OnwardError, StorageError
from onward.model.quantity import format_bytes
from onward.operations.context import OperationsContext
from onward.operations.runs.record import inspect_runs, is_ours, read_folder, run_record
from onward.rundir.home import home_elsewhere
from onward.rundir.journal import broken_lines
from onward.rundir.layout import RunDir
from onward.schedulers.state_folder import state_folder, state_folder_problem

_ELSEWHERE = "set ONWARD_ROOT"
_MOST_RUNS = 1000
_MOST_NAMED = 5
ENDS_SOON = "expires soon: "
_LEAST_ROOM = 50 << 20  # bytes: a run's folder without any checkpoint takes a few

Finding = tuple[bool, str, str]  # fine?, what, words


def examine_machine(context: OperationsContext) -> Iterator[Finding]:
    yield sys.version_info >= (3, 11), "python", f"{sys.version.split()[0]} at {sys.executable}"
    yield examine_root(context.root)
    local = Path(os.environ.get("SLURM_TMPDIR") or tempfile.gettempdir())
    free = format_bytes(shutil.disk_usage(local).free)
    yield os.access(local, os.W_OK), "local disk", f"{local}, {free} free here (a job may use another disk)"


def examine_state(env: Mapping[str, str]) -> Finding:
    """Whether the local queue, the tracker and what Onward remembers have a place."""
    problem = state_folder_problem(env)
    return not problem, "state", problem or str(state_folder(env))


def examine_tokens(env: Mapping[str, str], now: float) -> Iterator[Finding]:
    """Of the tracker's database of this user, where there is one: which tokens end soon."""
    from onward.operations.tracker_access.location import open_tracker, tracker_location

    try:
        location = tracker_location(env)
        if location.path and not location.path.exists():
            return
        with open_tracker(location) as opened:
            tokens = [token for token in opened.tokens.all() if token.stands(now)]
    except OnwardError as error:
        yield False, "tokens", error.message
        return
    soon = [token for token in tokens if token.ends_soon(now)]
    named = [f"{token.id} ({token.name or token.scope}) in {((token.ends or now) - now) / 86400:.0f} days" for token in soon]
    some = f"{', '.join(named[:5])}{f' and {len(named) - 5} more' if len(named) > 5 else ''}"
    yield True, "tokens", f"{ENDS_SOON}{some}; `onward token create` creates a new one" if soon else "none expires within 14 days"


def examine_folders(context: OperationsContext) -> Iterator[Finding]:
    """Each folder of an open run that cannot be read, with its reason; and each that says it is a run that lies elsewhere, too."""
    folders: dict[str, Path] = {}
    try:
        found = context.runs()
    except OSError:  # the root itself, which is looked at before
        return
    for dir in found:
        if os.path.lexists(dir.done):  # over: nobody needs it read
            continue
        try:
            id = read_folder(dir).spec.id
        except StorageError as error:
            if not isinstance(error.__cause__, PermissionError):  # that one is somebody else's, who keeps it private
                yield False, "folder", error.message
            continue
        if broken := broken_lines(dir):
            words = f"{dir.journals} contains lines that are not events, and are ignored: {broken[0]}"
            yield False, "folder", f"{words}{f' and {len(broken) - 1} more' if len(broken) > 1 else ''}; restore the file from a backup"
        if (first := folders.setdefault(id, dir.path)) != dir.path:
            yield False, "folder", _shared_id(id, dir, RunDir(first))
    yield from ((False, "root", words) for words in context.unread)


def _shared_id(id: str, one: RunDir, other: RunDir) -> str:
    for dir in (one, other):
        if home := home_elsewhere(dir):
            return f"{dir.path} is a copy of {home}, the home of run {id}; delete the copy, or keep it outside the runs folder"
    return f"{one.path} and {other.path} both claim to be run {id}; delete the copy"


def examine_cluster(context: OperationsContext, name: str) -> Finding:
    try:
        return True, name, context.scheduler(context.settings.cluster(name)[0]).check()
    except OnwardError as error:
        return False, name, error.message


def examine_runs(context: OperationsContext) -> Finding:
    """Whether each open run of this user's has a job; of very many runs, the newest."""
    try:
        dirs = [dir for dir in context.runs()[-_MOST_RUNS:] if not dir.done.exists() and is_ours(dir)]
    except OSError as error:
        return True, "runs", f"not checked: {error.strerror or error}"  # what is wrong with the root is said by its own line
    seen, _ = inspect_runs(context, dirs)
    records = [run_record(one, details=False) for one in seen if not one.run.closed]
    without = [f"{one['name']} ({one['id']})" for one in records if one["no_job_since"] is not None]
    if not without:
        return True, "runs", f"{len(records)} open, none without a job"
    shown = ", ".join(without[:_MOST_NAMED]) + (" …" if without[_MOST_NAMED:] else "")
    return False, "runs", f"no job is queued for {len(without)} of {len(records)} open runs: {shown}; `onward tend` queues one for each"


def examine_runs_folder(context: OperationsContext, name: str) -> tuple[bool, str, str, str]:
    """Of one cluster; its path comes last."""
    try:
        profile = context.settings.cluster(name)[1]
        root = context.settings.root(context.env, profile)
    except OnwardError as error:
        return False, "root", error.message, ""
    own = name in context.settings.clusters and not context.env.get("ONWARD_ROOT")
    return *examine_root(root, f"set clusters.{name}.root to a folder of your own" if own else _ELSEWHERE), str(root)


def examine_root(root: Path, advice: str = _ELSEWHERE) -> Finding:
    folder = root
    while not os.path.exists(folder):
        folder = folder.parent
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        return False, "root", f"{root} cannot be written; {advice}"
    free = shutil.disk_usage(folder).free
    return free > _LEAST_ROOM, "root", f"{root}, {format_bytes(free)} free"
