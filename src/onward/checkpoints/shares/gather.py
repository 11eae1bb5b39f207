"""Gather a checkpoint that all ranks write: shares are put from each node beside each other, and published once all are there.

They are put where publish() would build the checkpoint, in its hidden partial folder, each with a note of what it holds.
Only when the notes of all ranks are there and agree is the manifest written and the folder renamed; a kill at any point
leaves what a later attempt, or the next leg, clears away or completes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.checkpoints.copying import Moved
from onward.checkpoints.manifest import MANIFEST, FileEntry, Manifest, check_sizes, read_manifest
from onward.checkpoints.publishing.publish import NOTES, copy_files, explain, partial_of, unique
from onward.clock import Clock, SystemClock
from onward.errors import CheckpointDamaged, StorageError
from onward.model.checkpoint import CheckpointName
from onward.sdk import contract
from onward.sdk.atomic_files import make_folder_in, sync_folder, write_whole

log = logging.getLogger(__name__)

_SURELY_LATE = 2  # newer steps have shares already: who has not put one by then does not save as the others do


@dataclass(frozen=True, kw_only=True)
class CheckpointShare:
    """What one rank wrote of one step, as it lies on its node."""

    folder: Path
    step: int
    rank: int
    world: int
    seconds: float
    metrics: Mapping[str, float]
    at: float = 0.0  # committed, unix seconds
    made_by: str = "sdk"  # files: rank is the number of a node, whose files these are


@dataclass(frozen=True, kw_only=True)
class GatheredCheckpoint:
    manifest: Manifest
    save_seconds: float
    began: float = 0.0  # when the first rank began to save it, unix seconds
    stage_seconds: float = 0.0  # for which the slowest node copied its shares


@dataclass(frozen=True, kw_only=True)
class NotGathered:
    """A step of which the shares are there and make no checkpoint, or not all are."""

    step: int
    reason: str
    later: bool = False  # the store was in the way: it is retried


def shares(checkpoints: Path) -> list[CheckpointShare]:
    """Those committed on this node, oldest step first."""
    found = []
    for mark in sorted((checkpoints / contract.SHARES).glob(f"step-*/rank-*/{contract.COMMIT_FILE}")):
        try:
            note = json.loads(mark.read_bytes())
            found.append(
                CheckpointShare(
                    folder=mark.parent,
                    step=int(note["step"]),
                    rank=int(note["rank"]),
                    world=int(note["world"]),
                    seconds=float(note.get("seconds", 0)),
                    metrics=note.get("metrics", {}),
                    at=mark.stat().st_mtime,
                    made_by=str(note.get("made_by", "sdk")),
                )
            )
        except (OSError, ValueError, KeyError):
            continue
    return found


def next_shares(found: Sequence[CheckpointShare], *, hurry: bool) -> list[CheckpointShare]:
    """Those of one step: the oldest, so that all nodes go the same way; the newest where time is short, as only that one counts."""
    steps = [share.step for share in found]
    chosen = (max if hurry else min)(steps, default=None)
    return [share for share in found if share.step == chosen]


def put_share(share: CheckpointShare, store: Path, *, leg: int, clock: Clock | None = None, moved: Moved | None = None) -> None:
    """Copy a share to the store, its note last, and take it off the node. Done already and all there: only the latter.

    Raises CheckpointDamaged, and keeps the share, where the checkpoint is published without all its files.
    """
    clock = clock or SystemClock()
    name = CheckpointName(leg, share.step)
    partial = store / partial_of(name)
    note = partial / NOTES / f"{contract.rank_name(share.rank)}.json"
    sources = {
        str(path.relative_to(share.folder)): path
        for path in sorted(share.folder.rglob("*"))
        if path.is_file() and path.name != contract.COMMIT_FILE
    }
    if MANIFEST in sources:
        raise StorageError(
            f"the checkpoint of step {share.step} has a file named {MANIFEST}, a name that Onward uses itself",
            hint="save that file under another name",
        )
    if not _is_there(store / str(name), partial, note):
        began = clock.now()
        try:
            make_folder_in(store.parent, note.parent)
            files = _put_files(sources, partial, share.rank, moved)
            note_record = {
                "world": share.world,
                "seconds": share.seconds,
                "at": share.at,
                "made_by": share.made_by,
                "host": socket.gethostname(),
                "put_seconds": clock.now() - began,
                "metrics": dict(share.metrics),
                "files": {key: vars(entry) for key, entry in files.items()},
            }
            write_whole(note, json.dumps(note_record))
        except OSError as error:
            raise explain(error, store, name, sources) from error
    shutil.rmtree(share.folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        share.folder.parent.rmdir()  # unless another rank's is there


def _is_there(final: Path, partial: Path, note: Path) -> bool:
    """Whether a share has reached the store, with all its files."""
    if final.exists():
        check_sizes(final, read_manifest(final))
        return True
    try:
        files = json.loads(note.read_bytes())["files"]
        return all((partial / relative).lstat().st_size == entry["size"] for relative, entry in files.items() if not entry.get("link"))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _put_files(sources: Mapping[str, Path], partial: Path, rank: int, moved: Moved | None) -> dict[str, FileEntry]:
    """Beside, then renamed: two ranks may write the same file, and neither may see the other's half. No room: no half is left."""
    targets = {relative: partial / relative for relative in sources}
    own = unique()
    beside = {relative: target.with_name(f".{target.name}.{rank}.{own}.tmp") for relative, target in targets.items()}
    try:
        entries = copy_files({relative: (source, beside[relative]) for relative, source in sources.items()}, flush=True, moved=moved)
    except (OSError, StorageError):
        for path in beside.values():
            path.unlink(missing_ok=True)
        raise
    for relative, target in targets.items():
        os.replace(beside[relative], target)
    return entries


def assemble(
    store: Path, *, leg: int, created: float, fenced: Callable[[], None] = lambda: None
) -> Iterator[GatheredCheckpoint | NotGathered]:
    """Publish every step of this leg whose shares are all there, oldest first; clear away older ones that never were completed.

    A step that others have overtaken is told with the ranks it waits for, each time. `fenced` raises where the leg may publish no more.
    """
    waiting = sorted(_waiting(store, leg), key=lambda name: name.step)
    done: list[CheckpointName] = []
    for name in waiting:
        try:
            gathered = _assemble(store, name, created, fenced)
        except (OSError, StorageError) as error:
            if (store / str(name)).exists():
                continue  # an agent on another node published it meanwhile
            if isinstance(error, OSError):
                yield NotGathered(step=name.step, reason=str(explain(error, store, name, {})), later=True)
                continue
            shutil.rmtree(store / partial_of(name), ignore_errors=True)
            yield NotGathered(step=name.step, reason=str(error))
            continue
        if gathered:
            done.append(name)
            yield gathered
    for index, name in enumerate(waiting):
        overtaken = bool(done) and name < max(done)
        if name not in done and (overtaken or index < len(waiting) - _SURELY_LATE):
            yield from _lacking(store, name)
            if overtaken:
                shutil.rmtree(store / partial_of(name), ignore_errors=True)


def incomplete(store: Path, *, leg: int) -> bool:
    """Whether some step of this leg still waits for shares."""
    return any(_waiting(store, leg))


def lacking(store: Path, *, leg: int) -> Iterator[NotGathered]:
    """Every step of this leg that still waits for shares, and for whose."""
    for name in sorted(_waiting(store, leg)):
        yield from _lacking(store, name)


def _lacking(store: Path, name: CheckpointName) -> Iterator[NotGathered]:
    notes = store / partial_of(name) / NOTES
    there: set[int] = set()
    note: dict[str, Any] = {}
    for path in notes.glob("rank-*.json"):
        try:
            note = max(note, json.loads(path.read_bytes()), key=lambda other: int(other.get("world", 0)))
            there.add(int(path.stem.removeprefix("rank-")))
        except (OSError, ValueError, AttributeError):
            continue
    missing = [rank for rank in range(int(note.get("world", 0))) if rank not in there]
    if missing:
        if _by_node(note):
            what = f"files of {_of(note, missing, ', ')} are"
        elif len(missing) == 1:
            what = f"share of {_of(note, missing, '')} is"
        else:
            what = f"shares of {_of(note, missing, ', ')} are"
        reason = f"the checkpoint of step {name.step}: the {what} missing"
        yield NotGathered(step=name.step, reason=reason)


def _waiting(store: Path, leg: int) -> Iterator[CheckpointName]:
    for notes in store.glob(f".leg-{leg:04d}.step-*/{NOTES}"):
        name = CheckpointName.parse(notes.parent.name[1:].rsplit(".", 1)[0])
        if name and name.leg == leg:
            yield name


def _assemble(store: Path, name: CheckpointName, created: float, fenced: Callable[[], None]) -> GatheredCheckpoint | None:
    partial = store / partial_of(name)
    notes = _read_notes(partial)
    if notes is None:
        return None
    files: dict[str, FileEntry] = {}
    owner: dict[str, int] = {}
    for rank, note in enumerate(notes):
        for relative, entry in note["files"].items():
            mine = FileEntry(**entry)
            if relative in files and files[relative] != mine:
                both = _of(note, [owner[relative], rank], " and ")
                raise StorageError(
                    f"the checkpoint of step {name.step}: {both} wrote different versions of {relative}",
                    hint="put the rank into the names of files that differ by rank",
                )
            files[relative], owner[relative] = mine, rank
    made_by, metrics = notes[0].get("made_by", "sdk"), _finite(notes[0]["metrics"])
    manifest = Manifest(leg=name.leg, step=name.step, created=created, made_by=made_by, metrics=metrics, files=files, ranks=owner)
    check_sizes(partial, manifest)
    final = store / str(name)
    write_whole(partial / MANIFEST, manifest.to_json())
    for folder, _, _ in os.walk(partial):
        sync_folder(Path(folder))
    fenced()
    os.rename(partial, final)
    sync_folder(store)
    shutil.rmtree(final / NOTES, ignore_errors=True)
    check_sizes(final, read_manifest(final))
    return GatheredCheckpoint(
        manifest=manifest,
        save_seconds=max(float(note["seconds"]) for note in notes),
        began=min(float(note.get("at", 0)) - float(note["seconds"]) for note in notes),
        stage_seconds=_slowest_node(notes),
    )


def _slowest_node(notes: Sequence[Mapping[str, Any]]) -> float:
    """Nodes copy at the same time, each its shares one after another."""
    seconds: dict[str, float] = {}
    for note in notes:
        host = str(note.get("host", ""))
        seconds[host] = seconds.get(host, 0.0) + float(note.get("put_seconds", 0.0))
    return max(seconds.values(), default=0.0)


def _read_notes(partial: Path) -> list[dict[str, Any]] | None:
    """One for each rank, or None: they are asked for by name, since a network file system may show an old listing."""
    found: list[dict[str, Any]] = []
    world = 1
    while len(found) < world:
        try:
            found.append(json.loads((partial / NOTES / f"{contract.rank_name(len(found))}.json").read_bytes()))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise CheckpointDamaged(f"{partial.name}: the note of rank {len(found)} cannot be read: {error}") from error
        world = int(found[-1]["world"])
    return found


def _by_node(note: Mapping[str, Any]) -> bool:
    """Whether a share is what a node has, and not what a rank wrote."""
    return note.get("made_by") == "files"


def _of(note: Mapping[str, Any], numbers: Sequence[int], between: str) -> str:
    """In words, whose shares these are. Nodes are counted from 1."""
    listed = between.join(str(number + _by_node(note)) for number in numbers)
    return f"{'node' if _by_node(note) else 'rank'}{'s' if len(numbers) > 1 else ''} {listed}"


def _finite(metrics: Mapping[str, Any]) -> dict[str, float]:
    return {str(key): float(value) for key, value in metrics.items()}
