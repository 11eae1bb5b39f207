"""The page as it is built: small, whole, and in step with the server."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from onward.api.web_app import STATIC
from tests.needs import missing
from tests.web import types

FIRST_LOAD = 250_000  # bytes, gzip


@pytest.fixture
def index() -> str:
    if not (STATIC / "index.html").exists():
        missing("the page is not built: make web")
    return (STATIC / "index.html").read_text()


def test_the_types_of_the_page_are_those_of_the_server(tmp_path: Path) -> None:
    types.write(tmp_path / "api.gen.ts")
    same = (tmp_path / "api.gen.ts").read_text() == types.KEPT.read_text()
    assert same, "the API has changed: scripts/api-types"


def test_the_first_load_is_small(index: str) -> None:
    """The shell and the list of runs, with all that they import."""
    wanted = set(re.findall(r"assets/([\w.-]+)", index)) | {file.name for file in (STATIC / "assets").glob("runs-*")}
    seen: set[str] = set()
    while wanted - seen:
        name = (wanted - seen).pop()
        seen.add(name)
        text = (STATIC / "assets" / name).read_text()
        wanted |= set(re.findall(r'(?:from|import)\s?"\./([\w.-]+)"', text))
    size = sum(len(gzip.compress((STATIC / "assets" / name).read_bytes())) for name in seen)
    assert 20_000 < size < FIRST_LOAD, sorted(seen)


def test_nothing_stands_in_the_page_that_its_policy_forbids(index: str) -> None:
    assert not re.search(r"<script(?![^>]*\bsrc=)", index)
    assert not re.search(r"<style|\sstyle=|\son\w+=", index)


def test_no_file_of_the_page_asks_anyone_else(index: str) -> None:
    known = {"http://www.w3.org", "https://github.com"}  # names of formats, never asked
    for file in (STATIC / "assets").glob("*.*"):
        found = set(re.findall(r"https?://[\w.-]+", file.read_text())) - known
        assert found == set(), f"{file.name}: {found}"


def test_no_registry_is_named_in_the_lock() -> None:
    assert '"resolved"' not in (types.KEPT.parents[1] / "package-lock.json").read_text()
