"""Which broker, and who we are there: given, or from the settings, or from the variables that people have already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onward.errors import InvalidInput, NotAllowed, NotFound
from onward.gateway.rabbitmq.connection import Broker, forget_secrets
from onward.model.requests.gateway_settings import GatewaySettings

LOGIN = {"RABBITMQ_USER": "worker", "RABBITMQ_PASSWORD": "hunter2"}
NOTHING = GatewaySettings()


def test_the_first_gateway_connected_by_tls_and_its_applications_did_not() -> None:
    worker = Broker.of({**LOGIN, "RABBITMQ_HOST": "broker", "SSL_CERT_FILE": "/ca.pem"}, NOTHING)
    application = Broker.of({"HPC_RABBITMQ_HOST": "broker", "HPC_RABBITMQ_USER": "app", "HPC_RABBITMQ_PASSWORD": "x"}, NOTHING)

    assert (worker.tls, worker.port, worker.vhost, worker.ca_file) == (True, 5671, "/", Path("/ca.pem"))
    assert (application.tls, application.port, application.user) == (False, 5672, "app")


def test_the_settings_count_before_the_variables_and_what_was_given_before_both(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text("from the file\n")
    settings = GatewaySettings(url="amqp://here:1234/a%2Fb", user="site", password_file=secret)

    found = Broker.of({**LOGIN, "RABBITMQ_HOST": "broker"}, settings)
    given = Broker.of({}, settings, url="amqps://there", user="me", password="mine")

    assert (found.host, found.port, found.vhost, found.user, found.password) == ("here", 1234, "a/b", "site", "from the file")
    assert (given.host, given.port, given.user, given.password) == ("there", 5671, "me", "mine")


def test_a_password_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    settings = GatewaySettings(url="amqp://here", user="site", password_file=secret)

    with pytest.raises(NotAllowed, match="other users can read or change"):
        Broker.of({}, settings)
    with pytest.raises(NotFound, match="the password cannot be read"):
        Broker.of({}, replace(settings, password_file=tmp_path / "none"))


@pytest.mark.parametrize(
    ("env", "url", "said"),
    [
        (LOGIN, None, "no broker is named"),
        ({"RABBITMQ_USER": "worker"}, "amqp://here", "user and password are not set"),
        (LOGIN, "amqp://me:hunter3@here", "without user and password"),
        (LOGIN, "http://here", "must be amqp://HOST"),
        (LOGIN, "amqp://here:99999", "the broker's port is invalid"),
    ],
)
def test_what_is_missing_or_wrong_is_said_without_a_password(env: dict[str, str], url: str | None, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        Broker.of(env, NOTHING, url=url)

    assert "hunter" not in f"{caught.value} {caught.value.hint}"


def test_no_password_is_shown_or_left_for_those_we_start() -> None:
    env = {**LOGIN, "RABBITMQ_HOST": "broker"}
    broker = Broker.of(env, NOTHING)
    forget_secrets(env)

    assert "hunter2" not in f"{broker!r} {broker.words} {env}"
    assert broker.words == "amqps://worker@broker:5671"
