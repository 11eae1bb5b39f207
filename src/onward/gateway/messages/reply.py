"""Answer: what a sender gets back for a request, and its results: inside the message, or by an address that opens for a while.

answer = onward.Sender().request("patchwise", inputs={"Image": "https://…/page.png"}).wait()
answer.done                        # else answer.reason, answer.next and answer.log_tail say why
answer.save(Path("models"))        # a file a result; nothing is kept that its hash does not fit
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from onward.errors import HostUnreachable, InvalidInput, NotFound, StorageError
from onward.sdk.atomic_files import draft_of

_PIECE = 1 << 20
_PATIENCE = 60.0  # seconds of silence while a result is fetched
_ODD = re.compile(r"[^\w .,()+@=-]")


@dataclass(frozen=True, kw_only=True)
class ResultFile:
    name: str
    size: int
    sha256: str
    media_type: str = "application/octet-stream"
    file: str = ""  # what it was called where it was made
    data: str | None = None  # base64
    url: str | None = None
    expires: float | None = None  # when the address closes
    reason: str = ""  # why it has neither data nor an address, and where it is
    next: str = ""

    def read(self) -> bytes:
        """All of it, in memory."""
        return b"".join(self._checked())

    def save(self, path: Path) -> Path:
        """Written all or nothing."""
        try:
            with draft_of(path, mode=0o666) as file:
                for piece in self._checked():
                    file.write(piece)
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error.strerror}", hint="choose another folder") from error
        return path

    def _checked(self) -> Iterator[bytes]:
        """Its bytes; the last is followed by an error where they are not those that were promised."""
        found, size = hashlib.sha256(), 0
        for piece in self._pieces():
            found.update(piece)
            size += len(piece)
            if size > self.size:
                break
            yield piece
        if size != self.size or found.hexdigest() != self.sha256:
            raise StorageError(f"the result {self.name} is incomplete: {size} of {self.size} bytes", hint="fetch it again")

    def _pieces(self) -> Iterator[bytes]:
        if self.url is not None:
            yield from _fetched(self.name, self.url)
            return
        if self.data is None and self.reason:
            raise NotFound(f"the result {self.name} did not come with the reply: {self.reason}", hint=self.next)
        try:
            yield base64.b64decode(self.data or "", validate=False)
        except (binascii.Error, ValueError) as error:
            raise StorageError(f"the result {self.name} is not base64: {error}") from error


@dataclass(frozen=True, kw_only=True)
class GatewayReply:
    """The one reply. `state` is one of OutcomeState: done, failed, out_of_memory, time_limit, cancelled, expired, refused, …"""

    id: str
    state: str
    reason: str = ""
    next: str = ""
    log_tail: str = ""
    run: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    results: Mapping[str, ResultFile] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return self.state == "done"

    def save(self, folder: Path) -> list[Path]:
        """Every result as a file of that folder, by its name, with the ending that it had where it was made."""
        folder.mkdir(parents=True, exist_ok=True)
        names = {name: file_name(name, result.file) for name, result in self.results.items()}
        if len(set(names.values())) < len(names):
            raise InvalidInput(f"two results of {self.id} share a file name", hint="read them one by one: answer.results[NAME].save(path)")
        late = sorted(self.results.items(), key=lambda one: bool(one[1].reason))  # whatever is missing, the rest is kept
        return [result.save(folder / names[name]) for name, result in late]


def file_name(name: str, file: str = "") -> str:
    """Characters that file names may not have become underscores."""
    ending = PurePath(file).suffix
    return (_ODD.sub("_", name).lstrip(".") or "_") + ("" if name.endswith(ending) else _ODD.sub("_", ending))


def reply_from_body(body: Mapping[str, Any]) -> GatewayReply:
    """Of a reply's body. What later versions add is left aside."""
    known = ("state", "reason", "next", "log_tail", "run", "metrics")
    results = {name: _result(name, entry) for name, entry in (body.get("results") or {}).items()}
    return GatewayReply(id=str(body.get("id", "")), results=results, **{key: body[key] for key in known if body.get(key) is not None})


def _result(name: str, entry: Mapping[str, Any]) -> ResultFile:
    kept = ("size", "sha256", "media_type", "file", "data", "url", "expires", "reason", "next")
    return ResultFile(name=name, **{key: entry[key] for key in kept if entry.get(key) is not None})


def _fetched(name: str, url: str) -> Iterator[bytes]:
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"the result {name} has no web address: {url[:100]}")
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:
            while piece := answer.read(_PIECE):
                yield piece
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404, 410):
            raise NotFound(
                f"the result {name} is no longer available: the server answered {error.code}",
                hint="its address may have expired; the run's page still has it",
            ) from error
        raise HostUnreachable(f"the result {name} could not be fetched: the server answered {error.code}") from error
    except OSError as error:
        raise HostUnreachable(f"the result {name} could not be fetched: {error}", hint="try again") from error
