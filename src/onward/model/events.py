"""Events: what a journal holds, one a line. They are facts; `run.fold` makes a Run of them, `lifecycle.decide` acts on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from onward.model.stop_reason import StopReason

_KINDS: dict[str, type[Event]] = {}


@dataclass(frozen=True, kw_only=True)
class Event:
    kind: ClassVar[str] = ""
    leg: int
    at: float

    def __init_subclass__(cls, kind: str = "") -> None:
        cls.kind = kind or cls.__name__.lower()
        _KINDS[cls.kind] = cls

    def line(self) -> str:
        return json.dumps({"kind": self.kind, **{f.name: getattr(self, f.name) for f in fields(self)}}, separators=(",", ":"))


# ── asking for jobs ───────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Submitting(Event):
    """Written before the scheduler is asked: after a crash, the job can be looked up by this name."""

    name: str
    after: str | None = None
    mem: int | None = None  # MiB the job asks for
    time: int | None = None  # seconds
    exclude: str | None = None


@dataclass(frozen=True, kw_only=True)
class Submitted(Event):
    name: str
    job: str


@dataclass(frozen=True, kw_only=True)
class Refused(Event):
    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Limited(Event):
    """As many jobs are submitted as the site allows. The submit stands: it is retried under the same name."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Withdrawn(Event):
    """We took a queued leg back ourselves; its cancelled job says nothing about the run."""

    name: str
    job: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Gone(Event):
    """A queued leg's job is no more, though nobody took it back and it never began: another is needed."""

    name: str
    reason: str
    by: str = ""  # another user than the owner cancelled it


# ── what people ask ───────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class CancelRequested(Event):
    by: str


@dataclass(frozen=True, kw_only=True)
class StopRequested(Event):
    by: str


@dataclass(frozen=True, kw_only=True)
class Resumed(Event):
    """From this leg on the run is open again; earlier ends, requests and counters no longer bind."""

    by: str
    changes: Mapping[str, Any] = field(default_factory=dict)  # resources and limits to use from here on


# ── the life of a leg ─────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Claimed(Event):
    job: str
    hosts: list[str]
    deadline: float | None
    gpus: list[str] = field(default_factory=list)
    local: str = ""  # node-local folder of this leg


@dataclass(frozen=True, kw_only=True)
class EndFound(Event, kind="found"):
    """What became of a leg that could not say so itself, as the scheduler tells it."""

    end: str
    reason: str
    evidence: str = ""
    by: str = ""  # another user than the owner cancelled its job
    counts: bool = True  # as a failure of the run; not where nobody could say what happened


@dataclass(frozen=True, kw_only=True)
class Restored(Event):
    step: int
    checkpoint: str
    fell_back: list[str] = field(default_factory=list)  # newer ones that did not verify, and why


@dataclass(frozen=True, kw_only=True)
class Started(Event):
    pid: int


@dataclass(frozen=True, kw_only=True)
class Published(Event):
    step: int
    bytes: int
    save_seconds: float
    stage_seconds: float


@dataclass(frozen=True, kw_only=True)
class SelfSaved(Event):
    """The training wrote or replaced files of its own that look like its state, outside ONWARD_CHECKPOINT_DIR."""

    files: list[str]  # some of them, the newest first; relative to its working folder, or absolute
    bytes: int
    written: float  # when the newest was written, unix seconds


@dataclass(frozen=True, kw_only=True)
class Missed(Event):
    """A checkpoint that could not be published; training went on, or the leg had no time left."""

    step: int
    reason: str
    bytes: int = 0
    seconds: float = 0.0  # spent on publishing it before it was cut off; 0: it was not cut off
    kept: str = ""  # the folder on the node where it lies


@dataclass(frozen=True, kw_only=True)
class AskedToStop(Event):
    why: str  # a StopReason; as text, since a newer version may know others

    @property
    def reason(self) -> StopReason | None:
        return StopReason.read(self.why)


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    end: str
    reason: str
    evidence: str = ""
    first_step: int | None = None
    last_step: int | None = None
    stop_seconds: float | None = None  # from the request to stop until the training was gone
    stop_cut: bool = False  # it was killed while it was still stopping
    peak_mem: int | None = None  # MiB
    final: bool = False  # the training said that running it again is no use
    by: str = ""  # another user than the owner cancelled its job
    counts: bool = True  # as a failure of the run; not where its storage failed before the training began


@dataclass(frozen=True, kw_only=True)
class Closed(Event):
    state: str
    cause: str
    evidence: str = ""
    next: str = ""


@dataclass(frozen=True, kw_only=True)
class LimitMoved(Event):
    """An administrator moved the time limit of the leg's job."""

    deadline: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Warned(Event):
    text: str


def parse_event(line: str | bytes) -> Event | None:
    """The event of a journal line; None for a kind this version does not know."""
    return event_of(json.loads(line))


def event_of(data: dict[str, Any]) -> Event | None:
    cls = _KINDS.get(data.pop("kind", ""))
    if cls is None:
        return None
    known = cls.__dataclass_fields__
    if data.keys() <= known.keys():
        return cls(**data)
    return cls(**{key: value for key, value in data.items() if key in known})  # a newer version wrote more
