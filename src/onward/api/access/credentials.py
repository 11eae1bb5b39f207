"""What a request shows to be let in: a token in the address, in a header, or in the login cookie. Pure reading; nothing is checked here.

The first one shown counts, in the order below, and a bad one is not made good by another: a client never gets in by luck. Clients
that add a header by themselves (`requests` reads ~/.netrc) must not break an address that carries its own token, so the address is
first.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

COOKIE = "onward_session"  # and the store's key: browsers send a host's cookies to all of its ports
ADDRESS = "/t/"

By = Literal["address", "bearer", "key", "basic", "cookie", "signature"]


@dataclass(frozen=True, slots=True)
class PresentedCredential:
    text: str
    by: By


def split_address(path: str) -> tuple[str | None, str]:
    """`/t/<token>/runs/1` is the token and `/runs/1`."""
    if not path.startswith(ADDRESS):
        return None, path
    token, slash, rest = path[len(ADDRESS) :].partition("/")
    return token, f"/{rest}" if slash else "/"


def cookie_of(key: str) -> str:
    """The name of the login cookie of a store."""
    return f"{COOKIE}_{key}"


def presented_credential(headers: Mapping[bytes, bytes], address: str | None, cookie_name: str) -> PresentedCredential | None:
    if address is not None:
        return PresentedCredential(address, "address")
    authorization = headers.get(b"authorization")
    if authorization is not None:
        return _authorization(authorization)
    key = headers.get(b"x-api-key")
    if key is not None:
        return PresentedCredential(key.decode("latin-1").strip(), "key")
    cookie = headers.get(b"cookie")
    if cookie is not None:
        text = _cookie(cookie.decode("latin-1"), cookie_name)
        return PresentedCredential(text, "cookie") if text else None
    return None


def _authorization(value: bytes) -> PresentedCredential:
    """Bearer, or Basic with the token as the password, under any user name (or as the user name, with no password)."""
    scheme, _, rest = value.decode("latin-1").partition(" ")
    rest = rest.strip()
    if scheme.lower() != "basic":
        return PresentedCredential(rest if scheme.lower() == "bearer" else "", "bearer")
    try:
        user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return PresentedCredential("", "basic")
    return PresentedCredential(password or user, "basic")


def _cookie(value: str, wanted: str) -> str:
    for part in value.split(";"):
        name, _, text = part.strip().partition("=")
        if name == wanted:
            return text.strip('"')
    return ""
