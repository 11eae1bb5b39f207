"""Named views: kept for their owner, seen by others where they are shared, and nobody else's to delete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.tracker.access.tokens import Rights, Scope
from onward.tracker.search import saved_views
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def test_a_view_is_saved_listed_replaced_and_deleted(harness: Harness) -> None:
    asked = {"page": "runs", "name": "mine", "query": "filter=state%20%3D%20failed"}
    made = good(harness.client.ask("PUT", "/api/v1/views", json=asked))
    assert (made["owner"], made["mine"], made["shared"], made["query"]) == ("ada", True, False, asked["query"])
    again = good(harness.client.ask("PUT", "/api/v1/views", json={**asked, "query": "order=created"}))
    assert (again["id"], again["query"], again["created"]) == (made["id"], "order=created", made["created"])
    good(harness.client.ask("PUT", "/api/v1/views", json={**asked, "page": "compare"}))
    assert [view["page"] for view in good(harness.client.get("/api/v1/views"))["views"]] == ["compare", "runs"]
    assert [view["id"] for view in good(harness.client.get("/api/v1/views?page=runs"))["views"]] == [made["id"]]
    assert harness.client.ask("DELETE", f"/api/v1/views/{made['id']}").status == 204
    assert harness.client.ask("DELETE", f"/api/v1/views/{made['id']}").status == 404
    assert good(harness.client.get("/api/v1/views?page=runs"))["views"] == []


def test_others_see_shared_views_alone_and_cannot_take_them_away(harness: Harness) -> None:
    bob = harness.as_(Scope.USER, rights=Rights.WRITE, name="bob")
    reader = harness.as_(Scope.USER, rights=Rights.READ, name="eve")
    own = good(harness.client.ask("PUT", "/api/v1/views", json={"page": "runs", "name": "own", "query": ""}))
    shared = good(harness.client.ask("PUT", "/api/v1/views", json={"page": "runs", "name": "all", "query": "a=1", "shared": True}))
    assert [(view["name"], view["mine"]) for view in good(bob.get("/api/v1/views"))["views"]] == [("all", False)]
    assert good(bob.get(f"/api/v1/views/{shared['id']}"))["query"] == "a=1"
    assert good(bob.get(f"/api/v1/views/{own['id']}"), 404)["detail"] == f"there is no view number {own['id']}"
    assert good(bob.ask("DELETE", f"/api/v1/views/{shared['id']}"), 403)["detail"] == "view 'all' belongs to ada"
    assert bob.ask("PUT", "/api/v1/views", json={"page": "runs", "name": "all", "query": "b=2"}).status == 200  # his own
    assert good(harness.client.get(f"/api/v1/views/{shared['id']}"))["query"] == "a=1"
    assert reader.ask("PUT", "/api/v1/views", json={"page": "runs", "name": "x", "query": ""}).status == 403
    assert reader.get("/api/v1/views").status == 200
    assert harness.as_(Scope.RUN, run=harness.run()).get("/api/v1/views").status == 403


def test_a_token_without_a_name_has_views_of_its_own(harness: Harness) -> None:
    nameless, other = harness.as_(Scope.USER, rights=Rights.WRITE), harness.as_(Scope.USER, rights=Rights.WRITE)
    good(nameless.ask("PUT", "/api/v1/views", json={"page": "runs", "name": "x", "query": ""}))
    assert len(good(nameless.get("/api/v1/views"))["views"]) == 1
    assert good(other.get("/api/v1/views"))["views"] == []


def test_nobody_has_more_views_than_there_is_room_for(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MOST", 1)
    good(harness.client.ask("PUT", "/api/v1/views", json={"page": "runs", "name": "a", "query": ""}))
    answer = good(harness.client.ask("PUT", "/api/v1/views", json={"page": "runs", "name": "b", "query": ""}), 400)
    assert "already has" in answer["detail"]
    assert len(good(harness.client.get("/api/v1/views"))["views"]) == 1
    assert harness.client.ask("PUT", "/api/v1/views", json={"page": "", "name": "b", "query": ""}).status == 400
