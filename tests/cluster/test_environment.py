"""On a real Slurm with a real Lmod: modules, a venv and setup lines before the training, and what is said when one fails."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import Person

pytestmark = pytest.mark.cluster

MODULE = """
help([[A stand-in for CUDA.]])
setenv("CUDA_HOME", "/opt/cuda-12.0")
prepend_path("PATH", "/opt/cuda-12.0/bin")
"""
SAYS = """
import os, sys, onward
print("cuda", os.environ.get("CUDA_HOME"), "prefix", sys.prefix, "word", os.environ.get("WORD"), flush=True)
"""


@pytest.fixture
def modules(alice: Person) -> Iterator[Path]:
    """Module files of alice's own, in a folder that only MODULEPATH names."""
    if not Path("/usr/share/lmod/lmod/init/bash").exists():
        pytest.skip("Lmod is not installed: make beds")
    folder = alice.home / "modulefiles"
    (folder / "cuda").mkdir(parents=True)
    (folder / "cuda" / "12.0.lua").write_text(MODULE)
    for path in (folder, folder / "cuda", folder / "cuda" / "12.0.lua"):
        os.chown(path, pwd.getpwnam(alice.user).pw_uid, -1)
    alice.environment["MODULEPATH"] = str(folder)
    yield folder


def test_a_module_a_venv_and_setup_lines_are_there_when_the_training_starts(alice: Person, modules: Path) -> None:
    alice.write("says.py", SAYS)
    alice.run("python3", "-m", "venv", "--without-pip", "env")
    flags = ["--module", "cuda/12.0", "--venv", "env", "--setup", "module list", "--setup", 'export WORD="two words"']
    run = alice.submit("--mem", "200M", "--time", "5:00", *flags, "--", "python", "says.py")
    assert run.until_over()["state"] == "finished", run.log()
    out = (run.folder / "logs" / "leg-0001.out").read_text()
    assert out == f"cuda /opt/cuda-12.0 prefix {alice.home / 'env'} word two words\n"
    assert "cuda/12.0" in (run.folder / "logs" / "leg-0001.err").read_text()


def test_a_module_that_is_not_there_ends_the_run_and_is_named_with_lmods_own_words(alice: Person, modules: Path) -> None:
    alice.write("says.py", SAYS)
    run = alice.submit("--mem", "200M", "--time", "5:00", "--module", "cudnn/9", "--", "python3", "says.py")
    shown = run.until_over()
    assert (shown["state"], len(shown["legs"])) == ("failed", 2)
    assert "loading the module cudnn/9 failed with exit code 1" in shown["reason"]
    assert "cudnn/9" in (run.folder / "logs" / "leg-0002.err").read_text()
