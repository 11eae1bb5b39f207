"""From ssh's words, and a far Python's, to our errors: what is wrong, on which host, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from onward.errors import HostUnreachable, InvalidInput, LoginRefused, NoPython, OnwardError, StorageError, StorageFull
from onward.operations.ssh.agent_archive import OLD_PYTHON

_SHARE = (
    "put `ControlMaster auto`, `ControlPath ~/.ssh/%C` and `ControlPersist 8h` under `Host {host}` in ~/.ssh/config, "
    "log in once with `ssh {host}`, then try again: Onward uses the open connection"
)


@dataclass(frozen=True, kw_only=True)
class SshFailure:
    """An ssh call that gave no answer of ours."""

    host: str
    python: str
    code: int
    words: str  # stderr
    setting: str = ""  # the key that named the Python, as in clusters.lab.python

    @property
    def last(self) -> str:
        lines = [line.strip() for line in self.words.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.code}"

    @property
    def python_prefix(self) -> str:
        return f"{self.setting}: " if self.setting else ""


def explain(failure: SshFailure) -> OnwardError:
    """The first that fits; ssh itself ends with 255, a shell that finds no program with 127."""
    if failure.code == 255:
        for pattern, make in _SSH:
            if re.search(pattern, failure.words, re.IGNORECASE):
                return make(failure)
        return HostUnreachable(f"the connection to {failure.host} failed: {failure.last}", hint=f"does `ssh {failure.host}` work?")
    if failure.code == OLD_PYTHON:
        return _old_python(failure)
    if failure.code in _NO_PROGRAM and failure.python in failure.words:
        return _no_python(failure)
    for pattern, make in _THERE:
        if re.search(pattern, failure.words, re.IGNORECASE):
            return make(failure)
    return OnwardError(
        f"{failure.host} gave an unexpected answer: {failure.last}",
        hint=f"does `ssh {failure.host} {failure.python} --version` work, without other output before it?",
    )


def is_no_archive(words: str, archive: str) -> bool:
    """Whether Python complains of the archive itself, and not of something within: it is not there, or is none."""
    return re.search(re.escape(archive) + r"(?!/)", words) is not None


# ── ssh ───────────────────────────────────────────────────────────────────────


def _changed_key(failure: SshFailure) -> OnwardError:
    return LoginRefused(
        f"{failure.host} shows another host key than before: it was reinstalled, or someone intercepts the connection",
        hint=f"ask its administrators; if the new key is right, `ssh-keygen -R` the old one, then log in once with `ssh {failure.host}`",
    )


def _unknown_key(failure: SshFailure) -> OnwardError:
    return LoginRefused(
        f"the host key of {failure.host} is unknown on this machine",
        hint=f"log in once with `ssh {failure.host}` and compare the key it shows",
    )


def _needs_a_person(failure: SshFailure) -> OnwardError:
    return LoginRefused(f"{failure.host} asks for a password or a code, which Onward cannot enter", hint=_SHARE.format(host=failure.host))


def _no_key(failure: SshFailure) -> OnwardError:
    return LoginRefused(
        f"{failure.host} accepts none of your keys: {failure.last}",
        hint=f"does `ssh {failure.host}` work? A key with a passphrase must be in your agent: ssh-add",
    )


def _unreachable(failure: SshFailure) -> OnwardError:
    return HostUnreachable(f"{failure.host} cannot be reached: {failure.last}", hint=f"does `ssh {failure.host}` work? Is a VPN needed?")


def _broke(failure: SshFailure) -> OnwardError:
    return HostUnreachable(f"the connection to {failure.host} broke: {failure.last}", hint="try again")


def _configuration(failure: SshFailure) -> OnwardError:
    return InvalidInput(f"ssh cannot use its configuration for {failure.host}: {failure.last}", hint="look at ~/.ssh/config")


MakeError = Callable[[SshFailure], OnwardError]

_SSH: tuple[tuple[str, MakeError], ...] = (
    (r"IDENTIFICATION HAS CHANGED|host key .* has changed", _changed_key),
    (r"Host key verification failed|No .* host key is known", _unknown_key),
    (r"Permission denied \([^)]*(?:keyboard-interactive|password)", _needs_a_person),
    (r"Permission denied|Too many authentication failures|no mutual signature", _no_key),
    (r"Bad configuration option|bad configuration options|Bad owner or permissions", _configuration),
    (
        r"Could not resolve|Connection refused|timed out|No route to host|unreachable|Host is down|kex_exchange|stdio forwarding",
        _unreachable,
    ),
    (r"Connection (?:closed|reset)|Broken pipe|not responding|closed by remote host|mux_client|Connection to .* closed", _broke),
)


# ── there ─────────────────────────────────────────────────────────────────────


def _old_python(failure: SshFailure) -> OnwardError:
    return NoPython(
        f"{failure.python_prefix}{failure.python} on {failure.host} is too old for Onward, which needs 3.11 or later: {failure.last}",
        hint="set the profile's `python` to a newer one there, such as /usr/bin/python3.11 or that of a conda environment",
    )


def _no_python(failure: SshFailure) -> OnwardError:
    return NoPython(
        f"{failure.python_prefix}there is no {failure.python} on {failure.host}: {failure.last}",
        hint="set the profile's `python` to one there that is 3.11 or later, with its full path",
    )


def _full(failure: SshFailure) -> OnwardError:
    return StorageFull(
        f"there is no room left on {failure.host}: {failure.last}", hint="make room in your home there: Onward keeps 1 MB in it"
    )


def _no_home(failure: SshFailure) -> OnwardError:
    return StorageError(
        f"~/.cache/onward on {failure.host} cannot be written: {failure.last}", hint="do you have write access to your home there?"
    )


_NO_PROGRAM = (126, 127)  # a shell's words for what cannot be started, or is not there
_THERE: tuple[tuple[str, MakeError], ...] = (
    (r"No space left on device|Disk quota exceeded", _full),
    (r"Unknown option: -I|unknown option -I", _old_python),
    (r"command not found|: not found|No such file or directory: .*python|Unknown command|\[Errno 2\] .*python", _no_python),
    (r"Permission denied|Read-only file system", _no_home),
)
