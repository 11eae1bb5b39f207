"""The page as it is served: behind the gate, at every address that is a view, under any prefix; its files for ever, itself never kept."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from pathlib import Path

import pytest

from onward.api.access.gate import Receive, Scope, Send
from onward.api.access.rights.route_lookup import is_view
from onward.api.plain_pages import STYLED, page_of
from onward.api.transport.responses import send_whole
from onward.api.web_app import WebApp
from tests.api import Answer, Client

INDEX = '<head><meta name="onward-root" content="" /><script type="module" src="./assets/index-k1.js"></script></head>'
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def routes(scope: Scope, receive: Receive, send: Send) -> None:
    await send_whole(send, 404, b"the routes answer", [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(INDEX)
    (tmp_path / "assets" / "index-k1.js").write_text("export const a = 1;" * 100)
    (tmp_path / "secret.txt").write_text("not the page's")
    return tmp_path


def ask(folder: Path, target: str, *, root: str = "", method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
    page = WebApp(routes, folder)

    async def under(scope: Scope, receive: Receive, send: Send) -> None:
        await page({**scope, "root_path": root, "path": root + scope["path"]}, receive, send)

    return Client(under).ask(method, target, headers=headers)


@pytest.mark.parametrize("target", ["/", "/runs/k1", "/runs/k1/charts?x=time", "/compare?runs=a,b", "/no-such-page"])
def test_a_browser_gets_the_page_at_every_view(folder: Path, target: str) -> None:
    answer = ask(folder, target, headers=BROWSER)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "/assets/index-k1.js" in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "script-src 'self'; style-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("target", ["/api/v1/runs", "/docs", "/login", "/metrics", "/healthz", "/api"])
def test_a_browser_gets_what_is_no_view_from_the_routes(folder: Path, target: str) -> None:
    assert ask(folder, target, headers=BROWSER).text == "the routes answer"


def test_a_client_that_asks_for_no_page_gets_the_call_of_that_address(folder: Path) -> None:
    assert ask(folder, "/runs/k1", headers={"accept": "*/*"}).text == "the routes answer"
    assert ask(folder, "/runs/k1", method="POST", headers=BROWSER).text == "the routes answer"
    assert not is_view("/runs/k1", b"application/json")


def test_under_a_prefix_the_page_and_its_files_are_found_there(folder: Path) -> None:
    page = ask(folder, "/runs/k1", root="/lab/onward", headers=BROWSER).text
    assert '<meta name="onward-root" content="/lab/onward"' in page
    assert 'src="/lab/onward/assets/index-k1.js"' in page
    assert ask(folder, "/assets/index-k1.js", root="/lab/onward").status == 200


def test_a_prefix_cannot_break_out_of_the_page(folder: Path) -> None:
    page = ask(folder, "/", root='/"><script>', headers=BROWSER).text
    assert "/&quot;&gt;&lt;script&gt;" in page


def test_files_are_kept_for_ever_and_packed_for_those_who_can_read_it(folder: Path) -> None:
    plain = ask(folder, "/assets/index-k1.js")
    assert plain.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert plain.headers["content-type"] == "text/javascript"
    packed = ask(folder, "/assets/index-k1.js", headers={"accept-encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body)


@pytest.mark.parametrize("name", ["../secret.txt", "../index.html", "none.js", "", "/etc/passwd", "..", "%2e%2e/secret.txt"])
def test_only_what_was_built_is_served(folder: Path, name: str) -> None:
    assert ask(folder, f"/assets/{name}").text == "the routes answer"


def test_a_head_has_no_body(folder: Path) -> None:
    for target in ("/", "/assets/index-k1.js"):
        answer = ask(folder, target, method="HEAD", headers=BROWSER)
        assert (answer.status, answer.body) == (200, b"")


def test_where_the_page_is_not_built_a_plain_one_says_how_to(tmp_path: Path) -> None:
    answer = ask(tmp_path, "/runs/k1", root="/lab", headers=BROWSER)
    assert (answer.status, "make web" in answer.text, 'href="/lab/docs"' in answer.text) == (200, True, True)
    assert ask(tmp_path, "/assets/index-k1.js").text == "the routes answer"


def test_the_style_of_a_plain_page_is_the_one_its_policy_names() -> None:
    style = re.search(r"<style>(.*?)</style>", page_of("x", "y").decode(), re.DOTALL)
    assert style is not None
    named = base64.b64encode(hashlib.sha256(style[1].encode()).digest())
    assert b"'sha256-" + named + b"'" in dict(STYLED)[b"content-security-policy"]
    assert b"unsafe" not in dict(STYLED)[b"content-security-policy"]


def test_the_title_of_a_plain_page_is_text() -> None:
    assert b"<script>" not in page_of("<script>", "")
