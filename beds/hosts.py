"""One marked line in /etc/hosts, so that a bed's node names resolve to this machine."""

from collections.abc import Sequence
from pathlib import Path

_HOSTS = Path("/etc/hosts")


def ensure(bed: Path, names: Sequence[str]) -> None:
    """Have the line of the bed in that folder there."""
    _rewrite(bed, f"127.0.0.1 {' '.join(names)} {_mark(bed)}")


def remove(bed: Path) -> None:
    """Take the line of the bed in that folder away."""
    _rewrite(bed, None)


def _mark(bed: Path) -> str:
    return f"# onward-beds {bed}"


def _rewrite(bed: Path, line: str | None) -> None:
    """Write in place: in a container the file is a mount and cannot be replaced."""
    before = _HOSTS.read_text()
    kept = [old for old in before.splitlines() if not old.endswith(_mark(bed))]
    after = "\n".join([*kept, line] if line else kept) + "\n"
    if after != before:
        _HOSTS.write_text(after)
