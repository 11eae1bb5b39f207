"""What the screen shows, and the one small interface by which it gets it: plain data, from a server or from run folders.

Nothing here asks a scheduler. What it says of queues and nodes is the last picture that somebody else took, with its age.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from onward.model.analysis.timeline import Timeline
from onward.model.cluster import ClusterSnapshot

Stream = Literal["out", "err", "supervisor"]
STREAMS: tuple[Stream, ...] = ("out", "err", "supervisor")


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """A run in a list."""

    id: str
    name: str
    state: str
    why: str = ""
    next: str = ""
    experiment: str = ""
    cluster: str = ""
    user: str = ""
    created: float = 0.0
    step: int | None = None
    total: int | None = None
    fraction: float | None = None
    legs: int = 0
    saved_at: float | None = None  # the newest checkpoint
    gpu_use: float | None = None  # 0 to 1
    waited: float | None = None  # seconds in the queue, of the newest leg


@dataclass(frozen=True, kw_only=True)
class ListedRuns:
    rows: tuple[ListedRun, ...]
    note: str = ""  # what is left out, or how the filter was read
    total: int | None = None  # where more are there than these


@dataclass(frozen=True, kw_only=True)
class ChartSeries:
    """A metric of a run, legs stitched. `lows` and `highs` are the same where a value stands for one point."""

    run: str
    key: str
    steps: tuple[float, ...]
    times: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    points: int
    began: float | None = None  # where relative time begins
    legs: tuple[int, ...] = ()  # the first steps of legs after the first


@dataclass(frozen=True, kw_only=True)
class LogLine:
    offset: int
    text: str


@dataclass(frozen=True, kw_only=True)
class LogWindow:
    leg: int
    stream: Stream
    lines: tuple[LogLine, ...]
    size: int
    end: int  # the byte after the last line here
    legs: tuple[int, ...] = ()  # that have one


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    node: str
    uuid: str
    percent: float | None = None
    mem_used: float | None = None  # MiB
    mem_total: float | None = None
    power: float | None = None
    temperature: float | None = None
    history: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    row: ListedRun
    evidence: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    timeline: Timeline | None = None
    gpus: tuple[GpuReading, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShownCluster:
    """A cluster as it last was; `snapshot` None: nobody has looked yet, and `trouble` says what to do."""

    name: str
    snapshot: ClusterSnapshot | None = None
    age: float = 0.0
    trouble: str = ""
    others: tuple[str, ...] = field(default=())  # names of all clusters


@dataclass(frozen=True, kw_only=True)
class ListedAlert:
    """What a rule told of."""

    at: float
    level: str
    title: str
    text: str = ""
    run: str | None = None
    sent: bool = False
    error: str = ""  # why it was not


@dataclass(frozen=True, kw_only=True)
class ListedAlerts:
    notices: tuple[ListedAlert, ...] = ()  # newest first
    note: str = ""  # why there are none


class DataSource(Protocol):
    """Each call may raise an OnwardError: then what was shown stays, and the screen says so."""

    @property
    def words(self) -> str:
        """Where all this comes from, in short."""
        ...

    def runs(self, filter: str) -> ListedRuns: ...

    def detail(self, run: str) -> ShownRun: ...

    def metrics(self, run: str) -> tuple[str, ...]:
        """Keys, the training's own before the machine's."""
        ...

    def series(self, runs: Sequence[str], keys: Sequence[str], *, points: int) -> tuple[ChartSeries, ...]: ...

    @property
    def reading(self) -> bool:
        """Whether the last answer about metrics is a part, and more is to come."""
        ...

    def log(self, run: str, stream: Stream, *, leg: int | None, around: int | None) -> LogWindow | None:
        """Some lines: the last ones, or those around a byte. `leg` None: the newest that has any."""
        ...

    def search(self, run: str, log: LogWindow, text: str, *, after: int, back: bool) -> int | None:
        """The byte at which the next line with this text begins."""
        ...

    def picture(self, cluster: str | None) -> ShownCluster:
        """None: the one that runs go to by themselves."""
        ...

    def alerts(self) -> ListedAlerts: ...

    def stop(self, run: str) -> str:
        """Have it save and end; in words what becomes of it."""
        ...

    def link(self, run: str) -> str | None:
        """Its page."""
        ...

    def close(self) -> None: ...
