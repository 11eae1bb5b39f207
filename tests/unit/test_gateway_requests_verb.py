"""`onward gateway requests`, and the words for what a request waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onward.cli.main import main
from onward.errors import InvalidInput
from onward.model.requests.outcome import Outcome, OutcomeState
from onward.model.requests.request import OPEN_STATES, RequestEnding, RequestState
from onward.model.requests.standing import standings, waits_for
from onward.tracker.requests.store import Requests
from tests.contract.requests import request
from tests.sandbox import strict_json

DONE = Outcome(state=OutcomeState.DONE, reason="the training finished")


Listed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "lab.requests.db"


@pytest.fixture
def listed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Listed:
    """Exit code, stdout and stderr of the verb."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["onward", "gateway", "requests", "--db", str(tmp_path / "lab.db"), *words])
        capsys.readouterr()
        code: Any = 0
        try:
            main()
        except SystemExit as error:
            code = error.code or 0
        return code, *capsys.readouterr()

    return run


def test_it_lists_each_request_with_what_it_waits_for(place: Path, listed: Listed) -> None:
    store = Requests.open(place)
    for id in ("first", "second", "third"):
        store.accept(request(id))
    store.put_off("first", until=9.0, words="the scheduler does not answer")
    store.set_run("second", run="run-2", folder="/runs/run-2", at=2.0)
    store.settle(store.of("third"), DONE, at=3.0)
    store.close()

    def ids(*words: str) -> list[str]:
        return [row["id"] for row in strict_json(listed("--json", *words)[1])["requests"]]

    rows = strict_json(listed("--json")[1])["requests"]
    assert {row["id"]: (row["state"], row["run"], row["waits_for"]) for row in rows} == {
        "first": ("accepted", None, "the scheduler does not answer"),
        "second": ("submitted", "run-2", "its job to start"),
        "third": ("done", None, "the broker to take its reply"),
    }
    assert ids("--state", "open") == ["second", "first"]
    assert ids("--state", "done") == ["third"]
    assert ids("--text", "run-2") == ["second"]
    assert ids("--limit", "1") == ["third"]
    code, out, err = listed()
    assert code == 0 and "the scheduler does not answer" in out and "1 accepted, 1 done, 1 submitted" in err


def test_without_a_store_it_says_who_makes_it(place: Path, listed: Listed) -> None:
    code, _, err = listed()
    assert code == 3 and "there are no requests in" in err and "`onward gateway` creates it" in err
    assert not place.exists()


def test_a_state_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(InvalidInput, match="no request is ever 'lost'") as found:
        standings("lost")
    assert "expected one of open, accepted, submitted, running, done" in found.value.hint
    assert standings("open") == tuple(map(str, OPEN_STATES))


def test_what_it_waits_for_follows_its_course(tmp_path: Path) -> None:
    store = Requests.open(tmp_path / "requests.db")
    store.accept(request())
    record = store.of("r1")
    assert waits_for(record, None) == "its turn"
    assert waits_for(replace(record, ending=RequestEnding.CANCELLED), None) == "the end of its run: cancelled"
    assert waits_for(replace(record, state=RequestState.RUNNING), None) == "its run"
    assert waits_for(replace(record, state=RequestState.RUNNING, progress={"words": "leg 2 trains"}), None) == "leg 2 trains"
    store.settle(record, DONE, at=3.0)
    reply = store.outbox.of("r1")[0]
    store.outbox.failed(reply, "there is no queue 'mine'", now=4.0)
    assert waits_for(store.of("r1"), store.outbox.of("r1")[0]) == "the broker to take its reply: there is no queue 'mine'"
    store.outbox.give_up(store.outbox.of("r1")[0], "there is no queue 'mine', for a week")
    assert waits_for(store.of("r1"), store.outbox.of("r1")[0]) == "nobody came for its reply: there is no queue 'mine', for a week"
    store.outbox.sent(["r1.reply"], now=5.0)
    assert waits_for(store.of("r1"), store.outbox.of("r1")[0]) == ""
    store.close()
