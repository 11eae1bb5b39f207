"""What the run of a request is given: its settings, and the files it needs, with the limits under which a job may fetch them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from onward.errors import InvalidInput
from onward.model.quantity import format_bytes

_PORTS = {"http": 80, "https": 443}
_LONGEST = 4000  # characters of an address


@dataclass(frozen=True, kw_only=True)
class FileFetch:
    """One file to fetch, by the name its recipe knows it under."""

    name: str
    url: str = field(repr=False)  # may hold a signature
    most: int  # bytes allowed
    sha256: str | None = None  # that it must have
    size: int | None = None
    types: tuple[str, ...] = ()  # media types, one of which it must have; none: any


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    request: str  # its id
    recipe: str
    settings: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)  # checked; durations in s, memory in MiB
    fetch: tuple[FileFetch, ...] = ()
    hosts: tuple[str, ...] = ()  # from which files may be fetched: rodan.example.org, or with its port
    most: int = 0  # bytes of all files together
    seconds: int = 3600  # that fetching them may take
    notes: tuple[str, ...] = ()  # what the run got less of than was asked for: told in the answer
    token: str = field(default="", repr=False)
    token_for: str = ""  # the one place that gets to see it, such as https://rodan.example.org


def check_address(url: str, hosts: Collection[str]) -> SplitResult:
    """The address's parts; InvalidInput where nothing is to be fetched from there. It never repeats more than the host."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput("its address is malformed", hint="write it like https://rodan.example.org/uploads/page.png") from error
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise InvalidInput("its address is not an http or https one", hint="write it like https://rodan.example.org/uploads/page.png")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("its address has a name or password before its host", hint="leave them out")
    if len(url) > _LONGEST or not url.isascii() or any(not char.isprintable() or char == " " for char in url):
        raise InvalidInput(
            f"its address is longer than {_LONGEST} characters, or has characters that an address cannot have", hint="percent-encode them"
        )
    if not is_host_allowed(parts, hosts):
        raise InvalidInput(
            f"its address is on {host_words(parts)}, which is not an allowed host",
            hint="the site lists its allowed hosts in `gateway.hosts` of its settings",
        )
    return parts


def is_host_allowed(parts: SplitResult, hosts: Collection[str]) -> bool:
    """A host that is allowed by its name alone is so at the usual port of http or https alone."""
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or _PORTS[parts.scheme]
    known = {name.lower().rstrip(".") for name in hosts}
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}" in known or (port == _PORTS[parts.scheme] and shown in known)


def origin(parts: SplitResult) -> tuple[str, str, int]:
    """Scheme, host and port: what must be the same for two addresses to be the same place."""
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme, 0)


def host_words(parts: SplitResult) -> str:
    """For people: the host, with its port where that is not the usual one."""
    _, host, port = origin(parts)
    return host if port == _PORTS.get(parts.scheme) else f"{host}:{port}"


def is_link_local(address: str) -> bool:
    """Whether an IP address is one that only this machine's own wire knows, where clouds keep credentials, or no machine's at all."""
    import ipaddress  # seldom needed

    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None) or found
    return bool(mapped.is_link_local or mapped.is_multicast or mapped.is_unspecified)


def too_large(name: str, most: int) -> str:
    return f"input {name!r} is larger than the {format_bytes(most)} allowed"
