"""What `--v1` needs is looked at when the gateway starts."""

from __future__ import annotations

import logging

import pytest

from onward.errors import InvalidInput
from onward.gateway.wiring import GatewayLogins
from onward.model.requests.gateway_settings import GatewaySettings, V1Settings

BROKER = {"RABBITMQ_HOST": "broker", "RABBITMQ_USER": "gateway", "RABBITMQ_PASSWORD": "p"}


def taken(*, v1: bool = True, recipe: str = "patchwise", **env: str) -> GatewayLogins:
    return GatewayLogins.taken({**BROKER, **env}, GatewaySettings(v1=V1Settings(recipe=recipe)), v1=v1)


def test_an_application_without_a_login_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidInput, match=r"v1 messages cannot be served: there is no login for http://rodan\.lab") as caught:
        taken(RODAN_HOST="rodan.lab")
    assert "RODAN_PASSWORD" in caught.value.hint
    assert taken(RODAN_HOST="rodan.lab", RODAN_USER="hpc", RODAN_PASSWORD="p").inputs is not None
    assert taken(RODAN_HOST="rodan.lab", v1=False).inputs is None


def test_a_recipe_that_does_not_exist_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidInput, match="v1 messages cannot be served: no recipe named 'patchwize'"):
        taken(recipe="patchwize")


def test_no_application_at_all_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert taken().inputs is None
    assert "v1 has no application" in caplog.text
