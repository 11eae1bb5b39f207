"""Folders whose code may be run over HTTP: those of the settings; for the server's own user also those that they submitted runs from.

A token that may write must not be one that may run anything, unless the server's owner says so: in the settings, or by logging in
with a link that only the user who runs this server can print.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from onward.api.access.caller import ApiCaller
from onward.api.services import Services
from onward.errors import InvalidInput, NotAllowed
from onward.tracker.access.tokens import Rights, Scope

_LARGEST = 64 * 1024
_MOST_ENTRIES, _MOST_FILES = 2000, 20
_PARAMS = re.compile(r"^train\s*:", re.MULTILINE)


def is_owner(svc: Services, who: ApiCaller) -> bool:
    """Whether it is a browser of the user who runs this server, logged in with a link that this user printed."""
    may = who.scope is Scope.SESSION and who.rights.include(Rights.WRITE)
    return may and svc.owners is not None and svc.owners.has(who.token)


def code_folders(svc: Services, who: ApiCaller) -> list[Path]:
    """Those that this caller may run code from, or from folders under them."""
    own = [*svc.context.remembered_code(), *_started_in()] if is_owner(svc, who) else []
    return list(dict.fromkeys([*svc.context.settings.server.code, *own]))


def how_to_get_one(svc: Services, who: ApiCaller) -> str:
    """What to do where there is none, in one sentence."""
    if is_owner(svc, who):
        return "Run `onward submit` once in your project's folder, or start `onward up` there; then it can be chosen here."
    if svc.owners is None:
        return "Only folders in the server's setting `server.code` can be used, because this server is reached without TLS."
    return "Log in with the link that `onward up` or `onward token login` prints, or list folders in the server's setting `server.code`."


def allowed_folder(svc: Services, who: ApiCaller, folder: str) -> Path:
    """The folder itself, links followed, if it is under one that this caller may use."""
    places = code_folders(svc, who)
    if not places:
        raise NotAllowed("there is no folder that runs may be started from over HTTP", hint=how_to_get_one(svc, who))
    if not folder.startswith("/"):
        raise InvalidInput(f"folder: {folder[:100]!r} is not an absolute path", hint="name a folder on the server's machine")
    try:
        real = Path(folder).resolve(strict=True)
        allowed = real.is_dir() and any(real.is_relative_to(place.resolve()) for place in places)
    except (OSError, RuntimeError):
        allowed = False
    if not allowed:  # one that is not there reads the same: what lies elsewhere is nobody's business
        raise NotAllowed(f"{folder[:200]} is not a folder under {' or '.join(map(str, places))}", hint="only code in those folders is run")
    return real


def params_files(folder: Path) -> list[tuple[str, str]]:
    """Name and text of the params files that lie right in it, `params.yaml` first. Links are not followed."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False) if entry.name.endswith((".yaml", ".yml"))]
    except OSError:
        return []
    names.sort(key=lambda name: (name != "params.yaml", name))
    found = [(name, text) for name in names if (text := _text(folder / name)) is not None]
    return [(name, text) for name, text in found if name == "params.yaml" or _PARAMS.search(text)][:_MOST_FILES]


def _started_in() -> list[Path]:
    """Where `onward up` was started, unless everything lies under it."""
    try:
        here, home = Path.cwd(), Path.home()
    except (OSError, RuntimeError):
        return []
    return [] if here in home.parents or here == home else [here]


def _text(path: Path) -> str | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, encoding="utf-8") as file:
            seen = os.fstat(handle)
            return file.read() if stat.S_ISREG(seen.st_mode) and seen.st_size <= _LARGEST else None
    except (OSError, UnicodeDecodeError):
        return None
