"""What a host answers to the verbs: frozen values, which travel as JSON where it is far. A run's own record is JSON everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onward.operations.admin.doctor import Finding
from onward.operations.runs.find import RunMatch
from onward.operations.runs.open_run import CancelResult, OpenRun

RunRecord = Mapping[str, Any]  # as `onward show --json` prints it
RootFinding = tuple[bool, str, str, str]  # and the folder


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    runs: tuple[RunRecord, ...]
    pipelines: tuple[RunRecord, ...]  # a line for each, in place of its runs
    broken: tuple[str, ...]  # folders that cannot be read, and why
    older: int  # runs that are not among these
    roots: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RunMatches:
    matches: tuple[RunMatch, ...]
    near: tuple[str, ...]
    roots: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RunAfterAct:
    """A run in short, after something was asked of it."""

    id: str
    name: str
    state: str
    reason: str
    closed: bool
    next: str


@dataclass(frozen=True, kw_only=True)
class ResumedRun(RunAfterAct):
    leg: int
    job: str | None


@dataclass(frozen=True, kw_only=True)
class OpenRuns:
    runs: tuple[OpenRun, ...]
    broken: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CancelResults:
    runs: tuple[CancelResult, ...]  # in the order of the folders
    silent: tuple[str, ...]  # clusters that did not answer


@dataclass(frozen=True, kw_only=True)
class SubmittedRun:
    id: str
    name: str
    folder: str
    cluster: str
    job: str | None
    leg_seconds: int | None  # None: without a time limit
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ArrivalFolder:
    """Where the code of a run waits that comes from another machine."""

    folder: str


@dataclass(frozen=True, kw_only=True)
class UnpackedCode:
    folder: str
    files: int


@dataclass(frozen=True, kw_only=True)
class EntrustedRun:
    """A run whose jobs have a token of the tracker's."""

    id: str


@dataclass(frozen=True, kw_only=True)
class PreviewedRun:
    folder: str
    command: tuple[str, ...]
    script: str
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class HostFindings:
    """Of `onward doctor`: the machine, its folders and runs; its clusters and their runs folders by name."""

    machine: tuple[Finding, ...] = ()
    folders: tuple[Finding, ...] = ()
    clusters: Mapping[str, Finding]
    roots: Mapping[str, RootFinding]
    runs: Finding | None = None
