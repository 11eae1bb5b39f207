"""Which Host and Origin a request may name. A page of somebody else's, opened in the same browser, must not reach this server.

A Host is ours when it is a loopback name, the address the connection came in on, this machine's name, or one given by `--name`: so a
foreign name that was made to point here (DNS rebinding) is refused. An Origin is ours when it is the very host and port that was
asked, or a given name. No Origin is trusted for being local: whatever else listens on this machine is not us.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_DEFAULT_PORTS = ("80", "443")


@dataclass(frozen=True, kw_only=True)
class HostRules:
    own: frozenset[str] = _LOOPBACK
    given: frozenset[str] = frozenset()  # by --name: also behind a proxy that rewrites Host

    @classmethod
    def of(cls, *, bound: str, machine: str, given: Iterable[str] = ()) -> HostRules:
        names = {name.lower().rstrip(".") for name in given}
        own = {bound.lower(), machine.lower()} - {"0.0.0.0", "::", ""}
        return cls(own=_LOOPBACK | own, given=frozenset(names))

    def host_is_ours(self, host: str | None, local: str | None) -> bool:
        name = split_host(host)[0] if host else ""
        return bool(name) and (name in self.own or name in self.given or name == local)

    def origin_is_ours(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or "@" in parts.netloc:
            return False
        asked, came = split_host(host), split_host(parts.netloc)
        return bool(came[0]) and (came == asked or (came[0] in self.given and came[1] in ("", asked[1])))


@lru_cache(maxsize=64)  # a server goes by few names, and is asked thousands of times a second
def split_host(text: str) -> tuple[str, str]:
    """Name and port, lower case, the brackets of an IPv6 address and default ports left out. ("", "") for what is no host."""
    text = text.strip().lower()
    if text.startswith("["):
        name, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return "", ""
        port = rest[1:]
    else:
        name, _, port = text.partition(":")
        name = name.rstrip(".")
    if port and not (port.isascii() and port.isdigit()):
        return "", ""
    if not name or any(char in "/\\@#?% \t" or char < " " for char in name):
        return "", ""
    return name, "" if port in _DEFAULT_PORTS else port
