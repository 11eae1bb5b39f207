"""Inputs are looked at before a run is made: what no job could fetch is refused, and what cannot be told from here is left to the job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from beds.waiting import until
from examples.gateway.rodan import Rodan
from onward.contrib.rodan.login import login
from onward.inputs.recipes.definition import RecipeInput
from onward.inputs.recipes.numbered_names import NumberedName
from onward.model.requests.gateway_settings import V1Settings
from onward.model.requests.outcome import OutcomeState
from onward.model.requests.request import RequestInput
from onward.operations.requests import input_checks as module
from onward.rundir.layout import runs_under
from onward.rundir.request_inputs import read_inputs
from tests.serving import Gateway

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 300_000 + b"\x00\x00\x00\x00IEND\xaeB`\x82"


@pytest.fixture
def rodan(tmp_path: Path) -> Iterator[Rodan]:
    media = tmp_path / "media"
    media.mkdir()
    (media / "page.png").write_bytes(PNG)
    (media / "half.png").write_bytes(PNG[:1000])
    (media / "page.bin").write_bytes(b"<html>log in</html>")
    with Rodan(media) as rodan:
        yield rodan


@pytest.fixture
def gateway(tmp_path: Path, rodan: Rodan) -> Iterator[Gateway]:
    inputs = login({"RODAN_USER": "hpc", "RODAN_PASSWORD": rodan.password}, V1Settings(rodan=rodan.url))
    assert inputs is not None
    made = Gateway(tmp_path, login=inputs, hosts=(rodan.host,))
    made.recipe(inputs=(RecipeInput(name=NumberedName(text="Image"), most=1 << 20, types=("image/*",)),))
    yield made
    made.close()


def asked(gateway: Gateway, rodan: Rodan, path: str, *, id: str = "r1") -> Gateway:
    gateway.ask(id, protocol="v1", inputs=(RequestInput(name="Image", url=rodan.url + path),))
    assert until(lambda: bool(gateway.step() and (gateway.of(id).folder or gateway.of(id).outcome)), timeout=60)
    return gateway


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/uploads/none.png", "answered 404 Not Found"),
        ("/uploads/half.png", "input 'Image' is a PNG that is cut off"),
        ("/uploads/page.bin", "input 'Image' is a text such as HTML, not a picture"),
    ],
)
def test_what_no_job_could_use_is_refused_and_costs_no_run(gateway: Gateway, rodan: Rodan, path: str, words: str) -> None:
    answer = asked(gateway, rodan, path).answer()
    assert answer.state is OutcomeState.REFUSED and words in answer.reason
    assert runs_under(gateway.sandbox.root) == []
    assert "retried" not in answer.reason + answer.next


def test_a_good_one_has_its_run(gateway: Gateway, rodan: Rodan) -> None:
    assert asked(gateway, rodan, "/uploads/page.png").of().folder


def test_what_cannot_be_reached_from_here_is_left_to_the_job(gateway: Gateway, rodan: Rodan) -> None:
    rodan.behave("/uploads/page.png", "503")
    assert asked(gateway, rodan, "/uploads/page.png").of().folder


def test_what_is_large_is_left_to_the_job(gateway: Gateway, rodan: Rodan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 1000)
    assert asked(gateway, rodan, "/uploads/page.png").of().folder
    gateway.recipes["digits"] = replace(gateway.recipes["digits"], most=1000)
    assert "larger than the 1.0 kB allowed" in asked(gateway, rodan, "/uploads/page.png", id="r2").answer("r2").reason


def test_a_token_that_was_revoked_is_replaced_before_the_job_gets_it_and_one_that_stays_refused_is_final(
    gateway: Gateway, rodan: Rodan
) -> None:
    asked(gateway, rodan, "/uploads/page.png")
    rodan.token = "another"
    dir = asked(gateway, rodan, "/uploads/page.png", id="r2").played("r2").dir
    order = read_inputs(dir)
    assert order is not None and order.token == "another"
    rodan.behave("/uploads/page.png", "403")
    assert "answered 403" in asked(gateway, rodan, "/uploads/page.png", id="r3").answer("r3").reason
