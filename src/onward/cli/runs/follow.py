"""Following a run: a progress bar in a terminal, plain lines elsewhere. Ctrl-C ends the following, never the run."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from onward.cli.context import folder_text
from onward.cli.output import safe, time_text, to_stderr, to_stdout
from onward.model.quantity import counted

if TYPE_CHECKING:
    from onward.operations.hosts.local import Data, Host

_WAITED = 5.0  # seconds after which it is worth a line what the run waits for


def follow(host: Host, run: str) -> None:
    """Follow until the run is over. Raises RunFailed (exit code 7) if it did not finish."""
    from onward.errors import RunFailed

    lines = _Bar() if sys.stderr.isatty() else _Lines()
    try:
        last = lines.watch(host, run)
    except KeyboardInterrupt:
        named = lines.id or run
        to_stderr(f"\nno longer following; the run continues: onward logs -f {named} follows it, onward cancel {named} ends it")
        raise
    name, closed = last["name"], last["closed"]
    if closed["state"] == "finished":
        to_stderr(f"{name} finished in {_legs(last)}: {closed['cause']}")
        return
    for line in closed["evidence"].splitlines():
        to_stderr(safe(line))
    raise RunFailed(f"{name} {closed['state']}: {closed['cause']}", hint=closed["next"])


class _Lines:
    """One line for each thing that happened."""

    def __init__(self) -> None:
        self.id = ""
        self._said: set[str] = set()
        self._waits: tuple[str, float] = ("", 0.0)

    def watch(self, host: Host, run: str) -> Data:
        last: Data = {}
        for seen in host.watch(run=run):
            if not self.id:
                self.id = seen["id"]
                to_stdout(self.id)
                self.tell(f"{seen['name']} ({self.id}) in {folder_text(host.hostname, seen['folder'])}")
            for words in (*self._happenings(seen), *self._waiting(seen)):
                if words not in self._said:
                    self._said.add(words)
                    self.tell(words)
            self.show(seen)
            last = seen
        return last

    def tell(self, words: str) -> None:
        to_stderr(safe(words))

    def show(self, seen: Data) -> None:
        pass

    def _happenings(self, seen: Data) -> list[str]:
        said = []
        for leg in seen["legs"]:
            number = leg["number"]
            if leg["training"]:
                until = f", until {time_text(leg['deadline'])}" if leg["deadline"] else ""
                start = f", from step {leg['from_step']}" if leg["from_step"] is not None else ""
                said.append(f"leg {number}: job {leg['job']} on {', '.join(leg['hosts'])}{until}{start}")
                said += [f"leg {number}: fell back: {words}" for words in leg["fell_back"]]
            if leg["ended"]:
                at = f"; last checkpoint at step {leg['last_published']}" if leg["last_published"] is not None else ""
                said.append(f"leg {number} ended: {leg['reason']}{at}")
        return said

    def _waiting(self, seen: Data) -> list[str]:
        """What it waits for, once it has waited a while: legs that follow one another at once are not worth the words."""
        words = "" if seen["closed"] or seen["state"] == "running" else seen["reason"]
        if words != self._waits[0]:
            self._waits = (words, time.monotonic())
        return [words] if words and time.monotonic() - self._waits[1] > _WAITED else []


class _Bar(_Lines):
    """The same lines, with a bar below them: one line, however narrow the terminal."""

    def __init__(self) -> None:
        super().__init__()
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

    def watch(self, host: Host, run: str) -> Data:
        with self._bar:
            return super().watch(host, run)

    def tell(self, words: str) -> None:
        self._bar.console.print(safe(words), markup=False, highlight=False, soft_wrap=True)

    def show(self, seen: Data) -> None:
        progress = seen["progress"]
        step, total = progress["step"], progress["total"]
        self._bar.update(
            self._task,
            completed=(step + 1) if step is not None else 0,
            total=total,
            state=seen["state"],
            words=bar_text(progress) if seen["state"] == "running" else safe(seen["reason"]),
        )


def bar_text(progress: dict[str, Any]) -> str:
    """As short as possible: `step 25 of 60 · 9.8/s · done 10:57`."""
    step, total, rate, eta = (progress[key] for key in ("step", "total", "steps_per_second", "eta"))
    if step is None:
        return "no step yet"
    parts = [f"step {step}" + (f" of {total}" if total else ""), f"{rate:.3g}/s" if rate else "", f"done {time_text(eta)}" if eta else ""]
    return " · ".join(part for part in parts if part)


def _legs(seen: Data) -> str:
    return counted(len(seen["legs"]), "leg")
