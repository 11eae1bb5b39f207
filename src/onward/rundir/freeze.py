"""Freeze the code that lives a leg into one archive per run: upgrading Onward cannot change a run that has begun.

The archive starts fast on a loaded file system (one file, compiled), and stands last on the training's PYTHONPATH, so
that `import onward` works in any environment of the user's. It can be made from an installed package, or from an
archive that this code runs from itself, as on a host that is reached through ssh.
"""

from __future__ import annotations

import importlib.util
import io
import py_compile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import onward
from onward.rundir.root.shared_files import write_shared
from onward.sdk.atomic_files import write_whole

ROOMS = ("sdk", "model", "rundir", "checkpoints", "schedulers", "supervisor", "pipelines")
MODULES = ("__init__.py", "errors.py", "clock.py")
# Any Python must be able to read this, from 2.7 on: it is what says that it is too old.
_FRONT_DOOR = """\
import sys
if sys.version_info < (3, 11):
    sys.stderr.write(
        "onward: the supervisor needs Python 3.11 or newer, and %s is %d.%d.%d\\n" % ((sys.executable,) + tuple(sys.version_info[:3]))
    )
    sys.exit(86)
import importlib, os, time
for left in range(int(os.environ.get("ONWARD_STORAGE_PATIENCE") or 300), -1, -1):  # this archive may be away for a moment, just now
    try:
        from onward.supervisor.held_code import hold_code
        hold_code()
        break
    except (ImportError, OSError):
        if left == 0:
            raise
        time.sleep(1)
        importlib.invalidate_caches()  # Python notes that nothing can be imported from there
from onward.supervisor.entry import main
sys.exit(main(sys.argv[1:]))
"""
_DATE = (1980, 1, 1, 0, 0, 0)  # the same modules give the same archive

Sources = Mapping[str, bytes]


def build_archive(target: Path, also: Sources = MappingProxyType({}), *, share: Path | None = None) -> None:
    """`also` are files of others that it needs: those of a scheduler that is a plugin. `share`: where runs of a version have theirs."""
    packed = pack(_FRONT_DOOR, {**sources(rooms=ROOMS, modules=MODULES), **also})
    if share:
        write_shared(share, packed, target)
    else:
        write_whole(target, packed)


def sources(*, rooms: Iterable[str], modules: Iterable[str]) -> Sources:
    """The text of these modules of ours, and of the one package that is carried with them, by their names in an archive."""
    return _from_archive(rooms, modules) if _is_archive() else _from_package(rooms, modules)


def pack(front_door: str, modules: Sources, *, compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:

        def add(name: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            entry.compress_type, entry.external_attr = compression, 0o644 << 16
            archive.writestr(entry, data)

        add("__main__.py", front_door.encode())
        for name, text in modules.items():
            add(name, text)
            if name.endswith(".py"):
                add(f"{name}c", _compiled(name, text))
    return buffer.getvalue()


@lru_cache(maxsize=1024)
def _compiled(name: str, text: bytes) -> bytes:
    """Half a second for all of ours, so that a process that submits one run after the other does it once."""
    with tempfile.TemporaryDirectory() as scratch:
        source, compiled = Path(scratch, "module.py"), Path(scratch, "module.pyc")
        source.write_bytes(text)
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(source), cfile=str(compiled), dfile=name, doraise=True, invalidation_mode=mode)
        return compiled.read_bytes()


# ── where the modules are ─────────────────────────────────────────────────────


def _from_package(rooms: Iterable[str], modules: Iterable[str]) -> Sources:
    package = Path(onward.__file__).parent
    paths = [package / name for name in modules]
    paths += [path for room in rooms for path in sorted((package / room).rglob("*.py"))]
    found = {f"onward/{path.relative_to(package).as_posix()}": path.read_bytes() for path in paths}
    nvml = importlib.util.find_spec("pynvml")
    if nvml and nvml.origin:
        found["pynvml.py"] = Path(nvml.origin).read_bytes()
    return found


def _from_archive(rooms: Iterable[str], modules: Iterable[str]) -> Sources:
    whole = {"pynvml.py", *(f"onward/{name}" for name in modules)}
    inside = tuple(f"onward/{room}/" for room in rooms)
    with zipfile.ZipFile(_archive()) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        return {name: archive.read(name) for name in names if name in whole or name.startswith(inside)}


def _archive() -> Path:
    return Path(onward.__file__).parents[1]


def _is_archive() -> bool:
    return _archive().is_file()
