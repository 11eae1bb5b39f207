"""Fetch one file of a request: streamed beside its place, hashed on the way, renamed when it is all there.

Only http and https, only from hosts that the site allows, and a redirect is followed on the same host alone, so a token never goes
anywhere but where it belongs. An address of the link (where clouds keep credentials) is refused, whatever its name. Size and time are
bounded: a server that drips, hangs or never stops is cut off. Words for people name the host, never the address: it may hold a key.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from http import HTTPStatus
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

from onward.errors import InputRefused, InputsFailed, InvalidInput, TokenRefused
from onward.model.quantity import format_bytes
from onward.model.requests.inputs import FileFetch, check_address, host_words, is_link_local, origin, too_large
from onward.sdk.atomic_files import draft_of
from onward.supervisor.preparation.picture_check import PictureCheck

_PATIENCE = 30.0  # seconds without a byte
_CHUNK = 1 << 18
_MOST_REDIRECTS = 5
_AGAIN = (408, 425, 429)
_NO_LOGIN = (401, 403)
_REDIRECTS = (301, 302, 303, 307, 308)
_NO_KIND = ("", "application/octet-stream", "binary/octet-stream")  # says nothing
_LOOK_SECONDS = 0.1


class DownloadInterrupted(InputsFailed):
    """`after`: bytes; 0 where it was us."""

    def __init__(self, message: str, *, after: int) -> None:
        super().__init__(message, hint="it is retried")
        self.after = after


@dataclass(frozen=True, kw_only=True)
class DownloadTerms:
    """What holds for all files of a request."""

    hosts: tuple[str, ...]
    token: str = ""
    token_for: str = ""
    env: Mapping[str, str]  # proxies, and the file of certificates to trust
    cut: Callable[[], bool]  # no longer: late, or asked to stop


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    size: int
    sha256: str


def download(one: FileFetch, target: Path, terms: DownloadTerms, *, most: int) -> Downloaded:
    """Raises InputsFailed where another try may help, InputRefused where none can. `most`: what is left of the bytes for all."""
    what = f"input {one.name!r}"
    parts = _checked(one.url, terms, what)
    for _ in range(_MOST_REDIRECTS + 1):
        with _answer(parts, terms, what) as response:
            if response.status in _NO_LOGIN and _gets_token(parts, terms):
                raise TokenRefused(_status_words(response, parts, what), hint="is the file there, and may this site read it?")
            if response.status not in _REDIRECTS:
                _must_be_good(response, one, parts, what, min(most, one.most))
                return _stream(response, one, target, what, most=min(most, one.most), cut=terms.cut)
            parts = _followed(parts, response.headers["Location"] or "", terms, what)
    raise InputRefused(f"{what}: {host_words(parts)} redirects in a loop")


def _checked(url: str, terms: DownloadTerms, what: str) -> SplitResult:
    try:
        return check_address(url, terms.hosts)
    except InvalidInput as error:
        raise InputRefused(f"{what}: {error.message}", hint=error.hint) from error


def _followed(parts: SplitResult, location: str, terms: DownloadTerms, what: str) -> SplitResult:
    try:
        there = urlsplit(urljoin(parts.geturl(), location))
        same = origin(there) == origin(parts)
        where = host_words(there) if there.hostname else "nowhere"
    except ValueError:
        same, where, there = False, "nowhere", parts
    safer = (parts.scheme, there.scheme) == ("http", "https") and there.hostname == parts.hostname
    if not location or not (same or safer):
        raise InputRefused(
            f"{what}: {host_words(parts)} redirects to {where}, but only redirects within a host are followed",
            hint="use the address that it leads to",
        )
    return _checked(there.geturl(), terms, what)


# ── the answer ────────────────────────────────────────────────────────────────


def _must_be_good(response: http.client.HTTPResponse, one: FileFetch, parts: SplitResult, what: str, most: int) -> None:
    status = response.status
    if status != HTTPStatus.OK:
        words = _status_words(response, parts, what)
        if status in _AGAIN or status >= 500:
            raise InputsFailed(words, hint="it is retried")
        raise InputRefused(words, hint="is the file there, and may this site read it?" if status < 500 else "")
    coding = (response.headers["Content-Encoding"] or "identity").lower()
    if coding != "identity":
        raise InputRefused(f"{what}: {host_words(parts)} sends it {coding}-encoded, although the request did not allow that")
    kind = response.headers.get_content_type() if response.headers["Content-Type"] else ""
    if one.types and kind not in _NO_KIND and not any(fnmatchcase(kind, wanted) for wanted in one.types):
        raise InputRefused(f"{what} is {kind}, expected {' or '.join(one.types)}")
    if response.length is None:
        return
    if response.length > most:
        raise InputRefused(too_large(one.name, most))
    if one.size is not None and response.length != one.size:
        raise InputRefused(_other_size(what, response.length, one.size))


def _status_words(response: http.client.HTTPResponse, parts: SplitResult, what: str) -> str:
    status = response.status
    return f"cannot fetch {what}: {host_words(parts)} answered {status} {http.client.responses.get(status, '')}".rstrip()


def _stream(
    response: http.client.HTTPResponse, one: FileFetch, target: Path, what: str, *, most: int, cut: Callable[[], bool]
) -> Downloaded:
    promised, size, digest, picture = response.length, 0, hashlib.sha256(), PictureCheck(one.types)
    with draft_of(target, mode=0o666) as file:
        while (promised is None or size < promised) and (chunk := _read(response, what, cut)):
            size += len(chunk)
            if size > most:
                raise InputRefused(too_large(one.name, most))
            digest.update(chunk)
            picture.take(chunk)
            file.write(chunk)
        if cut() or (promised is not None and size != promised):
            raise DownloadInterrupted(f"the download of {what} was interrupted after {format_bytes(size)}", after=0 if cut() else size)
        if one.size is not None and size != one.size:
            raise InputRefused(_other_size(what, size, one.size))
        if one.sha256 is not None and digest.hexdigest() != one.sha256:
            raise InputRefused(f"{what} does not match the request: its SHA-256 is {digest.hexdigest()}, expected {one.sha256}")
        if trouble := picture.trouble():
            raise InputRefused(f"{what} {trouble}", hint="look at the file where it is kept, and send the request again")
    return Downloaded(size=size, sha256=digest.hexdigest())


def _read(response: http.client.HTTPResponse, what: str, cut: Callable[[], bool]) -> bytes:
    """As much as is there: waiting for a whole chunk, a server that drips could hold us for days."""
    try:
        return b"" if cut() else response.read1(_CHUNK)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InputsFailed(f"the download of {what} was interrupted: {error or type(error).__name__}", hint="it is retried") from error


def _other_size(what: str, found: int, expected: int) -> str:
    return f"{what} does not match the request: it has {found} bytes, expected {expected}"


# ── the connection ────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _answer(parts: SplitResult, terms: DownloadTerms, what: str) -> Iterator[http.client.HTTPResponse]:
    headers = {"Accept-Encoding": "identity", "User-Agent": "onward", "Connection": "close"}
    if _gets_token(parts, terms):
        headers["Authorization"] = f"Token {terms.token}"
    connection, path = _connection(parts, terms)
    with contextlib.closing(connection), _cut_off(connection, terms.cut):
        try:
            connection.connect()
            if not connection.proxied and is_link_local(str(connection.sock.getpeername()[0])):
                raise InputRefused(f"{what}: {host_words(parts)} is a link-local address, which is not allowed")
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise InputsFailed(f"{what}: {host_words(parts)} cannot be reached: {_words(error)}", hint="it is retried") from error
        with contextlib.closing(response):
            yield response


def _gets_token(parts: SplitResult, terms: DownloadTerms) -> bool:
    return bool(terms.token and terms.token_for) and origin(urlsplit(terms.token_for)) == origin(parts)


class _Connection(http.client.HTTPConnection):
    """One whose socket can be found while it is still being connected."""

    proxied = False
    raw: socket.socket | None = None
    context: ssl.SSLContext | None = None
    name = ""  # that the certificate must have

    def connect(self) -> None:
        super().connect()  # also through a proxy, where one was set
        self.raw = self.sock
        if self.context:
            self.sock = self.raw = self.context.wrap_socket(self.sock, server_hostname=self.name, do_handshake_on_connect=False)
            self.sock.do_handshake()


def _connection(parts: SplitResult, terms: DownloadTerms) -> tuple[_Connection, str]:
    """And what to ask it for. A proxy is used where the run's own variables name one, and never for this machine itself."""
    scheme, host, port = origin(parts)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    proxy = urlsplit(terms.env.get(f"{scheme}_proxy") or terms.env.get(f"{scheme.upper()}_PROXY") or "")
    if proxy.hostname and not _spared(host, terms.env.get("no_proxy") or terms.env.get("NO_PROXY") or ""):
        connection = _Connection(proxy.hostname, proxy.port or 3128, timeout=_PATIENCE)
        connection.proxied = True
        if scheme == "https":
            connection.set_tunnel(host, port)
        else:
            path = parts.geturl()
    else:
        connection = _Connection(host, port, timeout=_PATIENCE)
    if scheme == "https":
        trusted = terms.env.get("SSL_CERT_FILE") or terms.env.get("REQUESTS_CA_BUNDLE") or None
        try:
            connection.context, connection.name = ssl.create_default_context(cafile=trusted), host
        except OSError as error:
            raise InputRefused(f"the certificates in {trusted} cannot be read: {_words(error)}", hint="SSL_CERT_FILE names them") from error
    return connection, path


def _spared(host: str, listed: str) -> bool:
    """Whether this host is reached without the proxy: this machine, and what the variable lists, with all that is below it."""
    names = [name.strip().lower().lstrip("*.") for name in listed.split(",") if name.strip()]
    return host in ("localhost", "127.0.0.1", "::1") or listed.strip() == "*" or any(host == n or host.endswith(f".{n}") for n in names)


@contextlib.contextmanager
def _cut_off(connection: _Connection, when: Callable[[], bool]) -> Iterator[None]:
    """Whoever waits for this connection is woken as soon as it is to wait no longer."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            raw = connection.raw
            if raw is not None and when():
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(raw, socket.SHUT_RDWR)  # not TLS's own, which would wait for the other side
                return

    thread = threading.Thread(target=watch, name="fetch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _words(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
