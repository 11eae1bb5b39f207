"""Freeze the code that lives a leg into one archive per run: upgrading Onward cannot change a run that has begun.

The archive starts fast on a loaded file system (one file, compiled), and stands last on the training's PYTHONPATH, so
that `import onward` works in any environment of the user's. It can be made from an installed package, or from an
archive that this code runs from itself, as on a host that is reached through ssh.
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import zipfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import onward
from onward.rundir.root.shared_files import newest_shared, write_shared
from onward.sdk.atomic_files import write_whole

ROOMS = ("sdk", "torch", "model", "rundir", "checkpoints", "schedulers", "supervisor", "pipelines")
MODULES = ("__init__.py", "errors.py", "clock.py", "plugins.py")
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
_UNCHECKED_HASH = (1).to_bytes(4, "little")  # flags of a .pyc that is loaded without a look at its source

Sources = Mapping[str, bytes]


def build_archive(target: Path, also: Sources = MappingProxyType({}), *, share: Path | None = None) -> None:
    """`also` are files of others that it needs: those of a scheduler that is a plugin. `share`: where runs of a version have theirs."""
    compiled = _compiled_in(newest_shared(share, target.suffix)) if share else {}
    packed = pack(_FRONT_DOOR, {**sources(rooms=ROOMS, modules=MODULES), **also}, compiled=compiled)
    if share:
        write_shared(share, packed, target)
    else:
        write_whole(target, packed)


def sources(*, rooms: Iterable[str], modules: Iterable[str]) -> Sources:
    """The text of these modules of ours, and of the one package that is carried with them, by their names in an archive."""
    return _from_archive(rooms, modules) if _is_archive() else _from_package(rooms, modules)


def pack(
    front_door: str, modules: Sources, *, compression: int = zipfile.ZIP_STORED, compiled: Mapping[str, bytes] = MappingProxyType({})
) -> bytes:
    """`compiled`: what an earlier archive has, by its names there; taken for each module whose source is the same."""
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
                made = compiled.get(f"{name}c", b"")
                add(f"{name}c", made if made.startswith(_header(text)) else _compiled(name, text))
    return buffer.getvalue()


@lru_cache(maxsize=1024)
def _compiled(name: str, text: bytes) -> bytes:
    """A quarter of a second for all of ours, so that a process that submits one run after the other does it once."""
    return _header(text) + marshal.dumps(compile(text, name, "exec", dont_inherit=True))


def _header(text: bytes) -> bytes:
    return importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH + importlib.util.source_hash(text)


def _compiled_in(archive: bytes) -> Mapping[str, bytes]:
    """Nothing if it is damaged: every part has a checksum."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return {name: opened.read(name) for name in opened.namelist() if name.endswith(".pyc")}
    except (zipfile.BadZipFile, EOFError, ValueError, RuntimeError):
        return {}


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
