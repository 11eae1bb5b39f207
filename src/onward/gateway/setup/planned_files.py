"""Files and folders that a set-up would write, shown before they are written. Each is whole or not there."""

from __future__ import annotations

import difflib
import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from onward.errors import StorageError
from onward.sdk.atomic_files import sync_folder, write_whole

PRIVATE = 0o600


class PlannedChange(Protocol):
    @property
    def path(self) -> Path: ...

    @property
    def needed(self) -> bool:
        """Whether it is not there yet. What is there is never overwritten; only the settings are added to."""
        ...

    def shown(self) -> str:
        """For people, without secrets."""
        ...

    def write(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class PlannedFile:
    path: Path
    text: str = field(repr=False)
    before: str | None = field(default=None, repr=False)  # None: there is none
    mode: int = 0o644

    @property
    def needed(self) -> bool:
        return not os.path.lexists(self.path) if self.before is None else self.text != self.before

    def shown(self) -> str:
        if self.mode == PRIVATE:
            return f"new file {self.path}, of mode 600: a secret, not shown"
        was = str(self.path) if self.before is not None else "/dev/null"
        return "\n".join(difflib.unified_diff((self.before or "").splitlines(), self.text.splitlines(), was, str(self.path), lineterm=""))

    def write(self) -> None:
        target = self.path.resolve()  # a link stays one
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(target, self.text, mode=self.mode if self.before is None else target.stat().st_mode & 0o777)
        except OSError as error:
            raise _unwritable(self.path, error) from error


@dataclass(frozen=True, kw_only=True)
class PlannedFolder:
    path: Path
    source: Path

    @property
    def needed(self) -> bool:
        return not os.path.lexists(self.path)

    def shown(self) -> str:
        return f"new folder {self.path}, a copy of the recipe in {self.source}"

    def write(self) -> None:
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(self.source, draft, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            os.rename(draft, self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise _unwritable(self.path, error) from error


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be written: {error.strerror or error}", hint="check who owns the folder, and its disk; then run this again"
    )
