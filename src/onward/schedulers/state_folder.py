"""The user's state folder: the local queue, the tracker's database, and what Onward remembers between commands."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from onward.errors import InvalidInput

STATE_HINT = "set ONWARD_STATE_DIR to a folder that you may write to"


def state_folder(env: Mapping[str, str]) -> Path:
    """$ONWARD_STATE_DIR, else `onward` in $XDG_STATE_HOME or ~/.local/state. It need not be there yet."""
    if env.get("ONWARD_STATE_DIR"):
        return Path(env["ONWARD_STATE_DIR"]).absolute()
    if env.get("XDG_STATE_HOME", "").startswith("/"):  # the XDG rules: a relative one does not count
        return Path(env["XDG_STATE_HOME"], "onward")
    return _home(env) / ".local" / "state" / "onward"


def state_folder_problem(env: Mapping[str, str]) -> str:
    """Why nothing can be kept in the state folder; empty where it can."""
    try:
        folder = state_folder(env)
    except InvalidInput as error:
        return f"{error.message}: {error.hint}"
    existing = folder
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    if os.path.isdir(existing) and os.access(existing, os.W_OK | os.X_OK):
        return ""
    return f"{folder} {'cannot be written' if existing == folder else 'cannot be created'}: {STATE_HINT}"


def first_time(env: Mapping[str, str], what: str) -> bool:
    """Whether the user has not been told yet; it is noted. False too where nothing can be noted."""
    try:
        mark = state_folder(env) / what
        mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with mark.open("x"):
            return True
    except (OSError, InvalidInput):
        return False


def _home(env: Mapping[str, str]) -> Path:
    if env.get("HOME", "").startswith("/"):
        return Path(env["HOME"])
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise InvalidInput(f"HOME is not set, and user {os.getuid()} has no home folder", hint=STATE_HINT) from None
