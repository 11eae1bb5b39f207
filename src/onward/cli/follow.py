"""Following a run: a progress bar in a terminal, plain lines elsewhere. Ctrl-C ends the following, never the run."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from onward.cli.render import out, safe, say, when

if TYPE_CHECKING:
    from onward.operations.inspect import Seen
    from onward.operations.wiring import Desk
    from onward.rundir.layout import RunDir

_TICK = 0.5
_ASK_EVERY = 10.0  # seconds between questions to the scheduler: there are others who ask it
_ASK_AGAIN = 2.0  # about a job that it has not been asked about yet
_WAITED = 5.0  # seconds after which it is worth a line what the run waits for


def follow(desk: Desk, dir: RunDir) -> None:
    """Until the run is over. Raises RunFailed (exit code 7) when it did not finish."""
    from onward.errors import RunFailed
    from onward.model.run import RunState
    from onward.rundir.journal import read_spec

    spec = read_spec(dir)
    out(spec.id)
    say(f"{spec.name} ({spec.id}) in {dir.path}")
    try:
        seen = _Bar(desk, dir).watch() if sys.stderr.isatty() else _Lines(desk, dir).watch()
    except KeyboardInterrupt:
        say(f"\nno longer following; the run goes on: onward logs -f {spec.id} follows it, onward cancel {spec.id} ends it")
        raise
    closed = seen.run.closed
    assert closed is not None
    if seen.run.state is RunState.FINISHED:
        say(f"{spec.name} finished in {_legs(seen)}: {closed.cause}")
        return
    for line in closed.evidence.splitlines():
        say(safe(line))
    raise RunFailed(f"{spec.name} {closed.state}: {closed.cause}", hint=closed.next)


class Watch:
    """A run, looked at again and again: its folder each time, the scheduler now and then."""

    def __init__(self, desk: Desk, dir: RunDir) -> None:
        self._desk = desk
        self._dir = dir
        self._last: Seen | None = None
        self._asked = 0.0

    def look(self) -> Seen:
        from onward.operations.inspect import Seen, look, read_folder

        run = read_folder(self._dir)
        known = self._last.answers if self._last else None
        jobs = {leg.job for leg in run.legs.values() if leg.job and not leg.end}
        wait = _ASK_EVERY if known is not None and jobs <= known.keys() else _ASK_AGAIN
        if self._last is None or time.monotonic() - self._asked > wait:
            self._last = look(self._desk, self._dir)
            self._asked = time.monotonic()
            return self._last
        if jobs <= (known or {}).keys():
            return Seen(dir=self._dir, run=run, answers=known)
        return Seen(dir=self._dir, run=run, answers=None)


class _Lines:
    """One line for each thing that happened."""

    def __init__(self, desk: Desk, dir: RunDir) -> None:
        self._watch = Watch(desk, dir)
        self._said: set[str] = set()
        self._waits: tuple[str, float] = ("", 0.0)

    def watch(self) -> Seen:
        from onward.operations.inspect import progress

        while True:
            seen = self._watch.look()
            for words in (*self._happenings(seen), *self._waiting(seen)):
                if words not in self._said:
                    self._said.add(words)
                    self.tell(words)
            self.show(seen, progress(seen))
            if seen.run.closed:
                return seen
            time.sleep(_TICK)

    def tell(self, words: str) -> None:
        say(safe(words))

    def show(self, seen: Seen, progress: dict[str, Any]) -> None:
        pass

    def _happenings(self, seen: Seen) -> list[str]:
        said = []
        for number, leg in sorted(seen.run.legs.items()):
            if leg.claimed and leg.started:
                until = f", until {when(leg.claimed.deadline)}" if leg.claimed.deadline else ""
                start = f", from step {leg.restored.step}" if leg.restored else ""
                said.append(f"leg {number}: job {leg.claimed.job} on {', '.join(leg.claimed.hosts)}{until}{start}")
                said += [f"leg {number}: fell back: {words}" for words in (leg.restored.fell_back if leg.restored else [])]
            if leg.end and leg.claimed:
                at = f"; last checkpoint at step {leg.last_published}" if leg.last_published is not None else ""
                said.append(f"leg {number} ended: {leg.reason}{at}")
        return said

    def _waiting(self, seen: Seen) -> list[str]:
        """What it waits for, once it has waited a while: legs that follow one another at once are not worth the words."""
        from onward.operations.inspect import reason

        words = "" if seen.run.closed or seen.run.state == "running" else reason(seen)
        if words != self._waits[0]:
            self._waits = (words, time.monotonic())
        return [words] if words and time.monotonic() - self._waits[1] > _WAITED else []


class _Bar(_Lines):
    """The same lines, with a bar below them: one line, however narrow the terminal."""

    def __init__(self, desk: Desk, dir: RunDir) -> None:
        super().__init__(desk, dir)
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        def text(name: str, **how: Any) -> TextColumn:
            return TextColumn(f"{{task.fields[{name}]}}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", **how))

        self._bar = Progress(
            SpinnerColumn(),
            text("state"),
            BarColumn(bar_width=16),
            text("words", ratio=1),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            expand=True,
        )
        self._task = self._bar.add_task("", total=None, state="submitted", words="")

    def watch(self) -> Seen:
        with self._bar:
            return super().watch()

    def tell(self, words: str) -> None:
        self._bar.console.print(safe(words), markup=False, highlight=False, soft_wrap=True)

    def show(self, seen: Seen, progress: dict[str, Any]) -> None:
        from onward.operations.inspect import reason

        step, total = progress["step"], progress["total"]
        running = seen.run.state == "running"
        self._bar.update(
            self._task,
            completed=(step + 1) if step is not None else 0,
            total=total,
            state=str(seen.run.state),
            words=bar_words(progress) if running else safe(reason(seen)),
        )


def bar_words(progress: dict[str, Any]) -> str:
    """As short as can be: `step 25 of 60 · 9.8/s · done 10:57`."""
    step, total, rate, eta = (progress[key] for key in ("step", "total", "steps_per_second", "eta"))
    if step is None:
        return "no step yet"
    parts = [f"step {step}" + (f" of {total}" if total else ""), f"{rate:.3g}/s" if rate else "", f"done {when(eta)}" if eta else ""]
    return " · ".join(part for part in parts if part)


def _legs(seen: Seen) -> str:
    count = sum(1 for leg in seen.run.legs.values() if leg.claimed)
    return f"{count} leg{'s' if count != 1 else ''}"
