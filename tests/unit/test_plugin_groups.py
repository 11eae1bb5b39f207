"""Parts that other packages bring, beside schedulers: each group is found by its entry points, and `contrib` comes in no other way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from onward.api.access.rights.access_rules import READ
from onward.api.access.rights.rights_of_routes import TABLE
from onward.api.app import make_api
from onward.api.extensions import rights_table, server_extensions
from onward.clock import ManualClock
from onward.errors import InvalidInput
from onward.gateway.messages.encoding import ReplyEncoder
from onward.gateway.messages.packed_results import ResultPacker
from onward.gateway.messages.protocols import secret_variables
from onward.inputs.pipeline.converter import convert_pipeline
from onward.inputs.recipes.catalog import packaged_recipes, read_recipes
from onward.model.requests.request import Outgoing, OutgoingKind
from onward.plugins import PluginGroup, find_plugin, plugin_names

REPO = Path(__file__).resolve().parents[2]
RECIPE = """
recipe:
  title: Of another package
name: elsewhere
train:
  command: python train.py
"""


def install(folder: Path, group: PluginGroup, name: str, module: str, value: str = "") -> None:
    """What an installer leaves: a module, and its metadata beside it."""
    package = f"other_{name}"
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text(module)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {package}{value}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    server_extensions.cache_clear()
    yield tmp_path
    server_extensions.cache_clear()


def test_a_recipe_of_another_package_is_found_by_its_name(site: Path) -> None:
    install(site, PluginGroup.RECIPES, "elsewhere", "")
    (site / "other_elsewhere" / "recipe.yaml").write_text(RECIPE)

    recipes = read_recipes(None)

    assert (recipes.get("elsewhere").name, recipes.get("elsewhere").title) == ("elsewhere", "Of another package")
    assert recipes.get("elsewhere").folder == site / "other_elsewhere"
    assert recipes.names == ["elsewhere", "patchwise"]


def test_a_recipe_whose_entry_point_names_no_package_is_told_by_its_name(site: Path) -> None:
    install(site, PluginGroup.RECIPES, "gone", "", value=".nowhere")
    with pytest.raises(InvalidInput, match=r"the recipe gone cannot be found: other_gone\.nowhere is not a package"):
        packaged_recipes()


CONVERTER = """
from onward.errors import InvalidInput
from onward.inputs.pipeline.converter import ConvertedPipeline

def convert(path):
    if path.suffix != ".acme":
        raise InvalidInput(f"{path} is no file of acme's")
    return ConvertedPipeline(text="name: acme\\n")
"""


def test_a_file_is_converted_by_the_package_that_knows_its_kind(site: Path) -> None:
    install(site, PluginGroup.CONVERTERS, "acme", CONVERTER, value=":convert")
    (site / "nightly.acme").write_text("")
    (site / "train.yaml").write_text("x: 1\n")

    assert convert_pipeline(site / "nightly.acme").text == "name: acme\n"
    with pytest.raises(InvalidInput) as refused:
        convert_pipeline(site / "train.yaml")
    assert "is no file of acme's" in refused.value.message and "is not a file of graph2tac's old pipeline" in refused.value.message


PROTOCOL = """
secrets = ("ACME_TOKEN",)
sends_addresses = False

def login(env, settings):
    return None

def request_of(incoming, settings, *, most, now):
    raise NotImplementedError

def body_of(message, parcels=None):
    from onward.gateway.messages.message_body import MessageBody

    return MessageBody((f"<{message.payload['state']}>".encode(),))
"""


def test_a_sender_is_answered_in_the_protocol_of_another_package(site: Path) -> None:
    install(site, PluginGroup.PROTOCOLS, "xml", PROTOCOL)
    fields: dict[str, Any] = {"reply_to": "q", "correlation_id": "c", "payload": {"state": "running"}, "made": 1.0}
    message = Outgoing(id="a", request="r", kind=OutgoingKind.PROGRESS, protocol="xml", **fields)
    packer = ResultPacker(inline=1, kept=1, server=lambda: None, sign=lambda *_, **__: "")

    body = ReplyEncoder(packer, ManualClock(5.0)).body(message)
    assert body is not None and b"".join(body.pieces()) == b"<running>"
    assert sorted(secret_variables()) == ["ACME_TOKEN", "RODAN_PASSWORD"]


EXTENSION = """
from fastapi import APIRouter
from onward.api.access.rights.access_rules import PUBLIC, READ

router = APIRouter()

@router.get("/acme/hello")
def hello():
    return "hello"

rights = {"GET /acme/hello": READ, "GET /api/v1/tokens": PUBLIC}

def tend(svc):
    return ["acme's machines do not answer"]
"""


def test_routes_of_another_package_are_served_with_the_rights_that_it_names(site: Path) -> None:
    install(site, PluginGroup.SERVER, "served", EXTENSION)
    api: FastAPI = make_api()

    assert "/acme/hello" in api.openapi()["paths"]
    assert rights_table()["GET /acme/hello"] is READ


def test_a_package_cannot_change_the_right_of_a_route_of_ours(site: Path) -> None:
    install(site, PluginGroup.SERVER, "greedy", EXTENSION)
    assert rights_table()["GET /api/v1/tokens"] is TABLE["GET /api/v1/tokens"]


def test_what_no_package_has_is_told_with_its_group() -> None:
    with pytest.raises(InvalidInput, match="no gateway protocol named 'v7'") as caught:
        find_plugin(PluginGroup.PROTOCOLS, "v7")
    assert caught.value.hint == "no installed package has it as an entry point of onward.gateway_protocols"


def test_the_parts_for_one_application_are_registered() -> None:
    """Where this fails in a checkout: `pip install -e .` again, which writes the entry points down."""
    found = {group: plugin_names(group) for group in PluginGroup if group is not PluginGroup.SCHEDULERS}
    assert found == {
        PluginGroup.RECIPES: ("patchwise",),
        PluginGroup.CONVERTERS: ("graph2tac",),
        PluginGroup.PROTOCOLS: ("v1",),
        PluginGroup.SERVER: ("seed-tracker",),
    }


def test_the_page_of_plugins_has_all_groups() -> None:
    page = (REPO / "docs" / "reference" / "plugins.md").read_text()
    assert re.findall(r"^\| `(onward\.\w+)` \|", page, re.MULTILINE) == [str(group) for group in PluginGroup]
