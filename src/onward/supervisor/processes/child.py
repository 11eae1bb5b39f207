"""What a supervisor starts: the training behind its guard, helpers that talk by lines, and processes that outlive us."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from signal import SIGKILL
from typing import Any

from onward.supervisor.processes.guard import SHIELDED, end_marked, shield

# Reads the order, which has the guard's own text in it, and lives by it.
_GUARD = """\
import json, os
data = b""
while data[-1:] != b"\\n":
    data += os.read(0, 1 << 20) or os._exit(1)
order, guard = json.loads(data), {}
exec(order["guard"], guard)
guard["live"](order)
"""


class Child:
    """The training, in a session of its own behind a guard (see processes/guard.py): it and all it starts end with this process.

    `mark`: variables of `env` that only this training and what it starts have.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        mark: Mapping[str, str],
        out: Path,
        err: Path,
        woken: threading.Event,
    ) -> None:
        self._mark = dict(mark)
        self._woken = woken
        self.code: int | None = None  # exit code, or minus the signal that killed it
        self.gone = threading.Event()  # and everything it started
        self._line, theirs = socket.socketpair()
        try:
            with theirs, out.open("ab") as stdout, err.open("ab") as stderr:
                self._guard = subprocess.Popen(
                    [sys.executable, "-IS", "-c", _GUARD, "onward-guard"],
                    cwd=cwd,
                    stdin=theirs.fileno(),
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                    preexec_fn=shield,
                )
        except OSError:
            self._line.close()
            raise
        ignored = [int(number) for number in SHIELDED if signal.getsignal(number) is signal.SIG_IGN]
        order = {"guard": _guard_text(), "argv": list(argv), "env": {**env, **mark}, "mark": self._mark, "ignored": ignored}
        with contextlib.suppress(OSError):  # said below
            self._line.sendall(json.dumps(order).encode() + b"\n")
        self._told = self._lines()
        first = next(self._told, {})
        if "pid" not in first:
            self._close()
            why = int(first.get("errno", errno.EIO))  # nothing said: the guard itself could not start
            raise OSError(why, os.strerror(why), first.get("filename", sys.executable))
        self.pid = int(first["pid"])
        threading.Thread(target=self._wait, name="child", daemon=True).start()

    @property
    def running(self) -> bool:
        return self.code is None

    def signal(self, number: int) -> None:
        """To the training alone, not to what it started: the channel its spec chose."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self, number: int = SIGKILL) -> None:
        """To the training and everything in its session; SIGKILL also to what left the session. `gone` says when none is left."""
        if self.gone.is_set():
            return  # by now its number may be another process's
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        if number == SIGKILL:
            with contextlib.suppress(OSError):
                self._line.sendall(b"end\n")

    def _wait(self) -> None:
        for message in self._told:
            if "status" in message:
                self.code = os.waitstatus_to_exitcode(message["status"])
                self._woken.set()
        if self._guard.wait() != 0:  # it was killed, and the training with it: what the training started is left
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, SIGKILL)
            end_marked([self._mark])
        self._close()
        self.code = -SIGKILL if self.code is None else self.code
        self.gone.set()
        self._woken.set()

    def _lines(self) -> Generator[dict[str, Any], None, None]:
        with contextlib.suppress(OSError), self._line.makefile("rb") as lines:
            for line in lines:
                yield json.loads(line)

    def _close(self) -> None:
        self._told.close()
        self._line.close()
        self._guard.wait()


@lru_cache(maxsize=1)
def _guard_text() -> str:
    spec = importlib.util.find_spec("onward.supervisor.processes.guard")
    loader: Any = spec.loader if spec else None
    return str(loader.get_source("onward.supervisor.processes.guard"))


def start_helper(argv: Sequence[str], *, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """A process of our own that talks to us by lines: it ends when our end of its input closes, and hears no signal of a scheduler's."""
    return subprocess.Popen(
        list(argv), env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=shield
    )


def start_detached(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> None:
    """A process that may outlive us. If it does not, a thread takes note of its end."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(argv), cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    threading.Thread(target=process.wait, name="detached", daemon=True).start()
