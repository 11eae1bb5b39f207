"""The ssh command line: the user's own configuration, and beside it only what it leaves open. Never a prompt, never a secret in it."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from onward.errors import InvalidInput

CACHE = "~/.cache/onward"  # on the host; spelled so that every shell there expands it

# BatchMode: no prompt. The rest keeps what is meant for a person's own sessions out of ours.
_ALWAYS = ("BatchMode=yes", "RequestTTY=no", "RemoteCommand=none", "ClearAllForwardings=yes", "ForwardX11=no", "LogLevel=ERROR")
_CONNECT, _CONNECT_FOR_A_LIST = "ConnectTimeout=15", "ConnectTimeout=5"
_LONGEST_SOCKET = 80  # bytes: a socket's path may have about 104, and ssh adds some for a while


def ssh_line(host: str, env: Mapping[str, str]) -> list[str]:
    """`ssh` with its options and the host; the command is still to be added."""
    options = [*_ALWAYS, *_fillers(ssh_configuration(host), env)]
    return ["ssh", *(word for option in options for word in ("-o", option)), "--", host]


def hurried_ssh_line(line: Sequence[str]) -> list[str]:
    """The same for a list of all places, where one host that is silent keeps the others' answers waiting."""
    return [_CONNECT_FOR_A_LIST if word == _CONNECT else word for word in line]


def ssh_configuration(host: str) -> dict[str, str]:
    """What the user's ssh configuration comes to for this host: `ssh -G`."""
    try:
        done = subprocess.run(
            ["ssh", "-G", "--", host], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=30, check=False
        )
    except FileNotFoundError as error:
        raise InvalidInput("the program ssh is not on the PATH here", hint="install OpenSSH's client") from error
    except subprocess.TimeoutExpired as error:
        raise InvalidInput(f"ssh -G {host} gave no answer within 30 s", hint="look at ~/.ssh/config") from error
    if done.returncode:
        raise InvalidInput(f"ssh cannot read its configuration for {host}: {done.stderr.strip()}", hint="look at ~/.ssh/config")
    return dict(line.lower().split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def _fillers(variables: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    """For what the user has left at its default: a patience for dead hosts, and one connection for several calls."""
    options = []
    if variables.get("connecttimeout", "none") in ("none", "0"):
        options.append(_CONNECT)
    if variables.get("serveraliveinterval", "0") == "0":
        options += ["ServerAliveInterval=15", "ServerAliveCountMax=3"]
    unshared = variables.get("controlmaster", "false") in ("false", "no") and variables.get("controlpath", "none") == "none"
    sockets = _socket_folder(env) if unshared else None
    if sockets:
        options += ["ControlMaster=auto", f"ControlPath={sockets}/%C", "ControlPersist=300"]
    return options


def _socket_folder(env: Mapping[str, str]) -> Path | None:
    """Ours alone: who can open the socket can act as us. None where there is no such folder, or its path is too long."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    bases = [Path(runtime) / "onward"] if runtime.startswith("/") else []
    bases += [Path(env["HOME"], ".cache", "onward", "ssh")] if env.get("HOME", "").startswith("/") else []
    for base in bases:
        if len(os.fsencode(base)) + 41 > _LONGEST_SOCKET or any(sign in str(base) for sign in "% \"'"):
            continue
        try:
            base.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = base.lstat()
        except OSError:
            continue
        if found.st_uid == os.getuid() and found.st_mode & 0o077 == 0:
            return base
    return None


def agent_command(python: str, archive: str) -> str:
    return f"{shlex.quote(python)} -I -S {CACHE}/{archive} agent"


# One line without quotes, exclamation marks or backslashes of its own: sh, csh and fish all pass it on as it is.
_RECEIVE = (
    "import sys, os, hashlib; path, size, digest = sys.argv[1], int(sys.argv[2]), sys.argv[3]; data = sys.stdin.buffer.read(size); "
    "hashlib.sha256(data).hexdigest() == digest or sys.exit(87); folder = os.path.dirname(path); "
    "os.makedirs(folder, 0o700, exist_ok=True); part = path + chr(46) + os.urandom(8).hex(); file = open(part, chr(120) + chr(98)); "
    "file.write(data); file.flush(); os.fsync(file.fileno()); file.close(); os.replace(part, path)"
)


def receive_command(python: str, archive: str, *, size: int, digest: str) -> str:
    """Writes stdin to the archive's place, whole or not at all."""
    return f"{shlex.quote(python)} -I -S -c '{_RECEIVE}' {CACHE}/{archive} {size} {digest}"


def rsync_shell(line: Sequence[str]) -> str:
    """The same ssh for rsync's -e, which splits at blanks and knows quotes but no backslashes. Without the host: rsync adds it."""
    return " ".join(f"'{word}'" if " " in word else word for word in line[:-2])
