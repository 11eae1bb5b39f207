"""On real clusters with a real Lmod: modules, a venv and setup lines before the training, and what is said when one fails."""

from __future__ import annotations

import pytest

from beds.software import SoftwareBed
from tests.cluster.conftest import Person

pytestmark = pytest.mark.cluster

SAYS = """
import os, sys, onward
print("cuda", os.environ.get("CUDA_HOME"), "prefix", sys.prefix, "word", os.environ.get("WORD"), flush=True)
"""
PARAMS = """
name: prepared
train:
  command: python says.py
  resources: {time: "5:00", mem: 200M}
  environment:
    modules: [needs-cuda/1.0]
    venv: env
    setup:
      - module list
      - export WORD="$BED_NEEDS_CUDA words"
"""


def everything_is_there(person: Person) -> None:
    """Nothing of Lmod is in her environment: it is found on the node."""
    person.write("says.py", SAYS)
    person.write("params.yaml", PARAMS)
    person.run("python3", "-m", "venv", "--without-pip", "env")
    run = person.submit("params.yaml")
    assert run.until_over()["state"] == "finished", run.log()
    out = (run.folder / "logs" / "leg-0001.out").read_text()
    assert out == f"cuda /opt/cuda-12.0 prefix {person.home / 'env'} word 1.0 words\n"
    assert "needs-cuda/1.0" in (run.folder / "logs" / "leg-0001.err").read_text()


def test_modules_a_venv_and_setup_lines_are_there_when_the_training_starts(alice: Person, software: SoftwareBed) -> None:
    everything_is_there(alice)


def test_they_are_there_on_grid_engine_too(ge_alice: Person, software: SoftwareBed) -> None:
    everything_is_there(ge_alice)


@pytest.mark.parametrize(("module", "words"), [("cudnn/9", "cudnn/9"), ("broken/1.0", "this module is broken on purpose")])
def test_a_module_that_does_not_load_ends_the_run_and_is_named_with_lmods_own_words(
    alice: Person, software: SoftwareBed, module: str, words: str
) -> None:
    alice.write("says.py", SAYS)
    alice.environment.update(software.environment())  # as after a login
    run = alice.submit("--mem", "200M", "--time", "5:00", "--module", "cuda/12.0", "--module", module, "--", "python3", "says.py")
    shown = run.until_over()
    assert (shown["state"], len(shown["legs"])) == ("failed", 2)
    assert f"loading the module {module} failed with exit code 1" in shown["reason"]
    assert words in alice.onward("show", run.id).stdout


def test_a_python_of_the_profile_that_is_too_old_is_passed_over_on_the_node(alice: Person, software: SoftwareBed) -> None:
    """Debian's pypy3 is a Python 3.9; the next of the list is not there; the one after it fits."""
    settings = '[clusters.slurm]\npython = ["pypy3", "/opt/nowhere/python3", "/usr/bin/python3"]\n'
    alice.environment["ONWARD_SETTINGS"] = str(alice.write("settings.toml", settings))
    run = alice.submit("--mem", "200M", "--time", "5:00", "--", "python3", "-c", "print('trained')")
    assert run.until_over()["state"] == "finished", run.log()
    assert "for python in pypy3 /opt/nowhere/python3 /usr/bin/python3 " in (run.folder / "params" / "leg-0001.sh").read_text()
