"""Saves that do not hold the training up: the state is copied into memory, and another process writes it."""

from __future__ import annotations

import time
import weakref
from pathlib import Path
from typing import Any, Literal

import torch

from onward.sdk.background_save.writer_client import SaveFailed, SaveWriter
from onward.sdk.process_run import of_process
from onward.sdk.run import TrainingRun, hand_over
from onward.sdk.stderr import say
from onward.torch.host_copy import copy_state
from onward.torch.reading import read_state
from onward.torch.safetensors_file import lay_out
from onward.torch.state_tree import StateTree

WhenBusy = Literal["wait", "skip"]


class Checkpointer:
    """The checkpoints of this process's run.

    `when_busy`: what a save does while two earlier ones are still being written: "wait" for memory, or "skip" this one.
    `sharded`: every rank saves its own state and loads it again. Otherwise rank 0 saves, and all ranks load the same.
    """

    def __init__(self, run: TrainingRun | None = None, *, when_busy: WhenBusy = "wait", sharded: bool = False) -> None:
        if when_busy not in ("wait", "skip"):
            raise ValueError(f"Checkpointer(when_busy={when_busy!r}): expected 'wait' or 'skip'")
        self._run = run or of_process()
        self._when_busy = when_busy
        self._sharded = sharded and self._run.world_size > 1
        self._writes = self._sharded or self._run.rank == 0
        self._writer: SaveWriter | None = None

    @property
    def _file(self) -> str:
        return f"state.rank-{self._run.rank:05d}-of-{self._run.world_size:05d}.safetensors" if self._sharded else "state.safetensors"

    def save(self, step: int, state: object) -> bool:
        """Copy the state and have it written. Once this returns, neither a change to the state nor a crash of this process affects it.

        False: it was skipped, as two saves are still being written. A save that fails is reported on stderr, and by `wait()`.
        """
        if not self._writes:
            return True
        began = time.monotonic()
        if self._writer is None:
            self._writer = SaveWriter()
            weakref.finalize(self, _finish, self._writer)
        self._report(self._writer.failures())
        if self._when_busy == "skip" and self._writer.busy:
            return False
        tree = StateTree(state)
        file = lay_out(tree.json, tree.tensors)
        memory = self._writer.memory(file.size)
        try:
            copy_state(file, tree.tensors, memory)
        except BaseException:
            self._writer.give_back(memory)
            raise
        written_by = "all" if self._sharded else "first"
        self._writer.write(memory, hand_over(self._run, step, written_by=written_by, file=self._file, began=began))
        return True

    def wait(self) -> None:
        """Until every save is on the disk. Raises SaveFailed if one was not written."""
        if self._writer:
            self._writer.wait()
            failed = self._writer.failures()
            if failed:
                raise SaveFailed("; ".join(failed))

    def load(self, *, map_location: torch.device | str | None = None) -> Any:
        """The state of the newest verified checkpoint, or None: start from scratch."""
        folder = self._run.resume()
        if folder is None:
            return None
        return read_state(self._found(folder), map_location=map_location)

    def _found(self, folder: Path) -> Path:
        path = folder / self._file
        if path.is_file():
            return path
        others = sorted(found.name for found in folder.glob("state*.safetensors"))
        if others:
            raise FileNotFoundError(
                f"{folder} has {', '.join(others[:4])} but no {self._file}: saved by another number of ranks, or with another `sharded`"
            )
        raise FileNotFoundError(f"{folder} has no {self._file}: it was not saved by onward.torch.Checkpointer. Load it as it was saved")

    def _report(self, failed: list[str]) -> None:
        for why in failed:
            say(f"{why}; training continues")


def _finish(writer: SaveWriter) -> None:
    """At the end of the process: saves go on without it, but a failure would be told to nobody."""
    try:
        writer.wait()
        for why in writer.failures():
            say(why)
    except SaveFailed as error:
        say(str(error))
    writer.close()
