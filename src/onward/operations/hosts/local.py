"""Places: where runs are. Here, or a host that is reached through ssh; each answers the same verbs with the same values."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from onward.errors import SubmitUnclear
from onward.model.run import Run
from onward.model.spec import RunDraft
from onward.operations.admin.doctor import examine_cluster, examine_folders, examine_machine, examine_runs, examine_runs_folder
from onward.operations.context import OperationsContext
from onward.operations.hosts.answers import (
    CancelResults,
    HostFindings,
    OpenRuns,
    PreviewedRun,
    ResumedRun,
    RunAfterAct,
    RunMatches,
    RunRecord,
    RunRecords,
    SubmittedRun,
)
from onward.operations.runs.find import matching_runs, near_names
from onward.operations.runs.folded import fold_runs
from onward.operations.runs.logs import LegLogReader, check_leg, follow_logs, read_logs
from onward.operations.runs.record import checkpoints, inspect_run, inspect_runs, read_folder, run_record, with_priority
from onward.operations.runs.watch import watch_run
from onward.operations.submit.preflight import notes_on_start
from onward.rundir.layout import RunDir
from onward.rundir.run_end import is_over
from onward.schedulers.base import snapshot_of

if TYPE_CHECKING:
    from onward.model.cluster import ClusterSnapshot
    from onward.operations.repair.tend import TendReport
    from onward.operations.submit.new_run import SubmitPreview

Data = dict[str, Any]

_PATIENCE = 60.0  # seconds for another process to say which job it queued


class Host(Protocol):
    """The verbs. `run` is the folder of a run on this host, as `matches` returned it."""

    @property
    def hostname(self) -> str | None:
        """None: here."""
        ...

    def runs(self, *, state: str | None, newest: int | None, fold: bool = False) -> RunRecords: ...

    def matches(self, *, text: str) -> RunMatches: ...

    def show(self, *, run: str) -> RunRecord: ...

    def cancel(self, *, run: str) -> RunAfterAct: ...

    def open_runs(self, *, words: str) -> OpenRuns: ...

    def cancel_many(self, *, folders: list[str], silent: list[str]) -> CancelResults: ...

    def stop(self, *, run: str) -> RunAfterAct: ...

    def resume(self, *, run: str, changes: Mapping[str, Any]) -> ResumedRun: ...

    def adopt(self, *, run: str) -> RunAfterAct: ...

    def checkpoints(self, *, run: str, verify: bool) -> Sequence[RunRecord]: ...

    def own_files(self, *, run: str) -> Sequence[RunRecord]: ...

    def result_files(self, *, run: str, checkpoints: str | None) -> Iterator[Data]:
        """See operations/fetch/result_files.py."""
        ...

    def file_pieces(self, *, run: str, files: list[list[Any]]) -> Iterator[Data]: ...

    def tend(self) -> TendReport: ...

    def examine(self, *, clusters: list[str]) -> HostFindings: ...

    def snapshot(self, *, cluster: str) -> ClusterSnapshot: ...

    def watch(self, *, run: str) -> Iterator[Data]: ...

    def logs(
        self, *, run: str, streams: list[str], leg: int | None, supervisor: bool, lines: int | None, follow: bool
    ) -> Iterator[Data]: ...

    def preview(self, draft: RunDraft, *, cwd: Path) -> PreviewedRun: ...

    def submit(self, draft: RunDraft, *, cwd: Path) -> SubmittedRun: ...

    def draft(self, *, run: str) -> RunDraft:
        """What was asked for when this run was submitted."""
        ...

    def clone_preview(self, draft: RunDraft, *, run: str) -> PreviewedRun: ...

    def clone(self, draft: RunDraft, *, run: str) -> SubmittedRun: ...


class LocalHost:
    """This machine: the one on whose disk the folders are, and whose programs the scheduler is asked with.

    What only some verbs need is loaded by them: a look at a run should be quick.
    """

    hostname = None

    def __init__(self, context: OperationsContext) -> None:
        self.context = context

    # ── look ──────────────────────────────────────────────────────────────────

    def runs(self, *, state: str | None, newest: int | None, fold: bool = False) -> RunRecords:
        """`fold`: what pipelines queued is told as a line for each pipeline."""
        from onward.operations.pipelines.record import pipeline_lines

        found = self.context.runs()
        folded = fold_runs(found, newest=newest if newest is not None else len(found)) if fold else None
        shown = folded.runs if folded else found if newest is None else found[-newest:]
        readable, broken = inspect_runs(self.context, shown)
        pipelines, damaged = pipeline_lines(folded.pipelines if folded else ())
        return RunRecords(
            runs=tuple(run_record(seen, details=False) for seen in readable if state is None or seen.run.state == state),
            pipelines=tuple(pipelines),
            broken=(*self.context.unread, *self.context.forget_removed_roots(), *(str(error) for error in (*broken, *damaged))),
            older=folded.older if folded else len(found) - len(shown),
            roots=tuple(map(str, self.context.roots)),
        )

    def matches(self, *, text: str) -> RunMatches:
        found = tuple(matching_runs(self.context, text))
        return RunMatches(
            matches=found, near=() if found else tuple(near_names(self.context, text)), roots=tuple(map(str, self.context.roots))
        )

    def show(self, *, run: str) -> RunRecord:
        return run_record(with_priority(self.context, inspect_run(self.context, RunDir(Path(run)))))

    def checkpoints(self, *, run: str, verify: bool) -> Sequence[RunRecord]:
        return checkpoints(RunDir(Path(run)), verify=verify)

    def own_files(self, *, run: str) -> Sequence[RunRecord]:
        from onward.operations.runs.own_checkpoints import own_checkpoints

        return own_checkpoints(RunDir(Path(run)))

    def result_files(self, *, run: str, checkpoints: str | None) -> Iterator[Data]:
        from onward.operations.fetch.result_files import ResultListing

        return ResultListing(RunDir(Path(run)), checkpoints=checkpoints).pieces()

    def file_pieces(self, *, run: str, files: list[list[Any]]) -> Iterator[Data]:
        from onward.operations.fetch.result_files import file_pieces

        return file_pieces(RunDir(Path(run)), files)

    def examine(self, *, clusters: list[str]) -> HostFindings:
        """The machine, then these clusters, by name and runs folder."""
        return HostFindings(
            machine=tuple(examine_machine(self.context)),
            folders=tuple(examine_folders(self.context)),
            clusters={name: examine_cluster(self.context, name) for name in clusters},
            roots={name: examine_runs_folder(self.context, name) for name in clusters},
            runs=examine_runs(self.context),
        )

    def snapshot(self, *, cluster: str) -> ClusterSnapshot:
        return snapshot_of(self.context.scheduler(self.context.settings.cluster(cluster)[0]))

    # ── act ───────────────────────────────────────────────────────────────────

    def cancel(self, *, run: str) -> RunAfterAct:
        from onward.operations.runs.control import cancel
        from onward.operations.runs.damaged import cancel_damaged, spec_damage, what_to_do

        dir = RunDir(Path(run))
        if not spec_damage(dir):
            return run_after_act(cancel(self.context, dir))
        jobs = cancel_damaged(self.context, dir)
        reason = "its spec cannot be read; " + (f"ended job {', '.join(jobs)}" if jobs else "it had no job any more")
        return RunAfterAct(id="", name=dir.path.name, state="cancelled", reason=reason, closed=True, next=what_to_do(dir, cancelled=True))

    def open_runs(self, *, words: str) -> OpenRuns:
        """What `cancel_many` would be given to end all that these words mean."""
        from onward.operations.runs.cancel_many import open_runs

        found, broken = open_runs(self.context, words=words)
        return OpenRuns(runs=tuple(found), broken=(*self.context.unread, *broken))

    def cancel_many(self, *, folders: list[str], silent: list[str]) -> CancelResults:
        """`silent`: clusters that did not answer a call before this one."""
        from onward.operations.runs.cancel_many import cancel_many

        known = set(silent)
        return CancelResults(runs=tuple(cancel_many(self.context, folders, silent=known)), silent=tuple(sorted(known)))

    def stop(self, *, run: str) -> RunAfterAct:
        from onward.operations.runs.control import stop

        return run_after_act(stop(self.context, RunDir(Path(run))))

    def resume(self, *, run: str, changes: Mapping[str, Any]) -> ResumedRun:
        from onward.operations.runs.control import resume

        resumed = resume(self.context, RunDir(Path(run)), changes=changes)
        leg = resumed.legs[resumed.first_leg]
        return ResumedRun(**vars(run_after_act(resumed)), leg=leg.number, job=leg.job)

    def adopt(self, *, run: str) -> RunAfterAct:
        from onward.operations.runs.home import HomeCheck

        HomeCheck(self.context).adopt(RunDir(Path(run)))
        return run_after_act(read_folder(RunDir(Path(run))))

    def tend(self) -> TendReport:
        from onward.operations.repair.tend import tend

        return tend(self.context)

    # ── follow ────────────────────────────────────────────────────────────────

    def watch(self, *, run: str) -> Iterator[Data]:
        return watch_run(self.context, RunDir(Path(run)))

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
        if leg and not supervisor:
            check_leg(dir, leg, to_come=follow)
        reader = LegLogReader(dir, streams=streams, leg=leg, supervisor=supervisor, offsets=offsets)
        if follow:
            return follow_logs(self.context, dir, reader, lines=lines)
        return _once(dir, reader, lines)

    # ── submit ────────────────────────────────────────────────────────────────

    def preview(self, draft: RunDraft, *, cwd: Path) -> PreviewedRun:
        from onward.operations.submit.new_run import preview

        return previewed_run(self.context, draft.cluster, preview(self.context, draft, cwd=cwd))

    def submit(self, draft: RunDraft, *, cwd: Path) -> SubmittedRun:
        from onward.operations.submit.new_run import submit

        return submitted_run(submit(self.context, draft, cwd=cwd))

    def draft(self, *, run: str) -> RunDraft:
        from onward.operations.submit.clone import draft_of

        return draft_of(RunDir(Path(run)))

    def clone_preview(self, draft: RunDraft, *, run: str) -> PreviewedRun:
        from onward.operations.submit.clone import clone_preview

        return previewed_run(self.context, draft.cluster, clone_preview(self.context, RunDir(Path(run)), draft))

    def clone(self, draft: RunDraft, *, run: str) -> SubmittedRun:
        from onward.operations.submit.clone import clone

        return submitted_run(clone(self.context, RunDir(Path(run)), draft))


def run_after_act(run: Run) -> RunAfterAct:
    closed = run.closed
    return RunAfterAct(
        id=run.spec.id,
        name=run.spec.name,
        state=str(run.state),
        reason=closed.cause if closed else "",
        closed=closed is not None,
        next=closed.next if closed else "",
    )


def previewed_run(context: OperationsContext, cluster: str, seen: SubmitPreview) -> PreviewedRun:
    """With what the scheduler expects of such a job, which only a person's own question is worth."""
    expected = notes_on_start(context.scheduler(context.settings.cluster(cluster)[0]), seen.script, now=context.clock.now())
    return PreviewedRun(folder=str(seen.folder), command=tuple(seen.command), script=seen.script, notes=(*seen.notes, *expected))


def submitted_run(dir: RunDir) -> SubmittedRun:
    run = read_folder(dir)
    leg = run.legs.get(1)
    return SubmittedRun(
        id=run.spec.id,
        name=run.spec.name,
        folder=str(dir.path),
        cluster=run.spec.cluster.name,
        job=leg.job if leg else None,
        leg_seconds=run.resources.time,
        warnings=tuple(leg.warnings) if leg else (),
    )


def await_submitted_run(dir: RunDir) -> SubmittedRun:
    """Of a run that was made by a call whose answer was lost, and that may still be at it."""
    give_up = time.monotonic() + _PATIENCE
    while not (submitted := submitted_run(dir)).job:
        if time.monotonic() > give_up:
            hint = f"`onward tend` looks it up; onward show {submitted.id} shows the result"
            raise SubmitUnclear(f"it is unknown whether the first job of {submitted.name} ({submitted.id}) was accepted", hint=hint)
        time.sleep(0.5)
    return submitted


def _once(dir: RunDir, reader: LegLogReader, lines: int | None) -> Iterator[Data]:
    yield from read_logs(dir, reader, lines=lines, rest=True)
    yield {"done": is_over(dir)}
