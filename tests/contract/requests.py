"""What the gateway's store promises, on whatever database. Each database's test file inherits this class and says where the store is."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onward.errors import NotAllowed, NotFound, StorageError
from onward.model.requests.outcome import Outcome, OutcomeFile, OutcomeState
from onward.model.requests.request import OutgoingKind, Request, RequestEnding, RequestInput, RequestState, make_outgoing
from onward.tracker.db.election import RequestServerElection
from onward.tracker.requests.store import Acceptance, Requests

NOW = 1_700_000_000.0
DONE = Outcome(
    state=OutcomeState.DONE,
    reason="the training finished",
    metrics={"loss": 0.5},
    results=(OutcomeFile(name="Model 0", path="/runs/a/model.h5", size=8, sha256="ab" * 32),),
)


def request(id: str = "r1", **others: Any) -> Request:
    usual: dict[str, Any] = {"sender": "rodan", "protocol": "v2", "recipe": "patchwise", "reply_to": "answers", "correlation_id": f"c-{id}"}
    given = {"inputs": (RequestInput(name="Image", url="https://rodan.lab/a.png", size=9),), "settings": {"Patch height": 64, "½": "\x00"}}
    return Request(**{"id": id, "body_sha256": "1" * 64, "received": NOW, **usual, **given, **others})


@pytest.fixture
def store(requests_place: str | Path) -> Iterator[Requests]:
    opened = Requests.open(requests_place)
    yield opened
    opened.close()


class RequestsContract:
    # ── in ────────────────────────────────────────────────────────────────────

    def test_what_was_accepted_is_there_for_another_process(self, store: Requests, requests_place: str | Path) -> None:
        asked = request(deadline=NOW + 60, priority=3, resources={"mem": "4G"})
        assert store.accept(asked) is Acceptance.ACCEPTED
        other = Requests.open(requests_place, create=False)
        found = other.of("r1")
        other.close()
        assert (found.request, found.state, found.run, found.outcome) == (asked, RequestState.ACCEPTED, None, None)

    def test_the_same_message_again_changes_nothing(self, store: Requests) -> None:
        store.accept(request())
        assert store.accept(request(received=NOW + 9)) is Acceptance.SAME
        assert store.of("r1").accepted == NOW
        assert store.outbox.of("r1") == []

    def test_another_body_under_the_same_id_is_told_so_once_and_leaves_the_first_alone(self, store: Requests) -> None:
        store.accept(request())
        other = request(body_sha256="2" * 64, recipe="other", reply_to="elsewhere")
        assert [store.accept(other), store.accept(other)] == [Acceptance.OTHER, Acceptance.OTHER]
        assert store.of("r1").request.recipe == "patchwise"
        (said,) = store.outbox.due(now=NOW)
        assert (said.kind, said.reply_to) == (OutgoingKind.ERROR, "elsewhere")
        assert "id r1 already exists" in said.payload["reason"]

    def test_of_many_who_bring_the_same_id_at_once_one_is_accepted(self, store: Requests) -> None:
        with ThreadPoolExecutor(8) as pool:
            taken = list(pool.map(lambda n: store.accept(request(f"r{n % 4}")), range(32)))
        assert (taken.count(Acceptance.ACCEPTED), taken.count(Acceptance.SAME)) == (4, 28)

    def test_a_refused_request_has_its_answer_and_never_a_run(self, store: Requests) -> None:
        store.refuse(request(), "setting 'CPUs': found -1", next="`onward gateway schema patchwise`")
        found = store.of("r1")
        assert (found.state, found.settled, store.unsettled()) == (RequestState.REFUSED, NOW, [])
        (reply,) = store.outbox.due(now=NOW)
        assert (reply.id, reply.payload["state"], reply.payload["reason"]) == ("r1.reply", "refused", "setting 'CPUs': found -1")
        assert store.accept(request()) is Acceptance.SAME
        assert store.refuse(request(), "again") is Acceptance.SAME
        assert len(store.outbox.of("r1")) == 1

    def test_a_sender_beyond_his_quota_is_refused_and_others_are_not(self, store: Requests) -> None:
        given = [request("a"), request("b"), request("c"), request("d", sender="else")]
        assert store.accept_all(given, quota=2) == [Acceptance.ACCEPTED, Acceptance.ACCEPTED, Acceptance.FULL, Acceptance.ACCEPTED]
        assert "rodan already has 2 open requests" in store.outbox.due(now=NOW)[0].payload["reason"]
        assert store.load("rodan") == 2
        store.settle(store.of("a"), DONE, at=NOW)
        assert store.accept(request("e"), quota=2) is Acceptance.ACCEPTED

    def test_whom_the_broker_does_not_vouch_for_shares_one_quota_whatever_they_call_themselves(self, store: Requests) -> None:
        given = [request(id, sender=f"anonymous/{id}") for id in "abc"]
        assert store.accept_all([*given, request("d")], quota=2) == [*[Acceptance.ACCEPTED] * 2, Acceptance.FULL, Acceptance.ACCEPTED]
        assert "anonymous already has 2 open requests" in store.outbox.due(now=NOW)[0].payload["reason"]

    def test_sent_again_from_another_reply_queue_it_is_answered_there_too(self, store: Requests) -> None:
        store.accept(request(reply_to="first"))
        for _ in range(2):
            assert store.accept(request(reply_to="second", received=NOW + 1)) is Acceptance.SAME
        store.tell(store.of("r1"), {"percent": 1.0}, at=NOW, send=True)
        assert [message.reply_to for message in store.outbox.due(now=NOW + 9)] == ["second"], "progress goes to the newest"
        store.settle(store.of("r1"), DONE, at=NOW + 2)
        due = store.outbox.due(now=NOW + 9)
        assert sorted((one.reply_to, one.payload["state"]) for one in due) == [("first", "done"), ("second", "done")]
        assert len({one.id for one in due}) == 2

        assert store.accept(request(reply_to="third", received=NOW + 3)) is Acceptance.SAME
        assert store.accept(request(reply_to="second")) is Acceptance.SAME
        assert sorted(one.reply_to or "" for one in store.outbox.due(now=NOW + 9)) == ["first", "second", "third"]
        assert store.outbox.replies(["r1"])["r1"].id == "r1.reply"

    def test_a_queue_that_comes_back_is_answered_once(self, store: Requests) -> None:
        for queue in ("first", "second", "first"):
            store.accept(request(reply_to=queue))
        store.settle(store.of("r1"), DONE, at=NOW)
        assert sorted(one.reply_to or "" for one in store.outbox.due(now=NOW)) == ["first", "second"]

    def test_a_full_queue_says_so_and_one_that_is_in_it_is_still_the_same(self, store: Requests) -> None:
        assert store.accept_all([request("a"), request("b")], most=1) == [Acceptance.ACCEPTED, Acceptance.FULL]
        assert store.outbox.due(now=NOW)[0].payload["reason"] == "the queue is full: 1 requests are open already"
        assert store.accept(request("a"), most=1) is Acceptance.SAME
        assert store.of("a").state is RequestState.ACCEPTED

    def test_secrets_of_a_request_are_kept_no_longer_than_its_run_needs_them(self, store: Requests) -> None:
        asked = request(
            inputs=(RequestInput(name="Image", url="https://files.lab/a.png?sig=hush"),),
            settings={"api_token": "hush", "max_tokens": 9, "Tokenizer": "a"},
        )
        kept = {"api_token": "(not kept)", "max_tokens": 9, "Tokenizer": "a"}
        store.accept(asked)
        assert store.of("r1").request == asked, "its run is still to be made"
        store.set_run("r1", run="run-1", folder="/runs/run-1", at=NOW)
        held = store.of("r1").request
        assert ([one.url for one in held.inputs], held.settings) == (["https://files.lab/a.png?…"], kept)
        assert store.accept(asked) is Acceptance.SAME, "the message is known by its hash"

        store.refuse(replace(asked, id="r2"), "setting 'api_token': unknown")
        store.accept(replace(asked, id="r3"))
        store.settle(store.of("r3"), DONE, at=NOW)
        assert "hush" not in str([store.of(id) for id in ("r1", "r2", "r3")])

    # ── its course ────────────────────────────────────────────────────────────

    def test_the_urgent_go_first_and_then_who_came_first(self, store: Requests) -> None:
        store.accept_all([request("a"), request("b", priority=5), request("c"), request("d", recipe="other")])
        assert [record.id for record in store.unsettled()] == ["b", "a", "c", "d"]
        assert [record.id for record in store.waiting(now=NOW, limit=2)] == ["b", "a"]
        assert [record.id for record in store.waiting(now=NOW, limit=9, without=["patchwise"])] == ["d"]

    def test_one_that_was_put_off_waits_and_one_that_has_a_run_is_followed(self, store: Requests) -> None:
        store.accept_all([request("a"), request("b", deadline=NOW + 9), request("c")])
        store.put_off("a", until=NOW + 60, words="the cluster is away")
        store.set_run("c", run="c0c0c0c0", folder="/runs/c", at=NOW)
        assert [record.id for record in store.waiting(now=NOW, limit=9)] == ["b"]
        assert [record.id for record in store.waiting(now=NOW + 60, limit=9)] == ["a", "b"]
        assert store.line() == {"patchwise": 2}
        assert [record.id for record in store.followed()] == ["c"]
        assert (store.of("a").words, store.of("a").tries) == ("the cluster is away", 1)

    def test_those_in_the_line_that_must_wait_no_longer_are_found(self, store: Requests) -> None:
        given = [request("a"), request("b", deadline=NOW + 9), request("c", recipe="other"), request("d", received=NOW + 100)]
        store.accept_all([*given, request("e", received=NOW + 100)])
        store.end("e", by="ada", at=NOW)
        late = [sorted(one.id for one in store.late("patchwise", now=NOW + 10, limit=limit)) for limit in (None, 60.0, 10.0)]
        assert late == [["b", "e"], ["b", "e"], ["a", "b", "e"]]

    def test_states_only_go_forward(self, store: Requests) -> None:
        store.accept(request())
        store.running("r1")
        assert store.of("r1").state is RequestState.ACCEPTED
        store.plan_run("r1", "k3x9q2m7")
        store.plan_run("r1", "zzzzzzzz")
        store.set_run("r1", run="k3x9q2m7", folder="/runs/a", at=NOW + 1)
        store.running("r1")
        store.set_run("r1", run="k3x9q2m7", folder="/runs/b", at=NOW + 2)
        found = store.of("r1")
        assert (found.state, found.run, found.folder, found.submitted) == (RequestState.RUNNING, "k3x9q2m7", "/runs/a", NOW + 1)

    def test_a_request_is_settled_once_with_one_answer_whoever_tries(self, store: Requests) -> None:
        store.accept(request())
        record = store.of("r1")
        failed = replace(DONE, state=OutcomeState.FAILED)
        with ThreadPoolExecutor(4) as pool:
            settled = list(pool.map(lambda outcome: store.settle(record, outcome, at=NOW), [DONE, failed, failed, failed]))
        assert settled.count(True) == 1
        (reply,) = store.outbox.of("r1")
        assert store.of("r1").outcome is not None
        assert reply.payload["state"] == str(store.of("r1").outcome.state)  # type: ignore[union-attr]
        assert reply.terminal
        assert store.settle(record, DONE, at=NOW) is False

    def test_the_answer_names_the_run_where_there_is_one(self, store: Requests) -> None:
        store.accept_all([request("a"), request("b")])
        store.plan_run("a", "k3x9q2m7")
        store.set_run("a", run="k3x9q2m7", folder="/runs/a", at=NOW)
        store.plan_run("b", "zzzzzzzz")
        for id in ("a", "b"):
            store.settle(store.of(id), DONE, at=NOW)
        assert [store.outbox.replies(["a", "b"])[id].payload["run"] for id in ("a", "b")] == ["k3x9q2m7", None]
        assert store.of("a").outcome == DONE

    def test_of_two_who_want_its_end_the_first_is_kept(self, store: Requests) -> None:
        store.accept(request())
        store.end("r1", by="ada", at=NOW + 1)
        found = store.end("r1", by="the deadline", at=NOW + 2, why=RequestEnding.EXPIRED)
        assert (found.ending, found.ending_by, found.cancel_asked) == (RequestEnding.CANCELLED, "ada", NOW + 1)
        with pytest.raises(NotFound, match="no request 'nobody'"):
            store.end("nobody", by="ada", at=NOW)

    def test_one_that_is_over_is_not_to_be_ended(self, store: Requests) -> None:
        store.accept(request())
        store.settle(store.of("r1"), DONE, at=NOW)
        assert store.end("r1", by="ada", at=NOW).ending is None

    # ── the outbox ────────────────────────────────────────────────────────────

    def test_newer_progress_overtakes_what_was_not_sent_and_the_answer_overtakes_all(self, store: Requests) -> None:
        store.accept(request())
        for at in (1.0, 2.0):
            store.tell(store.of("r1"), {"percent": at}, at=NOW + at, send=True)
        assert [message.payload for message in store.outbox.due(now=NOW + 9)] == [{"percent": 2.0}]
        assert store.of("r1").progress == {"percent": 2.0}
        store.settle(store.of("r1"), DONE, at=NOW + 3)
        store.tell(store.of("r1"), {"percent": 3.0}, at=NOW + 4, send=True)
        assert [message.kind for message in store.outbox.due(now=NOW + 9)] == [OutgoingKind.REPLY]

    def test_progress_may_be_kept_without_being_sent(self, store: Requests) -> None:
        store.accept(request(protocol="v1"))
        store.tell(store.of("r1"), {"percent": 1.0}, at=NOW, send=False)
        assert (store.of("r1").progress, store.outbox.due(now=NOW)) == ({"percent": 1.0}, [])

    def test_what_could_not_be_sent_is_tried_again_later_and_later_under_the_same_id(self, store: Requests) -> None:
        store.refuse(request(), "no")
        waits, now = [], NOW
        for _ in range(4):
            (message,) = store.outbox.due(now=now)
            store.outbox.failed(message, "the broker is away", now=now)
            due = store.outbox.next_due()
            assert due is not None
            assert store.outbox.due(now=due - 0.1) == []
            waits.append(due - now)
            now = due
        assert waits == [1.0, 2.0, 4.0, 8.0]
        (message,) = store.outbox.due(now=now)
        assert (message.id, message.tries, message.error) == ("r1.reply", 4, "the broker is away")
        store.outbox.sent([message.id], now=now)
        assert (store.outbox.due(now=now + 999), store.outbox.next_due()) == ([], None)
        (sent,) = store.outbox.of("r1")
        assert (sent.sent, sent.tries, sent.error) == (now, 5, "")

    def test_answers_go_before_everything_else(self, store: Requests) -> None:
        store.accept(request("a"))
        store.tell(store.of("a"), {}, at=NOW, send=True)
        store.outbox.post(make_outgoing(request("x"), OutgoingKind.STATUS, {"state": "unknown"}, name="status.1", at=NOW))
        store.outbox.post(make_outgoing(request("x"), OutgoingKind.STATUS, {"state": "unknown"}, name="status.1", at=NOW))
        store.refuse(request("b"), "no")
        assert [message.kind for message in store.outbox.due(now=NOW)] == ["reply", "progress", "status"]
        assert len(store.outbox.due(now=NOW, limit=2)) == 2

    def test_words_by_the_way_are_forgotten_a_day_after_they_were_sent_and_answers_are_not(self, store: Requests) -> None:
        store.accept(request())
        store.tell(store.of("r1"), {}, at=NOW, send=True)
        store.outbox.sent([message.id for message in store.outbox.due(now=NOW)], now=NOW)
        store.settle(store.of("r1"), DONE, at=NOW)
        store.outbox.sent(["r1.reply"], now=NOW)
        store.outbox.forget(now=NOW + 86_000)
        assert len(store.outbox.of("r1")) == 2
        store.outbox.forget(now=NOW + 90_000)
        assert [message.id for message in store.outbox.of("r1")] == ["r1.reply"]

    def test_an_answer_that_nobody_waits_for_is_kept_and_never_due(self, store: Requests) -> None:
        store.refuse(request(reply_to=None), "no")
        assert store.outbox.due(now=NOW + 9) == []
        assert store.outbox.of("r1")[0].error == "the message named no reply queue"

    # ── to look ───────────────────────────────────────────────────────────────

    def test_pages_go_from_the_newest_back(self, store: Requests) -> None:
        store.accept_all([request(f"r{n}") for n in range(5)])
        first = store.list(limit=2)
        then = store.list(limit=9, before=first[-1].number)
        assert [record.id for record in (*first, *then)] == ["r4", "r3", "r2", "r1", "r0"]

    def test_requests_are_found_by_how_they_stand_and_by_words(self, store: Requests) -> None:
        store.accept_all([request("abc"), request("def", sender="Lab_1"), request("ghi", recipe="other")])
        store.settle(store.of("abc"), DONE, at=NOW)
        store.refuse(request("jkl"), "no")
        assert store.counts() == {"accepted": 2, "done": 1, "refused": 1}
        assert [record.id for record in store.list(states=["done", "refused"])] == ["jkl", "abc"]
        assert [record.id for record in store.list(text="lab_")] == ["def"]
        assert [record.id for record in store.list(text="%")] == []
        store.plan_run("ghi", "k3x9q2m7")
        assert [record.id for record in store.list(text="k3x9q2m7", states=["accepted"])] == ["ghi"]

    # ── results by reference ──────────────────────────────────────────────────

    def test_an_address_is_good_for_one_result_until_its_time_also_after_a_restart(
        self, store: Requests, requests_place: str | Path
    ) -> None:
        store.accept_all([request("a"), request("b")])
        for id in ("a", "b"):
            store.settle(store.of(id), DONE, at=NOW)
        signature = store.sign("a", "Model 0", int(NOW) + 60)
        again = Requests.open(requests_place)
        assert again.verify("a", "Model 0", int(NOW) + 60, signature, now=NOW).path == "/runs/a/model.h5"
        for wrong in (("b", "Model 0", int(NOW) + 60), ("a", "Model 1", int(NOW) + 60), ("a", "Model 0", int(NOW) + 61)):
            with pytest.raises(NotAllowed, match="not signed"):
                again.verify(*wrong, signature, now=NOW)
        with pytest.raises(NotAllowed, match="no longer valid"):
            again.verify("a", "Model 0", int(NOW) + 60, signature, now=NOW + 60)
        with pytest.raises(NotFound, match="no result 'other'"):
            again.verify("a", "other", int(NOW) + 60, again.sign("a", "other", int(NOW) + 60), now=NOW)
        again.close()

    # ── who serves ────────────────────────────────────────────────────────────

    def test_one_of_several_processes_serves_until_it_leaves(self, store: Requests, requests_place: str | Path) -> None:
        other = Requests.open(requests_place)
        first, second = RequestServerElection(store.database), RequestServerElection(other.database)
        assert [first.won(), second.won(), first.won()] == [True, False, True]
        first.leave()
        assert [second.won(), first.won()] == [True, False]
        second.leave()
        other.close()

    def test_a_newer_onwards_store_is_left_alone(self, store: Requests, requests_place: str | Path) -> None:
        with store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE request_store SET version = 99")
        with pytest.raises(StorageError, match="newer Onward"):
            Requests.open(requests_place)

    def test_a_reply_that_was_given_up_is_sent_again_once_it_is_asked_for_or_dismissed(self, store: Requests) -> None:
        store.accept(request())
        store.settle(store.of("r1"), Outcome(state=OutcomeState.DONE, reason="done"), at=NOW)
        assert store.outbox.count_put_aside() == 0
        assert store.outbox.again("r1.reply", now=NOW), "it is to be sent anyway"
        store.outbox.give_up(store.outbox.of("r1")[0], "nobody came")
        assert store.outbox.count_put_aside() == 1 and store.outbox.backlog() == (0, None)

        assert store.outbox.again("r1.reply", now=NOW + 9)
        assert store.outbox.again("r1.reply", now=NOW + 99), "the same again"
        assert [one.due for one in store.outbox.due(now=NOW + 9)] == [NOW + 9]
        assert store.outbox.backlog() == (1, NOW)

        store.outbox.give_up(store.outbox.of("r1")[0], "nobody came")
        store.outbox.dismiss("r1.reply")
        assert store.outbox.count_put_aside() == 0 and store.outbox.due(now=NOW + 99) == []
        assert not store.outbox.again("r1.reply", now=NOW) and not store.outbox.again("r2.reply", now=NOW)
