"""Results, packed for a reply: inside it while there is room, else by an address that opens for a while, else with where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from onward.model.requests.outcome import OutcomeFile

_ASK = "ask whoever runs the gateway for it; with gateway.server set, large results come as addresses"

Sign = Callable[[str, str, int], str]  # request, name, expires → what opens the address


@dataclass(frozen=True, kw_only=True)
class PackedResult:
    file: str = ""  # its name without a folder, which says what kind of file it is
    size: int
    sha256: str
    media_type: str
    inside: OutcomeFile | None = None
    url: str | None = None
    expires: int | None = None
    trouble: str = ""  # why it has neither, and where it is
    next: str = ""


@dataclass(frozen=True, kw_only=True)
class ResultPacker:
    inline: int  # bytes inside one reply
    kept: int  # seconds that an address opens
    server: Callable[[], str | None]  # where the addresses lead; None: nowhere
    sign: Sign

    def pack(
        self,
        request: str,
        results: Iterable[OutcomeFile],
        *,
        now: float,
        run: str | None = None,
        room: int | None = None,
        addresses: bool = True,
    ) -> dict[str, PackedResult]:
        """The small ones inside, so that as many as can be are there at once. Without a server all are: better large than lost.

        `room`: bytes that the broker has for them, where it was found to have a limit. `addresses`: whether whoever gets it knows what
        they are.
        """
        server = self.server() if addresses else None
        limits = [limit for limit in (room, None if server is None else self.inline) if limit is not None]
        left, packed = min(limits, default=None), {}
        for result in sorted(results, key=lambda one: one.size):
            if left is None or result.size <= left:
                packed[result.name] = _packed(result, inside=result)
                left = None if left is None else left - result.size
            elif server is not None:
                packed[result.name] = self._by_address(request, result, server, now)
            else:
                where = f"in the run {run}" if run else "in its run's folder"
                trouble = f"it is too large for a message of this broker; it is kept as {Path(result.path).name} {where}"
                packed[result.name] = _packed(result, trouble=trouble, next=_ASK)
        return packed

    def _by_address(self, request: str, result: OutcomeFile, server: str, now: float) -> PackedResult:
        expires = int(now) + self.kept
        path = f"/api/v1/requests/{quote(request, safe='')}/results/{quote(result.name, safe='')}"
        url = f"{server.rstrip('/')}{path}?expires={expires}&signature={self.sign(request, result.name, expires)}"
        return _packed(result, url=url, expires=expires)


def _packed(
    result: OutcomeFile,
    *,
    inside: OutcomeFile | None = None,
    url: str | None = None,
    expires: int | None = None,
    trouble: str = "",
    next: str = "",
) -> PackedResult:
    return PackedResult(
        file=Path(result.path).name,
        size=result.size,
        sha256=result.sha256,
        media_type=result.media_type,
        inside=inside,
        url=url,
        expires=expires,
        trouble=trouble,
        next=next,
    )
