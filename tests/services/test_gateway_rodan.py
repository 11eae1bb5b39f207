"""The gateway as a process between an old application and its Rodan, whose tokens do not last."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from beds.rabbitmq import RabbitMQ
from examples.gateway.rodan import Rodan
from tests.gateway_old import OldProducer
from tests.gateway_site import PATIENCE, GatewaySite

RECIPE = """\
name: copy
recipe:
  inputs:
    Image: {required: true, max-size: 1M}
  outputs:
    Said: {file: said.txt, required: true}
train:
  command: PYTHON copy.py
"""
COPY = """\
import json, os, pathlib
asked = json.loads(pathlib.Path(os.environ["ONWARD_REQUEST_FILE"]).read_text())
data = pathlib.Path(asked["inputs"]["Image"]).read_bytes()
pathlib.Path(os.environ["ONWARD_ARTIFACTS_DIR"], "said.txt").write_bytes(data)
"""
ANSWER = {"Said": "Tk9U\n"}


@pytest.fixture
def rodan(tmp_path: Path) -> Iterator[Rodan]:
    media = tmp_path / "media"
    media.mkdir()
    (media / "a.bin").write_bytes(b"NOT")
    with Rodan(media) as rodan:
        yield rodan


@pytest.fixture
def site(tmp_path: Path, broker: RabbitMQ, vhost: str, rodan: Rodan) -> GatewaySite:
    site = GatewaySite(tmp_path, broker, vhost)
    recipe = tmp_path / "recipes" / "copy"
    recipe.mkdir()
    (recipe / "recipe.yaml").write_text(RECIPE.replace("PYTHON", sys.executable))
    (recipe / "copy.py").write_text(COPY)
    settings = site.settings.replace('recipe = "shout"', f'recipe = "copy"\nrodan = "{rodan.url}"')
    (tmp_path / "settings.toml").write_text(settings)
    site.env |= {"RODAN_USER": rodan.username, "RODAN_PASSWORD": rodan.password}
    return site


def test_a_token_that_is_revoked_while_the_login_is_good_costs_no_request_its_answer(
    site: GatewaySite, broker: RabbitMQ, vhost: str, rodan: Rodan
) -> None:
    process = site.start()
    try:
        with OldProducer(broker, vhost) as old:
            assert old.reply(old.send({"Image": "/uploads/a.bin"}, {}), timeout=PATIENCE) == ANSWER
            for number in range(2):
                rodan.token = f"revoked-{number}"  # the gateway still holds the one before
                assert old.reply(old.send({"Image": "/uploads/a.bin"}, {}), timeout=PATIENCE) == ANSWER
            rodan.password = "changed"
            rodan.token = "nobody-gets-this"
            refused = old.reply(old.send({"Image": "/uploads/a.bin"}, {}), timeout=PATIENCE)["error"]
            assert "refused the login of 'hpc'" in refused
    finally:
        process.terminate()
        process.wait()
    assert "Traceback" not in site.log
    assert "revoked-1" not in site.texts(), "no token outlives its run"
