"""What channels of alerts keep secret (addresses that let anyone post, keys, passwords): a file beside the database, its owner's alone."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path

from onward.errors import StorageError
from onward.sdk.atomic_files import write_whole


class ChannelSecrets:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()

    def of(self, channel: str) -> Mapping[str, str]:
        """Empty where this server has none: another that shares the database may have them."""
        return self._read().get(channel, {})

    def keep(self, channel: str, secret: Mapping[str, str]) -> None:
        with self._turn:
            self._write({**self._read(), channel: dict(secret)})

    def forget(self, channel: str) -> None:
        with self._turn:
            held = self._read()
            if held.pop(channel, None) is not None:
                self._write(held)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageError(
                f"{self._path} cannot be read: {error.strerror}", hint="it contains the secrets of alert channels"
            ) from error
        with os.fdopen(handle) as file:
            seen = os.fstat(file.fileno())
            if seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
                raise StorageError(f"{self._path} can be read by other users", hint=f"it contains secrets: chmod 600 {self._path}")
            try:
                held = json.load(file)
            except ValueError as error:
                raise StorageError(f"{self._path} is not JSON: {error}", hint="fix it, or delete it and enter the secrets again") from error
        return held if isinstance(held, dict) else {}

    def _write(self, held: Mapping[str, Mapping[str, str]]) -> None:
        try:
            write_whole(self._path, json.dumps(held, indent=1), mode=0o600)
        except OSError as error:
            raise StorageError(
                f"{self._path} cannot be written: {error.strerror}", hint="the secrets of alert channels go there"
            ) from error
