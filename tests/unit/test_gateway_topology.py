"""The queues that the gateway wants, by its settings."""

from __future__ import annotations

from onward.gateway.rabbitmq.queues import DEAD, QueueSpec, queues
from onward.model.requests.gateway_settings import GatewaySettings, V1Settings


def test_requests_are_kept_on_disk_and_what_is_never_acknowledged_goes_to_the_dead() -> None:
    found = {spec.name: spec for spec in queues(GatewaySettings())}

    assert list(found) == [DEAD, "onward.requests", "onward.control"]
    for name in ("onward.requests", "onward.control"):
        arguments = found[name].arguments
        assert found[name].durable and arguments["x-queue-type"] == "quorum"
        assert arguments["x-dead-letter-exchange"] == DEAD and arguments["x-delivery-limit"] >= 10
        assert (arguments["x-dead-letter-strategy"], arguments["x-overflow"]) == ("at-least-once", "reject-publish"), (
            "the one needs the other"
        )


def test_the_queues_of_the_first_protocol_are_declared_as_its_applications_do() -> None:
    found = queues(GatewaySettings(v1=V1Settings(enabled=True, jobs="their-jobs")))

    assert found[-2:] == [QueueSpec(name="their-jobs", durable=False), QueueSpec(name="hpc-results", durable=False)]
