"""The layout of a run's folder: the only place that knows file names.

<root>/2026-11-15_A_digits/
├── params/        spec.json, home.json, environment.json, leg-0001.sh, supervisor.pyz, claims/, secrets/, request.json,
│                  resumed.json, done.json
├── journal/       leg-0001.jsonl …, and a file for each act at a desk (submit, cancel, tend)
├── spool/         metric and sample records, by leg and writer
├── logs/          leg-0001.out .err, supervisor.log, gpu.csv
├── results/       checkpoints/leg-0001.step-00000100/, tensorboard/, artifacts/, models/
├── code/          the user's code as it was at submit
└── workdir/       inputs/; may be deleted at any time
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from onward.sdk import contract

_RUN_FOLDER = re.compile(r"^(\d{4}-\d{2}-\d{2})_([A-Z]+)_.+$")
RESCUED = "rescued-"  # begins the name of what was saved of a run whose folder was deleted while it trained
_LEG_NUMBER = re.compile(r"^leg-(\d{4,9})(?!\d)")


class HasPath(Protocol):
    @property
    def path(self) -> Path: ...


class PathBelow:
    """A file or folder of a layout, as an attribute of whoever has the folder's `path`."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __get__(self, holder: HasPath, _owner: type) -> Path:
        return holder.path.joinpath(*self._parts)


@dataclass(frozen=True)
class RunDir:
    path: Path

    @property
    def root(self) -> Path:
        """The runs folder. It may be a link; below it, no link is followed: see `beneath`."""
        parent = self.path.parent
        return parent.parent if parent.name == contract.UNMANAGED_FOLDER else parent

    # ── params/ ───────────────────────────────────────────────────────────────
    params = PathBelow("params")
    spec = PathBelow("params", "spec.json")
    # the spec of a run in the making: the last step of making it gives this file its real name
    prepared_spec = PathBelow("params", "spec.prepared.json")
    environment = PathBelow("params", "environment.json")  # the submitting shell's environment: for its owner's eyes only
    supervisor = PathBelow("params", "supervisor.pyz")
    home = PathBelow("params", "home.json")  # which folder the run lives in: what tells its folder from a copy. See rundir/home.py.
    claims = PathBelow("params", "claims")
    queueing = PathBelow("params", "queueing.json")  # there while somebody outside its jobs queues one. See rundir/queueing_alone.py.
    done = PathBelow("params", "done.json")  # there once the run is over: spares everyone reading the journals of old runs
    # there once the run was resumed: from which leg on. A mark of an earlier leg, written late, binds no more.
    resumed = PathBelow("params", "resumed.json")
    # there while the run is made but not to be queued yet: its pipeline takes it away when the run's time has come
    held = PathBelow("params", "held.json")
    stop_request = PathBelow("params", "stop.json")  # there while someone wants the run to save and end: the supervisor looks for it
    # by which the run's jobs speak to the tracker's server: in a folder, and a file, for its owner alone
    tracker_token = PathBelow("params", "secrets", "tracker-token")
    request = PathBelow("params", "request.json")  # of a request's run: its settings and where its inputs lie, for the training to read
    # where its inputs come from, with the token that opens them: for its owner alone
    inputs_order = PathBelow("params", "secrets", "inputs.json")
    # a job's question for another token; it goes when the order has one
    token_refused = PathBelow("params", "secrets", "token.refused")

    def script(self, leg: int) -> Path:
        return self.params / f"leg-{leg:04d}.sh"

    batch_script = PathBelow("params", "batch-script")  # the text of a batch script that was submitted as it is
    code_diff = PathBelow("params", "code.diff")  # what was changed in the code and not committed, where there was such
    code_list = PathBelow("params", "code-files.json")  # which files of `code/` are the code. See rundir/files/code_list.py.

    def launch(self, leg: int) -> Path:
        """How the ranks of a leg are started, for the tasks on all its nodes. For its owner's eyes only, and gone with the leg."""
        return self.params / f"leg-{leg:04d}.launch.json"

    def claim(self, leg: int) -> Path:
        return self.claims / f"leg-{leg:04d}.json"

    # ── journal/, spool/, logs/ ───────────────────────────────────────────────
    journals = PathBelow("journal")

    def leg_journal(self, leg: int) -> Path:
        return self.journals / f"leg-{leg:04d}.jsonl"

    def late_journal(self, leg: int) -> Path:
        """What the leg could not write itself, brought by whoever came next."""
        return self.journals / f"leg-{leg:04d}.late.jsonl"

    def desk_journal(self, stamp: str) -> Path:
        return self.journals / f"desk-{stamp}.jsonl"

    spool = PathBelow("spool")
    logs = PathBelow("logs")

    def log(self, leg: int, stream: str) -> Path:
        """`stream` is out or err."""
        return self.logs / f"leg-{leg:04d}.{stream}"

    supervisor_log = PathBelow("logs", "supervisor.log")

    # ── results/, code/, workdir/ ─────────────────────────────────────────────
    results = PathBelow("results")
    checkpoints = PathBelow("results", "checkpoints")
    tensorboard = PathBelow("results", "tensorboard")
    artifacts = PathBelow("results", "artifacts")
    models = PathBelow("results", "models")  # files of models that MLflow's clients log, a folder a model
    code = PathBelow("code")
    workdir = PathBelow("workdir")
    inputs = PathBelow("workdir", "inputs")  # a request's files, by their names
    inputs_there = PathBelow("workdir", "inputs", ".there.json")  # which of them are whole, and what they are

    def make(self) -> None:
        for folder in (
            self.claims,
            self.journals,
            self.spool,
            self.logs,
            self.checkpoints,
            self.tensorboard,
            self.artifacts,
            self.code,
            self.workdir,
        ):
            folder.mkdir(parents=True, exist_ok=True)

    def is_run(self) -> bool:
        """One that cannot be read counts: reading it will say why."""
        try:
            os.lstat(self.spec)
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True


@dataclass(frozen=True)
class LegLocal:
    """A leg's node-local folder: what training writes, before it is mirrored or staged to the run's folder."""

    path: Path

    checkpoints = PathBelow("checkpoints")
    resume = PathBelow("resume")
    own = PathBelow("own")  # links to the files that the training keeps in its working folder
    empty = PathBelow("nothing-to-resume")  # where `{checkpoints.read}` points when there is nothing to resume from
    spool = PathBelow("spool")
    logs = PathBelow("logs")
    tensorboard = PathBelow("tensorboard")
    stop_file = PathBelow("stop")
    # a link to this folder: a training finds the stop file through it, which shows whether it looked
    stop_link = PathBelow("through")
    # there once the training has left by itself: its files are whole. Holds the time from which on files are its own.
    left = PathBelow("training-left")
    ranks = PathBelow("ranks")  # notes that the ranks on this node and the supervisor leave for each other
    artifacts = PathBelow("artifacts")  # files that clients handed to the relay, until they are carried to the run's folder
    models = PathBelow("models")
    save_socket = PathBelow("saves.sock")  # where trainings on this node hand over saves that are written in the background
    relay = PathBelow("relay.json")  # the variables by which trainings on this node find its relay. For their owner's eyes only.
    relay_token = PathBelow("relay-token")
    mirror_lock = PathBelow(".mirror")
    # events at the leg's end that the run's folder did not take. A journal of their own when they are carried over.
    untold = PathBelow("untold.jsonl")

    def log(self, leg: int, stream: str) -> Path:
        return self.logs / f"leg-{leg:04d}.{stream}"

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.checkpoints, self.empty, self.spool, self.logs, self.tensorboard, self.ranks, self.artifacts):
            folder.mkdir(exist_ok=True)
        with suppress(OSError):  # there already, or a file system without links
            self.stop_link.symlink_to(".")

    @property
    def told_stop_file(self) -> Path:
        """The stop file's path as a training is told it."""
        return (self.stop_link if self.stop_link.is_symlink() else self.path) / self.stop_file.name


def own_run(path: Path) -> RunDir:
    """The folder of the run that this process works for. If it was moved and left a link behind, where that leads."""
    return RunDir(path.resolve() if path.is_symlink() else path)


def leg_of(name: str) -> int | None:
    """The leg number a file name begins with."""
    match = _LEG_NUMBER.match(name)
    return int(match[1]) if match else None


def runs_under(root: Path) -> list[RunDir]:
    """All run folders of a root, oldest first."""
    return [run for run in map(RunDir, dated_under(root)) if run.is_run()]


def dated_under(root: Path) -> list[Path]:
    """All that has a run's or a pipeline's name, oldest first."""
    if not root.is_dir():
        return []
    found = [match for match in (_RUN_FOLDER.match(path.name) for path in root.iterdir()) if match]
    found.sort(key=lambda match: (match[1], len(match[2]), match[0]))  # AA comes after Z
    return [root / match[0] for match in found]


def is_dated(name: str) -> bool:
    """Whether a run or a pipeline could have this name."""
    return _RUN_FOLDER.match(name) is not None


def half_made_under(root: Path) -> list[RunDir]:
    """Folders with a run's name and no run in them: in the making, or left behind."""
    named = (RunDir(path) for path in root.iterdir() if _RUN_FOLDER.match(path.name) and path.is_dir() and not path.is_symlink())
    return [dir for dir in named if not dir.is_run()]


def folder_name(date: str, letter: str, name: str) -> str:
    return f"{date}_{letter}_{name}"


def letter(n: int) -> str:
    """A, B … Z, AA, AB … for the nth run of a day, from 0."""
    text = ""
    n += 1
    while n:
        n, rest = divmod(n - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
