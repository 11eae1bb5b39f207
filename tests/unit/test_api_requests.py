"""Requests over HTTP: how they stand, their answer, a cancel; and results by token, or by a signed address until it closes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from onward.model.requests.outcome import Outcome, OutcomeFile, OutcomeState
from onward.model.requests.request import RequestEnding, RequestInput
from onward.tracker.access.tokens import Rights, Scope
from onward.tracker.requests.store import Requests
from tests.api import Client
from tests.contract.requests import request
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good

AT = "/api/v1/requests"
NEVER = 2_000_000_000


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Requests]:
    opened = Requests.open(tmp_path / "tracker.requests.db")
    yield opened
    opened.close()


def settle(store: Requests, id: str, state: OutcomeState, *results: OutcomeFile, at: float = 1_700_000_100.0) -> None:
    outcome = Outcome(
        state=state, reason=f"it is {state}", next="look", log_tail="the end", metrics={"loss": float("nan")}, results=results
    )
    store.settle(store.of(id), outcome, at=at)


def made(folder: Path, name: str, data: bytes) -> OutcomeFile:
    path = folder / "model.keras"
    path.write_bytes(data)
    return OutcomeFile(name=name, path=str(path), size=len(data), sha256=hashlib.sha256(data).hexdigest())


def test_where_no_gateway_ever_ran_there_are_none_and_nothing_is_made(harness: Harness, tmp_path: Path) -> None:
    answer = good(harness.client.get(AT))
    assert (answer["requests"], answer["next"], answer["counts"]["all"]) == ([], None, 0)
    assert "no gateway has run here" in good(harness.client.get(f"{AT}/r1"), 404)["detail"]
    assert not (tmp_path / "tracker.requests.db").exists()


def test_they_are_listed_newest_first_by_standing_and_text_in_pages(harness: Harness, store: Requests) -> None:
    for number in range(5):
        store.accept(request(f"r{number}", sender="scribe" if number == 3 else "rodan"))
    settle(store, "r0", OutcomeState.DONE)
    settle(store, "r1", OutcomeState.OUT_OF_MEMORY)
    store.refuse(request("r9"), "no recipe named so called")
    answer = good(harness.client.get(AT))
    assert [one["id"] for one in answer["requests"]] == ["r9", "r4", "r3", "r2", "r1", "r0"]
    assert answer["counts"] == {"all": 6, "open": 3, "done": 1, "failed": 1, "cancelled": 0, "refused": 1}
    assert [one["id"] for one in good(harness.client.get(f"{AT}?state=failed"))["requests"]] == ["r1"]
    assert [one["id"] for one in good(harness.client.get(f"{AT}?state=open&text=scribe"))["requests"]] == ["r3"]
    first = good(harness.client.get(f"{AT}?limit=4"))
    assert [one["id"] for one in good(harness.client.get(f"{AT}?limit=4&before={first['next']}"))["requests"]] == ["r1", "r0"]
    assert harness.client.get(f"{AT}?state=lost").status == 400


def test_one_tells_what_it_asked_its_answer_and_what_went_out(harness: Harness, store: Requests, tmp_path: Path) -> None:
    secret = "https://ada:pass@rodan.lab/uploads/a.png?token=very-secret"
    store.accept(request(inputs=(RequestInput(name="Image", url=secret),), settings={"Patch height": 64}))
    store.plan_run("r1", "k3x9q2m7")
    store.set_run("r1", run="k3x9q2m7", folder="/runs/a", at=1_700_000_010.0)
    store.tell(store.of("r1"), {"state": "running", "percent": 25.0, "metrics": {"loss": 0.5}}, at=1_700_000_020.0, send=True)
    before = good(harness.client.get(f"{AT}/r1"))
    assert (before["state"], before["run_id"], before["fraction"], before["metrics"], before["reply"]) == (
        *("submitted", "k3x9q2m7", 0.25, {"loss": 0.5}),
        None,
    )
    settle(store, "r1", OutcomeState.DONE, made(tmp_path, "Model 0", b"weights"))
    answer = good(harness.client.get(f"{AT}/r1"))
    assert (answer["outcome"], answer["reason"], answer["next"], answer["log_tail"]) == ("done", "it is done", "look", "the end")
    assert (answer["metrics"], answer["settings"]) == ({"loss": "NaN"}, {"Patch height": 64})
    assert answer["results"] == [
        {"name": "Model 0", "size": 7, "sha256": hashlib.sha256(b"weights").hexdigest(), "media_type": "application/octet-stream"}
    ]
    assert ([one["kind"] for one in answer["messages"]], answer["reply"]["sent"]) == (["reply"], None)
    assert answer["inputs"][0]["url"] == "https://rodan.lab/uploads/a.png?…"
    assert "very-secret" not in harness.client.get(f"{AT}/r1").text


def test_a_cancel_is_asked_for_once_and_only_of_an_open_one(harness: Harness, store: Requests) -> None:
    store.accept(request())
    assert harness.as_(Scope.USER, rights=Rights.READ).post(f"{AT}/r1/cancel").status == 403
    asked = good(harness.client.post(f"{AT}/r1/cancel"))["cancel_asked"]
    assert asked is not None
    assert good(harness.client.post(f"{AT}/r1/cancel"))["cancel_asked"] == asked
    assert store.of("r1").ending is RequestEnding.CANCELLED
    settle(store, "r1", OutcomeState.CANCELLED)
    assert good(harness.client.post(f"{AT}/r1/cancel"), 409)["detail"] == "request r1 is over: it is cancelled"


def test_a_result_is_had_by_its_signed_address_alone_until_that_closes(harness: Harness, store: Requests, tmp_path: Path) -> None:
    store.accept(request())
    settle(store, "r1", OutcomeState.DONE, *(made(tmp_path, name, b"weights") for name in ("Model 0", "Model 1", "a/b")))
    nobody, path = Client(harness.server.gate), f"{AT}/r1/results/Model%200"
    signed = f"{path}?expires={NEVER}&signature={store.sign('r1', 'Model 0', NEVER)}"
    fetched = nobody.get(signed)
    assert (fetched.status, fetched.body, fetched.headers["content-disposition"]) == (
        200,
        b"weights",
        "attachment; filename*=UTF-8''model.keras",
    )
    assert good(nobody.get(path), 401)["detail"] == "no token was sent"
    closed = f"{path}?expires=9&signature={store.sign('r1', 'Model 0', 9)}"
    others = (signed.replace("Model%200", "Model%201"), signed.replace(f"{NEVER}", f"{NEVER + 1}"), closed, f"{signed}0", signed[:-1])
    assert [nobody.get(one).status for one in others] == [401] * 5
    assert nobody.ask("POST", signed).status == 401
    assert nobody.get(signed.replace("/results/Model%200", "")).status == 401
    assert harness.client.get(path).body == b"weights"
    slashed = f"{AT}/r1/results/a%2Fb?expires={NEVER}&signature={store.sign('r1', 'a/b', NEVER)}"
    assert nobody.get(slashed).body == b"weights"
    assert harness.client.get(f"{AT}/r1/results/{quote('Model 7')}").status == 404


def test_a_result_that_is_no_longer_what_was_answered_is_not_given_out(harness: Harness, store: Requests, tmp_path: Path) -> None:
    store.accept(request())
    settle(store, "r1", OutcomeState.DONE, made(tmp_path, "Model 0", b"weights"))
    (tmp_path / "model.keras").write_bytes(b"other weights")
    assert "has changed" in good(harness.client.get(f"{AT}/r1/results/Model%200"), 409)["detail"]
    (tmp_path / "model.keras").unlink()
    assert harness.client.get(f"{AT}/r1/results/Model%200").status == 404
