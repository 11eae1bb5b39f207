"""Which logins are the server's own user: those by a link that this user printed here.

An administrator of a shared database can make links too, but cannot write to this user's state folder. One empty file per login there.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from onward.errors import OnwardError
from onward.schedulers.state_folder import state_folder

_ID = re.compile(r"[0-9a-f]{8}")
_FORGET_AFTER = 40 * 86400.0  # seconds; a session is shorter


class OwnerLogins:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def add(self, token: str) -> None:
        """By a token's id. What cannot be noted is not believed later, and is no failure."""
        try:
            folder = self._folder()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / token).touch(mode=0o600)
            for old in folder.iterdir():
                if time.time() - old.lstat().st_mtime > _FORGET_AFTER:
                    old.unlink(missing_ok=True)
        except (OSError, OnwardError):
            return

    def has(self, token: str) -> bool:
        """Only what this user has written counts."""
        if not _ID.fullmatch(token):
            return False
        try:
            seen = (self._folder() / token).lstat()
        except (OSError, OnwardError):
            return False
        return stat.S_ISREG(seen.st_mode) and seen.st_uid == os.getuid()

    def _folder(self) -> Path:
        return state_folder(self._env) / "owner-logins"
