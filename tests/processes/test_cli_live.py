"""The command line as a person meets it: real processes, a real local queue, terminals, pipes and Ctrl-C."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.schedulers.local.job_queue import LocalQueue
from tests.benches import LocalBench, until

TRAIN = """\
import json, sys, time
import onward

run = onward.init(total_steps={steps})
saved = run.resume()
first = json.loads((saved / "state.json").read_text())["step"] + 1 if saved else 0
for step in range(first, {steps}):
    time.sleep(0.1)
    run.log({{"loss": 1 / (step + 1)}}, step=step)
    print("step", step, flush=True)
    if run.should_stop():
        with run.checkpoint(step) as folder:
            (folder / "state.json").write_text(json.dumps({{"step": step}}))
        sys.exit(75)
run.finish()
"""


class Home:
    """A folder with a training, and `onward` as a program in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("ONWARD_", "SLURM_"))}
        self.env = {
            **keep,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "ONWARD_ROOT": str(folder / "runs"),
            "ONWARD_STATE_DIR": str(folder / "queue"),
            "XDG_CONFIG_HOME": str(folder),
            "TERM": "xterm-256color",
        }
        self.env.pop("NO_COLOR", None)
        self.bench = LocalBench(folder)
        self.bench.state = (folder / "queue" / f"local-{socket.gethostname()}").resolve()
        self.bench.queue = LocalQueue(self.bench.state)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def start(self, *arguments: str, **more: Any) -> subprocess.Popen[str]:
        given = {"cwd": self.folder, "env": self.env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        return subprocess.Popen([sys.executable, "-m", "onward", *arguments], **given)

    def onward(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=90)
        assert "Traceback (most recent call last)\n  File" not in err
        assert process.returncode == code, (arguments, process.returncode, out, err)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def submit(self, *arguments: str) -> str:
        return self.onward("submit", "--cluster", "local", *arguments).stdout.strip()

    def show(self, run: str) -> Any:
        return json.loads(self.onward("show", run, "--json").stdout)

    def until_over(self, run: str) -> Any:
        until(lambda: bool(list((self.folder / "runs").glob("*/params/done.json"))), what="the end of the run")
        return self.show(run)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.bench.close()


class Screen:
    """A terminal of a given size with a program in it, as its lines look in the end."""

    def __init__(self, home: Home, *arguments: str, columns: int) -> None:
        self._reading, writing = pty.openpty()
        fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {**home.env, "COLUMNS": "", "LINES": ""}
        env = {name: value for name, value in env.items() if value}
        self.process = home.start(*arguments, stdin=writing, stdout=writing, stderr=writing, env=env)
        os.close(writing)
        self.raw = ""

    def read(self, *, seconds: float = 60.0, wanted: str | None = None) -> str:
        """Until the program ends, or has shown what is wanted."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (wanted and wanted in self.raw):
            if select.select([self._reading], [], [], 0.2)[0]:
                try:
                    self.raw += os.read(self._reading, 1 << 16).decode(errors="replace")
                except OSError:  # the other end is closed
                    break
        assert wanted is None or wanted in self.raw, self.raw
        return self.raw

    def lines(self) -> list[str]:
        """Every line that was ever shown, also those that were written over."""
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw)
        return [line for line in re.split(r"[\r\n]+", text) if line.strip()]

    def close(self) -> None:
        self.process.wait(30)
        os.close(self._reading)


# ── a run, followed ───────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_run_over_several_legs_is_followed_to_its_end_in_plain_lines(home: Home) -> None:
    home.write("train.py", TRAIN.format(steps=50))
    said = home.onward("run", "--cluster", "local", "--time", "0:04", "--name", "quick", "python", "train.py")
    id = said.stdout.strip()
    assert re.fullmatch("[0-9a-z]{8}", id)
    assert "\x1b" not in said.stderr
    assert re.search(r"^leg 1: job \d+ on \S+, until \d\d:\d\d$", said.stderr, re.MULTILINE)
    assert re.search(r"^leg 1 ended: stopped before the time limit; last checkpoint at step \d+$", said.stderr, re.MULTILINE)
    assert re.search(r"^leg 2: job \d+ on \S+, until \d\d:\d\d, from step \d+$", said.stderr, re.MULTILINE)
    assert re.search(r"^quick finished in \d legs: the training finished$", said.stderr, re.MULTILINE)
    steps = [line for line in home.onward("logs", id).stdout.splitlines() if line.startswith("step ")]
    assert steps == [f"step {n}" for n in range(50)]


@pytest.mark.slow
def test_a_run_that_fails_is_exit_code_7_with_evidence_and_advice(home: Home) -> None:
    home.write("train.py", "raise ValueError('no such data set')\n")
    said = home.onward("run", "--cluster", "local", "--max-restarts", "0", "python", "train.py", code=7)
    assert "ValueError: no such data set" in said.stderr
    assert "onward: train failed: leg 1 crashed" in said.stderr
    assert "  → fix the code and submit again" in said.stderr


@pytest.mark.slow
def test_ctrl_c_ends_the_following_and_never_the_run(home: Home) -> None:
    home.write("train.py", TRAIN.format(steps=150))
    following = home.start("run", "--cluster", "local", "python", "train.py")
    assert following.stdout
    id = following.stdout.readline().strip()
    until(lambda: home.show(id)["progress"]["step"] is not None, what="the first step")
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=30)
    assert following.returncode == 130
    assert "no longer following; the run continues" in err
    assert f"onward cancel {id} ends it" in err
    assert "Traceback" not in err
    assert home.until_over(id)["state"] == "finished"


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 50])
def test_in_a_terminal_there_is_a_bar_that_never_wraps(home: Home, columns: int) -> None:
    home.write("train.py", TRAIN.format(steps=60))
    screen = Screen(home, "run", "--cluster", "local", "--name", "a-name-of-some-length", "python", "train.py", columns=columns)
    screen.read()
    screen.close()
    assert screen.process.returncode == 0
    bars = [line for line in screen.lines() if "━" in line]
    assert bars
    assert max(map(len, bars)) <= columns
    assert any("running" in line and "step" in line for line in bars)
    assert any("finished in 1 leg" in line for line in screen.lines())


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_leaves_it_in_order(home: Home) -> None:
    home.write("train.py", TRAIN.format(steps=600))
    screen = Screen(home, "run", "--cluster", "local", "python", "train.py", columns=80)
    screen.read(wanted="step ")
    screen.process.send_signal(signal.SIGINT)
    screen.read()
    screen.close()
    assert screen.process.returncode == 130
    assert screen.raw.rindex("\x1b[?25h") > screen.raw.rindex("\x1b[?25l"), "the cursor is not shown again"
    assert "no longer following" in screen.raw
    home.onward("cancel", "train")


# ── logs, followed ────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_logs_are_followed_from_before_the_start_over_legs_to_the_end(home: Home) -> None:
    home.write("train.py", TRAIN.format(steps=50))
    home.submit("--name", "first", "--", "sleep", "2")
    id = home.submit("--time", "0:04", "--name", "second", "--", "python", "train.py")
    said = home.onward("logs", "-f", id)
    assert said.stdout.splitlines() == [f"step {n}" for n in range(50)]
    assert "── leg 2 stdout" in said.stderr
    assert "the run is finished: the training finished" in said.stderr


@pytest.mark.slow
def test_what_is_followed_reaches_a_pipe_at_once(home: Home) -> None:
    home.write("train.py", TRAIN.format(steps=600))
    id = home.submit("python", "train.py")
    following = home.start("logs", "-f", id)
    assert following.stdout
    assert following.stdout.readline() == "step 0\n"
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=30)
    assert following.returncode == 130
    assert "the run continues" in err
    assert home.show(id)["state"] == "running"
    home.onward("cancel", id)
    assert home.until_over(id)["state"] == "cancelled"


@pytest.mark.slow
def test_a_log_of_fifty_megabytes_is_printed_a_piece_at_a_time(home: Home) -> None:
    folder = home.folder / "runs" / "2026-11-15_A_big"
    for name in ("params/claims", "journal", "logs"):
        (folder / name).mkdir(parents=True)
    (folder / "params" / "spec.json").write_text('{"id": "bigbigbi", "name": "big"}')
    (folder / "params" / "claims" / "leg-0001.json").write_text("{}")
    line = b"x" * 99 + b"\n"
    (folder / "logs" / "leg-0001.out").write_bytes(line * 500_000)
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2); from onward.cli.main import main; main()"
    command = [sys.executable, "-c", limit, "logs", "big"]
    with subprocess.Popen(command, cwd=home.folder, env=home.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        size = 0
        while process.stdout and (chunk := process.stdout.read(1 << 20)):
            size += len(chunk)
        assert process.wait() == 0
    assert size == 50_000_000
    tail = home.onward("logs", "big", "-n", "2")
    assert tail.stdout == (line * 2).decode()


# ── pipes and terminals ───────────────────────────────────────────────────────


def test_a_pipe_that_nobody_reads_any_more_is_no_fault(home: Home) -> None:
    for verb in (["runs", "--json"], ["schema"], ["--help"], ["submit", "--help"]):
        process = home.start(*verb)
        assert process.stdout and process.stderr
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        process.wait(30)
        assert err == "", verb


def test_a_terminal_that_knows_no_unicode_gets_something_all_the_same(home: Home) -> None:
    home.env |= {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    said = home.onward("show", "nothing", code=3)
    assert "there is no run 'nothing'" in said.stderr
    assert "? `onward runs`" in said.stderr


@pytest.mark.slow
def test_states_have_colours_in_a_terminal_unless_nobody_wants_them(home: Home) -> None:
    id = home.submit("true")
    home.until_over(id)
    screen = Screen(home, "runs", columns=80)
    screen.read()
    screen.close()
    assert "\x1b[32mfinished" in screen.raw
    home.env["NO_COLOR"] = "1"
    plain = Screen(home, "runs", columns=80)
    plain.read()
    plain.close()
    assert "\x1b" not in plain.raw
    table = [line for line in plain.lines() if not line.startswith("runs under ")]  # a folder's name is not shortened
    assert max(map(len, table)) <= 80
    assert "\x1b" not in home.onward("show", id).stdout


# ── the code that runs ────────────────────────────────────────────────────────


@pytest.mark.slow
def test_an_edit_after_the_submit_does_not_change_the_run(home: Home) -> None:
    home.write("train.py", "import time\ntime.sleep(0.5)\nimport helper\nprint(helper.word)\n")
    home.write("helper.py", "word = 'before'\n")
    id = home.submit("python", "train.py")
    home.write("helper.py", "word = 'after'\n")
    assert home.until_over(id)["state"] == "finished"
    assert home.onward("logs", id, "--out").stdout == "before\n"


@pytest.mark.slow
def test_without_freezing_the_code_runs_where_it_stands(home: Home) -> None:
    home.write("train.py", "import pathlib\nprint(pathlib.Path.cwd())\n")
    id = home.submit("--no-freeze", "python", "train.py")
    assert home.until_over(id)["state"] == "finished"
    assert home.onward("logs", id, "--out").stdout == f"{home.folder}\n"


@pytest.mark.slow
def test_a_stopped_run_saves_and_goes_on_where_it_was(home: Home) -> None:
    home.write("train.py", TRAIN.format(steps=200))
    id = home.submit("python", "train.py")
    until(lambda: (home.show(id)["progress"]["step"] or 0) >= 2, what="the third step")
    assert "asked to save and stop" in home.onward("stop", id).stderr
    shown = home.until_over(id)
    assert shown["state"] == "cancelled"
    assert "stopped by" in shown["reason"]
    home.onward("resume", id)
    shown = home.until_over(id)
    assert shown["state"] == "finished"
    first, second = shown["legs"]
    assert second["first_step"] == first["last_step"] + 1
    assert home.onward("resume", id, code=5).stderr.startswith("onward: train is finished")
