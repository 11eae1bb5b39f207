"""Freeze the user's code at submit: what git knows, or a copy by rule. What is left out is linked, so relative paths go on working."""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from onward.errors import InvalidInput, SchedulerUnavailable
from onward.model.quantity import format_bytes
from onward.model.spec import Value
from onward.schedulers.command import run_command

_LARGE = 10 << 20  # a file larger than this is data, not code: linked, not copied
_MOST_FILES = 5_000
_MOST_BYTES = 200 << 20
_NEVER = {".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", "node_modules"}


@dataclass(frozen=True, kw_only=True)
class Frozen:
    workdir: str  # where the command starts, relative to the copy
    facts: dict[str, Value]
    diff: str  # uncommitted changes, where git knows


def freeze_code(cwd: Path, target: Path, *, exclude: Iterable[str], runs: Path) -> Frozen:
    """Copy the project that `cwd` stands in to `target`. `runs` (the root of all runs) is never part of it."""
    top = _git_top(cwd)
    files = list(_git_files(top) if top else _walk(cwd, runs))
    base = top or cwd
    kept = [path for path in files if not _excluded(path, exclude) and _is_code(base / path) and not _inside(base / path, runs)]
    total = sum((base / path).stat().st_size for path in kept)
    if len(kept) > _MOST_FILES or total > _MOST_BYTES:
        raise InvalidInput(
            f"{base} is too large to freeze: {len(kept)} files, {format_bytes(total)}",
            hint="submit from the project's own folder, leave parts out with `code: {exclude: [data/*]}` (they are linked instead), "
            "or run the code where it stands with `code: {freeze: false}` (--no-freeze)",
        )
    for path in kept:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(base / path, target / path)
    _link_rest(base, target, {Path("."), *(parent for path in kept for parent in path.parents)}, set(kept), runs)
    facts: dict[str, Value] = {"frozen": True, "from": str(base), "files": len(kept), "bytes": total}
    diff = ""
    if top:
        facts["git_commit"] = _git(top, "rev-parse", "HEAD").strip() or None
        facts["git_branch"] = _git(top, "rev-parse", "--abbrev-ref", "HEAD").strip() or None
        diff = _git(top, "diff", "HEAD", "--no-ext-diff")
        facts["git_dirty"] = bool(_git(top, "status", "--porcelain").strip())
    return Frozen(workdir=str(cwd.resolve().relative_to(base.resolve())), facts=facts, diff=diff)


def _git_top(cwd: Path) -> Path | None:
    if shutil.which("git") is None:
        return None
    top = _git(cwd, "rev-parse", "--show-toplevel").strip()
    return Path(top) if top else None


def _git(cwd: Path, *arguments: str) -> str:
    """What git says, or nothing: a folder that git does not know, or does not trust, is frozen as any folder."""
    try:
        answer = run_command(["git", "-C", str(cwd), *arguments], timeout=60)
    except SchedulerUnavailable:
        return ""
    return answer.out if answer.code == 0 else ""


def _git_files(top: Path) -> Iterator[Path]:
    """Tracked and new files; what .gitignore names is data."""
    for name in _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if not name:
            continue
        path = top / name
        if path.is_dir() and not path.is_symlink():  # a submodule
            yield from (file.relative_to(top) for file in sorted(path.rglob("*")) if file.is_file() and ".git" not in file.parts)
        elif path.exists():
            yield Path(name)


def _walk(base: Path, runs: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, names in os.walk(base):
        here = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if name not in _NEVER and not name.startswith(".") and not (here / name / "pyvenv.cfg").exists() and here / name != runs
        )
        for name in sorted(names):
            count += 1
            if count > 20 * _MOST_FILES:
                raise InvalidInput(
                    f"{base} has more than {20 * _MOST_FILES} files: it does not look like a project's folder",
                    hint="submit from the project's own folder, or run the code where it stands with --no-freeze",
                )
            yield (here / name).relative_to(base)


def _is_code(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= _LARGE
    except OSError:
        return False


def _inside(path: Path, folder: Path) -> bool:
    return folder in path.parents


def _excluded(path: Path, patterns: Iterable[str]) -> bool:
    names = [str(path), *(str(parent) for parent in path.parents if str(parent) != ".")]
    return any(fnmatch.fnmatch(name, pattern.rstrip("/")) for pattern in patterns for name in names)


def _link_rest(base: Path, target: Path, folders: set[Path], copied: set[Path], runs: Path) -> None:
    """In every folder that was copied in part, link the rest to where it stands: data sets, large files, outputs."""
    for folder in folders:
        for entry in os.scandir(base / folder):
            path = folder / entry.name
            if path in copied or path in folders or entry.name in _NEVER or base / path == runs or not (target / folder).is_dir():
                continue
            link = target / path
            if not link.exists() and not link.is_symlink():
                link.symlink_to((base / path).resolve())
