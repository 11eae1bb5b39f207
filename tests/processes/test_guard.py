"""The guard between a supervisor and its training, with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onward.supervisor.processes.child import Child, start_helper
from onward.supervisor.processes.guard import end_marked, marked

# Starts a child in its own session, an orphan in its own session, and one without any environment; then stays.
FAMILY = """
import os, subprocess, sys, time
stay = [sys.executable, "-c", "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"]
subprocess.Popen([*stay, "child"], start_new_session=True)
subprocess.Popen([*stay, "bare"], start_new_session=True, env={})
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [*stay, "orphan"])
    os._exit(0)
os.wait()
open("training", "w").write(str(os.getpid()))
time.sleep(600)
"""
SUPERVISOR = """
import sys, threading, time
from pathlib import Path
from onward.supervisor.processes.child import Child
here = Path(sys.argv[1])
import os
child = Child([sys.executable, "-c", sys.argv[2]], cwd=here, env=dict(os.environ), mark={"THE_MARK": str(here)},
              out=here / "out", err=here / "err", woken=threading.Event())
print(child._guard.pid, flush=True)
time.sleep(600)
"""
NAMES = ("training", "child", "bare", "orphan")


def wait_for(holds: Callable[[], object], what: str, within: float = 20.0) -> None:
    give_up = time.monotonic() + within
    while not holds():
        assert time.monotonic() < give_up, f"{what} did not come"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def number_in(path: Path) -> int:
    try:
        return int(path.read_text() or 0)
    except FileNotFoundError:
        return 0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    started: list[Child] = []

    def child(*argv: str, env: dict[str, str] | None = None, woken: threading.Event | None = None) -> Child:
        env = {**os.environ, **(env or {})}
        made = Child(
            argv,
            cwd=tmp_path,
            env=env,
            mark={"THE_MARK": str(tmp_path)},
            out=tmp_path / "out",
            err=tmp_path / "err",
            woken=woken or threading.Event(),
        )
        started.append(made)
        return made

    yield child
    for one in started:
        one.kill()
        assert one.gone.wait(20)


def ended(child: Child) -> int:
    wait_for(lambda: not child.running, "the end of the training")
    assert child.code is not None
    return child.code


@pytest.mark.parametrize("code", [0, 3, 75, 137, 255])
def test_the_trainings_own_exit_code_is_reported(start: Callable[..., Child], code: int) -> None:
    assert ended(start("/bin/sh", "-c", f"exit {code}")) == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE])
def test_a_training_that_a_signal_killed_is_reported_with_that_signal(start: Callable[..., Child], number: int) -> None:
    assert ended(start("/bin/sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")) == -number


def test_the_training_gets_its_signals_itself_and_the_guard_hears_none(start: Callable[..., Child], tmp_path: Path) -> None:
    child = start(
        sys.executable,
        "-c",
        "import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(42)); open('ready', 'w'); time.sleep(600)",
    )
    wait_for((tmp_path / "ready").exists, "the training")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
        os.kill(child._guard.pid, number)
    child.signal(signal.SIGUSR1)
    assert ended(child) == 42


def test_output_environment_and_folder_are_the_trainings_and_its_input_is_empty(start: Callable[..., Child], tmp_path: Path) -> None:
    script = 'cat; printf %s "$NAME"; pwd; echo bad >&2; ls /proc/self/fd | wc -l'
    assert ended(start("/bin/sh", "-c", script, env={"NAME": "ünï\udcff\n"})) == 0
    out = (tmp_path / "out").read_bytes().split(b"\n")
    assert out[0] == "ünï".encode() + b"\xff"
    assert Path(os.fsdecode(out[1])) == tmp_path
    assert (tmp_path / "err").read_bytes() == b"bad\n"
    assert int(out[2]) == 4, "standard input, output, error, and the folder that ls reads: nothing of the guard's"


def test_the_training_starts_with_the_signals_it_had_without_a_guard(start: Callable[..., Child], tmp_path: Path) -> None:
    assert ended(start("/bin/sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status")) == 0
    through = (tmp_path / "out").read_text()
    plain = subprocess.run(["/bin/sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"], capture_output=True, text=True, check=True).stdout
    assert through == plain


def test_a_command_that_is_not_there_raises_with_its_name(start: Callable[..., Child], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        start("/nowhere/python")
    assert raised.value.filename == "/nowhere/python"


def test_what_a_training_left_running_ends_when_it_is_told_to(start: Callable[..., Child], tmp_path: Path) -> None:
    child = start(sys.executable, "-c", FAMILY)
    wait_for(lambda: all(number_in(tmp_path / name) for name in NAMES), "the family")
    os.kill(child.pid, signal.SIGKILL)
    assert ended(child) == -signal.SIGKILL
    assert alive(number_in(tmp_path / "orphan")), "the supervisor decides when the rest ends"
    child.kill()
    assert child.gone.wait(20)
    assert not [name for name in NAMES if alive(number_in(tmp_path / name))]


@pytest.mark.parametrize("killed", [("supervisor",), ("guard",), ("supervisor", "guard"), ("guard", "supervisor")])
def test_whoever_is_killed_the_training_goes_too(tmp_path: Path, killed: tuple[str, ...]) -> None:
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR, str(tmp_path), FAMILY], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    pids = {"supervisor": supervisor.pid, "guard": int(supervisor.stdout.readline())}
    try:
        wait_for(lambda: all(number_in(tmp_path / name) for name in NAMES), "the family")
        for who in killed:
            os.kill(pids[who], signal.SIGKILL)
        wait_for(lambda: not alive(number_in(tmp_path / "training")), "the end of the training")
        if len(killed) == 2:  # nobody is left to look: what the training started is ended by the publisher, or by the next leg
            end_marked([{"THE_MARK": str(tmp_path)}])
        for name in NAMES:
            if name == "bare" and "guard" in killed:
                continue  # it carries no mark, and nobody is left who knows where it came from
            wait_for(lambda name=name: not alive(number_in(tmp_path / name)), f"the end of {name}")  # type: ignore[misc]
    finally:
        supervisor.kill()
        supervisor.wait()
        supervisor.stdout.close()
        for name in NAMES:
            if alive(number_in(tmp_path / name)):
                os.kill(number_in(tmp_path / name), signal.SIGKILL)


def test_processes_are_found_by_all_variables_of_a_mark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    one, other = (
        subprocess.Popen(command, env={**os.environ, "RUN_MARK": str(tmp_path), "LEG_MARK": leg}, stdout=subprocess.PIPE)
        for leg in ("1", "2")
    )
    try:
        for process in (one, other):
            assert process.stdout is not None and process.stdout.readline()
        assert marked([{"RUN_MARK": str(tmp_path), "LEG_MARK": "1"}]) == {one.pid}
        assert end_marked([{"RUN_MARK": str(tmp_path), "LEG_MARK": "1"}]) == (1, set())
        assert one.wait(20) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (one, other):
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def test_the_local_queues_keeper_is_nobodys_survivor(tmp_path: Path) -> None:
    env = {**os.environ, "RUN_MARK": str(tmp_path), "ONWARD_KEEPER_LOCK": "3"}
    keeper = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert keeper.stdout is not None and keeper.stdout.readline()
        assert marked([{"RUN_MARK": str(tmp_path)}]) == set()
    finally:
        keeper.kill()
        keeper.communicate()


def test_a_helper_hears_no_signal_of_a_scheduler_from_its_first_moment() -> None:
    helper = start_helper([sys.executable, "-c", "import json, sys; print(json.dumps(sys.stdin.readline()))"], env=os.environ)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGQUIT):
        os.kill(helper.pid, number)  # Python is still starting
    said, _ = helper.communicate("still here\n", timeout=20)
    assert json.loads(said) == "still here\n"
    assert helper.returncode == 0
