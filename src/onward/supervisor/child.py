"""The training as our child: started with its output in local files, watched by a thread, ended with all it started."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGKILL

from onward.supervisor.parent import ends_with_us


class Child:
    """A process in a session of its own, so that what it starts can be ended with it.

    One that is `bound` is killed by the kernel when the thread that started it is gone, however that came about.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        out: Path,
        err: Path,
        woken: threading.Event,
        bound: bool = False,
    ) -> None:
        with out.open("ab") as stdout, err.open("ab") as stderr:
            self._process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=ends_with_us() if bound else None,
            )
        self.code: int | None = None  # exit code, or minus the signal that killed it
        self._woken = woken
        threading.Thread(target=self._wait, name="child", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self.code is None

    def signal(self, number: int) -> None:
        """To the training alone, not to what it started: the channel its spec chose."""
        if self.running:
            self._process.send_signal(number)

    def kill(self, number: int = SIGKILL) -> None:
        """To the training and everything in its session."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def _wait(self) -> None:
        self.code = self._process.wait()
        self._woken.set()


def start_helper(argv: Sequence[str], *, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """A process of our own that talks to us by lines: it ends when our end of its input closes. Signals to our group do not reach it."""
    return subprocess.Popen(list(argv), env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0)
