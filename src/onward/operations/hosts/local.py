"""Places: where runs are. Here, or a host that is reached through ssh; each answers the same verbs with the same plain data.

What the verbs answer is JSON, since a place may be far: the command line shows it, and needs not know where it came from.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from onward.errors import SubmitUnclear
from onward.model.plain_data import value_to_json
from onward.model.run import Run
from onward.model.spec import RunDraft
from onward.operations.admin.doctor import examine_cluster, examine_folders, examine_machine, examine_runs, examine_runs_folder
from onward.operations.context import OperationsContext
from onward.operations.runs.find import matching_runs, near_names
from onward.operations.runs.folded import fold_runs
from onward.operations.runs.logs import LegLogReader, follow_logs, read_logs
from onward.operations.runs.record import checkpoints, inspect_run, inspect_runs, read_folder, run_record, with_priority
from onward.operations.runs.watch import watch_run
from onward.operations.submit.preflight import notes_on_start
from onward.rundir.layout import RunDir
from onward.rundir.run_end import is_over
from onward.schedulers.base import snapshot_of

if TYPE_CHECKING:
    from onward.operations.submit.new_run import SubmitPreview

Data = dict[str, Any]

_PATIENCE = 60.0  # seconds for another process to say which job it queued


class Host(Protocol):
    """The verbs. `run` is the folder of a run at this place, as `matches` told it."""

    @property
    def host(self) -> str | None:
        """None: here."""
        ...

    def runs(self, *, state: str | None, newest: int | None, fold: bool = False) -> Data: ...

    def matches(self, *, text: str) -> Data: ...

    def show(self, *, run: str) -> Data: ...

    def cancel(self, *, run: str) -> Data: ...

    def open_runs(self, *, words: str) -> Data: ...

    def cancel_many(self, *, folders: list[str], silent: list[str]) -> Data: ...

    def stop(self, *, run: str) -> Data: ...

    def resume(self, *, run: str, changes: Mapping[str, Any]) -> Data: ...

    def adopt(self, *, run: str) -> Data: ...

    def checkpoints(self, *, run: str, verify: bool) -> Data: ...

    def tend(self) -> Data: ...

    def examine(self, *, clusters: list[str]) -> Data: ...

    def snapshot(self, *, cluster: str) -> Data: ...

    def watch(self, *, run: str) -> Iterator[Data]: ...

    def logs(
        self, *, run: str, streams: list[str], leg: int | None, supervisor: bool, lines: int | None, follow: bool
    ) -> Iterator[Data]: ...

    def preview(self, draft: RunDraft, *, cwd: Path) -> Data: ...

    def submit(self, draft: RunDraft, *, cwd: Path) -> Data: ...

    def draft(self, *, run: str) -> RunDraft:
        """What was asked for when this run was submitted."""
        ...

    def clone_preview(self, draft: RunDraft, *, run: str) -> Data: ...

    def clone(self, draft: RunDraft, *, run: str) -> Data: ...


class LocalHost:
    """This machine: the one on whose disk the folders are, and whose programs the scheduler is asked with.

    What only some verbs need is loaded by them: a look at a run should be quick.
    """

    host = None

    def __init__(self, desk: OperationsContext) -> None:
        self.desk = desk

    # ── look ──────────────────────────────────────────────────────────────────

    def runs(self, *, state: str | None, newest: int | None, fold: bool = False) -> Data:
        """`fold`: what pipelines queued is told as a line for each pipeline."""
        from onward.operations.pipelines.record import pipeline_lines

        found = self.desk.runs()
        folded = fold_runs(found, newest=newest if newest is not None else len(found)) if fold else None
        shown = folded.runs if folded else found if newest is None else found[-newest:]
        readable, broken = inspect_runs(self.desk, shown)
        pipelines, damaged = pipeline_lines(folded.pipelines if folded else ())
        return {
            "runs": [run_record(seen, details=False) for seen in readable if state is None or seen.run.state == state],
            "pipelines": pipelines,
            "broken": [*self.desk.unread, *self.desk.forget_removed_roots(), *(str(error) for error in (*broken, *damaged))],
            "older": folded.older if folded else len(found) - len(shown),
            "roots": list(map(str, self.desk.roots)),
        }

    def matches(self, *, text: str) -> Data:
        found = [asdict(match) for match in matching_runs(self.desk, text)]
        return {"matches": found, "near": [] if found else near_names(self.desk, text), "roots": list(map(str, self.desk.roots))}

    def show(self, *, run: str) -> Data:
        return run_record(with_priority(self.desk, inspect_run(self.desk, RunDir(Path(run)))))

    def checkpoints(self, *, run: str, verify: bool) -> Data:
        return {"checkpoints": checkpoints(RunDir(Path(run)), verify=verify)}

    def examine(self, *, clusters: list[str]) -> Data:
        """The machine, then these clusters, by name and runs folder."""
        return {
            "machine": list(examine_machine(self.desk)),
            "folders": list(examine_folders(self.desk)),
            "clusters": {name: examine_cluster(self.desk, name) for name in clusters},
            "roots": {name: examine_runs_folder(self.desk, name) for name in clusters},
            "runs": examine_runs(self.desk),
        }

    def snapshot(self, *, cluster: str) -> Data:
        """A ClusterSnapshot: nodes, queues, jobs."""
        return dict(value_to_json(snapshot_of(self.desk.scheduler(self.desk.settings.cluster(cluster)[0]))))

    # ── act ───────────────────────────────────────────────────────────────────

    def cancel(self, *, run: str) -> Data:
        from onward.operations.runs.control import cancel
        from onward.operations.runs.damaged import cancel_damaged, spec_damage, what_to_do

        dir = RunDir(Path(run))
        if not spec_damage(dir):
            return run_state_record(cancel(self.desk, dir))
        jobs = cancel_damaged(self.desk, dir)
        reason = "its spec cannot be read; " + (f"ended job {', '.join(jobs)}" if jobs else "it had no job any more")
        told = {"id": "", "name": dir.path.name, "state": "cancelled", "reason": reason}
        return {**told, "closed": True, "next": what_to_do(dir)}

    def open_runs(self, *, words: str) -> Data:
        """What `cancel_many` would be given to end all that these words mean."""
        from onward.operations.runs.cancel_many import open_runs

        found, broken = open_runs(self.desk, words=words)
        return {"runs": found, "broken": [*self.desk.unread, *broken], "roots": list(map(str, self.desk.roots))}

    def cancel_many(self, *, folders: list[str], silent: list[str]) -> Data:
        """`silent`: clusters that did not answer a call before this one."""
        from onward.operations.runs.cancel_many import cancel_many

        known = set(silent)
        return {"runs": list(cancel_many(self.desk, folders, silent=known)), "silent": sorted(known)}

    def stop(self, *, run: str) -> Data:
        from onward.operations.runs.control import stop

        return run_state_record(stop(self.desk, RunDir(Path(run))))

    def resume(self, *, run: str, changes: Mapping[str, Any]) -> Data:
        from onward.operations.runs.control import resume

        resumed = resume(self.desk, RunDir(Path(run)), changes=changes)
        leg = resumed.legs[resumed.first_leg]
        return {**run_state_record(resumed), "leg": leg.number, "job": leg.job}

    def adopt(self, *, run: str) -> Data:
        from onward.operations.runs.home import HomeCheck

        HomeCheck(self.desk).adopt(RunDir(Path(run)))
        return run_state_record(read_folder(RunDir(Path(run))))

    def tend(self) -> Data:
        from onward.operations.repair.tend import tend

        return asdict(tend(self.desk))

    # ── follow ────────────────────────────────────────────────────────────────

    def watch(self, *, run: str) -> Iterator[Data]:
        return watch_run(self.desk, RunDir(Path(run)))

    def logs(
        self,
        *,
        run: str,
        streams: list[str],
        leg: int | None,
        supervisor: bool,
        lines: int | None,
        follow: bool,
        offsets: Mapping[str, int] | None = None,
    ) -> Iterator[Data]:
        dir = RunDir(Path(run))
        reader = LegLogReader(dir, streams=streams, leg=leg, supervisor=supervisor, offsets=offsets)
        if follow:
            return follow_logs(self.desk, dir, reader, lines=lines)
        return _once(dir, reader, lines)

    # ── submit ────────────────────────────────────────────────────────────────

    def preview(self, draft: RunDraft, *, cwd: Path) -> Data:
        from onward.operations.submit.new_run import preview

        return preview_record(self.desk, draft.cluster, preview(self.desk, draft, cwd=cwd))

    def submit(self, draft: RunDraft, *, cwd: Path) -> Data:
        from onward.operations.submit.new_run import submit

        return submit_record(submit(self.desk, draft, cwd=cwd))

    def draft(self, *, run: str) -> RunDraft:
        from onward.operations.submit.clone import draft_of

        return draft_of(RunDir(Path(run)))

    def clone_preview(self, draft: RunDraft, *, run: str) -> Data:
        from onward.operations.submit.clone import clone_preview

        return preview_record(self.desk, draft.cluster, clone_preview(self.desk, RunDir(Path(run)), draft))

    def clone(self, draft: RunDraft, *, run: str) -> Data:
        from onward.operations.submit.clone import clone

        return submit_record(clone(self.desk, RunDir(Path(run)), draft))


def run_state_record(run: Run) -> Data:
    """A run in short, after something was asked of it."""
    closed = run.closed
    return {
        "id": run.spec.id,
        "name": run.spec.name,
        "state": str(run.state),
        "reason": closed.cause if closed else "",
        "closed": closed is not None,
        "next": closed.next if closed else "",
    }


def preview_record(desk: OperationsContext, cluster: str, seen: SubmitPreview) -> Data:
    """With what the scheduler expects of such a job, which only a person's own question is worth."""
    expected = notes_on_start(desk.scheduler(desk.settings.cluster(cluster)[0]), seen.script, now=desk.clock.now())
    told = {"folder": str(seen.folder), "command": list(seen.command), "script": seen.script}
    return {**told, "notes": [*seen.notes, *expected]}


def submit_record(dir: RunDir) -> Data:
    run = read_folder(dir)
    leg = run.legs.get(1)
    told = {"id": run.spec.id, "name": run.spec.name, "folder": str(dir.path), "cluster": run.spec.cluster.name}
    return {**told, "job": leg.job if leg else None, "leg_seconds": run.resources.time, "warnings": list(leg.warnings) if leg else []}


def await_submit_record(dir: RunDir) -> Data:
    """Of a run that was made by a call whose answer was lost, and that may still be at it."""
    give_up = time.monotonic() + _PATIENCE
    while not (told := submit_record(dir))["job"]:
        if time.monotonic() > give_up:
            hint = f"`onward tend` looks it up; onward show {told['id']} shows the result"
            raise SubmitUnclear(f"it is unknown whether the first job of {told['name']} ({told['id']}) was accepted", hint=hint)
        time.sleep(0.5)
    return told


def _once(dir: RunDir, reader: LegLogReader, lines: int | None) -> Iterator[Data]:
    yield from read_logs(dir, reader, lines=lines, rest=True)
    yield {"done": is_over(dir)}
