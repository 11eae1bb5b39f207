"""The patchwise recipe's training, real: cut and resumed it ends as if it had not been, and its models can be used."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pages
import pytest

from onward.inputs.recipes.catalog import packaged_recipes
from tests.crash.conftest import LocalRun, Machine

pytestmark = pytest.mark.slow

ARGUMENTS = ("--epochs=4", "--samples=200", "--patch-height=64", "--patch-width=70", "--filters=8")
SURROUNDINGS = {"KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, kw_only=True)
class Uncut:
    page: Path
    models: Path
    code: Path


def python(*words: str | Path, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)], env={**os.environ, **SURROUNDINGS, **env}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> Uncut:
    """A training by hand, from its beginning to its end."""
    root = tmp_path_factory.mktemp("patchwise")
    code = packaged_recipes()["patchwise"]
    pages.write(root / "page", pages.draw(seed=1), without=["staff", "text"])
    python(code / "train.py", "--request", root / "page" / "request.json", *ARGUMENTS, ONWARD_ROOT=str(root))
    (models,) = root.glob("by-hand/*/results/artifacts")
    return Uncut(page=root / "page", models=models, code=code)


def weights(model: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    with h5py.File(model) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def test_models_load_by_themselves_and_find_their_layer_on_a_page_they_have_not_seen(uncut: Uncut, tmp_path: Path) -> None:
    new = pages.write(tmp_path, pages.draw(seed=2))
    for model, layer, least in (("Background Model", "Background", 0.95), ("Model 0", "rgba PNG - Layer 0", 0.8)):
        words = ("--model", uncut.models / f"{model}.hdf5", "--image", new["Image"], "--truth", new[layer])
        output = python(uncut.code / "classify.py", *words, "--regions", new["Selected Regions"])
        accuracy, overlap = map(float, re.findall(r"[0-9.]+", output))
        assert accuracy > 0.97 and overlap > least, output


def test_a_training_that_is_cut_ends_as_one_that_is_not(machine: Machine, uncut: Uncut) -> None:
    shutil.copytree(uncut.code, machine.home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    machine.environment |= SURROUNDINGS
    command = (sys.executable, "train.py", "--request", str(uncut.page / "request.json"), *ARGUMENTS)
    body = json.loads(machine.onward("submit", "--json", "--cluster", "local", "--name", "pages", "--time", "20:00", "--", *command).stdout)
    run = LocalRun(machine=machine, id=body["id"], folder=Path(body["folder"]))
    run.until(lambda _: "epoch 2" in run.output(), within=120)
    os.kill(run.supervisor_pid(1), signal.SIGUSR1)  # as a site warns of a preemption
    shown = run.until_over(within=240)
    assert shown["state"] == "finished", run.output("err")
    assert [leg["end"] for leg in shown["legs"]] == ["preempted", "done"]
    for model in ("Background Model.hdf5", "Model 0.hdf5"):
        cut, whole = weights(run.folder / "results" / "artifacts" / model), weights(uncut.models / model)
        assert cut.keys() == whole.keys() and cut
        for name, value in whole.items():
            assert np.allclose(cut[name], value, rtol=1e-3, atol=1e-4), f"{model}: {name}"
