"""Dead letters, as an operator sees and moves them beside a running gateway: on a real broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from beds.rabbitmq import RabbitMQ
from beds.waiting import until
from onward.errors import NotFound
from onward.gateway.dead_letter_acts import DeadLetterActs
from onward.gateway.rabbitmq.dead_letters import DeadLetter
from onward.model.requests.gateway_settings import GatewaySettings
from tests.gateway_old import OldProducer
from tests.gateway_site import GatewaySite
from tests.gateways import V1, Running, broker_at, gateway_at

PATIENCE = 30.0


@pytest.fixture
def old(broker: RabbitMQ, vhost: str) -> Iterator[OldProducer]:
    with OldProducer(broker, vhost) as producer:
        yield producer


@pytest.fixture
def running(broker: RabbitMQ, vhost: str, tmp_path: Path) -> Iterator[Running]:
    with gateway_at(broker_at(broker, vhost), tmp_path / "requests.db", settings=GatewaySettings(v1=V1, message=1, kept=1)) as found:
        yield found


@pytest.fixture
def acts(running: Running, broker: RabbitMQ, vhost: str) -> DeadLetterActs:
    return DeadLetterActs(broker_at(broker, vhost), running.requests, now=time.time())


def send(old: OldProducer, body: bytes, queue: str = "onward.requests", **properties: Any) -> None:
    old.channel.basic_publish("", queue, body, pika.BasicProperties(**properties))


def letters(acts: DeadLetterActs, limit: int = 100) -> list[DeadLetter]:
    return list(asyncio.run(acts.list(limit=limit)).letters)


def there(acts: DeadLetterActs, count: int) -> list[DeadLetter]:
    assert until(lambda: len(letters(acts)) == count, timeout=PATIENCE), letters(acts)
    return letters(acts)


def test_looking_at_dead_letters_leaves_them_there_however_often(acts: DeadLetterActs, old: OldProducer) -> None:
    send(old, b"no request", message_id="m1")
    send(old, b"[]")
    first = {one.id for one in there(acts, 2)}

    for _ in range(25):  # RabbitMQ 4 deletes a message that was delivered 20 times
        assert {one.id for one in letters(acts)} == first

    found = next(one for one in letters(acts) if one.message_id == "m1")
    assert (found.queue, found.size, found.cut) == ("onward.requests", len("no request"), False)
    assert "not JSON" in found.reason and found.at is not None
    counted = asyncio.run(acts.list(limit=1))
    assert (len(counted.letters), counted.count) == (1, 2)
    _, properties, _ = old.channel.basic_get("onward.dead")
    assert ((properties.headers if properties else {}) or {}).get("x-delivery-count", 0) <= 11


def test_a_letter_is_sent_to_its_queue_again_once(acts: DeadLetterActs, old: OldProducer, running: Running) -> None:
    send(old, b"no request", message_id="m1")
    send(old, b"[]", message_id="m2")
    one = next(letter for letter in there(acts, 2) if letter.message_id == "m1")
    since = one.at

    result = asyncio.run(acts.retry(one.id))

    assert [letter.id for letter in result.done] == [one.id]
    again = {letter.message_id: letter for letter in there(acts, 2)}  # it is still no request, and came back
    assert again["m1"].id == one.id and (again["m1"].at or 0) >= (since or 0)
    assert len(asyncio.run(acts.retry(None)).done) == 2, "all, and none twice though they come back meanwhile"
    there(acts, 2)


def test_a_request_that_was_put_aside_is_served_when_it_is_sent_again(acts: DeadLetterActs, old: OldProducer, running: Running) -> None:
    old.channel.queue_declare("mine", durable=True)
    body = json.dumps({"id": "late", "recipe": "echo"}).encode()
    headers = {"x-onward-reason": "internal error", "x-onward-queue": "onward.requests", "x-onward-size": len(body)}
    send(old, body, "onward.dead", reply_to="mine", correlation_id="7", headers=headers)
    [letter] = there(acts, 1)

    asyncio.run(acts.retry(letter.id))

    assert until(lambda: running.requests.find("late") is not None, timeout=PATIENCE)
    assert running.requests.of("late").request.correlation_id == "7"
    assert letters(acts) == []
    with pytest.raises(NotFound, match="there is no dead letter") as found:
        asyncio.run(acts.retry(letter.id))
    assert "`onward gateway dead` lists them" in found.value.hint


def test_a_reply_that_nobody_came_for_is_sent_again_from_the_store(acts: DeadLetterActs, old: OldProducer, running: Running) -> None:
    send(old, json.dumps({"id": "a", "recipe": "echo"}).encode(), reply_to="gone", correlation_id="7")
    [letter] = there(acts, 1)
    assert until(lambda: running.requests.outbox.count_put_aside() == 1, timeout=PATIENCE)
    old.channel.queue_declare("gone", durable=True)

    asyncio.run(acts.retry(letter.id))

    assert until(lambda: running.requests.outbox.of("a")[0].sent is not None, timeout=PATIENCE)
    _, properties, body = old.channel.basic_get("gone", auto_ack=True)
    assert properties is not None and properties.message_id == "a.reply" and json.loads(body or b"")["state"] == "done"
    assert letters(acts) == [] and running.requests.outbox.count_put_aside() == 0


def test_a_letter_whose_queue_is_gone_or_of_which_a_part_is_missing_stays_and_the_reason_is_told(
    acts: DeadLetterActs, old: OldProducer
) -> None:
    send(old, b"short", "onward.dead", headers={"x-onward-queue": "nowhere", "x-onward-reason": "r"})
    send(old, b"begin", "onward.dead", headers={"x-onward-queue": "onward.requests", "x-onward-size": 9_000_000})

    result = asyncio.run(acts.retry(None))

    assert result.done == [] and len(result.problems) == 2
    assert "the broker has no queue 'nowhere': it stays where it is" in result.problems[0]
    assert "of 9000000 bytes cannot be sent again: only its first 5 bytes were kept" in result.problems[1]
    assert len(letters(acts)) == 2


def test_a_forgotten_letter_is_gone_and_the_others_stay(acts: DeadLetterActs, old: OldProducer, running: Running) -> None:
    send(old, json.dumps({"id": "a", "recipe": "echo"}).encode(), reply_to="gone")
    send(old, b"no request", message_id="m1")
    reply = next(one for one in there(acts, 2) if one.message_id == "a.reply")
    assert until(lambda: running.requests.outbox.count_put_aside() == 1, timeout=PATIENCE)

    asyncio.run(acts.forget(reply.id))

    assert [one.message_id for one in letters(acts)] == ["m1"]
    assert running.requests.outbox.count_put_aside() == 0
    assert "removed from the dead letters" in running.requests.outbox.of("a")[0].error
    with pytest.raises(NotFound, match="there is no dead letter"):
        asyncio.run(acts.forget(reply.id))


def test_the_verbs_say_what_they_did(broker: RabbitMQ, vhost: str, old: OldProducer, tmp_path: Path) -> None:
    site = GatewaySite(tmp_path, broker, vhost)
    assert site.run("declare").returncode == 0
    send(old, b"x" * 2048, "onward.dead", headers={"x-onward-queue": "nowhere", "x-onward-reason": "no such thing"})

    listed = site.run("dead", "--json")
    [letter] = json.loads(listed.stdout)["letters"]
    assert (letter["queue"], letter["reason"], letter["size"]) == ("nowhere", "no such thing", 2048)
    assert "no such thing" in site.run("dead").stdout
    failed = site.run("retry", "--all")
    assert failed.returncode == 5 and "it stays where it is" in failed.stderr
    assert "name one dead letter, or --all" in site.run("retry").stderr
    assert site.run("forget", letter["id"]).stdout == f"{letter['id']} removed\n"
    assert "no dead letters" in site.run("dead").stderr
