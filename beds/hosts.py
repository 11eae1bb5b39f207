"""Marked lines in /etc/hosts, so that the names of a bed's nodes resolve."""

import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path

_HOSTS = Path("/etc/hosts")


def ensure(bed: Path, names: Sequence[str]) -> None:
    """Have the names of the bed in that folder lead to this machine."""
    ensure_each(bed, {"127.0.0.1": names})


def ensure_each(bed: Path, names: Mapping[str, Sequence[str]]) -> None:
    """Have the names of the bed in that folder lead to these addresses, one line each."""
    _rewrite(bed, [f"{address} {' '.join(called)} {_mark(bed)}" for address, called in names.items()])


def remove(bed: Path) -> None:
    """Take the lines of the bed in that folder away."""
    _rewrite(bed, [])


def _mark(bed: Path) -> str:
    return f"# onward-beds {bed}"


def _rewrite(bed: Path, lines: list[str]) -> None:
    """Write in place: in a container the file is a mount and cannot be replaced. One bed at a time."""
    with _HOSTS.open("r+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        before = stream.read()
        kept = [old for old in before.splitlines() if not old.endswith(_mark(bed))]
        after = "\n".join([*kept, *lines]) + "\n"
        if after != before:
            stream.seek(0)
            stream.write(after)
            stream.truncate()
