"""The screen's data from run folders alone: journals and logs as they are, metrics by an ingest of its own. No server, no scheduler."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onward.errors import NotFound, OnwardError, StorageError
from onward.model.analysis.run_summary import RunSummary, summarise_run
from onward.model.analysis.timeline import timeline
from onward.model.events import Event
from onward.model.run import Run, fold
from onward.operations.clusters.saved_snapshot import saved_snapshot
from onward.operations.clusters.snapshot_cache import SnapshotCache, ask_cluster
from onward.operations.context import OperationsContext
from onward.operations.hosts.all_hosts import Hosts
from onward.operations.remembered_roots import roots_text
from onward.operations.runs.control import stop
from onward.operations.runs.record import folder_pace, time_account
from onward.rundir.journal import read_history, read_spec
from onward.rundir.layout import RunDir, leg_of
from onward.rundir.logs.search import search_log
from onward.rundir.run_end import is_over
from onward.tui.sources.folder_ingest import FolderIngest
from onward.tui.sources.interface import ChartSeries, ListedAlerts, ListedRun, ListedRuns, LogWindow, ShownCluster, ShownRun, Stream
from onward.tui.sources.log_lines import lines_of
from onward.tui.sources.run_facts import facts_of

_MOST = 500  # runs that are read
_SETTLED = 30.0  # seconds after which a list of folders is made again


@dataclass(frozen=True, kw_only=True)
class _CachedRun:
    """A run as it was when its folder last changed."""

    mark: tuple[int, ...]
    run: Run
    events: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class _Listed:
    """The folders, and when they were looked for."""

    dirs: list[RunDir]
    at: float
    mark: tuple[int, ...]


class FolderSource:
    def __init__(self, context: OperationsContext) -> None:
        self._context = context
        self._read: dict[Path, _CachedRun] = {}
        self._rows: dict[Path, tuple[tuple[int, ...], ListedRun, RunSummary]] = {}
        self._listed: _Listed | None = None
        self._dirs: dict[str, RunDir] = {}
        self._ingest = FolderIngest()
        self._clusters = SnapshotCache(context.settings, lambda name: ask_cluster(Hosts(context, lambda _: None), name), context.clock)

    @property
    def words(self) -> str:
        return f"run folders in {roots_text(list(map(str, self._context.roots)), 'and')}"

    # ── runs ──────────────────────────────────────────────────────────────────

    def runs(self, filter: str) -> ListedRuns:
        dirs = self._list()
        shown, broken = dirs[-_MOST:], 0
        rows = []
        for dir in reversed(shown):
            try:
                rows.append(self._row(dir))
            except OnwardError:
                broken += 1
        notes = [f"the newest {_MOST} of {len(dirs)}"] if len(dirs) > _MOST else []
        notes += [f"{broken} cannot be read: `onward runs` says why"] if broken else []
        words = filter.lower().split()
        found = tuple(row for row in rows if all(word in _haystack(row) for word in words))
        return ListedRuns(rows=found, note="; ".join(notes), total=len(dirs) if len(dirs) > _MOST else None)

    def _list(self) -> list[RunDir]:
        """Anew when a root changed, for a while after that (a folder is made before what is in it), and now and then."""
        now, mark = time.monotonic(), tuple(_changed(root) for root in self._context.roots)
        listed = self._listed
        fresh = any(time.time() - changed / 1e9 < _SETTLED for changed in mark)
        if listed is None or listed.mark != mark or fresh or now - listed.at > _SETTLED:
            listed = self._listed = _Listed(dirs=self._context.runs(), at=now, mark=mark)
        return listed.dirs

    def _row(self, dir: RunDir) -> ListedRun:
        """Made anew when something in the folder changed; a wait that goes on grows meanwhile."""
        known, now = self._rows.get(dir.path), self._context.clock.now()
        read = self._look(dir)
        mark = read.mark if read.run.closed else (*read.mark, *_sizes(dir.spool))
        if known and known[0] == mark:
            row, held = known[1:]
            return row if held.begun_at is not None else replace(row, waited=held.queue_wait(now, over=read.run.closed is not None))
        run = read.run
        held, pace = summarise_run(run), folder_pace(dir, run)
        whole = run.closed is not None and run.closed.state == "finished" and pace.total
        last = run.last_leg
        row = ListedRun(
            id=run.spec.id,
            name=run.spec.name,
            state=str(run.state),
            why=held.why,
            next=held.next,
            experiment=run.spec.experiment,
            cluster=run.spec.cluster.name,
            user=run.spec.user,
            created=run.spec.created,
            step=pace.step,
            total=pace.total,
            fraction=1.0 if whole else pace.fraction,
            legs=last.number if last else 0,
            saved_at=held.saved_at,
            waited=held.queue_wait(now, over=run.closed is not None),
        )
        self._rows[dir.path] = mark, row, held
        return row

    def _look(self, dir: RunDir) -> _CachedRun:
        """Journals are read again only when they changed; of a run that is over, one mark says that nothing did."""
        known, done = self._read.get(dir.path), _changed(dir.done) if is_over(dir) else 0
        mark = (done,) if done else (*_sizes(dir.journals), *_sizes(dir.claims))
        if known is None or known.mark != mark:
            try:
                events = read_history(dir)
                known = _CachedRun(mark=mark, run=fold(read_spec(dir), events), events=tuple(events))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise StorageError(f"{dir.path} cannot be read as a run: {error}") from error
            self._read[dir.path] = known
            self._dirs[known.run.spec.id] = dir
        return known

    def _dir(self, run: str) -> RunDir:
        if run not in self._dirs:
            self.runs("")
        if run not in self._dirs:
            raise NotFound(f"run {run} is gone", hint="its folder was deleted, or its file system is not mounted")
        return self._dirs[run]

    # ── one run ───────────────────────────────────────────────────────────────

    def detail(self, run: str) -> ShownRun:
        dir = self._dir(run)
        read, now = self._look(dir), self._context.clock.now()
        pace, spec = folder_pace(dir, read.run), read.run.spec
        facts = {
            **time_account(read.run, pace, now=now),
            "pace": {"step": pace.step, "total": pace.total, "rate": pace.rate},
            "command": shlex.join(spec.command),
            "params": spec.params,
            "resources": vars(read.run.resources),
            "cluster": spec.cluster.name,
            "code": spec.code,
            "folder": str(dir.path),
        }
        closed, last = read.run.closed, read.run.last_leg
        evidence = closed.evidence if closed else last.evidence if last else ""
        hosts = last.claimed.hosts if last and last.claimed else []
        metrics = self._ingest.read([dir])
        return ShownRun(
            row=self._row(dir),
            evidence=tuple(evidence.splitlines()[-20:]),
            facts=facts_of(facts, now=now),
            timeline=timeline(read.run, read.events, now=now),
            gpus=metrics.gpus(run, hosts[0] if hosts else "") if metrics else (),
        )

    def metrics(self, run: str) -> tuple[str, ...]:
        found = self._ingest.read([self._dir(run)])
        return found.keys(run) if found else ()

    def series(self, runs: Sequence[str], keys: Sequence[str], *, points: int) -> tuple[ChartSeries, ...]:
        found = self._ingest.read([self._dir(run) for run in runs])
        return tuple(one for run in runs for one in found.series(run, keys, points=points)) if found else ()

    @property
    def reading(self) -> bool:
        return self._ingest.reading

    # ── logs ──────────────────────────────────────────────────────────────────

    def log(self, run: str, stream: Stream, *, leg: int | None, around: int | None) -> LogWindow | None:
        dir = self._dir(run)
        legs = _legs(dir, stream)
        chosen = leg if leg in legs else max(legs, default=None)
        if chosen is None:
            return None
        try:
            with _path(dir, chosen, stream).open("rb") as file:
                size = file.seek(0, os.SEEK_END)

                def read(offset: int, limit: int) -> bytes:
                    file.seek(offset)
                    return file.read(limit)

                lines, end = lines_of(read, size, around)
        except OSError:
            return None
        return LogWindow(leg=chosen, stream=stream, lines=lines, size=size, end=end, legs=legs)

    def search(self, run: str, log: LogWindow, text: str, *, after: int, back: bool) -> int | None:
        with _path(self._dir(run), log.leg, log.stream).open("rb") as file:
            found = search_log(file, log.size, [text.encode(errors="replace")], start=after, limit=1, case=False, back=back)
        return found.matches[0].line_offset if found.matches else None

    # ── clusters, and what may be asked ───────────────────────────────────────

    def picture(self, cluster: str | None) -> ShownCluster:
        """A queue of this machine's own is files, and asks nobody; of others, what `onward cluster` last saw."""
        known = self._clusters.known()
        names = tuple(one.name for one in known)
        chosen = next((one for one in known if one.name == cluster), None) or next((one for one in known if one.auto), known[0])
        if chosen.scheduler == "local":
            seen = self._clusters.look(chosen.name)
            return ShownCluster(name=chosen.name, snapshot=seen.snapshot, age=seen.age, trouble=seen.trouble, others=names)
        snapshot = saved_snapshot(self._context.env, chosen.name)
        if snapshot is None:
            hint = f"no snapshot yet: `onward cluster {chosen.name}` takes one, a server (`onward up`) keeps it up to date"
            return ShownCluster(name=chosen.name, trouble=hint, others=names)
        return ShownCluster(name=chosen.name, snapshot=snapshot, age=self._context.clock.now() - snapshot.taken_at, others=names)

    def alerts(self) -> ListedAlerts:
        return ListedAlerts(note="alerts need a server: run onward up; its page has the rules")

    def stop(self, run: str) -> str:
        stopped = stop(self._context, self._dir(run))
        if stopped.closed:
            return f"{stopped.spec.name} is {stopped.state}: {stopped.closed.cause}"
        return f"{stopped.spec.name}: the training is asked to save and stop"

    def link(self, run: str) -> str | None:
        return None

    def close(self) -> None:
        self._ingest.close()


def _changed(path: Path) -> int:
    """When, in nanoseconds; 0 where there is nothing."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _sizes(folder: Path) -> tuple[int, ...]:
    """What a look at a folder tells of a change in it: each file's size."""
    try:
        with os.scandir(folder) as entries:
            return tuple(value for entry in sorted(entries, key=lambda e: e.name) for value in (hash(entry.name), entry.stat().st_size))
    except OSError:
        return ()


def _legs(dir: RunDir, stream: Stream) -> tuple[int, ...]:
    if stream == "supervisor":
        return (0,) if dir.supervisor_log.exists() else ()
    try:
        return tuple(sorted({leg for name in os.listdir(dir.logs) if name.endswith(f".{stream}") and (leg := leg_of(name))}))
    except OSError:
        return ()


def _path(dir: RunDir, leg: int, stream: Stream) -> Path:
    return dir.supervisor_log if stream == "supervisor" else dir.log(leg, stream)


def _haystack(row: ListedRun) -> str:
    return " ".join((row.id, row.name, row.state, row.experiment, row.cluster, row.user, row.why)).lower()
