"""A host that is none: a program called ssh that runs the command here, in another home, or fails with ssh's own words."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SSH = """\
#!{python} -ISB
import json, os, signal, subprocess, sys
folder = {folder!r}
words = sys.argv[1:]
if words[0] == "-G":
    sys.stdout.write(open(folder + "/config").read())
    sys.exit(0)
options = []
while words and words[0].startswith("-"):
    option = words.pop(0)
    if option == "--":
        break
    options.append(words.pop(0))
host, command = words[0], " ".join(words[1:])
with open(folder + "/calls", "a") as file:
    file.write(json.dumps({{"host": host, "options": options, "command": command}}) + "\\n")
own = folder + "/environment." + host
with open(own if os.path.exists(own) else folder + "/environment") as file:
    environment = json.load(file)
os.chdir(environment["HOME"])
with open(folder + "/faults") as file:
    faults = json.load(file)
for fault in faults:
    before = fault["times"]
    if fault["in"] in host + " " + command and before != 0:
        fault["skip" if fault["skip"] else "times"] -= 1
        part = folder + "/faults." + str(os.getpid())
        with open(part, "w") as file:
            json.dump(faults, file)
        os.replace(part, folder + "/faults")  # calls to several hosts come at once
        if fault["times"] == before:
            continue
        if fault["after"]:  # the command is done, or still at it, but its answer is lost
            begun = subprocess.Popen(["/bin/sh", "-c", command], env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
            if not fault["goes_on"]:
                begun.wait()
        sys.stderr.write(fault["says"])
        sys.exit(fault["code"])
child = subprocess.Popen(["/bin/sh", "-c", command], env=environment, start_new_session=True)


def cut(*_):
    os.killpg(child.pid, signal.SIGKILL)
    os.write(2, b"client_loop: send disconnect: Broken pipe\\n")
    os._exit(255)


signal.signal(signal.SIGUSR1, cut)
with open(folder + "/pids", "a") as file:
    file.write(str(os.getpid()) + "\\n")
code = child.wait()
sys.exit(code if code >= 0 else 255)
"""


class StandInHost:
    """What is there lies in `home`; what was called, and with what, is in `calls`."""

    def __init__(self, folder: Path, name: str = "lab") -> None:
        self.name = name
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.programs = folder / "bin"
        self.programs.mkdir()
        ssh = self.programs / "ssh"
        ssh.write_text(_SSH.format(python=os.path.realpath(sys.executable), folder=str(folder)))
        ssh.chmod(0o755)
        self.configure("connecttimeout none\nserveraliveinterval 0\ncontrolmaster false\n")
        self.faults: list[dict[str, Any]] = []
        self._write("faults", [])
        self.set_environment(
            HOME=str(self.home), PATH=os.environ["PATH"], USER="far", SHELL="/bin/sh", ONWARD_STATE_DIR=str(folder / "queue")
        )

    def configure(self, text: str) -> None:
        """What `ssh -G` prints."""
        (self.folder / "config").write_text(text)

    def set_environment(self, **environment: str) -> None:
        """What sshd gives a command there."""
        self.environment = environment
        self._write("environment", environment)

    def second(self, name: str) -> Path:
        """Another host behind the same program, with a home of its own."""
        home = self.folder / f"home-{name}"
        home.mkdir()
        self._write(f"environment.{name}", {**self.environment, "HOME": str(home)})
        return home

    def fail(
        self, *, says: str, code: int = 255, within: str = "", times: int = 1, skip: int = 0, after: bool = False, goes_on: bool = False
    ) -> None:
        """The next calls (-1: all) whose command has `within` in it end like this; `after` their work, or while it `goes_on`."""
        fault = {"in": within, "says": says, "code": code, "times": times, "skip": skip, "after": after or goes_on, "goes_on": goes_on}
        self.faults.append(fault)
        self._write("faults", self.faults)

    def heal(self) -> None:
        self.faults = []
        self._write("faults", [])

    def calls(self) -> list[dict[str, Any]]:
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def cut(self) -> None:
        """Every connection that is open breaks, with what it carried."""
        for pid in (self.folder / "pids").read_text().split():
            with contextlib.suppress(OSError):
                if str(self.programs).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(int(pid), signal.SIGUSR1)

    def archives(self) -> list[Path]:
        return sorted((self.home / ".cache" / "onward").glob("agent-*"))

    def _write(self, name: str, data: Any) -> None:
        part = self.folder / f"{name}.part"
        part.write_text(json.dumps(data))
        part.replace(self.folder / name)


class Laptop:
    """A folder with a project, settings that name the host, and `onward` as a program in it."""

    def __init__(self, folder: Path, host: StandInHost, *, others: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        settings = folder / "settings.toml"
        names = (*others, host.name)
        profiles = [f'[clusters.{name}]\nssh = "{name}"\nscheduler = "local"\nroot = "~/runs"\n' for name in names]
        settings.write_text("".join(profiles))
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("ONWARD_", "SLURM_", "XDG_"))}
        self.env = {
            **keep,
            "HOME": str(folder),
            "PATH": f"{host.programs}:{os.environ['PATH']}",
            "ONWARD_ROOT": str(folder / "runs"),
            "ONWARD_SETTINGS": str(settings),
            "ONWARD_STATE_DIR": str(folder / "queue"),
        }

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, *argv: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[str]:
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        return subprocess.Popen([sys.executable, "-m", "onward", *argv], cwd=self.project, env={**self.env, **(env or {})}, **given)

    def onward(self, *argv: str, timeout: float = 180, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        process = self.start(*argv, env=env)
        out, err = process.communicate(timeout=timeout)
        assert "Traceback (most recent call last)" not in err, err
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def json(self, *argv: str) -> Any:
        done = self.onward(*argv)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
