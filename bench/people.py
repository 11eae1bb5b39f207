"""Alice on a bed: the benches act as an ordinary user, with a bare environment, as the tests do."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BEDS = ("slurm", "gridengine")


@dataclass(frozen=True, kw_only=True)
class Person:
    bed: str
    home: Path
    python: str
    environment: dict[str, str]

    def run(self, *argv: str, check: bool = True, timeout: float = 120) -> str:
        account = pwd.getpwnam("alice")
        who: dict[str, Any] = {"user": "alice", "group": account.pw_gid, "extra_groups": []}
        done: subprocess.CompletedProcess[str] = subprocess.run(
            argv, cwd=self.home, env=self.environment, **who, capture_output=True, text=True, timeout=timeout, check=False
        )
        if check and done.returncode:
            raise SystemExit(f"{' '.join(argv)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def write(self, name: str, text: str) -> Path:
        path = self.home / name
        path.write_text(text)
        os.chown(path, pwd.getpwnam("alice").pw_uid, -1)
        return path


def is_up(bed: str) -> bool:
    return bool(_bed(bed).is_up())


@contextmanager
def alice_on(bed: str, *, more: dict[str, str] | None = None) -> Iterator[Person]:
    """With a folder of this bench's own, which goes with it."""
    if os.geteuid() != 0:
        raise SystemExit("the benches act as alice on the beds, and need root for that")
    python = sys.executable
    if subprocess.run(["runuser", "-u", "alice", "--", python, "-c", "import onward.cli.main"], cwd="/", check=False).returncode:
        raise SystemExit(f"alice cannot run {python} with Onward: install it where she can read it")
    account = pwd.getpwnam("alice")
    home = Path(tempfile.mkdtemp(prefix=f"bench-{bed}-", dir=account.pw_dir))
    os.chown(home, account.pw_uid, account.pw_gid)
    made = _bed(bed)
    first = [made.path()] if bed == "gridengine" else []
    environment = {
        "HOME": account.pw_dir,
        "USER": "alice",
        "LOGNAME": "alice",
        "LANG": "C.UTF-8",
        "PATH": ":".join([*first, str(Path(python).parent), "/usr/bin", "/bin"]),
        "ONWARD_ROOT": str(home / "runs"),
        **(made.layout.environment if bed == "gridengine" else made.environment()),
        **(more or {}),
    }
    person = Person(bed=bed, home=home, python=python, environment=environment)
    person.environment["ONWARD_SETTINGS"] = str(person.write("settings.toml", f'cluster = "{bed}"\n'))
    try:
        yield person
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _bed(name: str) -> Any:
    from beds.gridengine import GridEngineBed
    from beds.slurm import SlurmBed

    return GridEngineBed() if name == "gridengine" else SlurmBed()
