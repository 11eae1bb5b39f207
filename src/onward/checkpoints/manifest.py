"""The manifest of a checkpoint: every file with size and hash. A checkpoint exists when its manifest verifies."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onward.checkpoints.copying import ALGORITHM, ALGORITHMS, Moved, SourceChanged, Transfer, transfer
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import Checkpoint, CheckpointName

MANIFEST = "manifest.json"
OWN = "own"  # made of files that the training keeps in its working folder


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    size: int
    hash: str
    link: str = ""  # not a file but a link to a folder beside it: where it points
    written: int = 0  # nanoseconds: the time of the original, where it was made of the training's own files


def link_within(target: str) -> bool:
    """Whether a link points to something beside or beneath itself, so that it can be carried with it."""
    return bool(target) and not target.startswith("/") and ".." not in target.split("/")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    leg: int
    step: int
    created: float
    files: Mapping[str, FileEntry]
    made_by: str = "sdk"  # sdk: run.checkpoint(); files: found in the checkpoint folder; own: in the working folder
    metrics: Mapping[str, float] = field(default_factory=dict)
    algorithm: str = ALGORITHM  # by which its files were hashed

    ranks: Mapping[str, int] = field(default_factory=dict)  # which rank wrote a file, where all ranks did

    def part(self, node: int, nodes: int) -> set[str]:
        """The files that one of several nodes brings and verifies: those of its own ranks, as launchers lay them out. Each has one node."""
        world = max(self.ranks.values(), default=0) + 1
        return {name for name in self.files if self.ranks.get(name, 0) * nodes // world == node}

    @property
    def name(self) -> CheckpointName:
        return CheckpointName(self.leg, self.step)

    @property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.files.values())

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(name=self.name, bytes=self.bytes, created=self.created, metrics=self.metrics)

    def to_json(self) -> str:
        return json.dumps(
            {
                "schema": 1,
                "leg": self.leg,
                "step": self.step,
                "created": self.created,
                "algorithm": self.algorithm,
                "made_by": self.made_by,
                "metrics": dict(self.metrics),
                **({"ranks": dict(sorted(self.ranks.items()))} if self.ranks else {}),
                "files": {
                    name: {"size": e.size, "hash": e.hash} | {key: value for key, value in _rarely(e).items() if value}
                    for name, e in sorted(self.files.items())
                },
            },
            indent=1,
        )


def _rarely(entry: FileEntry) -> dict[str, str | int]:
    return {"link": entry.link, "written": entry.written}


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a published checkpoint, or CheckpointDamaged."""
    try:
        data = json.loads(_read_file(folder / MANIFEST))
        if data["algorithm"] not in ALGORITHMS:
            raise CheckpointDamaged(f"{folder.name}: hashed by {data['algorithm']}, which this version cannot check")
        manifest = Manifest(
            leg=int(data["leg"]),
            step=int(data["step"]),
            created=float(data["created"]),
            made_by=str(data.get("made_by", "sdk")),
            metrics={str(k): float(v) for k, v in data.get("metrics", {}).items()},
            ranks={str(k): int(v) for k, v in data.get("ranks", {}).items()},
            algorithm=str(data["algorithm"]),
            files={
                _safe(folder, name): FileEntry(
                    size=int(e["size"]), hash=str(e["hash"]), link=str(e.get("link", "")), written=int(e.get("written", 0))
                )
                for name, e in data["files"].items()
            },
        )
    except FileNotFoundError:
        raise CheckpointDamaged(f"{folder.name}: has no {MANIFEST}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CheckpointDamaged(f"{folder.name}: its {MANIFEST} cannot be read: {error}") from error
    if CheckpointName.parse(folder.name) not in (None, manifest.name):
        raise CheckpointDamaged(f"{folder.name}: its {MANIFEST} belongs to {manifest.name}")
    if not all(link_within(entry.link) for entry in manifest.files.values() if entry.link):
        raise CheckpointDamaged(f"{folder.name}: its {MANIFEST} has a link that leads outside the checkpoint")
    return manifest


def _read_file(path: Path) -> bytes:
    """A regular file, and no link: whoever reads other people's folders must not be led elsewhere, or wait for a pipe."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """The quick look: every file is there with its size."""
    for name, entry in manifest.files.items():
        path = folder / name
        if entry.link:
            if not path.is_symlink() or os.readlink(path) != entry.link:
                raise CheckpointDamaged(f"{folder.name}: {name} is not a link to {entry.link}")
            continue
        try:
            size = path.stat().st_size
        except OSError as error:
            raise CheckpointDamaged(f"{folder.name}: {name} is missing ({error.strerror})") from None
        if size != entry.size:
            raise CheckpointDamaged(f"{folder.name}: {name} has {size} bytes, expected {entry.size}")


def verify(folder: Path, *, only: Collection[str] | None = None, moved: Moved | None = None) -> Manifest:
    """The full look: read every byte; with `only`, of these files."""
    manifest = read_manifest(folder)
    check_sizes(folder, manifest)
    wanted = {name: entry for name, entry in manifest.files.items() if only is None or name in only}
    files = {name: Transfer(source=folder / name, target=None, size=entry.size) for name, entry in wanted.items() if not entry.link}
    try:
        hashes = transfer(list(files.values()), algorithm=manifest.algorithm, moved=moved)
    except SourceChanged as error:
        raise CheckpointDamaged(f"{folder.name}: {error}") from error
    except OSError as error:
        raise CheckpointDamaged(f"{folder.name}: {error.filename or 'a file'} cannot be read: {error}") from error
    check_hashes(folder, manifest, dict(zip(files, hashes, strict=True)))
    return manifest


def check_hashes(folder: Path, manifest: Manifest, found: Mapping[str, str]) -> None:
    for name, hash in found.items():
        if hash != manifest.files[name].hash:
            raise CheckpointDamaged(f"{folder.name}: {name} does not match its hash in the manifest")


def _safe(folder: Path, name: str) -> str:
    """A manifest names files beneath its own folder and nothing else."""
    if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise CheckpointDamaged(f"{folder.name}: its {MANIFEST} names {name!r}, which is outside the checkpoint")
    return name
