"""Freeze the code that lives a leg into one archive per run: upgrading Onward cannot change a run that has begun.

The archive starts fast on a loaded file system (one file, compiled), and stands last on the training's PYTHONPATH, so
that `import onward` works in any environment of the user's.
"""

from __future__ import annotations

import importlib.util
import io
import py_compile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import onward
from onward.sdk.files import write_whole

_ROOMS = ("sdk", "model", "rundir", "checkpoints", "schedulers", "supervisor")
_MODULES = ("__init__.py", "errors.py", "clock.py")
_FRONT_DOOR = "import sys\nfrom onward.supervisor.entry import main\nsys.exit(main(sys.argv[1:]))\n"


def build_archive(target: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive, tempfile.TemporaryDirectory() as scratch:
        archive.writestr("__main__.py", _FRONT_DOOR)
        for name, source in _sources():
            archive.write(source, name)
            compiled = py_compile.compile(
                str(source),
                cfile=str(Path(scratch) / "module.pyc"),
                dfile=name,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
            archive.write(str(compiled), f"{name}c")
    write_whole(target, buffer.getvalue())


def _sources() -> Iterator[tuple[str, Path]]:
    package = Path(onward.__file__).parent
    for name in _MODULES:
        yield f"onward/{name}", package / name
    for room in _ROOMS:
        for source in sorted((package / room).glob("*.py")):
            yield f"onward/{room}/{source.name}", source
    nvml = importlib.util.find_spec("pynvml")
    if nvml and nvml.origin:
        yield "pynvml.py", Path(nvml.origin)
