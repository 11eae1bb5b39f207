"""Onward's own code, held in memory: the archive that it is imported from lies in the run's folder, whose storage may go away.

Read once, when a process starts. What is imported later, such as at the end of a leg, is imported from there.
"""

from __future__ import annotations

import errno
import importlib.util
import marshal
import os
import sys
import zipfile
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from io import BytesIO
from pathlib import Path
from types import CodeType, ModuleType

import onward

_HEADER = 16  # bytes before the code of a .pyc


def hold_code() -> None:
    """From here on no import of ours opens the archive. Raises OSError while it cannot be read; nothing to do for an installed package."""
    archive = Path(onward.__file__).parents[1]
    if archive.is_dir():
        return
    try:
        held = zipfile.ZipFile(BytesIO(archive.read_bytes()))
        damaged = held.testzip()
    except zipfile.BadZipFile as error:
        raise OSError(errno.EIO, f"it is not complete now: {error}", str(archive)) from error
    if damaged:
        raise OSError(errno.EIO, f"it is not complete now: {damaged} is damaged", str(archive))
    sys.meta_path.insert(0, HeldCode(archive, held))


class HeldCode(MetaPathFinder, InspectLoader):
    """Imports what was in the archive: our modules, and those of a plugin."""

    def __init__(self, archive: Path, held: zipfile.ZipFile) -> None:
        self._archive = archive
        self._held = held  # compressed: a job may have little memory
        self._names = frozenset(held.namelist())

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        name = self._file_of(fullname)
        if name is None:
            return None
        spec = ModuleSpec(fullname, self, origin=os.path.join(self._archive, name), is_package=self.is_package(fullname))
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(str(spec.origin)))
        spec.has_location = True
        return spec

    def is_package(self, fullname: str) -> bool:
        return (self._file_of(fullname) or "").endswith("/__init__.py")

    def get_source(self, fullname: str) -> str:
        """Also asked for by tracebacks."""
        return self._held.read(self._known(fullname)).decode()

    def get_code(self, fullname: str) -> CodeType:
        name = self._known(fullname)
        compiled = self._held.read(f"{name}c") if f"{name}c" in self._names else b""
        if compiled.startswith(importlib.util.MAGIC_NUMBER):  # by a Python like this one
            code: CodeType = marshal.loads(compiled[_HEADER:])
            return code
        return self.source_to_code(self._held.read(name), os.path.join(self._archive, name))

    def _known(self, fullname: str) -> str:
        name = self._file_of(fullname)
        if name is None:
            raise ImportError(f"{self._archive} has no module {fullname}", name=fullname)
        return name

    def _file_of(self, fullname: str) -> str | None:
        stem = fullname.replace(".", "/")
        return next((name for name in (f"{stem}/__init__.py", f"{stem}.py") if name in self._names), None)
