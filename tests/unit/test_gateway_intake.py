"""What is done with messages as they come: stored in one commit, refused with an answer, or put aside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.clock import ManualClock
from onward.gateway.intake import InboundQueue, Intake, IntakeDecision, allowed_hosts
from onward.gateway.messages.incoming import Incoming
from onward.model.requests.gateway_settings import GatewaySettings, V1Settings
from onward.model.requests.outcome import Outcome, OutcomeState
from onward.model.requests.request import Outgoing, OutgoingKind, RequestState
from onward.tracker.requests.store import Requests
from tests.gateways import V1, FakeRecipes


@pytest.fixture
def requests(tmp_path: Path) -> Iterator[Requests]:
    opened = Requests.open(tmp_path / "requests.db")
    yield opened
    opened.close()


@pytest.fixture
def intake(requests: Requests) -> Intake:
    return Intake(requests=requests, recipes=FakeRecipes(), settings=GatewaySettings(v1=V1, quota=2, message=1), clock=ManualClock(100.0))


def v2(own: str, **body: Any) -> tuple[InboundQueue, Incoming]:
    raw = json.dumps({"id": own, "recipe": "echo", **body}).encode()
    return InboundQueue.REQUESTS, Incoming(body=raw, reply_to="mine", correlation_id=own)


def ask(kind: str, own: str, reply_to: str | None = "mine") -> tuple[InboundQueue, Incoming]:
    return InboundQueue.CONTROL, Incoming(body=json.dumps({"kind": kind, "id": own}).encode(), reply_to=reply_to)


def entries(requests: Requests) -> list[Outgoing]:
    return requests.outbox.due(now=1e9)


def test_a_batch_of_all_kinds_is_taken_in_order(intake: Intake, requests: Requests) -> None:
    old = (InboundQueue.V1, Incoming(body=b'{"inputs": {}, "settings": {}}', reply_to="hpc-results", correlation_id="7"))

    done = intake.take([v2("a"), ask("status", "a"), old, (InboundQueue.REQUESTS, Incoming(body=b"{"))])

    assert [one.news for one in done] == [True, False, True, False]
    assert done[1].answer is not None and done[1].answer.payload["state"] == "accepted"
    assert done[3].aside.startswith("the message is not JSON")
    assert [record.id for record in requests.unsettled()] == ["a", "v1-7"]


def test_a_message_that_comes_twice_is_one_request_and_one_with_another_body_is_told_so(intake: Intake, requests: Requests) -> None:
    assert intake.take([v2("a"), v2("a"), v2("a", priority=1)]) == [IntakeDecision(news=True)] * 3

    [error] = entries(requests)
    assert error.kind is OutgoingKind.ERROR and "another request with the id a" in error.payload["reason"]
    assert len(requests.unsettled()) == 1


def test_what_its_recipe_does_not_take_is_refused_with_the_recipes_words(intake: Intake, requests: Requests) -> None:
    done = intake.take([v2("a", recipe="none"), v2("b", settings={"bad": 1})])

    assert [one.aside for one in done] == ["", ""], "they are requests: nobody needs to look at them but their senders"
    assert [requests.of(own).state for own in ("a", "b")] == [RequestState.REFUSED] * 2
    assert {message.request: message.payload["reason"] for message in entries(requests)} == {
        "a": "no recipe named 'none'",
        "b": "setting 'bad': unknown",
    }


def test_an_accepted_request_stays_so_though_its_recipe_has_gone(requests: Requests) -> None:
    recipes = FakeRecipes()
    intake = Intake(requests=requests, recipes=recipes, settings=GatewaySettings(), clock=ManualClock(100.0))
    intake.take([v2("a")])
    recipes.known.clear()

    intake.take([v2("a")])

    assert requests.of("a").state is RequestState.ACCEPTED and entries(requests) == []


def test_a_sender_with_too_many_open_requests_is_told_so(intake: Intake, requests: Requests) -> None:
    intake.take([v2(own) for own in "abc"])

    [refused] = entries(requests)
    assert (refused.request, refused.payload["state"]) == ("c", "refused")
    assert "the most that one sender may have" in refused.payload["reason"]


def test_a_message_that_is_too_large_is_put_aside_and_answered_once(intake: Intake, requests: Requests) -> None:
    huge = (InboundQueue.REQUESTS, Incoming(body=b"x" * (1 << 21), reply_to="mine", correlation_id="c"))

    intake.take([huge])
    [done] = intake.take([huge])

    assert "2,097,152 bytes, expected at most 1,048,576" in done.aside
    assert [message.correlation_id for message in entries(requests)] == ["c"]


def test_nobody_is_answered_who_named_no_queue(intake: Intake, requests: Requests) -> None:
    assert intake.take([(InboundQueue.REQUESTS, Incoming(body=b"["))])[0].news is False
    assert intake.take([ask("status", "a", reply_to=None)]) == [IntakeDecision()]
    assert entries(requests) == []


def test_to_cancel_is_written_down_and_how_it_stands_is_told(intake: Intake, requests: Requests) -> None:
    intake.take([v2("a")])

    [done] = intake.take([ask("cancel", "a")])

    assert done.news and done.answer is not None
    assert done.answer.payload["words"] == "it is being cancelled"
    assert requests.of("a").cancel_asked == 100.0


def test_how_a_settled_request_stands_is_its_outcome_without_places(intake: Intake, requests: Requests) -> None:
    intake.take([v2("a")])
    requests.settle(requests.of("a"), Outcome(state=OutcomeState.NODE_LOST, reason="node g1 was lost", next="send it again"), at=101.0)

    [done] = intake.take([ask("status", "a")])

    assert done.answer is not None
    assert done.answer.payload["outcome"] == {"state": "node_lost", "reason": "node g1 was lost", "next": "send it again"}


@pytest.mark.parametrize("kind", ["cancel", "status"])
def test_a_question_about_a_request_nobody_knows_is_answered(intake: Intake, kind: str) -> None:
    [done] = intake.take([ask(kind, "none")])

    assert done.answer is not None and done.answer.payload["state"] == "unknown"


def test_inputs_may_come_from_the_settings_hosts_and_from_rodan() -> None:
    settings = GatewaySettings(hosts=("files.test",), v1=V1Settings(rodan="https://Rodan.test:8443/x"))

    assert allowed_hosts(settings) == ("files.test", "rodan.test:8443")
