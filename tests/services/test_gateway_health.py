"""A gateway says how it is: to probes, and to Prometheus."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

from beds.rabbitmq import RabbitMQ
from beds.waiting import until
from onward.gateway.health import health_server
from onward.model.requests.outcome import Outcome
from onward.model.requests.request import RequestRecord
from tests.gateway_old import OldProducer
from tests.gateways import broker_at, gateway_at

ALERTS = Path(__file__).parents[2] / "examples" / "gateway" / "alerts.yml"


def asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def goes_on(record: RequestRecord) -> Outcome | None:
    return None


def test_it_is_ready_with_its_broker_and_says_why_without(own_broker: RabbitMQ, tmp_path: Path) -> None:
    with (
        gateway_at(broker_at(own_broker), tmp_path / "requests.db", ends=goes_on) as running,
        health_server(running.gateway.health, 0) as port,
    ):
        assert until(lambda: asked(port, "/health/ready")[0] == 200, timeout=30)
        with OldProducer(own_broker) as old:
            old.send({}, {})
            assert until(lambda: 'onward_gateway_requests{state="accepted"} 1' in asked(port, "/metrics")[1], timeout=30)
        metrics = asked(port, "/metrics")[1]
        assert "onward_gateway_broker_up 1" in metrics and "onward_gateway_serves 1" in metrics
        assert "onward_gateway_outbox_messages 0" in metrics and "onward_gateway_oldest_request_seconds" in metrics

        with OldProducer(own_broker) as old:
            old.channel.basic_publish("", "onward.requests", b"no request")
            assert until(lambda: "onward_gateway_dead_letters 1" in asked(port, "/metrics")[1], timeout=30)
        measured = set(re.findall(r"^# TYPE (\S+) gauge$", asked(port, "/metrics")[1], re.M))
        named = set(re.findall(r"onward_gateway_\w+", ALERTS.read_text()))
        assert named and named <= measured, "every alert is about a metric that exists"

        own_broker.stop(hard=True)

        assert until(lambda: asked(port, "/health/ready")[0] == 503, timeout=30)
        assert json.loads(asked(port, "/health/ready")[1])["reason"] == "there is no connection to the broker"
        assert "onward_gateway_broker_up 0" in asked(port, "/metrics")[1]
        assert "dead_letters" not in asked(port, "/metrics")[1], "nobody knows"
        assert asked(port, "/health/live")[0] == 200, "a restart would not help"
        assert asked(port, "/else")[0] == 404
        own_broker.start()
        assert until(lambda: asked(port, "/health/ready")[0] == 200, timeout=60)
