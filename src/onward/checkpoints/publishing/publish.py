"""Publish and restore: copy a checkpoint between the node's disk and the run's folder, hashing on the way.

Publishing makes the final name appear whole or not at all: copy beside under a hidden name, flush every file, write
the manifest, flush, rename, flush the folder. A kill at any point leaves a hidden partial folder, which the next publisher
removes, and never a name that does not verify. Each publish has a partial folder of its own: two that carry the same
checkpoint cannot touch each other's files.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import secrets
import shutil
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace as replaced
from pathlib import Path

from onward.checkpoints.copying import ALGORITHM, Moved, Transfer, transfer
from onward.checkpoints.copying import SourceChanged as SourceChanged  # for those who publish
from onward.checkpoints.disk_space import check_room, free_bytes, reserve
from onward.checkpoints.manifest import MANIFEST, OWN, FileEntry, Manifest, check_hashes, check_sizes, read_manifest
from onward.checkpoints.unpublished import may_be_deleted, published_names
from onward.errors import CheckpointDamaged, StorageError, StorageFull, TakenOver
from onward.model.checkpoint import CheckpointName
from onward.model.quantity import format_bytes
from onward.sdk.atomic_files import make_folder_in, sync_folder, write_whole

log = logging.getLogger(__name__)

NOTES = ".shares"  # in a partial folder: what each rank has put there
_PARTIAL = ".partial"
_PARTIAL_NAME = re.compile(r"\.(leg-\d+\.step-\d+)(?P<own>\..+)?\.partial\Z")
DELETING = ".deleting-"
_REPLACED = ".replaced-"


def publish(
    sources: Mapping[str, Path],
    store: Path,
    name: CheckpointName,
    *,
    created: float,
    made_by: str = "sdk",
    metrics: Mapping[str, float] | None = None,
    unchanged: Callable[[], bool] | None = None,
    replace: bool = False,
    algorithm: str = ALGORITHM,
    moved: Moved | None = None,
    fenced: Callable[[], None] = lambda: None,
) -> Manifest:
    """Make `store/name` appear with these files (relative name → file). Published already and whole: nothing is done, unless `replace`.

    `unchanged` is asked right before the name appears; where it says no, nothing is published and SourceChanged is raised.
    So is `fenced`, which raises where this leg may publish no more.
    """
    final = store / str(name)
    put_back_replaced(store, name)
    if not replace and (there := _whole(final)):
        return there
    if MANIFEST in sources:
        raise StorageError(
            f"the checkpoint of step {name.step} has a file named {MANIFEST}, a name that Onward uses itself",
            hint="save that file under another name",
        )
    partial = store / own_partial_of(name)
    try:
        make_folder_in(store.parent, partial)
        began_in = os.stat(partial)
        files = copy_files(
            {relative: (source, partial / relative) for relative, source in sources.items()}, flush=True, algorithm=algorithm, moved=moved
        )
        if made_by == OWN:
            files = {relative: replaced(entry, written=sources[relative].stat().st_mtime_ns) for relative, entry in files.items()}
        manifest = Manifest(
            leg=name.leg, step=name.step, created=created, made_by=made_by, metrics=metrics or {}, files=files, algorithm=algorithm
        )
        write_whole(partial / MANIFEST, manifest.to_json())
        for folder, _, _ in os.walk(partial):
            sync_folder(Path(folder))
        if unchanged and not unchanged():
            raise SourceChanged(f"the checkpoint of step {name.step} changed while it was being copied")
        fenced()
        if not os.path.samestat(began_in, os.stat(partial)):
            raise OSError(errno.ESTALE, "other storage is mounted there than a moment ago", str(store))
        if replace or (final.exists() and not _whole(final)):
            _show(partial, final, store / f"{_REPLACED}{name}")
        else:
            _show_unless_there(partial, final)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise explain(error, store, name, sources) from error
    except (StorageError, TakenOver):
        shutil.rmtree(partial, ignore_errors=True)
        raise
    manifest = read_manifest(final)
    check_sizes(final, manifest)
    return manifest


def _whole(folder: Path) -> Manifest | None:
    """The manifest of a published checkpoint that has all its files; None where there is none, or not all of it."""
    if not folder.exists():
        return None
    try:
        manifest = read_manifest(folder)
        check_sizes(folder, manifest)
    except CheckpointDamaged as error:
        log.warning("%s is published but incomplete, so it is published again: %s", folder.name, error)
        return None
    return manifest


def _show_unless_there(partial: Path, final: Path) -> None:
    """By rename, which does not replace a folder that has files: where another published it meanwhile, that one stays."""
    try:
        os.rename(partial, final)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(partial, ignore_errors=True)
    sync_folder(final.parent)


def _show(partial: Path, final: Path, replaced: Path) -> None:
    """By rename. What had the name before steps aside first; a kill in between is repaired by put_back_replaced()."""
    if final.exists():
        os.rename(final, replaced)
    os.rename(partial, final)
    sync_folder(final.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def put_back_replaced(store: Path, name: CheckpointName | None = None) -> None:
    """A kill while a checkpoint was replaced: the old one gets its name back, or goes where the new one is there."""
    for path in [store / f"{_REPLACED}{name}"] if name else store.glob(f"{_REPLACED}*"):
        known = CheckpointName.parse(path.name.removeprefix(_REPLACED))
        if not known or not path.exists():
            continue
        if (store / str(known)).exists():
            shutil.rmtree(path, ignore_errors=True)
            continue
        try:
            os.rename(path, store / str(known))
        except OSError as error:
            log.warning("cannot rename %s back: %s", path, error)


def partial_of(name: CheckpointName) -> str:
    """The hidden name under which all nodes build a checkpoint together."""
    return f".{name}{_PARTIAL}"


def own_partial_of(name: CheckpointName) -> str:
    """The hidden name under which one process builds a checkpoint alone."""
    return f".{name}.{unique()}{_PARTIAL}"


def unique() -> str:
    """Part of a name that no other process uses, here or on another node."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def restore(folder: Path, target: Path, *, only: Collection[str] | None = None, moved: Moved | None = None) -> Manifest:
    """Copy a published checkpoint to `target`, verifying every byte. Raises CheckpointDamaged and leaves nothing there.

    `only`: copy these files; the others become links to the published ones.
    """
    manifest = read_manifest(folder)
    check_sizes(folder, manifest)
    shutil.rmtree(target, ignore_errors=True)
    try:
        target.mkdir(parents=True)
        pairs = {name: (folder / name, target / name) for name in manifest.files if only is None or name in only}
        for name in manifest.files.keys() - pairs.keys():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.symlink(folder.absolute() / name, target / name)
        copied = copy_files(pairs, flush=False, algorithm=manifest.algorithm, moved=moved)
        check_hashes(folder, manifest, {relative: entry.hash for relative, entry in copied.items()})
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"{target.parent} is full: {folder.name} needs {format_bytes(manifest.bytes)} there") from error
        raise CheckpointDamaged(f"{folder.name}: cannot be read: {error}") from error
    except (CheckpointDamaged, SourceChanged) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise CheckpointDamaged(str(error)) from error
    return manifest


def remove_partials(store: Path, *, before_leg: int, publisher_of: int | None = None) -> None:
    """Clear away what killed legs left half-published. Only our own hidden names, and only of legs before this one.

    Shares that ranks committed stay until a newer checkpoint is published: the others may still lie on their nodes.
    `publisher_of`: the caller is the one publisher of this leg, so what an earlier publisher of the same leg left half-copied goes too.
    """
    put_back_replaced(store)
    try:
        published = published_names(store)
    except OSError as error:
        log.warning("%s cannot be read: %s", store, error)
        return
    for path in store.glob(f".leg-*{_PARTIAL}"):
        found = _PARTIAL_NAME.match(path.name)
        name = CheckpointName.parse(found[1]) if found else None
        if found is None or name is None:
            continue
        earlier = name.leg < before_leg and (may_be_deleted(name, published) or not any((path / NOTES).glob("rank-*.json")))
        if earlier or (found["own"] and name.leg == publisher_of):
            shutil.rmtree(path, ignore_errors=True)
    for path in store.glob(f"{DELETING}*"):
        if CheckpointName.parse(path.name.removeprefix(DELETING)):
            shutil.rmtree(path, ignore_errors=True)


def copy_files(
    pairs: Mapping[str, tuple[Path, Path]], *, flush: bool, algorithm: str = ALGORITHM, moved: Moved | None = None
) -> dict[str, FileEntry]:
    """Copy each first to its second, and say what was copied. Room for all is there before the first byte of any is written."""
    entries: dict[str, FileEntry] = {}
    files: dict[str, Transfer] = {}
    for relative, (source, target) in sorted(pairs.items()):
        if source.is_symlink() and not source.is_file():
            entries[relative] = FileEntry(size=0, hash="", link=os.readlink(source))
        else:
            files[relative] = Transfer(source=source, target=target, size=source.stat().st_size)
    if not pairs:
        return {}
    check_room(next(iter(pairs.values()))[1].parent, sum(file.size for file in files.values()))
    for file in files.values():
        assert file.target is not None
        reserve(file.target, file.size)
        if moved:
            moved(0)  # of very many files, this alone takes a while
    for relative, entry in entries.items():
        target = pairs[relative][1]
        target.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(entry.link, target)
    hashes = transfer(list(files.values()), algorithm=algorithm, flush=flush, moved=moved)
    for (relative, file), hash in zip(files.items(), hashes, strict=True):
        entries[relative] = FileEntry(size=file.size, hash=hash)
    return entries


def explain(error: OSError, store: Path, name: CheckpointName, sources: Mapping[str, Path]) -> StorageError:
    need = 0
    for source in sources.values():
        if source.exists():
            need += source.stat().st_size
    if error.errno == errno.EDQUOT:
        return StorageFull(
            f"your quota on {store} is used up: the checkpoint of step {name.step} needs {format_bytes(need)}",
            hint="free space there, or ask for a larger quota",
            need=need,
        )
    if error.errno == errno.ENOSPC:
        free = format_bytes(free_bytes(store) or 0)
        return StorageFull(
            f"{store} is full: the checkpoint of step {name.step} needs {format_bytes(need)}, {free} are free",
            hint="free space there; checkpoints continue as soon as there is room",
            need=need,
        )
    if isinstance(error, FileNotFoundError) and error.filename and not Path(error.filename).is_relative_to(store):
        return SourceChanged(f"{error.filename} disappeared while it was being copied")
    return StorageError(f"the checkpoint of step {name.step} cannot be written to {store}: {error}")
