"""An install from a checkout on a machine without Node, or whose npm cannot reach its registry: everything but the page, and told so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.environment import PATIENCE, ROOT, Environment

NOWHERE = "http://127.0.0.1:9/"
pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a clone has: no page, nothing of npm's."""
    copy = tmp_path / "checkout"
    for name in ("src", "web"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("static", "node_modules", "__pycache__"))
    for name in ("build_web.py", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that a site's own index has: what builds a wheel, and no Node."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "download", "-q", "-d", str(folder), "hatchling>=1.27"]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def variables(wheels: Path, path: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "npm_", "NPM_"))}
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
    return kept | index | {"PATH": path, "npm_config_registry": NOWHERE, "npm_config_offline": "true"}


def no_programs(tmp_path: Path) -> str:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "env"):
        (folder / name).symlink_to(shutil.which(name) or name)
    return str(folder)


def make_wheel(checkout: Path, env: dict[str, str]) -> tuple[Path, str]:
    to = checkout.parent / "dist"
    pip = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "-w", str(to), str(checkout)]
    done = subprocess.run(pip, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = to.glob("*.whl")
    return wheel, done.stdout + done.stderr


def test_without_node_an_install_has_everything_but_the_page_and_the_server_says_how_to_get_it(
    checkout: Path, wheels: Path, tmp_path: Path
) -> None:
    wheel, said = make_wheel(checkout, variables(wheels, no_programs(tmp_path)))
    assert "there is no Node 20.19 or newer with npm on PATH, and none came from PyPI" in said
    assert "onward is built without its web page" in said and "To get the page: install Node" in said and "Traceback" not in said
    assert not any("/static/" in name for name in zipfile.ZipFile(wheel).namelist())

    environment = Environment.make(tmp_path / "empty")
    environment.install(f"onward[server] @ {wheel.as_uri()}")
    assert environment.run("onward", "runs").returncode == 0
    with environment.server() as lines:
        answer = next(line for line in lines if "there is no web page here" in line)
    assert "install Node 20.19 or newer, run the `pip install` of Onward again" in answer


def test_an_npm_that_cannot_reach_its_registry_costs_the_page_alone(checkout: Path, wheels: Path, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed here")
    _, said = make_wheel(checkout, variables(wheels, os.environ["PATH"]))
    assert "`npm ci" in said and "in web/ failed with" in said and "onward is built without its web page" in said
    assert "Traceback" not in said


def test_a_source_distribution_is_not_built_without_its_page(checkout: Path, wheels: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(tmp_path / "dist"), str(checkout)]
    done = subprocess.run(
        command, env=variables(wheels, no_programs(tmp_path)), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode != 0 and not list((tmp_path / "dist").glob("*"))
    assert "a source distribution includes the built page, and it cannot be built here" in done.stdout + done.stderr


def test_node_comes_from_pypi_where_the_machine_has_none(checkout: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PATH": no_programs(tmp_path)}
    done = subprocess.run(
        [sys.executable, "build_web.py"], cwd=checkout, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (checkout / "src" / "onward" / "api" / "static" / "index.html").is_file()
