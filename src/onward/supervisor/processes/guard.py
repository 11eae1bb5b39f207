"""The guard: a small process between a supervisor and its training, so that the training never outlives the supervisor.

The supervisor starts the guard, the guard starts the training. They are joined by a socket whose one end the supervisor alone
holds: when it closes, however the supervisor ended, the guard kills everything that came from the training, and leaves. All
orphans below the guard become its children (Linux calls that a subreaper), so a process that moved to a session of its own is
found too. When the guard itself is killed, the kernel kills the training (PDEATHSIG), and the supervisor ends the rest by the
mark that the training's environment carries.

The guard runs as a Python of its own, from this file's text alone: it imports nothing of Onward and reads nothing from shared
storage. It hears no signal of the scheduler's. On systems without /proc and prctl, only the training's own session is ended.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import time
from collections.abc import Collection, Mapping
from typing import Any

# What schedulers send to every process of a job.
SHIELDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
NOT_OURS = "ONWARD_KEEPER_LOCK"  # in its environment: the local queue's keeper, which a training may have started and others need
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SHORTEST_LOOK, _LONGEST_LOOK = 0.002, 0.2  # seconds between two looks at what is still to be killed


# ── this process and its children ─────────────────────────────────────────────


def shield() -> None:
    """Ignore what is sent to every process of a job. A program that is started from here on ignores it from its first moment."""
    for number in SHIELDED:
        signal.signal(number, signal.SIG_IGN)


def adopt_orphans() -> None:
    """Whatever loses its parent below this process becomes a child of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when the thread that started it has gone. `parent`: the process that should still be there."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):  # a Python without ctypes, or not Linux
        pass


# ── finding and ending processes ──────────────────────────────────────────────


def descendants(root: int) -> set[int]:
    """Every living process below this one, except the local queue's keeper and what belongs to it."""
    children: dict[int, list[int]] = {}
    dead: set[int] = set()
    for pid in _all_processes():
        stat = _stat(pid)
        if stat:
            children.setdefault(stat[1], []).append(pid)
            if stat[0] in "ZX":
                dead.add(pid)
    found: set[int] = set()
    look = list(children.get(root, ()))
    while look:
        pid = look.pop()
        if not _belongs_to_others(pid):
            found.add(pid)
            look += children.get(pid, ())
    return found - dead


def marked(marks: Collection[Mapping[str, str]]) -> set[int]:
    """Every other living process of ours whose environment has all variables of one of these marks. An empty mark is nobody's."""
    wanted = [{f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in mark.items()} for mark in marks if mark]
    found: set[int] = set()
    for pid in _all_processes() if wanted else ():
        if pid != os.getpid():
            variables = _environment(pid)
            if any(mark <= variables for mark in wanted) and not _is_keeper(variables):
                found.add(pid)
    return found


def end_marked(marks: Collection[Mapping[str, str]], *, patience: float = 10.0) -> tuple[int, set[int]]:
    """Kill all that carry one of these marks, and what they start meanwhile, until none is left. Returns how many there were, and
    those that could not be ended within `patience` seconds."""
    ended: set[int] = set()
    until = time.monotonic() + patience
    pause = _SHORTEST_LOOK
    while found := marked(marks):
        _kill_all(found)
        ended |= found
        if time.monotonic() > until:
            return len(ended), found
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_LOOK)
    return len(ended), set()


def end_descendants(*, session: int | None = None, also: Mapping[str, str] | None = None, spare: int | None = None) -> None:
    """Kill everything below this process, those in `session`, and those that carry the mark `also`, until none is left.

    Children are reaped on the way, all but `spare`.
    """
    if session is not None:
        with contextlib.suppress(OSError):
            os.killpg(session, signal.SIGKILL)
    pause, not_allowed = _SHORTEST_LOOK, set[int]()
    while True:
        found = (descendants(os.getpid()) | (marked([also]) if also else set())) - not_allowed
        not_allowed |= _kill_all(found)
        reap(but=spare)
        if not found:
            return
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_LOOK)


def reap(*, but: int | None) -> None:
    """Take note of dead children, all but one: as long as it is not reaped, its number is not given to another process."""
    with contextlib.suppress(ChildProcessError):
        while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if dead.si_pid == but:
                break  # it hides the others: they are looked for one by one
            os.waitpid(dead.si_pid, 0)
        else:
            return
    for pid in _all_processes():
        stat = _stat(pid)
        if pid != but and stat and stat[0] == "Z" and stat[1] == os.getpid():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _kill_all(pids: Collection[int]) -> set[int]:
    """Returns those that we may not kill."""
    refused: set[int] = set()
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        except PermissionError:
            refused.add(pid)
    return refused


def _all_processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _stat(pid: int) -> tuple[str, int] | None:
    """State and parent."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[1])
    except (OSError, ValueError, IndexError):
        return None


def _environment(pid: int) -> set[bytes]:
    """As it was when the process became its program; empty once it is dead, or where it is somebody else's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return set(file.read().split(b"\0"))
    except OSError:
        return set()


def _belongs_to_others(pid: int) -> bool:
    return _is_keeper(_environment(pid))


def _is_keeper(variables: set[bytes]) -> bool:
    return any(variable.startswith(f"{NOT_OURS}=".encode()) for variable in variables)


# ── the guard itself ──────────────────────────────────────────────────────────


def live(order: Mapping[str, Any]) -> None:
    """`order`: argv and env of the training, and the mark by which it is known. Standard input is the supervisor's socket.

    What is said back, one JSON object a line: {"pid": …} or {"errno": …, "filename": …}; {"status": …} when the training has
    ended, in the words of wait(2). The socket closes when nothing is left.
    """
    line = socket.socket(fileno=0)
    line.set_inheritable(False)
    adopt_orphans()
    heard, woken = os.pipe()
    os.set_blocking(heard, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    training = _start(order, line)
    status: int | None = None
    asked = training is None
    while not asked:
        ready, _, _ = select.select([line.fileno(), heard], [], [])
        if heard in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(heard, 1 << 12)
            if status is None:
                status = _status_of(training)
                if status is not None:
                    _say(line, status=status)
            reap(but=training)
        if line.fileno() in ready:
            try:
                asked = line.recv(1 << 12) in (b"", b"end\n")
            except OSError:
                asked = True
    end_descendants(session=training, also=order["mark"], spare=training)
    if training is not None and status is None:
        _say(line, status=_status_of(training, wait=True))
    os._exit(0)


def _start(order: Mapping[str, Any], line: socket.socket) -> int | None:
    guard = os.getpid()
    reading_end, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent(guard)
            os.setsid()
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            signal.set_wakeup_fd(-1)
            for number in (*SHIELDED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
                signal.signal(number, signal.SIG_IGN if number in order["ignored"] else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execvpe(order["argv"][0], order["argv"], order["env"])
        except BaseException as error:
            why = getattr(error, "errno", None) or errno.EINVAL
            os.write(tell, json.dumps({"errno": why, "filename": order["argv"][0]}).encode())
        os._exit(127)
    os.close(tell)
    failed = b""
    while piece := os.read(reading_end, 1 << 12):
        failed += piece
    os.close(reading_end)
    if failed:
        os.waitpid(pid, 0)
        _say(line, **json.loads(failed))
        return None
    _say(line, pid=pid)
    return pid


def _status_of(pid: int | None, *, wait: bool = False) -> int | None:
    """As wait(2) would tell it. The dead process stays unreaped, so that nobody else gets its number."""
    assert pid is not None
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG))
    if found is None:
        return None
    return found.si_status << 8 if found.si_code == os.CLD_EXITED else found.si_status


def _say(line: socket.socket, **words: object) -> None:
    with contextlib.suppress(OSError):  # the supervisor has gone
        line.sendall(json.dumps(words).encode() + b"\n")
