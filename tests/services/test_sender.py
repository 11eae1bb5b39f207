"""Senders at a real broker: a request out, its progress and its one answer back, whoever dies meanwhile. The gateway here is played."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from beds.rabbitmq import USER, RabbitMQ
from onward.errors import Conflict, HostUnreachable, NotFound, StorageError
from onward.gateway.messages.reply import GatewayReply
from onward.gateway.messages.v2 import CONTROL, REQUESTS
from onward.sender import Sender, reply_queue

Play = Callable[["PlayedGateway", str, dict[str, Any], str], None]
MODEL = b"weights" * 9


class PlayedGateway:
    """Takes what comes on both queues, and does with it what the test says: in a thread, with a connection of its own."""

    def __init__(self, server: RabbitMQ, vhost: str, play: Play) -> None:
        login = pika.PlainCredentials(USER, server.password)
        where = pika.ConnectionParameters(host="127.0.0.1", port=server.ports.plain, virtual_host=vhost, credentials=login)
        self._connection = pika.BlockingConnection(where)
        self._channel: BlockingChannel = self._connection.channel()
        self.seen: list[tuple[str, dict[str, Any]]] = []
        for queue in (REQUESTS, CONTROL):
            self._channel.queue_declare(queue=queue, durable=True)
        self._play = play
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ends.set()
        self._thread.join()

    def tell(self, to: str, **body: Any) -> None:
        """From any thread."""
        lasting, data = pika.BasicProperties(delivery_mode=2), json.dumps(body).encode()
        publish = partial(self._channel.basic_publish, exchange="", routing_key=to, body=data, properties=lasting)
        self._connection.add_callback_threadsafe(publish)

    def _serve(self) -> None:
        while not self._ends.is_set():
            for queue in (REQUESTS, CONTROL):
                method, properties, body = self._channel.basic_get(queue, auto_ack=True)
                if method is not None and properties is not None and body is not None:
                    self.seen.append((queue, json.loads(body)))
                    self._play(self, queue, json.loads(body), str(properties.reply_to))
            self._connection.sleep(0.02)
        self._connection.close()


def trained(gateway: PlayedGateway, queue: str, body: dict[str, Any], to: str) -> None:
    """As a gateway whose trainings take no time."""
    if body.get("kind") == "status":
        over = {"outcome": {"reason": "trained"}} if body["id"] == "old" else {}
        gateway.tell(to, kind="status", id=body["id"], state="unknown" if body["id"] == "r2" else "running", words="leg 2 trains", **over)
    elif body.get("kind") == "cancel":
        known = body["id"] == "r1"
        gateway.tell(to, kind="status", id=body["id"], state="running" if known else "unknown")
        if known:
            gateway.tell("onward.reply.r1", kind="reply", id="r1", state="cancelled", reason="its sender cancelled it")
    elif body["recipe"] == "broken":
        words = {"reason": "it broke\nin two", "next": "mend it", "log_tail": "ValueError: no\n"}
        gateway.tell(to, kind="reply", id=body["id"], state="failed", **words)
    elif body["id"] == "old":
        return  # the same again: nothing is to be done
    elif body["id"] == "taken":
        gateway.tell(to, kind="error", id="taken", reason="another request with the id taken came before", next="use another id")
    elif body["recipe"] == "endless":
        gateway.tell(to, kind="progress", id=body["id"], state="queued")
    else:
        fields = {"size": len(MODEL), "sha256": hashlib.sha256(MODEL).hexdigest(), "data": base64.encodebytes(MODEL).decode()}
        gateway.tell(to, kind="progress", id=body["id"], state="running", leg=1, percent=50.0, metrics={"loss": 0.25})
        gateway.tell(to, kind="reply", id=body["id"], state="done", reason="trained", metrics={"loss": 0.125}, results={"Model 0": fields})


@pytest.fixture
def sender(broker: RabbitMQ, vhost: str) -> Sender:
    return Sender(broker.url(vhost), user=USER, password=broker.password, name="scribe")


@pytest.fixture
def gateway(broker: RabbitMQ, vhost: str) -> Iterator[PlayedGateway]:
    with PlayedGateway(broker, vhost, trained) as played:
        yield played


def test_a_request_is_told_of_its_progress_and_answered_with_its_results(sender: Sender, gateway: PlayedGateway, tmp_path: Path) -> None:
    sent = sender.request("patchwise", {"Image": "https://rodan.lab/a.png"}, {"Patch height": 64}, deadline=2e9, priority=3)
    entries: list[Any] = []
    answer = sent.wait(told=entries.append, timeout=30)
    wanted = {
        "id": sent.id,
        "recipe": "patchwise",
        "inputs": {"Image": {"url": "https://rodan.lab/a.png"}},
        "settings": {"Patch height": 64},
    }
    assert gateway.seen[0][1] == wanted | {"resources": {}, "deadline": 2e9, "priority": 3, "sender": "scribe"}
    assert [(one["percent"], one["metrics"]) for one in entries] == [(50.0, {"loss": 0.25})]
    assert (answer.done, answer.reason, answer.metrics) == (True, "trained", {"loss": 0.125})
    assert [path.read_bytes() for path in answer.save(tmp_path)] == [MODEL]
    with pytest.raises(NotFound, match=r"no reply to .* will come"):
        sent.wait(timeout=30)


@pytest.mark.parametrize("error", [StorageError("not kept"), HostUnreachable("not kept"), TimeoutError("not kept")])
def test_an_answer_that_could_not_be_kept_is_told_and_stays_at_the_broker(sender: Sender, gateway: PlayedGateway, error: Exception) -> None:
    """Also where it reads like a broker that went away, which would be waited for."""

    def refuse(_: GatewayReply) -> None:
        raise error

    sent = sender.request("patchwise", id="r1")
    with pytest.raises(type(error), match="not kept"):
        sent.wait(keep=refuse, timeout=30)
    assert sender.sent("r1").wait(timeout=30).done


def test_a_request_is_asked_after_and_cancelled(sender: Sender, gateway: PlayedGateway) -> None:
    sent = sender.request("endless", id="r1")
    assert sent.status()["words"] == "leg 2 trains"
    assert sent.cancel()["state"] == "running"
    assert sent.wait(timeout=30).state == "cancelled"


def test_nobody_waits_for_ever_for_an_answer_that_was_taken_or_for_an_id_that_is(sender: Sender, gateway: PlayedGateway) -> None:
    with pytest.raises(NotFound, match="its reply was already taken: trained"):
        sender.request("patchwise", id="old").wait(timeout=30)
    with pytest.raises(Conflict, match="another request with the id taken"):
        sender.request("patchwise", id="taken").wait(timeout=30)


def test_where_no_gateway_ever_was_the_sender_is_told_so(broker: RabbitMQ, sender: Sender) -> None:
    with pytest.raises(NotFound, match=r"the broker has no queue onward\.requests"):
        sender.request("patchwise")


def test_whoever_waits_outlives_their_connection(broker: RabbitMQ, vhost: str, sender: Sender) -> None:
    answers: list[GatewayReply] = []
    waits = threading.Event()
    with PlayedGateway(broker, vhost, trained):
        sent = sender.request("endless")
        waiting = threading.Thread(target=lambda: answers.append(sent.wait(told=lambda _: waits.set(), timeout=120)))
        waiting.start()
        assert waits.wait(30)
    broker.cut_connections()
    with PlayedGateway(broker, vhost, trained) as gateway:
        gateway.tell(reply_queue(sent.id), kind="reply", id=sent.id, state="done", reason="trained")
        waiting.join()
    assert [answer.reason for answer in answers] == ["trained"]


@contextmanager
def at_home(folder: Path) -> Iterator[dict[str, str]]:
    settings = folder / "settings.toml"
    settings.write_text("")
    yield {**{key: value for key, value in os.environ.items() if not key.startswith("ONWARD_")}, "ONWARD_SETTINGS": str(settings)}


def test_the_command_line_asks_waits_and_says_by_its_exit_code_how_it_went(
    broker: RabbitMQ, vhost: str, gateway: PlayedGateway, tmp_path: Path
) -> None:
    def onward(*words: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "onward", "request", "--broker", broker.url(vhost), *words]
        with at_home(tmp_path) as env:
            login = {"RABBITMQ_USER": USER, "RABBITMQ_PASSWORD": broker.password}
            done = subprocess.run(command, env=env | login, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False)
        return done.returncode, done.stdout, done.stderr

    code, out, err = onward(
        "patchwise", "-i", "Image=https://a/b=c", "--set", "Patch height=64", "--set", "Time=0-06:00", "--wait", "--id", "a"
    )
    assert (code, out) == (0, "a/Model 0\n"), err
    assert "running, leg 1, 50 %, loss 0.25" in err
    asked = gateway.seen[0][1]
    assert (asked["inputs"], asked["settings"]) == ({"Image": {"url": "https://a/b=c"}}, {"Patch height": 64, "Time": "0-06:00"})
    code, out, err = onward("broken", "--wait")
    assert code == 7
    assert "failed: it broke\nin two\n  → mend it\nValueError: no\n" in err
    assert onward("endless", "--id", "r1")[:2] == (0, "r1\n")
    assert onward("--status", "r1")[:2] == (0, "running, leg 2 trains\n")
    assert onward("--status", "r2")[0] == 3
    assert onward("--cancel", "r1")[0] == 0
    assert onward("--cancel", "r2")[0] == 3
    code, out, _ = onward("--id", "r1", "--wait", "--json")
    assert (code, json.loads(out)["state"]) == (7, "cancelled")
    assert onward("patchwise", "--set", "odd")[0] == 2
