"""Freeze the user's code at submit: what git knows, or a copy by rule. What is left out is linked, so relative paths go on working."""

from __future__ import annotations

import fnmatch
import functools
import operator
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onward.errors import InvalidInput, SchedulerUnavailable, StorageError
from onward.model.quantity import format_bytes
from onward.model.spec import ParamValue
from onward.operations.submit.outside_paths import OutsidePaths, outside_paths
from onward.rundir.layout import RunDir
from onward.schedulers.command import run_command

_LARGE = 10 << 20  # a file larger than this is data, not code: linked, not copied
_MOST_FILES = 5_000
_MOST_BYTES = 200 << 20
_NEVER = {".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", "node_modules"}

IsRunFolder = Callable[[Path], bool]


@dataclass(frozen=True, kw_only=True)
class CodeSnapshot:
    workdir: str  # where the command starts, relative to the copy
    facts: dict[str, ParamValue]
    diff: str  # uncommitted changes, where git knows
    diff_mode: int = 0o644  # who may read them: whoever may read all of the code
    notes: tuple[str, ...] = ()  # for whoever submits


def freeze_code(
    cwd: Path, target: Path, *, exclude: Iterable[str], runs: Path, alone: bool = False, words: Iterable[str] = ()
) -> CodeSnapshot:
    """Copy the project that `cwd` stands in to `target`; `alone`: the folder itself, whatever git says it is part of.

    Runs (`runs` is the root of all) are never part of it. Where the code, or the `words` of the command, name paths outside of the
    project (`../data`), the copy begins that much higher, and has links to them.
    """
    cwd, target, runs, exclude = cwd.resolve(), target.resolve(), runs.resolve(), tuple(exclude)
    top = None if alone else _git_top(cwd)
    base = top or cwd

    @functools.cache
    def of_runs(folder: Path) -> bool:
        """Whether this is the root of all runs, a run, or inside one."""
        return base in folder.parents and (folder == runs or _is_run(folder) or of_runs(folder.parent))

    listed = _git_files(top) if top else _walk(cwd, of_runs)
    sizes = {path: _code_size(base / path) for path in listed if not _excluded(path, exclude) and not of_runs((base / path).parent)}
    code = {path: size for path, size in sizes.items() if size is not None}
    if len(code) > _MOST_FILES or sum(code.values()) > _MOST_BYTES:
        raise InvalidInput(
            f"{base} is too large to freeze: {len(code)} files, {format_bytes(sum(code.values()))}",
            hint="submit from the project's own folder, leave parts out with `code: {exclude: [data/*]}` (they are linked instead), "
            "or run the code in place with `code: {freeze: false}` (--no-freeze)",
        )
    outside = OutsidePaths() if alone else outside_paths(base, cwd, code, words, runs=runs)
    top_of_copy, inner = target, base.relative_to(base.parents[outside.above - 1]) if outside.above else Path(".")
    target = target / inner
    folder_of = _folders(base, target)
    refused = {path: why for path in code if (why := _copy(base / path, folder_of(path.parent) / path.name))}
    copied = code.keys() - refused.keys()
    workdir = cwd.relative_to(base)
    folder_of(workdir)
    folders = {Path("."), workdir, *workdir.parents, *(parent for path in code for parent in path.parents)}
    _link_rest(base, target, folders, copied, of_runs)
    for path, real in outside.links.items():
        (top_of_copy / path).parent.mkdir(parents=True, exist_ok=True)
        (top_of_copy / path).symlink_to(real)
    facts: dict[str, ParamValue] = {"frozen": True, "from": str(base), "files": len(copied), "bytes": sum(code[path] for path in copied)}
    if outside.links:
        facts["outside"] = ", ".join(sorted(os.path.relpath(real, base) for real in outside.links.values()))
    notes = _notes_on_unread({path: why for path, why in refused.items() if os.path.lexists(base / path)})
    if top is None:
        return CodeSnapshot(workdir=str(inner / workdir), facts=facts, diff="", notes=notes)
    diff = _git(top, "diff", "HEAD", "--no-ext-diff") or ""
    modes = [_mode(base / path) for path in {Path("."), *copied, *(parent for path in copied for parent in path.parents)}]
    diff_mode = functools.reduce(operator.and_, modes, 0o644) | 0o600
    facts |= _git_facts(top, runs)
    return CodeSnapshot(workdir=str(inner / workdir), facts=facts, diff=diff, diff_mode=diff_mode, notes=notes)


def _notes_on_unread(refused: Mapping[Path, str]) -> tuple[str, ...]:
    if not refused:
        return ()
    first, why = min(refused.items())
    which = f"{first} and {len(refused) - 1} more files" if len(refused) > 1 else str(first)
    advice = f"make it readable, or leave it out with code: {{exclude: [{first}]}}"
    return (f"{which} cannot be read ({why}), so the run has no copy; {advice}",)


# ── what belongs to it ────────────────────────────────────────────────────────


def _git_top(cwd: Path) -> Path | None:
    """The repository `cwd` belongs to. A folder that its repository ignores does not: it is frozen as any folder."""
    if shutil.which("git") is None:
        return None
    top = (_git(cwd, "rev-parse", "--show-toplevel") or "").rstrip("\n")
    return Path(top).resolve() if top and not _git(cwd, "check-ignore", str(cwd)) else None


def _git(cwd: Path, *arguments: str) -> str | None:
    """What git says; None where it fails: a folder that it does not know, or does not trust."""
    try:
        answer = run_command(["git", "-C", str(cwd), *arguments], timeout=60)
    except SchedulerUnavailable:
        return None
    return answer.out if answer.code == 0 else None


def _git_facts(top: Path, runs: Path) -> dict[str, ParamValue]:
    but_runs = [f":(top,exclude,literal){runs.relative_to(top)}"] if top in runs.parents else []
    return {
        "git_commit": (_git(top, "rev-parse", "HEAD") or "").strip() or None,
        "git_branch": (_git(top, "rev-parse", "--abbrev-ref", "HEAD") or "").strip() or None,
        "git_dirty": bool(_git(top, "status", "--porcelain", "--", ".", *but_runs)),
    }


def _git_files(top: Path) -> Iterator[Path]:
    """Tracked and new files, those of repositories within too; what .gitignore names is data."""
    listed = _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        raise StorageError(f"git could not list the files of {top}", hint="see what `git status` says, or submit with --no-freeze")
    for name in listed.split("\0"):
        path = top / name
        if name and path.is_dir() and not path.is_symlink():
            if (path / ".git").exists():  # a submodule that is checked out, or a clone inside
                yield from (Path(name) / file for file in _git_files(path))
        elif name:
            yield Path(name)


def _walk(base: Path, of_runs: IsRunFolder) -> Iterator[Path]:
    count = 0
    for folder, folders, names in os.walk(base):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not _is_foreign(here / name) and not of_runs(here / name))
        for name in sorted(names):
            count += 1
            if count > 20 * _MOST_FILES:
                raise InvalidInput(
                    f"{base} has more than {20 * _MOST_FILES} files: it does not look like a project's folder",
                    hint="submit from the project's own folder, or run the code in place with --no-freeze",
                )
            yield (here / name).relative_to(base)


def _is_foreign(folder: Path) -> bool:
    """Hidden folders, caches and environments; and what we may not look into."""
    if folder.name in _NEVER or folder.name.startswith(".") or not os.access(folder, os.R_OK | os.X_OK):
        return True
    return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").exists()


def _is_run(folder: Path) -> bool:
    run = RunDir(folder)
    return os.path.isdir(run.claims) and os.path.isdir(run.journals)


def _code_size(path: Path) -> int | None:
    """The size of a file that is code; None for data, folders, and what cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGE else None


def _excluded(path: Path, patterns: Iterable[str]) -> bool:
    names = [str(path), *(str(parent) for parent in path.parents if str(parent) != ".")]
    return any(fnmatch.fnmatch(name, pattern.rstrip("/")) for pattern in patterns for name in names)


# ── copy and link ─────────────────────────────────────────────────────────────


def _folders(base: Path, target: Path) -> Callable[[Path], Path]:
    """Makes a folder of the copy, open to nobody whom the original keeps out; to us always: we write there, and delete it."""

    @functools.cache
    def made(path: Path) -> Path:
        folder = target / path
        mode = _mode(base / path) | 0o700
        if path != Path("."):
            made(path.parent)
        try:
            folder.mkdir(mode=mode, parents=True)
        except FileExistsError:
            os.chmod(folder, stat.S_IMODE(folder.stat().st_mode) & (mode | 0o7000))
        return folder

    return made


def _mode(path: Path) -> int:
    """Who may do what with it; of what has gone meanwhile, we alone."""
    try:
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    except OSError:
        return 0o700


def _copy(source: Path, target: Path) -> str:
    """Why not, for a file that we may not read, or that has gone meanwhile: it is linked, if anything."""
    try:
        shutil.copy2(source, target)
    except (PermissionError, FileNotFoundError) as error:
        target.unlink(missing_ok=True)
        return error.strerror or str(error)
    return ""


def _link_rest(base: Path, target: Path, folders: set[Path], copied: set[Path], of_runs: IsRunFolder) -> None:
    """In every folder that was copied in part, link the rest to where it stands: data sets, large files, outputs."""
    for folder in folders:
        for name in _entries(base / folder):
            path = folder / name
            link = target / path
            if path not in copied and path not in folders and name not in _NEVER and not of_runs(base / path):
                real = Path(os.path.realpath(base / path))
                twin = target / real.relative_to(base) if base in real.parents else real
                link.symlink_to(os.path.relpath(twin, link.parent) if twin != real and twin.exists() else real)


def _entries(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
