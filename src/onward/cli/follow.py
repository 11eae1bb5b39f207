"""Following a run: a progress bar in a terminal, plain lines elsewhere. Ctrl-C ends the following, never the run."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from onward.cli.render import out, progress_words, say, when

if TYPE_CHECKING:
    from onward.operations.inspect import Seen
    from onward.operations.wiring import Desk
    from onward.rundir.layout import RunDir

_TICK = 0.5


def follow(desk: Desk, dir: RunDir) -> None:
    """Until the run is over. Raises RunFailed (exit code 7) when it did not finish."""
    from onward.errors import RunFailed
    from onward.model.run import RunState
    from onward.rundir.journal import read_run

    run = read_run(dir)
    out(run.spec.id)
    say(f"{run.spec.name} ({run.spec.id}) in {dir.path}")
    try:
        seen = _Bar(desk, dir).watch() if sys.stderr.isatty() else _Lines(desk, dir).watch()
    except KeyboardInterrupt:
        say(f"\nno longer following; the run goes on: onward show {run.spec.id}, onward logs -f {run.spec.id}, onward cancel {run.spec.id}")
        raise
    closed = seen.run.closed
    assert closed is not None
    if seen.run.state is RunState.FINISHED:
        say(f"{run.spec.name} finished in {_legs(seen)}: {closed.cause}")
        return
    if closed.evidence:
        say(closed.evidence)
    raise RunFailed(f"{run.spec.name} {closed.state}: {closed.cause}", hint=closed.next)


class _Lines:
    """One line for each thing that happened."""

    def __init__(self, desk: Desk, dir: RunDir) -> None:
        self._desk = desk
        self._dir = dir
        self._said: set[str] = set()

    def watch(self) -> Seen:
        from onward.operations.inspect import look, progress

        while True:
            seen = look(self._desk, [self._dir])[0]
            for words in self._happenings(seen):
                if words not in self._said:
                    self._said.add(words)
                    self.tell(words)
            self.show(seen, progress(seen))
            if seen.run.closed:
                self.end()
                return seen
            time.sleep(_TICK)

    def tell(self, words: str) -> None:
        say(words)

    def show(self, seen: Seen, progress: dict[str, Any]) -> None:
        pass

    def end(self) -> None:
        pass

    def _happenings(self, seen: Seen) -> list[str]:
        said = []
        for number, leg in sorted(seen.run.legs.items()):
            if leg.claimed:
                until = f" until {when(leg.claimed.deadline)}" if leg.claimed.deadline else ""
                start = f" from step {leg.restored.step}" if leg.restored else ""
                if leg.started:
                    said.append(f"leg {number}: job {leg.claimed.job} on {', '.join(leg.claimed.hosts)}{until}{start}")
                said += [f"leg {number}: fell back: {words}" for words in (leg.restored.fell_back if leg.restored else [])]
            if leg.end and leg.claimed:
                at = f" at step {leg.last_published}" if leg.last_published is not None else ""
                said.append(f"leg {number}: ended {leg.end}: {leg.reason}" + (f"; last checkpoint{at}" if at else ""))
        return said


class _Bar(_Lines):
    """The same lines, with a bar below them: steps, legs, what it waits for, when it would be done."""

    def __init__(self, desk: Desk, dir: RunDir) -> None:
        super().__init__(desk, dir)
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[title]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, title="", words="")
        self._bar.start()

    def tell(self, words: str) -> None:
        self._bar.console.print(words, markup=False, highlight=False)

    def show(self, seen: Seen, progress: dict[str, Any]) -> None:
        from onward.operations.inspect import reason

        step, total = progress["step"], progress["total"]
        waiting = "" if seen.run.state == "running" else f" · {reason(seen)}"
        self._bar.update(
            self._task,
            completed=(step + 1) if step is not None else 0,
            total=total,
            title=f"{seen.run.spec.name} · {seen.run.state}{waiting}",
            words=progress_words(progress),
        )

    def end(self) -> None:
        self._bar.stop()

    def watch(self) -> Seen:
        try:
            return super().watch()
        finally:
            self._bar.stop()


def _legs(seen: Seen) -> str:
    count = sum(1 for leg in seen.run.legs.values() if leg.claimed)
    return f"{count} leg{'s' if count != 1 else ''}"
