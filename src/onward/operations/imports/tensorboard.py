"""Taking TensorBoard's folders over: each folder with event files is a run, known again by its path."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from onward.errors import InvalidInput, NotFound
from onward.rundir.layout import RunDir

if TYPE_CHECKING:
    from onward.tracker.store import Tracker

_EVERY = 2.0  # seconds between looks while following


@dataclass(kw_only=True)
class TensorboardImportResult:
    """What was taken over. `problems` are damaged places and folders that cannot be read; `torn`, files whose end is not whole."""

    experiment: str = ""
    runs: int = 0
    new_runs: int = 0
    points: int = 0
    problems: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)


class TensorboardImport:
    """One folder and what lies below it. `look` may be repeated: what was taken is not taken again."""

    def __init__(self, tracker: Tracker, folder: Path, *, experiment: str | None = None) -> None:
        from onward.tracker.runs.experiments import check_name

        self._folder = folder.absolute()
        if not self._folder.is_dir():
            what = "is a file" if self._folder.exists() else "does not exist"
            raise (InvalidInput if self._folder.exists() else NotFound)(f"{folder} {what}", hint="name a folder with event files")
        self._tracker = tracker
        self._experiment = experiment or self._folder.resolve().name or "tensorboard"
        check_name(self._experiment)
        self._runs: dict[Path, str] = {}
        self._told: set[str] = set()

    def look(self, *, following: bool = False) -> TensorboardImportResult:
        done = TensorboardImportResult(experiment=self._experiment)
        for folder in self._event_folders(done):
            done.runs += 1
            self._take(folder, following, done)
        return done

    def follow(self, tell: Callable[[TensorboardImportResult], None], *, every: float = _EVERY) -> None:
        """Until it is interrupted."""
        try:
            while True:
                tell(self.look(following=True))
                time.sleep(every)
        finally:
            for run in self._runs.values():
                self._tracker.runs.update(run, state="finished")

    def _take(self, folder: Path, following: bool, done: TensorboardImportResult) -> None:
        run = self._runs.get(folder)
        if run is None:
            run, new = self._run(folder, following)
            self._runs[folder] = run
            done.new_runs += new
        try:
            seen = self._tracker.event_files.look(folder, run, root=None, by_lives=True)
        except OSError as error:
            done.problems.append(f"{folder} cannot be read: {error.strerror}")
            return
        done.points += seen.points
        done.problems += seen.problems
        done.torn += [f"{path} is read up to byte {offset}; the rest is not a complete record yet" for path, offset in seen.torn.items()]
        if seen.points or not following:
            self._close(run, following)

    def _run(self, folder: Path, following: bool) -> tuple[str, bool]:
        from onward.tracker.runs.registry import NewRun

        identity = f"tensorboard:{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()}"
        held = self._tracker.runs.by_identity(identity)
        if held is not None:
            return held.run_id, False
        name = folder.relative_to(self._folder).as_posix() if folder != self._folder else self._folder.resolve().name
        state = "running" if following else "finished"
        printable = name.encode("utf-8", "replace").decode()
        tags = {"onward.imported_from": os.fsencode(folder.resolve()).decode("utf-8", "replace")}
        new = NewRun(experiment=self._experiment, name=printable, source="tensorboard", state=state, identity=identity, tags=tags)
        return self._tracker.runs.create(new).run_id, True

    def _close(self, run: str, following: bool) -> None:
        """When it ran, as far as the files tell."""
        legs = self._tracker.runs.legs(run)
        started = min((leg["started"] for leg in legs if leg["started"]), default=None)
        ended = max((leg["ended"] for leg in legs if leg["ended"]), default=None)
        if following:
            self._tracker.runs.update(run, state="running", started=started, ended=None)
        else:
            self._tracker.runs.update(run, state="finished", started=started, ended=ended)

    def _event_folders(self, done: TensorboardImportResult) -> Iterator[Path]:
        """Folders that hold event files, but those of runs that the server reads by itself."""
        from onward.tracker.tensorboard.event_folder import is_event_file

        for inside, folders, files in os.walk(self._folder):
            folder = Path(inside)
            if RunDir(folder).is_run():
                folders.clear()
                words = f"{folder} is a run of Onward: `onward up` reads its event files already"
                if words not in self._told:
                    self._told.add(words)
                    done.problems.append(words)
                continue
            folders.sort()
            if any(is_event_file(name) for name in files):
                yield folder
