"""A gateway with everything real but the cluster: a broker, a store, the wire; who serves is a stand-in that settles what it is told to."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beds.rabbitmq import USER, RabbitMQ
from onward.clock import SystemClock
from onward.errors import InvalidInput, NotFound
from onward.gateway.main import Gateway, GatewayParts
from onward.gateway.rabbitmq.connection import Broker
from onward.inputs.recipes.definition import Recipe
from onward.model.requests.gateway_settings import GatewaySettings, V1Settings
from onward.model.requests.outcome import Outcome, OutcomeState
from onward.model.requests.request import RequestRecord
from onward.operations.requests.service import ServiceStep
from onward.tracker.requests.store import Requests

V1 = V1Settings(enabled=True, recipe="echo", rodan="https://rodan.test")


def done(record: RequestRecord) -> Outcome:
    return Outcome(state=OutcomeState.DONE, reason="the training is done")


@dataclass
class FakeServe:
    """Settles every open request at once, as `ends` says; None: it goes on."""

    requests: Requests
    ends: Callable[[RequestRecord], Outcome | None] = done
    served: bool = True  # False: another process does

    def step(self) -> ServiceStep:
        if not self.served:
            return ServiceStep(served=False)
        stepped = ServiceStep()
        for record in self.requests.unsettled():
            stepped.open += 1
            outcome = self.ends(record)
            if outcome is not None:
                stepped.settled += self.requests.settle(record, outcome, at=SystemClock().now())
        return stepped

    def close(self) -> None:
        pass


class FakeRecipe:
    """Takes anything but a setting that is called `bad`."""

    def fill(self, *, settings: Mapping[str, Any], **_: Any) -> None:
        if "bad" in settings:
            raise InvalidInput("setting 'bad': unknown", hint="look at the recipe")


@dataclass
class FakeRecipes:
    known: set[str] = field(default_factory=lambda: {"echo"})

    def get(self, name: str) -> Recipe:
        if name not in self.known:
            raise NotFound(f"no recipe named {name!r}", hint=f"this site has {', '.join(self.known)}")
        return FakeRecipe()  # type: ignore[return-value]


def broker_at(server: RabbitMQ, vhost: str = "/", *, tls: bool = False) -> Broker:
    settings = GatewaySettings(url=server.url(vhost, tls=tls), ca_file=server.authority.certificate if tls else None)
    return Broker.of({}, settings, user=USER, password=server.password)


@dataclass
class Running:
    requests: Requests
    serve: FakeServe
    gateway: Gateway
    thread: threading.Thread
    ready: threading.Event


@contextlib.contextmanager
def gateway_at(
    broker: Broker,
    store: Path,
    *,
    settings: GatewaySettings | None = None,
    ends: Callable[[RequestRecord], Outcome | None] = done,
    server: str | None = None,
    wait: bool = True,
    served: bool = True,
) -> Iterator[Running]:
    """One that runs in a thread, until the block ends."""
    requests = Requests.open(store)
    serve = FakeServe(requests, ends, served)
    ready = threading.Event()
    parts = GatewayParts(
        broker=broker,
        settings=settings or GatewaySettings(v1=V1),
        requests=requests,
        recipes=FakeRecipes(),
        serve=serve,
        clock=SystemClock(),
        server=lambda: server,
    )
    gateway = Gateway(parts, ready=ready.set)
    thread = threading.Thread(target=gateway.run)
    thread.start()
    try:
        assert not wait or ready.wait(30), "the gateway did not come up"
        yield Running(requests, serve, gateway, thread, ready)
    finally:
        gateway.stop()
        thread.join(30)
        requests.close()
    assert not thread.is_alive()
