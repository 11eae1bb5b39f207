"""Every route has a right in one table, and the server does what the table says: for every token and every method."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI

from onward.api.access.rights.access_rules import READ
from onward.api.access.rights.route_lookup import NoRoute, Route, Routes
from onward.api.app import make_api
from onward.api.extensions import rights_table
from tests import rights
from tests.databases import tracker_in


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[rights.Walk]:
    with tracker_in(tmp_path) as opened:
        yield rights.Walk(tmp_path, opened)


def app() -> FastAPI:
    return make_api()  # no route is called


@cache
def all_routes() -> Routes:
    return Routes(app(), rights_table())


def test_all_routes_with_all_tokens_and_methods_answer_as_the_table_says(walk: rights.Walk) -> None:
    answered, said = walk.outcomes(), list(rights.table_says())
    assert len(answered) > 7000
    assert [(*one, other[3]) for one, other in zip(answered, said, strict=True) if one != other] == []


def test_the_page_and_the_recorded_matrix_are_those_of_the_table() -> None:
    assert rights.PAGE.read_text() == rights.page(), "run scripts/rights"
    assert rights.RECORDED.read_text() == rights.recorded(), "run scripts/rights"


def _secrets() -> str:
    return "open to everybody"


def test_a_route_without_a_right_keeps_the_server_from_starting() -> None:
    api = app()
    more = APIRouter(prefix="/api/v1")
    more.get("/secrets")(_secrets)
    api.include_router(more)
    with pytest.raises(RuntimeError, match="GET /api/v1/secrets has no right"):
        Routes(api, rights_table())
    api = app()
    api.mount("/files", FastAPI())
    with pytest.raises(RuntimeError):
        Routes(api, rights_table())


def test_a_right_without_a_route_keeps_the_server_from_starting() -> None:
    with pytest.raises(RuntimeError, match="GET /api/v1/gone, which is not a route"):
        Routes(app(), {**rights_table(), "GET /api/v1/gone": READ})


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("PUT", "/api/v1/runs/k1/artifacts/x/search", "PUT /api/v1/runs/{run_id}/artifacts/{path:path}"),
        ("DELETE", "/api/v1/runs/k1/tags/search", "DELETE /api/v1/runs/{run_id}/tags/{key:path}"),
        ("PATCH", "/api/v1/experiments/search", "PATCH /api/v1/experiments/{experiment}"),
        ("POST", "/api/v1/runs/search", "POST /api/v1/runs/search"),
        ("GET", "/api/v1/runs/search", "GET /api/v1/runs/{run_id}"),
    ],
)
def test_an_address_is_judged_by_its_route_and_not_by_its_looks(method: str, path: str, name: str) -> None:
    found = all_routes().find(method, path)
    assert isinstance(found, Route)
    assert found.name == name


def test_what_is_no_route_is_found_as_none() -> None:
    found = all_routes()
    assert found.find("GET", "/api/v1/nowhere") == NoRoute()
    assert found.find("DELETE", "/api/v1/runs") == NoRoute(allow=("GET", "POST"))
    assert found.find("GET", "/api/v1/runs/") == NoRoute()
    assert found.find("GET", "/x" * 5000) == NoRoute()


def test_a_reader_writes_and_deletes_nothing_whatever_the_address_ends_in(walk: rights.Walk) -> None:
    run, reader = walk.runs["mine"]["run"], walk.tokens["read"]
    for method, path in (
        ("PUT", f"/api/v1/runs/{run}/artifacts/x/search"),
        ("DELETE", f"/api/v1/runs/{run}/artifacts/x/search"),
        ("DELETE", f"/api/v1/runs/{run}/tags/search"),
        ("PATCH", "/api/v1/experiments/search"),
        ("PATCH", "/api/v1/runs/search"),
        ("PUT", "/api/2.0/mlflow-artifacts/artifacts/1/x/artifacts/search"),
        ("DELETE", "/api/2.0/mlflow/logged-models/search"),
        ("PATCH", "/api/2.0/mlflow/logged-models/search"),
        ("PUT", "/api/v1/alerts/rules/search"),
    ):
        assert asyncio.run(walk.ask(method, path, reader, b"{}"))[0] == 403, (method, path)
