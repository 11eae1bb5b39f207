"""Results, packed for a reply: inside it while there is room, else by an address that opens for a while."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from onward.errors import StorageError
from onward.model.requests.outcome import OutcomeFile

_TOO_LARGE = "it is larger than the broker's largest message; it is in the run's folder"

Sign = Callable[[str, str, int], str]  # request, name, expires → what opens the address


@dataclass(frozen=True, kw_only=True)
class PackedResult:
    file: str = ""  # its name without a folder, which says what kind of file it is
    size: int
    sha256: str
    media_type: str
    data: bytes | None = None
    url: str | None = None
    expires: int | None = None
    trouble: str = ""  # why it has neither


@dataclass(frozen=True, kw_only=True)
class ResultPacker:
    inline: int  # bytes inside one reply
    kept: int  # seconds that an address opens
    server: Callable[[], str | None]  # where the addresses lead; None: nowhere
    sign: Sign

    def pack(
        self, request: str, results: Iterable[OutcomeFile], *, now: float, light: bool = False, addresses: bool = True
    ) -> dict[str, PackedResult]:
        """The small ones inside, so that as many as can be are there at once. Without a server all are: better large than lost.

        `light`: none inside, for a broker that did not take the reply so large. `addresses`: whether whoever gets it knows what they are.
        """
        server = self.server() if addresses else None
        left, packed = self.inline, {}
        for result in sorted(results, key=lambda one: one.size):
            if not light and (server is None or result.size <= left):
                packed[result.name] = _parcel(result, data=read_whole(result))
                left -= result.size
            elif server is not None:
                packed[result.name] = self._by_address(request, result, server, now)
            else:
                packed[result.name] = _parcel(result, trouble=_TOO_LARGE)
        return packed

    def _by_address(self, request: str, result: OutcomeFile, server: str, now: float) -> PackedResult:
        expires = int(now) + self.kept
        path = f"/api/v1/requests/{quote(request, safe='')}/results/{quote(result.name, safe='')}"
        url = f"{server.rstrip('/')}{path}?expires={expires}&signature={self.sign(request, result.name, expires)}"
        return _parcel(result, url=url, expires=expires)


def read_whole(result: OutcomeFile) -> bytes:
    """Its bytes, as they were when the run was done."""
    try:
        data = Path(result.path).read_bytes()
    except OSError as error:
        raise StorageError(f"the result {result.name} cannot be read: {error.strerror}", hint="it was in the run's folder") from error
    if len(data) != result.size or hashlib.sha256(data).hexdigest() != result.sha256:
        raise StorageError(f"the result {result.name} was changed after its run was done", hint="it is in the run's folder")
    return data


def _parcel(
    result: OutcomeFile, *, data: bytes | None = None, url: str | None = None, expires: int | None = None, trouble: str = ""
) -> PackedResult:
    return PackedResult(
        file=Path(result.path).name,
        size=result.size,
        sha256=result.sha256,
        media_type=result.media_type,
        data=data,
        url=url,
        expires=expires,
        trouble=trouble,
    )
