"""Write saves in the place of a training: take the memory into which a training copied its state, write and flush it, and commit.

A save that it was handed becomes a checkpoint whether or not the training lives on. In a job it is a part of the
publisher's process; a training that has no supervisor starts it as a process of its own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.checkpoints.copying import ALGORITHM, Moved, Transfer, transfer
from onward.sdk.background_save.messages import address, receive, send
from onward.sdk.ranks import Ranks
from onward.sdk.saving import CheckpointSaver

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Save:
    message: Mapping[str, Any]
    memory: int  # its handle
    asked_by: socket.socket


class SaveQueue:
    """Saves in the order they came, one at a time: each has all of the disk."""

    def __init__(self, moved: Moved | None = None) -> None:
        self._moved = moved
        self._saves: queue.SimpleQueue[Save | socket.socket | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="saves", daemon=True)
        self._thread.start()

    def put(self, save: Save | socket.socket) -> None:
        """A save; or a connection that is to be closed, once its saves are answered."""
        self._saves.put(save)

    def finish(self) -> None:
        self._saves.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (save := self._saves.get()) is not None:
            if isinstance(save, socket.socket):
                save.close()
                continue
            try:
                error = write_save(save.message, save.memory, self._moved)
            except Exception as failure:
                log.exception("the save of step %s failed", save.message.get("step"))
                error = f"the save of step {save.message.get('step')} failed: {failure}"
            os.close(save.memory)
            with contextlib.suppress(OSError):  # the training has gone
                send(save.asked_by, {"number": save.message.get("number"), "error": error})


def write_save(message: Mapping[str, Any], memory: int, moved: Moved | None = None) -> str:
    """Write what is in the memory as the checkpoint of its step. Returns why it was skipped, if it was."""
    skipped: list[str] = []
    saver = CheckpointSaver(
        Path(message["folder"]),
        ranks=Ranks(int(message["rank"]), int(message["world"])),
        by_hand=bool(message["unmanaged"]),
        metrics=message["metrics"],
        skipped=lambda step, why: skipped.append(f"the save of step {step} was skipped: {why}"),
    )
    with saver.checkpoint(int(message["step"]), written_by=message["written_by"], began=float(message["began"])) as folder:
        target = folder / message["file"]
        target.touch(exist_ok=False)
        source = Path(f"/proc/self/fd/{memory}")
        (hash,) = transfer([Transfer(source=source, target=target, size=os.fstat(memory).st_size)], flush=True, moved=moved)
        target.with_name(f"{target.stem}.{ALGORITHM}").write_text(hash)
    return skipped[0] if skipped else ""


class Connections:
    """Trainings that hand saves over. What they have sent is taken, also of those that have died since."""

    def __init__(self, saves: SaveQueue) -> None:
        self._saves = saves
        self._ready = selectors.DefaultSelector()
        self.count = 0

    def listen(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with address(str(path)) as short:
            listener.bind(short)
        os.chmod(path, 0o600)
        listener.listen()
        self._ready.register(listener, selectors.EVENT_READ, self._accept)

    def stop_when_closed(self, handle: int, stop: Callable[[], None]) -> None:
        def closed(_: object) -> None:
            self._ready.unregister(handle)
            stop()

        self._ready.register(handle, selectors.EVENT_READ, closed)

    def add(self, connection: socket.socket) -> None:
        self.count += 1
        self._ready.register(connection, selectors.EVENT_READ, self._take)

    def look(self, *, wait: float | None) -> bool:
        """Take what has come. False: nothing had."""
        ready = self._ready.select(wait)
        for key, _ in ready:
            key.data(key.fileobj)
        return bool(ready)

    def close(self) -> None:
        for key in list(self._ready.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._ready.close()

    def _accept(self, listener: socket.socket) -> None:
        self.add(listener.accept()[0])

    def _take(self, connection: socket.socket) -> None:
        try:
            found = receive(connection)
        except OSError:
            found = None
        if found is None:
            self._ready.unregister(connection)
            self._saves.put(connection)
            self.count -= 1
            return
        message, memory = found
        if memory is None:
            log.warning("a save came without its memory: %r", message)
            return
        self._saves.put(Save(message=message, memory=memory, asked_by=connection))


class SaveService:
    """The save writer as threads of the publisher's process, which lives on when the training and the supervisor die."""

    def __init__(self, path: Path, *, moved: Moved | None = None) -> None:
        self._saves = SaveQueue(moved)
        self._connections = Connections(self._saves)
        self._connections.listen(path)
        self._open = True
        self._input, self._end = os.pipe()
        self._connections.stop_when_closed(self._input, self._stop)
        self._thread = threading.Thread(target=self._serve, name="connections", daemon=True)
        self._thread.start()

    def __enter__(self) -> SaveService:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Until everything that trainings have handed over is written."""
        if self._end >= 0:
            os.close(self._end)
            self._end = -1
            self._thread.join()
            self._saves.finish()
            self._connections.close()
            os.close(self._input)

    def _stop(self) -> None:
        self._open = False

    def _serve(self) -> None:
        while self._open:
            self._connections.look(wait=None)
        while self._connections.look(wait=0.0):  # what has been sent by now
            pass


def main(argv: Sequence[str]) -> int:
    """For one training that has no supervisor: the connection to it is inherited as a handle."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s save writer %(levelname)s %(message)s", force=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # they are for the training
    saves = SaveQueue()
    connections = Connections(saves)
    connections.add(socket.socket(fileno=int(argv[0])))
    while connections.count:
        connections.look(wait=None)
    saves.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
