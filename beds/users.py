"""Ordinary users with real home directories, for jobs to run as."""

import pwd
from collections.abc import Iterable

from beds.command import run


def exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def ensure(names: Iterable[str]) -> list[str]:
    """Create the users that are missing, and say who that was.

    The password is `*`: nobody can log in by it, but unlike `!` it does not lock the account
    for sshd.
    """
    created = [name for name in names if not exists(name)]
    for name in created:
        run(["useradd", "-m", "-p", "*", "-s", "/bin/bash", name])
    return created
