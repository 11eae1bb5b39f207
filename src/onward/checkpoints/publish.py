"""Publish and restore: copy a checkpoint between the node's disk and the run's folder, hashing on the way.

Publishing makes the final name appear whole or not at all: copy beside under a hidden name, flush every file, write
the manifest, flush, rename, flush the folder. A kill at any point leaves a hidden partial folder, which a later
publish removes, and never a name that does not verify.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from onward.checkpoints.manifest import ALGORITHM, MANIFEST, FileEntry, Manifest, check_sizes, read_manifest
from onward.errors import CheckpointDamaged, StorageError, StorageFull
from onward.model.checkpoint import CheckpointName
from onward.model.quantity import format_bytes
from onward.sdk.files import sync_folder, write_all, write_whole

_CHUNK = 1 << 20
_PARTIAL = ".partial"
_DELETING = ".deleting-"


class SourceChanged(StorageError):
    """The training wrote to a file while it was being copied: it was not complete after all. Try again later."""

    transient = True


def publish(
    sources: Mapping[str, Path],
    store: Path,
    name: CheckpointName,
    *,
    created: float,
    made_by: str = "sdk",
    metrics: Mapping[str, float] | None = None,
) -> Manifest:
    """Make `store/name` appear with these files (relative name → file). Published already: nothing is done."""
    final = store / str(name)
    if final.exists():
        return read_manifest(final)
    if MANIFEST in sources:
        raise StorageError(
            f"the checkpoint of step {name.step} has a file called {MANIFEST}, which is the name of Onward's own",
            hint="save that file under another name",
        )
    partial = store / partial_of(name)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        files = {relative: copy_file(source, partial / relative, flush=True) for relative, source in sorted(sources.items())}
        manifest = Manifest(leg=name.leg, step=name.step, created=created, made_by=made_by, metrics=metrics or {}, files=files)
        write_whole(partial / MANIFEST, manifest.to_json())
        for folder, _, _ in os.walk(partial):
            sync_folder(Path(folder))
        os.rename(partial, final)
        sync_folder(store)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise explain(error, store, name, sources) from error
    except SourceChanged:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    check_sizes(final, read_manifest(final))
    return manifest


def partial_of(name: CheckpointName) -> str:
    """The hidden name under which a checkpoint is built."""
    return f".{name}{_PARTIAL}"


def restore(folder: Path, target: Path) -> Manifest:
    """Copy a published checkpoint to `target`, verifying every byte. Raises CheckpointDamaged and leaves nothing there."""
    manifest = read_manifest(folder)
    check_sizes(folder, manifest)
    shutil.rmtree(target, ignore_errors=True)
    try:
        target.mkdir(parents=True)
        for relative, entry in manifest.files.items():
            copied = copy_file(folder / relative, target / relative, flush=False)
            if copied != entry:
                raise CheckpointDamaged(f"{folder.name}: {relative} does not have the hash of its manifest")
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"{target.parent} is full: {folder.name} needs {format_bytes(manifest.bytes)} there") from error
        raise CheckpointDamaged(f"{folder.name}: cannot be read: {error}") from error
    except (CheckpointDamaged, SourceChanged) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise CheckpointDamaged(str(error)) from error
    return manifest


def remove_partials(store: Path, *, before_leg: int) -> None:
    """Clear away what killed legs left half-published. Only our own hidden names, and only of legs before this one."""
    for path in store.glob(f".leg-*{_PARTIAL}"):
        name = CheckpointName.parse(path.name[1 : -len(_PARTIAL)])
        if name and name.leg < before_leg:
            shutil.rmtree(path, ignore_errors=True)
    for path in store.glob(f"{_DELETING}*"):
        if CheckpointName.parse(path.name.removeprefix(_DELETING)):
            shutil.rmtree(path, ignore_errors=True)


def delete(store: Path, name: CheckpointName) -> None:
    """Take a checkpoint away: out of sight by one rename, then file by file."""
    doomed = store / f"{_DELETING}{name}"
    try:
        os.rename(store / str(name), doomed)
    except FileNotFoundError:
        return
    shutil.rmtree(doomed, ignore_errors=True)


def copy_file(source: Path, target: Path, *, flush: bool) -> FileEntry:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink() and not source.is_file():
        points_to = os.readlink(source)
        os.symlink(points_to, target)
        return FileEntry(size=0, hash="", link=points_to)
    digest = hashlib.new(ALGORITHM)
    with source.open("rb") as reading:
        before = os.fstat(reading.fileno())
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            _reserve(handle, before.st_size)
            size = 0
            while size <= before.st_size and (chunk := reading.read(_CHUNK)):  # one that grows has no end
                digest.update(chunk)
                write_all(handle, chunk)
                size += len(chunk)
            if flush:
                os.fsync(handle)
        finally:
            os.close(handle)
    after = source.stat()
    if size != before.st_size or (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise SourceChanged(f"{source.name} changed while it was being copied")
    return FileEntry(size=size, hash=digest.hexdigest())


def _reserve(handle: int, size: int) -> None:
    """Ask for the space before writing: only an allocation knows quotas."""
    if not size:
        return
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise


def explain(error: OSError, store: Path, name: CheckpointName, sources: Mapping[str, Path]) -> StorageError:
    need = 0
    for source in sources.values():
        if source.exists():
            need += source.stat().st_size
    if error.errno == errno.EDQUOT:
        return StorageFull(
            f"your quota for {store} is used up: the checkpoint of step {name.step} needs {format_bytes(need)}",
            hint="delete something there, or ask for a larger quota",
        )
    if error.errno == errno.ENOSPC:
        free = shutil.disk_usage(store).free if store.exists() else 0
        return StorageFull(
            f"{store} is full: the checkpoint of step {name.step} needs {format_bytes(need)}, {format_bytes(free)} are free",
            hint="delete something there; checkpoints go on as soon as there is room",
        )
    if isinstance(error, FileNotFoundError) and error.filename and not Path(error.filename).is_relative_to(store):
        return SourceChanged(f"{error.filename} went away while it was being copied")
    return StorageError(f"the checkpoint of step {name.step} cannot be written to {store}: {error}")
