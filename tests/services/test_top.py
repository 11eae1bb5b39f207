"""`onward top` in a real terminal: started, looked at, pressed, resized and left as a person does it, through tmux.

What it showed is kept in tests/recorded/top, less what depends on the clock and the machine. ONWARD_RECORD=1 writes it anew.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.needs import missing
from tests.screens import populate
from tests.servers import Running

pytestmark = pytest.mark.slow
RECORDED = Path(__file__).parents[1] / "recorded" / "top"
PATIENCE = 60.0
KEYS = (
    *(
        "?",
        "Escape",
        "/",
        "Escape",
        "Down",
        "Up",
        "End",
        "Home",
        "PPage",
        "NPage",
        "Space",
        "Space",
        "c",
        "m",
        "M",
        "y",
        "x",
        "s",
        "g",
        "p",
    ),
    *("Tab", "BTab", "l", "e", "e", "e", "f", "f", "n", "N", "Left", "Right", "o", "r", "k", "Escape"),
    *(
        "2",
        "Tab",
        "Enter",
        "Escape",
        "2",
        "Tab",
        "Tab",
        "Tab",
        "3",
        "Tab",
        "Down",
        "Right",
        "Enter",
        "4",
        "Down",
        "Left",
        "5",
        "Enter",
        "1",
    ),
)


class Terminal:
    """A tmux session of its own server, that ends with the test."""

    def __init__(self, folder: Path, width: int, height: int, env: dict[str, str], *words: str) -> None:
        self._socket = str(folder / "tmux")
        named = [f"{key}={value}" for key, value in env.items()]
        command = ["env", *named, sys.executable, "-m", "onward", "top", *words]
        shell = f'{" ".join(map(_quoted, command))}; echo "left with $?"; sleep 600'
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), shell)

    def tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", self._socket, *words], capture_output=True, text=True, timeout=PATIENCE, check=True)
        return done.stdout

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tmux("send-keys", key)

    def until(self, seen: Callable[[str], bool], what: str) -> str:
        end = time.monotonic() + PATIENCE
        while not seen(text := self.text()):
            assert time.monotonic() < end, f"{what} did not show:\n{text}"
            time.sleep(0.1)
        return text

    def shows(self, *words: str) -> str:
        return self.until(lambda text: all(word in text for word in words), " and ".join(words))

    def quiet(self) -> str:
        """When all is read, and it has come to rest."""
        before, end = "", time.monotonic() + PATIENCE
        while (text := self.text()) != before or "looking …" in text or "reading …" in text:
            assert time.monotonic() < end
            before = text
            time.sleep(0.4)
        return text

    def pid(self) -> int:
        """Of the program."""
        shell = self.tmux("list-panes", "-F", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text())

    def resize(self, width: int, height: int) -> None:
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, timeout=PATIENCE, check=False)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a path that is always as long: it is on the screen."""
    found = Path(tempfile.mkdtemp(prefix="onw-", dir="/tmp"))
    yield found
    shutil.rmtree(found)


@pytest.fixture
def env(folder: Path) -> dict[str, str]:
    """A workstation: one queue, of its own."""
    place = populate(folder, at=time.time() - 35 * 60)  # all spans have two digits of minutes for half an hour: they wrap alike
    (folder / "settings.toml").write_text('cluster = "local"\n')
    own = {"ONWARD_ROOT": str(place.root), "ONWARD_STATE_DIR": str(folder / "state"), "ONWARD_SETTINGS": str(folder / "settings.toml")}
    own["TZ"] = f"<noon>{time.gmtime().tm_hour - 12:+d}"  # far from any other day, whose times would have a date
    own |= {"COLUMNS": "70", "LINES": "20"}  # what a shell exported once is no longer true
    return {**own, "NO_COLOR": "1", "TERM": "screen-256color", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"], "HOME": str(folder)}


@pytest.fixture
def terminals(folder: Path) -> Iterator[Callable[..., Terminal]]:
    if shutil.which("tmux") is None:
        missing("tmux is not installed: apt-get install tmux")
    opened: list[Terminal] = []

    def open(width: int, height: int, env: dict[str, str], *words: str) -> Terminal:
        opened.append(Terminal(folder, width, height, env, *words))
        return opened[-1]

    yield open
    for terminal in opened:
        terminal.close()


def stable(text: str, folder: Path) -> str:
    """Without what the clock and the machine decide."""
    lines = []
    for line in text.replace(str(folder), "/tmp/onw-________").rstrip("\n").splitlines():
        masked = re.sub(r"(\d\d-\d\d )?\b\d\d:\d\d(:\d\d)?\b", "<clock>", line)
        masked = re.sub(r"\b\d+d\d+h\b|\b\d+h\d\d\b|\b\d+[ms]\b", "<span>", masked)
        masked = re.sub(r"^(timeline +)[▒░█×\d ]{3,}", r"\1<lane> ", masked)
        masked = re.sub(r"^ +[┤●■][ ┤●■]*", "<marks> ", masked)
        lines.append(re.sub(r" +", " ", masked).strip() if masked != line else line.rstrip())
    return "\n".join(lines) + "\n"


def compare(name: str, text: str, folder: Path) -> None:
    path, now = RECORDED / f"{name}.txt", stable(text, folder)
    if os.environ.get("ONWARD_RECORD"):
        path.write_text(now)
    assert now == path.read_text(), f"{name} looks otherwise now; ONWARD_RECORD=1 accepts it"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60)])
def test_the_screens_look_as_they_did(
    folder: Path, env: dict[str, str], terminals: Callable[..., Terminal], width: int, height: int
) -> None:
    terminal, size = terminals(width, height, env, "--folders"), f"{width}x{height}"
    terminal.shows("4 runs", "epoch 39")
    terminal.press("End")
    terminal.shows("leg 2 step 199")
    compare(f"runs-{size}", terminal.quiet(), folder)
    terminal.press("Enter")
    terminal.shows("python train.py")
    compare(f"run-{size}", terminal.quiet(), folder)
    terminal.press("Tab", "s", "y")
    terminal.shows("charts · 12 metrics", "· log")
    compare(f"charts-{size}", terminal.quiet(), folder)
    terminal.press("1", "Home", "Space", "End", "c")
    terminal.shows("a finished", "b digits")
    compare(f"compare-{size}", terminal.quiet(), folder)
    terminal.press("?")
    terminal.shows("show these keys")
    compare(f"help-{size}", terminal.quiet(), folder)
    terminal.press("5")
    terminal.shows("1 run failed")
    compare(f"alerts-{size}", terminal.quiet(), folder)
    terminal.press("3")
    terminal.shows("local · mine")
    terminal.press("4")
    terminal.shows("local · 1 node ·", "in use: ")
    terminal.press("q")
    terminal.shows("left with 0")


def test_no_key_and_no_size_ends_it(folder: Path, env: dict[str, str], terminals: Callable[..., Terminal]) -> None:
    terminal = terminals(80, 24, env, "--folders")
    terminal.shows("4 runs")
    sizes = [(200, 60), (80, 24), (40, 10), (20, 6), (120, 30)]
    for n, key in enumerate(KEYS):
        terminal.press(key)
        if n % 6 == 5:
            terminal.resize(*sizes[n // 6 % len(sizes)])
    terminal.resize(80, 24)
    text = terminal.shows("1 Runs", "4 runs")
    assert "fault" not in text and "Traceback" not in text
    terminal.press("C-c")
    terminal.shows("left with 0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_nothing_is_left_behind(
    folder: Path, env: dict[str, str], terminals: Callable[..., Terminal], number: signal.Signals
) -> None:
    scratch = folder / "scratch"
    scratch.mkdir()
    terminal = terminals(80, 24, {**env, "TMPDIR": str(scratch)}, "--folders")
    terminal.shows("4 runs", "train/loss =")
    assert [one.name.startswith("onward-top-") for one in scratch.iterdir()] == [True]
    os.kill(terminal.pid(), number)
    terminal.shows(f"left with {128 + number}")
    assert list(scratch.iterdir()) == []


def test_it_shows_what_a_server_tells_and_says_when_that_is_gone(
    folder: Path, env: dict[str, str], terminals: Callable[..., Terminal]
) -> None:
    with Running(folder / "server", "--no-tend", root=Path(env["ONWARD_ROOT"]), state=Path(env["ONWARD_STATE_DIR"])) as server:
        terminal = terminals(80, 24, {**env, "ONWARD_DB": server.db})
        terminal.shows("4 runs", server.url.removeprefix("http://"))
        terminal.press("End", "o")
        terminal.shows(f"{server.url}/runs/k00digit")
        server.kill()
        terminal.press("r")
        terminal.shows("no answer", "digits", "does not answer")
        terminal.press("q")
        assert f"{server.url}/runs/k00digit" in terminal.shows("left with 0")


def test_without_a_terminal_it_says_so(env: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-m", "onward", "top"], env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2 and "onward top needs a terminal" in done.stderr and "onward runs" in done.stderr
