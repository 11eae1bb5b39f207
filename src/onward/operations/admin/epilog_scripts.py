"""Epilogs that tell the server when a job has ended: written for Slurm's controller and for Grid Engine's queues.

    hint.py                 builds, signs and posts the hint; the same for both
    hint.json               where to
    epilog-slurmctld        for EpilogSlurmctld
    epilog-gridengine       for a queue's `epilog`
    slurm.secret, gridengine.secret     0600, of whoever runs the script

A hint makes the server look, at most; without any of this it looks every half minute.
"""

from __future__ import annotations

import json
import os
import pwd
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from onward.errors import InvalidInput, NotFound, StorageError
from onward.sdk.atomic_files import draft_of

_SECRET = "{}.secret"
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_SLURM = ("ID", "NAME", "USER", "EXIT_CODE2")
_ARRAY = ("JOB_ID", "TASK_ID")


@dataclass(kw_only=True)
class InstalledEpilogs:
    folder: Path
    written: list[Path] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    slurm: Path
    gridengine: Path
    gridengine_user: str | None


def install_epilogs(
    folder: Path,
    url: str,
    *,
    secret: Callable[[], str],
    renew: bool = False,
    cafile: Path | None = None,
    slurm_user: str | None = None,
    gridengine_user: str | None = None,
) -> InstalledEpilogs:
    """Write everything; a secret that is there is kept unless it is to be renewed. `secret` is asked for one at most once."""
    folder = folder.absolute()
    address = check_url(url)
    if cafile is not None and not cafile.is_file():
        raise NotFound(f"--cafile {cafile} does not exist")
    users = {"slurm": _user(slurm_user), "gridengine": _user(gridengine_user)}
    if users["gridengine"].pw_uid == 0:  # an epilog has the environment of the job: LD_PRELOAD and all
        if gridengine_user is not None:
            raise InvalidInput(
                "root must not run Grid Engine's epilog: the owner of a job controls part of its environment",
                hint="name a separate account",
            )
        del users["gridengine"]
    done = InstalledEpilogs(
        folder=folder,
        slurm=folder / "epilog-slurmctld",
        gridengine=folder / "epilog-gridengine",
        gridengine_user=users["gridengine"].pw_name if "gridengine" in users else None,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        settings = {"url": address, "cafile": str(cafile.absolute()) if cafile else None}
        program = resources.files("onward.operations.admin").joinpath("job_end_hint.py").read_text(encoding="utf-8")
        _write(done, folder / "hint.py", program, 0o644)
        _write(done, folder / "hint.json", json.dumps(settings, indent=1) + "\n", 0o644)
        _write(done, done.slurm, slurm_script(folder), 0o755)
        _write(done, done.gridengine, gridengine_script(folder), 0o755)
        made: str | None = None
        for scheduler, user in users.items():
            path = folder / _SECRET.format(scheduler)
            if path.exists() and not renew:
                done.kept.append(path)
                continue
            made = made or check_secret(secret())
            _write(done, path, made + "\n", 0o600, owner=user)
    except OSError as error:
        raise StorageError(f"{error.filename or folder}: {error.strerror}", hint="be root, or choose another --dir") from error
    return done


def check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise InvalidInput(f"--url {url!r} is not the address of a server", hint="write it like https://tracker.example.org:8765")
    if parts.username or parts.password or parts.query or parts.fragment or parts.path.startswith("/t/"):
        raise InvalidInput("--url must not contain a token, query or fragment", hint="the hint is signed with a secret from a file")
    return url.rstrip("/")


def check_secret(text: str) -> str:
    from onward.tracker.access.tokens import Scope, parse

    found = parse(text.strip())
    if found is None or found[0] is not Scope.WEBHOOK:
        raise InvalidInput("this is not a webhook token", hint="`onward token create --scope webhook` creates one, on the server's machine")
    return text.strip()


# ── scripts ───────────────────────────────────────────────────────────────────


def slurm_script(folder: Path) -> str:
    names = [*(f"SLURM_JOB_{name}" for name in _SLURM), *(f"SLURM_ARRAY_{name}" for name in _ARRAY), "SLURM_CLUSTER_NAME"]
    return _script(folder, "slurm", names, "EpilogSlurmctld: runs once a job, on the controller's machine, as SlurmUser.", [])


def gridengine_script(folder: Path) -> str:
    names = ["JOB_ID", "SGE_TASK_ID", "SGE_CLUSTER_NAME", "JOB_NAME", "USER", "SGE_JOBEXIT_STAT"]
    first = ["# the first argument, $job_id, is the scheduler's own word", 'case "${1-}" in ""|*[!0-9]*) ;; *) JOB_ID=$1 ;; esac']
    return _script(folder, "gridengine", names, "A queue's epilog: runs on the job's host, as the user before the @.", first)


def _script(folder: Path, scheduler: str, names: list[str], about: str, first: list[str]) -> str:
    """Nothing of the job's is read by the shell but as a quoted value; the program gets these variables and no other."""
    passed = " \\\n".join(f'    {name}="${{{name}-}}"' for name in names)
    return "\n".join(
        [
            "#!/bin/sh",
            "# Written by `onward epilog install`: tells Onward that a job has ended, so that it checks at once.",
            f"# {about}",
            "# Two seconds at most, and always exit code 0.",
            f"PATH={_PATH}",
            "export PATH",
            f"here={shlex.quote(str(folder))}",
            *first,
            "set --",
            "command -v timeout >/dev/null 2>&1 && set -- timeout -k 1 2",
            'env -i PATH="$PATH" \\',
            f"{passed} \\",
            f'    "$@" python3 -I -S "$here/hint.py" {scheduler} </dev/null >/dev/null 2>&1',
            "exit 0",
            "",
        ]
    )


def installation_steps(done: InstalledEpilogs) -> list[str]:
    """What to put where."""
    # Slurm looks once, at its start, whether there is an epilog: seen on 22.05
    slurm = f"Slurm, in slurm.conf, then restart slurmctld (`scontrol reconfigure` is not enough):\n    EpilogSlurmctld={done.slurm}"
    if done.gridengine_user is None:
        return [slurm, "Grid Engine: its epilog must not run as root; name a separate account with --gridengine-user, and run this again"]
    return [slurm, f"Grid Engine, for each queue (`qconf -mq QUEUE`):\n    epilog {done.gridengine_user}@{done.gridengine} $job_id"]


# ── files ─────────────────────────────────────────────────────────────────────


def _write(done: InstalledEpilogs, path: Path, text: str, mode: int, *, owner: pwd.struct_passwd | None = None) -> None:
    with draft_of(path, mode=0o600) as file:
        file.write(text.encode())
        if owner is not None and owner.pw_uid != os.geteuid():
            os.fchown(file.fileno(), owner.pw_uid, owner.pw_gid)
        os.fchmod(file.fileno(), mode)
    done.written.append(path)


def _user(name: str | None) -> pwd.struct_passwd:
    if name is None:
        return pwd.getpwuid(os.geteuid())
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise NotFound(f"there is no user {name!r} on this machine", hint="name the user who runs the epilog") from None
