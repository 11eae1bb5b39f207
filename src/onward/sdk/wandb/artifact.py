"""Files that a training hands over: copied to the run's artifacts, each all or nothing. The file part of W&B's Artifact."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from onward.sdk.atomic_files import draft_of
from onward.sdk.stderr import say_once
from onward.sdk.unmanaged.folder import safe_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    OnKept = Callable[[str, str, Path], None]  # name among the artifacts, kind, the file


class Artifact:
    """`artifact.add_file("model.pt")`, then `run.log_artifact(artifact)`: its files go to `NAME/v0`, the next time to `NAME/v1`."""

    def __init__(self, name: str, type: str = "unspecified", description: str | None = None, metadata: object = None, **others: object):
        self.name = str(name)
        self.type = str(type)
        self.description = description
        self.metadata = metadata if metadata is not None else {}
        self.version = ""
        self.folder: Path | None = None  # where it was kept
        self._files: dict[str, Path | bytes] = {}

    def add_file(self, local_path: object, name: str | None = None, **others: object) -> None:
        path = Path(str(local_path))
        if not path.is_file():
            raise ValueError(f"Artifact({self.name!r}).add_file({str(local_path)!r}): no such file")
        self._files[_inside(name or path.name)] = path

    def add_dir(self, local_path: object, name: str | None = None, **others: object) -> None:
        root = Path(str(local_path))
        if not root.is_dir():
            raise ValueError(f"Artifact({self.name!r}).add_dir({str(local_path)!r}): no such folder")
        for path in sorted(root.rglob("*")):
            if path.is_file():
                self._files[_inside(f"{name or ''}/{path.relative_to(root).as_posix()}")] = path

    def add_path(self, path: Path) -> None:
        (self.add_dir if path.is_dir() else self.add_file)(path)

    def add(self, obj: object, name: str) -> None:
        """A table or an image."""
        from onward.sdk.wandb.media import as_media

        for media in as_media(obj) or ():
            for suffix, data in media.contents():
                self._files[_inside(name + suffix)] = data

    @contextlib.contextmanager
    def new_file(self, name: str, mode: str = "w", encoding: str | None = None) -> Iterator[Any]:
        import io

        held: io.StringIO | io.BytesIO = io.BytesIO() if "b" in mode else io.StringIO()
        yield held
        data = held.getvalue()
        self._files[_inside(name)] = data if isinstance(data, bytes) else data.encode(encoding or "utf-8")

    def add_reference(self, uri: object, name: str | None = None, **others: object) -> None:
        say_once("add_reference() only adds a line to the artifact's `references.txt`; the target is not copied")
        before = self._files.get("references.txt", b"")
        self._files["references.txt"] = (before if isinstance(before, bytes) else b"") + f"{name or ''}\t{uri}\n".encode()

    def wait(self, timeout: object = None) -> Artifact:
        return self

    def download(self, root: object = None, **others: object) -> str:
        """The folder of its files; with `root`, a copy there."""
        if self.folder is None:
            raise ValueError(f"Artifact({self.name!r}).download(): not logged yet; call run.log_artifact() first")
        if root is None:
            return str(self.folder)
        shutil.copytree(self.folder, str(root), dirs_exist_ok=True)
        return str(root)

    def keep(self, room: Path, known: Path, aliases: object, kept: OnKept) -> None:
        """Copy its files to `room`; `known` has the folders of earlier versions."""
        name = safe_file_name(self.name)
        taken = [path.name for target in (room, known) for path in (target / name).glob("v*")]
        number = max((int(one[1:].split(".")[0]) for one in taken if one[1:].split(".")[0].isdecimal()), default=-1) + 1
        self.version, self.folder = f"v{number}", known / name / f"v{number}"
        notes = {"type": self.type, "description": self.description, "metadata": self.metadata, "aliases": aliases}
        notes_given = {key: value for key, value in notes.items() if value}
        self._keep(room, PurePosixPath(name, f"{self.version}.json"), json.dumps(notes_given, default=str).encode(), kept)
        for file, source in self._files.items():
            self._keep(room, PurePosixPath(name, self.version, file), source, kept)

    def _keep(self, room: Path, name: PurePosixPath, source: Path | bytes, kept: OnKept) -> None:
        if keep_file(source, room / name):
            kept(str(name), self.type, room / name)


def logged(name: str, known: Path) -> Artifact:
    """One of these artifacts, by `NAME`, `NAME:v2` or `NAME:latest`."""
    bare, _, version = name.rpartition("/")[2].partition(":")
    versions = [path for path in (known / safe_file_name(bare)).glob("v*") if path.is_dir() and path.name[1:].isdecimal()]
    versions.sort(key=lambda path: int(path.name[1:]))
    found = [path for path in versions if path.name == version] or (versions[-1:] if version in ("", "latest") else [])
    if not found:
        hint = "Onward keeps files with the run that logged them: pass their path to the script"
        raise LookupError(f"use_artifact({name!r}): this run has not logged it; {hint}")
    artifact = Artifact(bare)
    artifact.version, artifact.folder = found[0].name, found[0]
    return artifact


def keep_file(source: Path | bytes, target: Path) -> bool:
    """A copy that is whole or absent. False: it failed and a warning was printed; the training continues."""
    try:
        if isinstance(source, Path) and target.exists() and source.samefile(target):
            return True
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(target, mode=0o666, flush=False) as file:
            if isinstance(source, bytes):
                file.write(source)
            else:
                with source.open("rb") as reading:
                    shutil.copyfileobj(reading, file, 1 << 20)
        return True
    except OSError as error:
        say_once(f"{target.name} could not be stored as an artifact: {error}; training continues")
        return False


def matching(pattern: str, base: str | None) -> dict[Path, Path]:
    """Files of a pattern with their names: below `base`, else as in the pattern, else the file name."""
    found: dict[Path, Path] = {}
    for text in sorted(glob.glob(pattern, recursive=True)):
        path = Path(text).absolute()
        inside = [path] if path.is_file() else [one for one in sorted(path.rglob("*")) if one.is_file()]
        root = Path(base).absolute() if base else Path.cwd() if not os.path.isabs(pattern) else path.parent
        for one in inside:
            found[one] = one.relative_to(root) if root in one.parents else Path(one.name)
    return found


def _inside(name: str) -> str:
    """Below the artifact, whatever is written."""
    parts: Sequence[str] = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
    return "/".join(parts) or "file"
