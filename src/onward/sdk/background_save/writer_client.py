"""The training's end of the save writer: memory to copy a state into, and what became of the saves that were handed over.

In a job the writer belongs to the supervisor, so that it outlives a training that crashes. Elsewhere this process starts
one, in a session of its own.
A writer that dies is replaced, and gets what it had not written yet once more.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

from onward.sdk import contract
from onward.sdk.background_save.messages import address, receive, send
from onward.sdk.background_save.state_memory import StateMemory

_MEMORIES = 2  # one is written while the next is filled
_PATIENCE = 30.0  # seconds for a writer to be there again
_OLDEST_PYTHON = (3, 11)


class SaveFailed(Exception):
    """A save that was handed over did not become a checkpoint."""


class SaveWriter:
    def __init__(self) -> None:
        self._path = os.environ.get(contract.SAVE_SOCKET, "")
        self._free: list[StateMemory] = []
        self._handed_over: dict[int, tuple[dict[str, object], StateMemory]] = {}
        self._failed: list[str] = []
        self._last = 0
        self._pid = os.getpid()
        self._connection = self._connect()

    @property
    def busy(self) -> bool:
        """Whether the next save would have to wait for memory."""
        self._hear(wait=0.0)
        return not self._free and len(self._handed_over) >= _MEMORIES

    def memory(self, size: int) -> StateMemory:
        """One that nobody reads. Waits for the writer if all are being written, or if there is no room for another."""
        self._hear(wait=0.0)
        while True:
            while self._free:
                memory = self._free.pop()
                if memory.resize(size):
                    return memory
                memory.close()
            if len(self._handed_over) < _MEMORIES:
                try:
                    return StateMemory(size)
                except MemoryError:
                    if not self._handed_over:
                        raise
            self._hear(wait=None)

    def give_back(self, memory: StateMemory) -> None:
        """It was not filled after all."""
        self._free.append(memory)

    def write(self, memory: StateMemory, save: Mapping[str, object]) -> None:
        """Have it written. After this returns the save no longer needs this process."""
        self._last += 1
        message = {**save, "number": self._last}
        self._handed_over[self._last] = message, memory
        try:
            send(self._connection, message, memory.handle)
        except OSError:
            self._reconnect()

    def wait(self) -> None:
        while self._handed_over:
            self._hear(wait=None)

    def failures(self) -> list[str]:
        """Why saves failed, each told once."""
        if self._handed_over:
            self._hear(wait=0.0)
        failed, self._failed = self._failed, []
        return failed

    def close(self) -> None:
        if os.getpid() != self._pid:  # a fork has no part in it
            return
        self._connection.close()
        for memory in [*self._free, *(memory for _, memory in self._handed_over.values())]:
            memory.close()
        self._free, self._handed_over = [], {}

    # ── the writer at the other end ───────────────────────────────────────────

    def _hear(self, *, wait: float | None) -> None:
        """What it has said so far; with `wait=None` at least one thing."""
        while self._handed_over and _has_said(self._connection, wait):
            wait = 0.0
            try:
                answer = receive(self._connection)
            except OSError:
                answer = None
            if answer is None:
                self._reconnect()
                continue
            number = int(str(answer[0].get("number")))
            if number in self._handed_over:
                _, memory = self._handed_over.pop(number)
                self._free.append(memory)
            if answer[0].get("error"):
                self._failed.append(str(answer[0]["error"]))

    def _reconnect(self) -> None:
        self._connection.close()
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                self._connection = self._connect()
                for message, memory in list(self._handed_over.values()):
                    send(self._connection, message, memory.handle)
                return
            except OSError as error:
                if time.monotonic() > end:
                    raise SaveFailed(f"the save writer cannot be reached: {error}") from error
                time.sleep(0.2)

    def _connect(self) -> socket.socket:
        if not self._path:
            return _start_writer()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with address(self._path) as path:
                connection.connect(path)
        except BaseException:
            connection.close()
            raise
        return connection


def _has_said(connection: socket.socket, wait: float | None) -> bool:
    """By poll(), as a training may have more files open than select() can count."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(None if wait is None else wait * 1000))


def _start_writer() -> socket.socket:
    if sys.version_info < _OLDEST_PYTHON:
        raise SaveFailed(
            "outside a job of Onward a save in the background needs Python 3.11 or newer; use `with run.checkpoint(step) as folder`"
        )
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "onward.checkpoints.save_writer", str(theirs.fileno())]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with contextlib.suppress(KeyError):
            del env[contract.SAVE_SOCKET]
        subprocess.Popen(
            command, env=env, pass_fds=[theirs.fileno()], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
    return ours
