"""A Python with Onward that every user of this machine can run: the tests' own may lie in root's home, which is closed to others."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

_ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("", "server")
_NOT_NEEDED = shutil.ignore_patterns("test", "tests", "site-packages", "dist-packages", "config-*", "idlelib", "tkinter")


def make_python(folder: Path) -> Path:
    """Copies of this interpreter, its library, Onward and what it needs. Some 100 MB; a few seconds."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    base, home = Path(sys.base_prefix), folder / "python"
    (home / "bin").mkdir(parents=True)
    shutil.copy2(base / "bin" / version, home / "bin" / version)
    shutil.copytree(base / "lib" / version, home / "lib" / version, ignore=_NOT_NEEDED)
    for library in (base / "lib").glob(f"lib{version}*.so*"):
        shutil.copy2(library, home / "lib" / library.name)
    venv = folder / "venv"
    subprocess.run([home / "bin" / version, "-m", "venv", "--without-pip", venv], check=True, timeout=120)
    packages = venv / "lib" / version / "site-packages"
    shutil.copytree(_ROOT / "src" / "onward", packages / "onward", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([venv / "bin" / "python", "-m", "compileall", "-q", packages / "onward"], check=True, timeout=120)
    for needed in _needed(distribution("onward"), set()):
        _copy(needed, packages)
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o555 if path.is_dir() else path.stat().st_mode | 0o444)
    return venv / "bin" / "python"


def _needed(of: Distribution, seen: set[str], extras: tuple[str, ...] = EXTRAS) -> Iterator[Distribution]:
    if of.name.lower() in seen:
        return
    seen.add(of.name.lower())
    yield of
    for text in of.requires or []:
        wanted = Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras):
            yield from _needed(distribution(wanted.name), seen, ("", *wanted.extras))


def _copy(needed: Distribution, packages: Path) -> None:
    for file in needed.files or []:
        source = Path(str(needed.locate_file(file)))
        editable = needed.name.lower() == "onward" and not file.parts[0].endswith(".dist-info")
        if ".." in file.parts or editable or not source.is_file():
            continue
        target = packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
