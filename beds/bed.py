"""What every bed can do."""

from collections.abc import Callable
from typing import Protocol

from beds.process import Process

Say = Callable[[str], None]


class Bed(Protocol):
    """A real service that comes up and goes down again on this machine."""

    name: str
    packages: tuple[str, ...]  # Debian's, that it needs
    answers: tuple[str, ...]  # to what those packages would ask, as debconf reads them

    def up(self) -> None:
        """Have it running and whole: install, start, repair whatever is missing."""

    def down(self, *, wipe: bool = False) -> None:
        """End what `up` started; forget its state too if `wipe`."""

    def is_up(self) -> bool:
        """Whether it can be used right now."""

    def status(self) -> list[str]:
        """One line a part, for people."""

    def environment(self) -> dict[str, str]:
        """The variables by which programs find it."""


def say_at_once(text: str) -> None:
    """Print a line that is seen now, also through a pipe."""
    print(text, flush=True)


def line(part: str, text: str) -> str:
    """One line of a report: the part, and how it is."""
    return f"  {part:<12} {text}"


def news(verb: str, things: list[str]) -> str:
    """What was done to which things; empty if there are none."""
    return f"{verb} {', '.join(things)}" if things else ""


def describe(process: Process | None) -> str:
    """How a daemon's process is."""
    if process is None:
        return "does not run"
    return f"{'PAUSED' if process.paused else 'runs'}, pid {process.pid}"
