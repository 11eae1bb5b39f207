"""Debian packages: which are missing, and installing them without starting their services."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from beds.command import attempt, run
from beds.errors import BedError
from beds.place import locked

_POLICY = Path("/usr/sbin/policy-rc.d")
_ASIDE = _POLICY.with_name("policy-rc.d.before-onward-beds")
_REFUSE = b"#!/bin/sh\n# onward-beds: installing, no service may start\nexit 101\n"
_QUIET = {"DEBIAN_FRONTEND": "noninteractive", "UCF_FORCE_CONFFOLD": "1"}
_APT_TURN = Path("/run/onward-apt")  # scripts/apt waits for the same lock
_APT = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]


def missing(names: Sequence[str]) -> list[str]:
    """Those of the packages that are not fully installed."""
    shown = attempt(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *names])
    pairs = (line.split() for line in shown.out.splitlines())
    there = {pair[0] for pair in pairs if pair[1:] == ["ii"]}
    return [name for name in names if name not in there]


def ensure(names: Sequence[str], *, answers: Sequence[str] = ()) -> list[str]:
    """Install what is missing, and say what that was. `answers`: to what the packages would ask, as debconf reads them."""
    wanted = missing(names)
    if not wanted:
        return []
    if os.geteuid() != 0:
        raise BedError(
            f"these packages are missing, and only root can install them: {' '.join(wanted)}",
            hint=f"sudo apt-get update && sudo apt-get install --no-install-recommends {' '.join(wanted)}",
        )
    if answers:
        run(["debconf-set-selections"], stdin="\n".join(answers) + "\n")
    with locked(_APT_TURN), _no_service_starts():
        _install(wanted)
    return wanted


def _install(names: Sequence[str]) -> None:
    """A mirror that does not answer, or has moved on since it was listed, is asked again."""
    for pause in (5, 20, None):
        updated = attempt([*_APT, "update"], timeout=300, env=_QUIET)
        argv = [*_APT, "install", "-y", "--no-install-recommends", *names]
        installed = attempt(argv, timeout=900, env=_QUIET)
        if installed.ok:
            return
        if pause is not None:
            time.sleep(pause)
    said = (installed.err.strip() or installed.out.strip()).splitlines()[-12:]
    raise BedError(
        "\n  ".join([f"'{' '.join(argv)}' failed three times, at last with code {installed.code}:", *said]),
        hint="run the command by hand to see all it says" if updated.ok else "'apt-get update' failed too: is a Debian mirror in reach?",
    )


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Answer every package's wish to start its service with no; put back the old policy after."""
    if _POLICY.exists() and _POLICY.read_bytes() != _REFUSE:
        _POLICY.rename(_ASIDE)
    _POLICY.write_bytes(_REFUSE)
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        if _ASIDE.exists():
            _ASIDE.rename(_POLICY)
        else:
            _POLICY.unlink()
