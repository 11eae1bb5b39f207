"""The page: what `make web` built, behind the gate like everything else.

A browser that asks for HTML gets the page wherever it goes, and the page reads the address; `/runs/<id>` is a view of it and, for a
client that does not ask for HTML, still the call that it always was. Built files have their content's hash in their names: a browser
keeps them for ever. They are read once, packed once, and found by name alone, so that no path leads out of their folder.
"""

from __future__ import annotations

import gzip
import html
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from onward.api.access.gate import App, Receive, Scope, Send
from onward.api.access.rights.route_lookup import ASSETS, is_view
from onward.api.plain_pages import HTML, STYLED, page_of
from onward.api.transport.responses import send_whole

STATIC = Path(__file__).parent / "static"

_FOR_EVER = (b"cache-control", b"private, max-age=31536000, immutable")
_PACKED = frozenset({".js", ".css", ".svg", ".html", ".json", ".map"})


@dataclass(frozen=True, kw_only=True)
class Asset:
    body: bytes
    kind: str
    packed: bytes | None = None  # gzip

    @classmethod
    def read(cls, path: Path) -> Asset:
        body = path.read_bytes()
        kind = "text/javascript" if path.suffix == ".js" else mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return cls(body=body, kind=kind, packed=gzip.compress(body, 9, mtime=0) if path.suffix in _PACKED else None)


class WebApp:
    """Stands before the routes: takes what is the page's, hands on the rest."""

    def __init__(self, inner: App, folder: Path = STATIC) -> None:
        self._inner = inner
        self._folder = folder
        self._assets: dict[str, Asset] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, root = _place(scope)
        headers = dict(scope.get("headers", ()))
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._inner(scope, receive, send)
        elif path.startswith(ASSETS):
            await self._asset(path.removeprefix(ASSETS), scope, headers, receive, send)
        elif is_view(path, headers.get(b"accept", b"")):
            built = _index(self._folder, root)
            body = built or page_of("Not built", _NOT_BUILT.format(how=html.escape(_HOW), root=html.escape(root, quote=True)))
            await _send(send, scope, body, [*((HTML,) if built else STYLED), (b"vary", b"accept, cookie")])
        else:
            await self._inner(scope, receive, send)

    async def _asset(self, name: str, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        asset = self._assets.get(name) or self._load(name)
        if asset is None:
            await self._inner(scope, receive, send)  # which says that nothing is there
            return
        sent = [(b"content-type", asset.kind.encode()), _FOR_EVER, (b"vary", b"accept-encoding")]
        if asset.packed is not None and b"gzip" in headers.get(b"accept-encoding", b""):
            await _send(send, scope, asset.packed, [*sent, (b"content-encoding", b"gzip")])
        else:
            await _send(send, scope, asset.body, sent)

    def _load(self, name: str) -> Asset | None:
        """Only what lies in the folder itself; the listing, not the request, says which file is read."""
        folder = self._folder / "assets"
        found = next((path for path in folder.iterdir() if path.name == name), None) if folder.is_dir() else None
        if found is not None:
            self._assets[name] = Asset.read(found)
        return self._assets.get(name)


def _place(scope: Scope) -> tuple[str, str]:
    root = scope.get("root_path", "")
    return scope.get("path", "").removeprefix(root) or "/", root


def _index(folder: Path, root: str) -> bytes | None:
    prefix = html.escape(root, quote=True)
    try:
        page = (folder / "index.html").read_text()
    except FileNotFoundError:
        return None
    page = page.replace('<meta name="onward-root" content=""', f'<meta name="onward-root" content="{prefix}"')
    return page.replace('"./assets/', f'"{prefix}/assets/').encode()


async def _send(send: Send, scope: Scope, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    if scope["method"] == "HEAD":
        await send_whole(send, 200, b"", headers)
    else:
        await send_whole(send, 200, body, headers)


def missing_page(folder: Path = STATIC) -> str:
    """What to do where the page is not built; empty where it is."""
    return "" if (folder / "index.html").is_file() else _HOW


_IN_A_CHECKOUT = (Path(__file__).parents[3] / "build_web.py").is_file()
_HOW = (
    "run `make web`, then load the page again"
    if _IN_A_CHECKOUT
    else "install Node 20.19 or newer, run the `pip install` of Onward again with --force-reinstall --no-deps, and start the server again"
)
_NOT_BUILT = """<p>You are logged in, but this installation of Onward has no web page. To get it: {how}.</p>
<p>Until then: <a href="{root}/docs">the API of this server</a>, <a href="{root}/api/v1/runs">its runs</a>, and
<code>onward runs</code> on the command line.</p>
"""
