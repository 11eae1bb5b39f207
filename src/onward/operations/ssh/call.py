"""One ssh call to the agent of a host: the request in, the answer or the pieces out. The archive is carried there when it is missing."""

from __future__ import annotations

import hashlib
import math
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

from onward.errors import HostUnreachable, OnwardError, StorageError
from onward.operations.ssh.agent_archive import AgentArchive, agent_archive
from onward.operations.ssh.command_line import agent_command, hurried_ssh_line, receive_command, ssh_line
from onward.operations.ssh.errors import SshFailure, explain, is_no_archive
from onward.operations.ssh.wire_format import decode, encode, error_from_json

PATIENCE = 120.0  # seconds for an answer, unless told otherwise
LOOK = 20.0  # seconds that a list waits for a host; for the connection itself far fewer
_SILENCE = 90.0  # seconds without a sign of life in what is followed: the agent gives one every few
_UPLOAD = 300.0

Data = dict[str, Any]
Body = Callable[[IO[bytes]], None]


class _NoArchive(Exception):
    """Nothing was done there: the archive has to be carried first."""


class SshCaller:
    """Calls one host."""

    def __init__(self, host: str, *, python: str, env: Mapping[str, str], setting: str = "") -> None:
        self.host = host
        self._python = python
        self._setting = setting
        self._env = env
        self._line: list[str] | None = None
        self._archive: AgentArchive | None = None
        self._lock = threading.Lock()

    @property
    def line(self) -> list[str]:
        with self._lock:
            if self._line is None:
                self._line = ssh_line(self.host, self._env)
            return self._line

    @property
    def archive(self) -> AgentArchive:
        if self._archive is None:
            self._archive = agent_archive()
        return self._archive

    def call(self, request: Data, *, within: float = PATIENCE, body: Body | None = None) -> Any:
        """The answer. `body` writes what follows the request, such as a file."""
        answer: Any = None
        for data in self._talk(request, within=within, body=body):
            answer = data.get("answer", answer)
        assert answer is not None
        return answer

    def stream(self, request: Data) -> Iterator[Data | None]:
        """The pieces as they come, None for a sign of life, until the far side says that it is done."""
        for data in self._talk(request, within=_SILENCE, body=None, again=True):
            if "answer" not in data:
                yield data.get("piece")

    def _talk(self, request: Data, *, within: float, body: Body | None, again: bool = False) -> Iterator[Data]:
        """`within`: for all of it; with `again`, for each next line."""
        try:
            yield from self._once(request, within=within, body=body, again=again)
        except _NoArchive:
            self._carry_archive()
            try:
                yield from self._once(request, within=within, body=body, again=again)
            except _NoArchive as error:
                hint = "is ~/.cache there on a permanent disk?"
                raise StorageError(f"{self.host} does not keep files that are copied there", hint=hint) from error

    def _once(self, request: Data, *, within: float, body: Body | None, again: bool) -> Iterator[Data]:
        """All that the agent says, ending with its answer; or the error that it, or ssh, ended with."""
        with self._process(agent_command(self._python, self.archive.name), within=within) as process:
            with suppress(BrokenPipeError):  # why, is said at its end
                process.stdin.write(encode(request)[1:])
                if body:
                    body(process.stdin)
                process.stdin.close()
            for line in process.stdout:
                data = decode(line)
                if data is None:
                    continue
                if "error" in data:
                    raise error_from_json(data["error"], host=self.host)
                if "fault" in data:
                    raise OnwardError(
                        f"internal error on {self.host}: {data['fault']}\n{data.get('traceback', '')}".rstrip(),
                        hint="please report it",
                    )
                if again:
                    process.hold()  # whoever reads may take as long as they like
                yield data
                if "answer" in data:
                    return
                if again:
                    process.postpone()
            raise self._failure(process)

    def _carry_archive(self) -> None:
        data = self.archive.build()
        command = receive_command(self._python, self.archive.name, size=len(data), digest=hashlib.sha256(data).hexdigest())
        with self._process(command, within=_UPLOAD) as process:
            with suppress(BrokenPipeError):
                process.stdin.write(data)
                process.stdin.close()
            process.stdout.read()
            if process.wait() != 0:
                raise self._failure(process)

    def _failure(self, process: _Process) -> Exception:
        """Why there was no answer. A shared connection of ours that gives none, as after a sleep, is given up."""
        if process.late and any(word.startswith("ControlPath=") for word in self.line):
            leave = [*self.line[:-2], "-O", "exit", *self.line[-2:]]
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(leave, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
        return process.failure(self._python, self._setting)

    @contextmanager
    def _process(self, command: str, *, within: float) -> Iterator[_Process]:
        line = hurried_ssh_line(self.line) if within <= LOOK else self.line
        process = _Process(self.host, [*line, command], within=within, archive=self.archive.name)
        try:
            yield process
        finally:
            process.end()


class _Process:
    """An ssh at work. It has no terminal to ask at, and what it complains of goes to a file: a shared connection that it
    leaves behind would keep a pipe open."""

    def __init__(self, host: str, argv: list[str], *, within: float, archive: str) -> None:
        self._host, self._within, self._archive = host, within, archive
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `end`)
        self.late = False
        pipe = subprocess.PIPE
        self._popen = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=self._complaints, start_new_session=True)
        assert self._popen.stdin and self._popen.stdout
        self.stdin: IO[bytes] = self._popen.stdin
        self.stdout: IO[bytes] = self._popen.stdout
        self._over = threading.Event()
        self.postpone()
        threading.Thread(target=self._mind, daemon=True).start()

    def postpone(self) -> None:
        """It gave a sign of life: the time it has begins anew."""
        self._deadline = time.monotonic() + self._within

    def hold(self) -> None:
        self._deadline = math.inf

    def wait(self) -> int:
        return self._popen.wait()

    def failure(self, python: str, setting: str) -> Exception:
        """Why it ended without an answer."""
        code = self.wait()
        if self.late:
            return HostUnreachable(f"{self._host} gave no answer within {self._within:.0f} s", hint=f"does `ssh {self._host}` work?")
        self._complaints.seek(0)
        words = self._complaints.read().decode(errors="replace")
        if is_no_archive(words, self._archive):
            return _NoArchive()
        return explain(SshFailure(host=self._host, python=python, code=code, words=words, setting=setting))

    def end(self) -> None:
        self._over.set()
        if self._popen.poll() is None and not self._ends_by_itself():
            self._popen.kill()
        self._popen.wait()
        for stream in (self.stdin, self.stdout, self._complaints):
            with suppress(OSError):
                stream.close()

    def _ends_by_itself(self) -> bool:
        with suppress(OSError):
            self.stdin.close()
        try:
            self._popen.wait(1)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _mind(self) -> None:
        while (left := self._deadline - time.monotonic()) > 0:
            if self._over.wait(min(left, 1.0)):
                return
        self.late = True
        self._popen.kill()
