"""What a person looks at: the screen, the run under the cursor, the axes of a chart, the place in a log. Changed by keys alone. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from onward.tui.sources.interface import (
    STREAMS,
    ChartSeries,
    ListedAlerts,
    ListedRun,
    ListedRuns,
    LogWindow,
    ShownCluster,
    ShownRun,
    Stream,
)

RUNS, RUN, QUEUE, NODES, ALERTS = range(1, 6)
SCREENS = {RUNS: "Runs", RUN: "Run", QUEUE: "Queue", NODES: "Nodes", ALERTS: "Alerts"}
PANES = {RUNS: ("list", "chart", "log"), RUN: ("overview", "charts", "logs", "GPUs"), QUEUE: ("mine", "all")}
AXES = ("step", "relative time", "wall time")
SMOOTH = (0.0, 0.6, 0.9, 0.99)
GROUPS = ("", "state", "experiment", "cluster", "user")
LOOKING = "looking …"
OVERLAY = 8  # runs that one chart shows


@dataclass(kw_only=True)
class ScreenState:
    screen: int = RUNS
    panes: dict[int, int] = field(default_factory=dict)  # of a screen, the pane that has the keys
    chosen: str | None = None  # the run under the cursor
    selected: list[str] = field(default_factory=list)
    pinned: list[str] = field(default_factory=list)  # runs
    pinned_metrics: list[str] = field(default_factory=list)
    compare: bool = False
    filter: str = ""
    group: int = 0
    metric: str | None = None
    log_axis: bool = False
    axis: int = 0
    smooth: int = 0
    zoom: bool = False
    help: bool = False
    scroll: int = 0  # lines of the overview, or of help, that are above
    stream: Stream = "out"
    leg: int | None = None
    top: int | None = None  # the byte of the log's first line shown; None: the last lines, as they come
    find: str = ""
    cluster: str | None = None
    at: dict[int, int] = field(default_factory=dict)  # the cursor of queue, nodes and alerts

    @property
    def pane(self) -> str:
        panes = PANES.get(self.screen, ("",))
        return panes[self.panes.get(self.screen, 0) % len(panes)]

    def focus(self, pane: str) -> None:
        self.panes[self.screen] = PANES[self.screen].index(pane)

    def next_pane(self, by: int = 1) -> None:
        panes = PANES.get(self.screen, ("",))
        self.panes[self.screen] = (self.panes.get(self.screen, 0) + by) % len(panes)

    @property
    def in_log(self) -> bool:
        return self.pane in ("log", "logs")

    def open(self, screen: int) -> None:
        self.screen, self.help, self.scroll, self.zoom = screen, False, 0, False

    def choose(self, run: str | None) -> None:
        """Another run: its log from the end, all of its overview."""
        if run != self.chosen:
            self.chosen, self.leg, self.top, self.scroll = run, None, None, 0

    def next_stream(self) -> None:
        self.stream = STREAMS[(STREAMS.index(self.stream) + 1) % len(STREAMS)]
        self.leg, self.top = None, None


@dataclass(kw_only=True)
class ScreenData:
    """What was last heard."""

    words: str = ""
    runs: ListedRuns | None = None
    run: str | None = None  # whose metrics, series and log follow
    detail: ShownRun | None = None
    metrics: tuple[str, ...] = ()
    series: tuple[ChartSeries, ...] = ()
    reading: bool = False  # more of the metrics is to come
    log: LogWindow | None = None
    picture: ShownCluster | None = None
    alerts: ListedAlerts | None = None
    trouble: str = ""
    heard: float | None = None  # when
    message: str = ""

    def of(self, run: str | None) -> ScreenData:
        """Without what is another run's: the cursor has moved, and nothing was heard of the new one yet."""
        return self if run == self.run else replace(self, metrics=(), series=(), log=None)

    def row(self, run: str | None) -> ListedRun | None:
        rows = self.runs.rows if self.runs else ()
        found = next((row for row in rows if row.id == run), None)
        return found or (self.detail.row if self.detail and self.detail.row.id == run else None)


def arranged(rows: Sequence[ListedRun], pinned: Sequence[str], group: str) -> list[ListedRun | str]:
    """Pinned runs first, then the others as they came, or under headings."""
    first = [row for row in rows if row.id in pinned]
    rest = [row for row in rows if row.id not in pinned]
    if not group:
        return [*first, *rest]
    found: dict[str, list[ListedRun]] = {}
    for row in rest:
        found.setdefault(str(getattr(row, group)) or "–", []).append(row)
    entries: list[ListedRun | str] = [*first]
    for name, members in found.items():
        entries += [f"{group} {name} ({len(members)})", *members]
    return entries


def shown_rows(view: ScreenState, board: ScreenData) -> list[ListedRun]:
    entries = arranged(board.runs.rows if board.runs else (), view.pinned, GROUPS[view.group])
    return [entry for entry in entries if isinstance(entry, ListedRun)]


def moved(view: ScreenState, board: ScreenData, by: int) -> None:
    """The cursor of the list of runs: it stays with its run when the list changes."""
    rows = shown_rows(view, board)
    if not rows:
        return
    places = {row.id: n for n, row in enumerate(rows)}
    at = places.get(view.chosen or "")
    view.choose(rows[max(0, min(len(rows) - 1, 0 if at is None else at + by))].id)


def overlay(view: ScreenState, board: ScreenData) -> tuple[str, ...]:
    """The runs that a chart draws: pinned, those compared, the chosen one."""
    named = [*view.pinned, *(view.selected if view.compare else ()), *([view.chosen] if view.chosen else ())]
    there = {row.id for row in board.runs.rows} if board.runs else set(named)
    return tuple(dict.fromkeys(run for run in named if run in there or run == view.chosen))[-OVERLAY:]


def metric_of(view: ScreenState, metrics: Sequence[str]) -> str | None:
    """The chosen one where the run has it; else one that most people look at first."""
    if view.metric in metrics:
        return view.metric
    liked = [key for key in metrics if key.rsplit("/", 1)[-1] in ("loss", "train_loss", "val_loss")]
    return next(iter((*liked, *metrics)), None)


def next_metric(view: ScreenState, board: ScreenData, by: int) -> None:
    keys = ordered_metrics(view, board.metrics)
    if keys:
        at = keys.index(now) if (now := metric_of(view, board.metrics)) in keys else -by
        view.metric = keys[(at + by) % len(keys)]


def ordered_metrics(view: ScreenState, metrics: Sequence[str]) -> list[str]:
    return [*(key for key in view.pinned_metrics if key in metrics), *(key for key in metrics if key not in view.pinned_metrics)]


def toggled(things: list[str], thing: str) -> bool:
    """Whether it is in now."""
    if thing in things:
        things.remove(thing)
        return False
    things.append(thing)
    return True
