"""The gateway on a real broker: both protocols, poison, and answers that have nowhere to go."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pika.data  # type: ignore[import-untyped]
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from beds.rabbitmq import RabbitMQ
from beds.waiting import until
from onward.clock import SystemClock
from onward.errors import Conflict, StorageUnavailable
from onward.gateway.main import Gateway, GatewayParts
from onward.gateway.rabbitmq.connection import Broker
from onward.gateway.rabbitmq.lease import LEASE
from onward.model.requests.gateway_settings import GatewaySettings
from onward.model.requests.outcome import Outcome, OutcomeFile, OutcomeState
from onward.model.requests.request import Request, RequestRecord, RequestState
from onward.tracker.requests.store import Requests
from tests.gateway_old import JOBS, OldProducer
from tests.gateways import V1, FakeRecipes, FakeServe, Running, broker_at, gateway_at

PATIENCE = 30.0
_RAW = "\udcff\udcfe"  # written as these two bytes, which no UTF-8 has


@pytest.fixture
def old(broker: RabbitMQ, vhost: str) -> Iterator[OldProducer]:
    with OldProducer(broker, vhost) as producer:
        yield producer


@pytest.fixture
def running(broker: RabbitMQ, vhost: str, tmp_path: Path) -> Iterator[Running]:
    with gateway_at(broker_at(broker, vhost), tmp_path / "requests.db", settings=GatewaySettings(v1=V1, message=1)) as found:
        yield found


def publish(channel: BlockingChannel, queue: str, body: object, **properties: Any) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    channel.basic_publish("", queue, raw, pika.BasicProperties(**properties))


def taken(channel: BlockingChannel, queue: str, *, timeout: float = PATIENCE) -> tuple[pika.BasicProperties, bytes]:
    """The next message of a queue."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is not None and properties is not None and body is not None:
            return properties, bytes(body)  # type: ignore[arg-type]
        channel.connection.sleep(0.05)
    raise AssertionError(f"nothing came to {queue}")


def state(channel: BlockingChannel, queue: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(taken(channel, queue)[1])
    return found


def waits(channel: BlockingChannel, queue: str) -> int:
    return channel.queue_declare(queue, passive=True).method.message_count or 0


def own_queue(channel: BlockingChannel, name: str = "mine", **arguments: Any) -> str:
    channel.queue_declare(name, durable=True, arguments=arguments)
    return name


def test_an_old_application_gets_its_answers(running: Running, old: OldProducer) -> None:
    good = old.send({"Image": "/uploads/a.png"}, {"CPUs": 1})
    bad = old.send({"Image": "/uploads/a.png"}, {"bad": 1})
    broken = old.send_body(b"{")

    assert old.reply(broken) == {
        "error": "the message is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1). send a JSON object"
    }
    assert old.reply(good) == {}
    assert old.reply(bad)["error"].startswith("setting 'bad': unknown")
    assert old.silence()


def test_a_request_is_acknowledged_before_it_is_served_and_answered_once(
    broker: RabbitMQ, vhost: str, old: OldProducer, tmp_path: Path
) -> None:
    served: set[str] = set()

    def ends(record: RequestRecord) -> Outcome | None:
        return Outcome(state=OutcomeState.OUT_OF_MEMORY, reason="leg 1 ran out of memory", log_tail="Killed") if served else None

    with gateway_at(broker_at(broker, vhost, tls=True), tmp_path / "requests.db", ends=ends) as running:
        own_queue(old.channel)
        for _ in range(2):
            publish(old.channel, "onward.requests", {"id": "a", "recipe": "echo"}, reply_to="mine", correlation_id="7", user_id="onward")
        assert until(lambda: running.requests.find("a") is not None, timeout=PATIENCE)
        assert until(lambda: waits(old.channel, "onward.requests") == 0, timeout=PATIENCE)
        assert running.requests.of("a").state is RequestState.ACCEPTED
        served.add("now")
        properties, raw = taken(old.channel, "mine")
        body = json.loads(raw)

        assert (body["kind"], body["id"], body["state"], body["log_tail"]) == ("reply", "a", "out_of_memory", "Killed")
        assert (properties.correlation_id, properties.message_id, properties.delivery_mode) == ("7", "a.reply", 2)
        assert running.requests.of("a").request.sender == "onward", "the broker vouches for the user"
        assert until(lambda: running.requests.outbox.of("a")[0].sent is not None, timeout=PATIENCE)
        assert waits(old.channel, "mine") == 0


def test_questions_are_answered_at_once(broker: RabbitMQ, vhost: str, old: OldProducer, tmp_path: Path) -> None:
    def ends(record: RequestRecord) -> Outcome | None:
        return Outcome(state=OutcomeState.CANCELLED, reason="cancelled") if record.cancel_asked else None

    with gateway_at(broker_at(broker, vhost), tmp_path / "requests.db", ends=ends):
        own_queue(old.channel)
        own_queue(old.channel, "asked")
        publish(old.channel, "onward.requests", {"id": "a", "recipe": "echo"}, reply_to="mine")
        publish(old.channel, "onward.control", {"kind": "status", "id": "none"}, reply_to="asked")
        assert state(old.channel, "asked")["state"] == "unknown"
        publish(old.channel, "onward.control", {"kind": "cancel", "id": "a"}, reply_to="nobody is there")
        publish(old.channel, "onward.control", {"kind": "status", "id": "a"}, reply_to="asked")

        assert state(old.channel, "mine")["state"] == "cancelled"
        assert state(old.channel, "asked")["kind"] == "status"


def test_poison_is_put_aside_at_once_with_its_reason_and_blocks_nobody(running: Running, old: OldProducer) -> None:
    poison = {
        "not JSON": b"\x00\x01\x02",
        "nested too deeply": b'{"a":' * 100_000,
        "is not an address": b'{"inputs": {"Image": "bm90IGFuIGFkZHJlc3M="}, "settings": {}}',
        "3,145,728 bytes, expected at most 1,048,576": b"x" * (3 << 20),
    }
    sent = {said: old.send_body(body) for said, body in poison.items()}
    good = old.send({}, {})

    assert old.reply(good) == {}
    for said, body in poison.items():
        assert said in old.reply(sent[said])["error"]
        properties, kept = taken(old.channel, "onward.dead")
        headers = properties.headers or {}
        assert said in headers["x-onward-reason"]
        assert (headers["x-onward-queue"], headers["x-onward-size"]) == (JOBS, len(body))
        assert kept == body[: 1 << 20]


def test_properties_that_no_library_can_read_are_poison_like_any_other(
    running: Running, old: OldProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = pika.data.encode_short_string

    def raw(pieces: list[bytes], value: str) -> int:
        if value != _RAW:
            return write(pieces, value)  # type: ignore[no-any-return]
        pieces += [b"\x02", b"\xff\xfe"]
        return 3

    monkeypatch.setattr(pika.data, "encode_short_string", raw)
    for _ in range(40):  # more than the gateway has hands
        publish(old.channel, JOBS, {"inputs": {}, "settings": {}}, correlation_id=_RAW, reply_to="hpc-results")
        publish(old.channel, JOBS, {"inputs": {}, "settings": {}}, message_id=_RAW)
    monkeypatch.undo()
    good = old.send({}, {})

    assert old.reply(good) == {}
    assert "properties cannot be read" in (taken(old.channel, "onward.dead")[0].headers or {})["x-onward-reason"]
    assert old.silence()


def test_an_answer_whose_queue_is_missing_waits_for_it(running: Running, old: OldProducer) -> None:
    publish(old.channel, "onward.requests", {"id": "a", "recipe": "echo"}, reply_to="later")
    assert until(lambda: any(one.error for one in running.requests.outbox.of("a")), timeout=PATIENCE)
    [waiting] = running.requests.outbox.of("a")
    assert waiting.sent is None and waiting.error == "the broker has no queue 'later'"

    own_queue(old.channel, "later")

    assert state(old.channel, "later")["state"] == "done"


def test_a_client_that_crashed_and_asks_again_from_a_new_queue_has_its_answer_there(running: Running, old: OldProducer) -> None:
    own_queue(old.channel, "first")
    own_queue(old.channel, "second")
    publish(old.channel, "onward.requests", {"id": "a", "recipe": "echo"}, reply_to="first")
    assert state(old.channel, "first")["state"] == "done"
    publish(old.channel, "onward.requests", {"id": "a", "recipe": "echo"}, reply_to="second", correlation_id="new")

    properties, raw = taken(old.channel, "second")
    assert (json.loads(raw)["state"], properties.correlation_id) == ("done", "new")
    assert waits(old.channel, "first") == 0


def test_a_message_of_the_first_protocol_that_no_answer_could_reach_goes_to_the_dead_and_is_not_trained(
    running: Running, old: OldProducer
) -> None:
    publish(old.channel, JOBS, {"inputs": {}, "settings": {}}, reply_to="hpc-results")

    properties, _ = taken(old.channel, "onward.dead")
    assert "no correlation id" in (properties.headers or {})["x-onward-reason"]
    assert old.silence()
    [record] = running.requests.list()
    assert record.state is RequestState.REFUSED


def test_an_answer_that_nobody_comes_for_goes_to_the_dead_with_its_reason_after_a_stated_time(
    broker: RabbitMQ, vhost: str, old: OldProducer, tmp_path: Path
) -> None:
    settings = GatewaySettings(v1=V1, kept=2)
    with gateway_at(broker_at(broker, vhost), tmp_path / "requests.db", settings=settings, ends=results_of(tmp_path, large=5)) as running:
        publish(old.channel, "onward.requests", {"id": "a", "recipe": "echo"}, reply_to="gone", correlation_id="7")
        properties, raw = taken(old.channel, "onward.dead")

        body = json.loads(raw)
        assert (body["state"], "data" in body["results"]["large"], properties.message_id) == ("done", False, "a.reply")
        assert (properties.headers or {})["x-onward-reason"] == "the broker has no queue 'gone', for 00:00:02 since the request ended"
        assert (properties.headers or {})["x-onward-queue"] == "gone"
        assert until(lambda: running.requests.outbox.of("a")[0].due is None, timeout=PATIENCE)
        assert running.requests.outbox.of("a")[0].error.endswith("it is in the queue onward.dead")
        assert running.requests.outbox.of("a")[0].sent is None


def test_an_answer_whose_queue_is_full_waits_for_room(running: Running, old: OldProducer) -> None:
    own_queue(old.channel, "narrow", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    publish(old.channel, "narrow", {"first": 1})
    publish(old.channel, "onward.requests", {"id": "a", "recipe": "echo"}, reply_to="narrow")
    assert until(lambda: any(one.error for one in running.requests.outbox.of("a")), timeout=PATIENCE)
    assert running.requests.outbox.of("a")[0].error == "the queue 'narrow' accepts no more messages"

    assert state(old.channel, "narrow") == {"first": 1}
    assert state(old.channel, "narrow")["state"] == "done"


def test_an_answer_that_cannot_be_written_at_all_keeps_no_other_back(running: Running, old: OldProducer) -> None:
    own_queue(old.channel)
    publish(old.channel, "onward.requests", {"id": "odd", "recipe": "echo"}, reply_to="mine", correlation_id="\x00")
    with_odd = Request(
        id="a", sender="b", protocol="v2", recipe="echo", reply_to="x" * 300, correlation_id="c", body_sha256="", received=1.0
    )
    running.requests.refuse(with_odd, "a queue's name has 255 bytes at most")
    publish(old.channel, "onward.requests", {"id": "even", "recipe": "echo"}, reply_to="mine")

    assert state(old.channel, "mine")["id"] == "even"
    assert "NUL in correlation_id" in (taken(old.channel, "onward.dead")[0].headers or {})["x-onward-reason"]
    assert until(lambda: running.requests.outbox.of("a")[0].error.startswith("it cannot be encoded as a message"), timeout=PATIENCE)


def test_of_two_gateways_both_take_messages_and_one_answers(broker: RabbitMQ, vhost: str, old: OldProducer, tmp_path: Path) -> None:
    at, store = broker_at(broker, vhost), tmp_path / "requests.db"
    with gateway_at(at, store, served=False) as second:
        with gateway_at(at, store):
            sent = [old.send({}, {"number": number}) for number in range(40)]

            assert [old.reply(one) for one in sent] == [{}] * 40
            assert old.silence()
        last = old.send({}, {})
        assert until(lambda: len(second.requests.unsettled()) == 1, timeout=PATIENCE)
        second.serve.served = True  # the first has gone

        assert old.reply(last) == {}


def test_what_nobody_waits_for_any_more_is_dropped_unless_it_is_the_answer(running: Running, old: OldProducer) -> None:
    publish(old.channel, "onward.requests", b"{", reply_to="gone")

    assert until(lambda: [one.error for one in running.requests.outbox.of("")] == ["the broker has no queue 'gone'"], timeout=PATIENCE)
    assert running.requests.outbox.due(now=time.time() + 1e6) == []


def results_of(folder: Path, **sizes: int) -> Callable[[RequestRecord], Outcome]:
    """Every request ends with files of these names and sizes."""

    def ends(record: RequestRecord) -> Outcome:
        results = []
        for name, size in sizes.items():
            path = folder / f"{name}.h5"
            if not path.exists():
                path.write_bytes(os.urandom(size))
            results.append(OutcomeFile(name=name, path=str(path), size=size, sha256=hashlib.sha256(path.read_bytes()).hexdigest()))
        return Outcome(state=OutcomeState.DONE, reason="done", results=tuple(results))

    return ends


@pytest.mark.parametrize("server", ["https://onward.test", None])
def test_what_a_broker_has_no_room_for_comes_by_address_or_with_its_reason_and_the_small_ones_are_inside(
    own_broker: RabbitMQ, tmp_path: Path, server: str | None
) -> None:
    own_broker.control("eval", "application:set_env(rabbit, max_message_size, 2000000).")
    ends = results_of(tmp_path, small=6, large=4 << 20)
    with (
        OldProducer(own_broker) as old,
        gateway_at(broker_at(own_broker), tmp_path / "requests.db", settings=GatewaySettings(v1=V1), ends=ends, server=server),
    ):
        own_queue(old.channel)
        for id in ("a", "b"):  # the second knows what the first found out
            publish(old.channel, "onward.requests", {"id": id, "recipe": "echo"}, reply_to="mine")
            answer = state(old.channel, "mine")
            large = answer["results"]["large"]
            assert base64.b64decode(answer["results"]["small"]["data"]) == (tmp_path / "small.h5").read_bytes()
            assert ("url" in large, "reason" in large, "data" in large) == (server is not None, server is None, False)
        if server:
            assert large["url"].startswith("https://onward.test/api/v1/requests/b/results/large?expires=")
        else:
            assert "too large for a message of this broker; it is kept as large.h5" in large["reason"]
        error = old.reply(old.send({}, {}))["error"]
        assert "large cannot be sent: it is too large for a message of this broker" in error and "small" not in error


def test_a_large_reply_is_sent_piece_by_piece_and_waits_like_any_other(
    broker: RabbitMQ, vhost: str, old: OldProducer, tmp_path: Path
) -> None:
    at = broker_at(broker, vhost, tls=True)
    with gateway_at(at, tmp_path / "requests.db", ends=results_of(tmp_path, large=5 << 20)) as running:
        publish(old.channel, "onward.requests", {"id": "a", "recipe": "echo"}, reply_to="later", correlation_id="7")
        assert until(lambda: any(one.error for one in running.requests.outbox.of("a")), timeout=PATIENCE)
        assert running.requests.outbox.of("a")[0].error == "the broker has no queue 'later'"
        own_queue(old.channel, "later")
        properties, raw = taken(old.channel, "later")

        assert base64.b64decode(json.loads(raw)["results"]["large"]["data"]) == (tmp_path / "large.h5").read_bytes()
        assert (properties.correlation_id, properties.message_id, properties.delivery_mode) == ("7", "a.reply", 2)
        assert until(lambda: running.requests.outbox.of("a")[0].sent is not None, timeout=PATIENCE)

        own_queue(old.channel, "narrow", **{"x-max-length": 1, "x-overflow": "reject-publish"})
        publish(old.channel, "narrow", {"first": 1})
        publish(old.channel, "onward.requests", {"id": "b", "recipe": "echo"}, reply_to="narrow")
        assert until(lambda: any(one.error for one in running.requests.outbox.of("b")), timeout=PATIENCE)
        assert running.requests.outbox.of("b")[0].error == "the queue 'narrow' accepts no more messages"


def test_a_store_that_does_not_answer_is_waited_for(running: Running, old: OldProducer, monkeypatch: pytest.MonkeyPatch) -> None:
    take: Callable[..., Any] = running.gateway._intake.take
    tries: list[int] = []

    def away(given: Any) -> Any:
        tries.append(len(given))
        if len(tries) < 3:
            raise StorageUnavailable("the database does not answer")
        return take(given)

    monkeypatch.setattr(running.gateway._intake, "take", away)
    sent = old.send({}, {})

    assert old.reply(sent) == {}
    assert tries == [1, 1, 1], "it was not acknowledged, nor given back to be delivered again"


def test_a_message_that_we_stumble_over_is_put_aside_and_its_neighbours_are_served(
    running: Running, old: OldProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    take: Callable[..., Any] = running.gateway._intake.take

    def stumbles(given: Any) -> Any:
        if any(b"stumble" in incoming.body for _, incoming in given):
            raise ZeroDivisionError("a fault")
        return take(given)

    monkeypatch.setattr(running.gateway._intake, "take", stumbles)
    old.send({}, {"word": "stumble"})
    good = [old.send({}, {}) for _ in range(3)]

    assert [old.reply(one) for one in good] == [{}, {}, {}]
    assert (taken(old.channel, "onward.dead")[0].headers or {})["x-onward-reason"] == "internal error: ZeroDivisionError: a fault"


def test_two_gateways_with_separate_stores_on_one_broker_are_refused_and_with_one_store_they_are_not(
    broker: RabbitMQ, vhost: str, old: OldProducer, tmp_path: Path
) -> None:
    at = broker_at(broker, vhost)
    with gateway_at(at, tmp_path / "a.db") as first, gateway_at(at, tmp_path / "a.db", served=False):
        with pytest.raises(Conflict, match=r"a gateway with another store takes the requests .* this one's store is .*b\.db"):
            refused(at, tmp_path / "b.db")
        assert old.reply(old.send({}, {})) == {}, "the first goes on"
        assert first.thread.is_alive()
        assert "onward gateway, " in broker.control("list_consumers", "-p", vhost, "consumer_tag", "queue_name")
    with gateway_at(at, tmp_path / "b.db") as second:
        assert second.ready.is_set(), "the lease goes with its gateways"


def test_a_lease_that_somebody_deletes_is_taken_again(broker: RabbitMQ, vhost: str, old: OldProducer, tmp_path: Path) -> None:
    at = broker_at(broker, vhost)
    with gateway_at(at, tmp_path / "a.db"):
        old.channel.queue_delete(LEASE)
        assert until(lambda: LEASE in broker.control("list_queues", "-p", vhost, "name"), timeout=PATIENCE)
        with pytest.raises(Conflict):
            refused(at, tmp_path / "b.db")
        assert old.reply(old.send({}, {})) == {}


def refused(at: Broker, store: Path) -> None:
    """What a gateway says that may not start."""
    requests = Requests.open(store)
    try:
        Gateway(
            GatewayParts(
                broker=at,
                settings=GatewaySettings(v1=V1),
                requests=requests,
                recipes=FakeRecipes(),
                serve=FakeServe(requests),
                clock=SystemClock(),
                server=lambda: None,
            )
        ).run()
    finally:
        requests.close()
