"""What a finished run answers with, and what it is told that does not have it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from onward.errors import Conflict, NotFound
from onward.inputs.recipes.catalog import read_recipe
from onward.inputs.recipes.definition import Recipe
from onward.model.requests.inputs import RunInputs
from onward.operations.requests.result_files import collect
from onward.operations.submit.clone import draft_of
from onward.rundir.layout import RunDir
from tests.sandbox import Sandbox

RECIPE = """
name: pages
recipe:
  inputs: {Image: {}, "Layer {n}": {}, Text: {}}
  outputs:
    Background Model: {file: background.keras, required: true}
    "Model {n}": {file: "models/{n}.h5", of: "Layer {n}"}
    Text Model: {file: text.bin, of: Text, type: application/x-text-model}
    "Plot {n}": {file: "plots/plot-{n}.png"}
    Notes: {file: notes.txt}
train: {command: "true"}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "recipe.yaml").write_text(RECIPE)
    return read_recipe(folder)


@pytest.fixture
def dir(tmp_path: Path) -> RunDir:
    dir = RunDir(tmp_path / "run")
    dir.make()
    return dir


def lay(dir: RunDir, *names: str) -> None:
    for name in names:
        (dir.artifacts / name).parent.mkdir(exist_ok=True)
        (dir.artifacts / name).write_bytes(name.encode())


def test_results_have_their_names_and_are_hashed(dir: RunDir, recipe: Recipe) -> None:
    lay(dir, "background.keras", "models/0.h5", "models/10.h5", "text.bin", "plots/plot-2.png", "plots/plot-1.png", "plots/other.png")
    results = collect(dir, recipe, ["Image", "Layer 0", "Text"])
    assert [(one.name, one.media_type) for one in results] == [
        ("Background Model", "application/zip"),
        ("Model 0", "application/x-hdf5"),
        ("Text Model", "application/x-text-model"),
        ("Plot 1", "image/png"),
        ("Plot 2", "image/png"),
    ]
    assert all(Path(one.path).read_bytes() == Path(one.path).relative_to(dir.artifacts).as_posix().encode() for one in results)
    assert (results[1].size, results[1].sha256) == (11, hashlib.sha256(b"models/0.h5").hexdigest())


def test_all_that_is_missing_and_was_promised_is_named(dir: RunDir, recipe: Recipe) -> None:
    lay(dir, "models/0.h5")
    with pytest.raises(NotFound) as caught:
        collect(dir, recipe, ["Layer 0", "Layer 3", "Text"])
    assert (
        caught.value.message
        == "'Background Model' (background.keras), 'Model 3' (models/3.h5), 'Text Model' (text.bin) are not among its artifacts"
    )


def test_a_link_is_no_result_wherever_it_leads(dir: RunDir, recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (dir.artifacts / "background.keras").symlink_to(tmp_path / "secret")
    (dir.artifacts / "models").symlink_to(tmp_path)
    with pytest.raises(NotFound, match="'Background Model'"):
        collect(dir, recipe, [])


def test_the_run_of_a_request_is_not_cloned(tmp_path: Path) -> None:
    dir = Sandbox(tmp_path).submit(inputs=RunInputs(request="r-1", recipe="pages"))
    with pytest.raises(Conflict, match="serves the request r-1"):
        draft_of(dir)
