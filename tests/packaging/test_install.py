"""What `pip install` gives: the wheel and the source distribution, each in an empty environment, with and without the extras."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.environment import PATIENCE, ROOT, Environment

IN_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def installed(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Environment, Path]]:
    (package,) = built.glob(request.param)
    environment = Environment.make(tmp_path_factory.mktemp("empty"))
    environment.install(str(package))
    yield environment, package


def test_a_login_node_trains_and_looks_without_a_server_and_is_told_what_an_extra_is_for(installed: tuple[Environment, Path]) -> None:
    environment, package = installed
    names = environment.run("python", "-m", "pip", "list", "--format=freeze").stdout.lower()
    assert not re.search(r"^(fastapi|uvicorn|textual|aio-pika|pyarrow)==", names, re.MULTILINE)
    command = ("--name", "first", "--", "sh", "-c", "echo trained")
    trained = environment.run("onward", "run", "--cluster", "local", "--time", "0:01:00", *command)
    assert trained.returncode == 0, trained.stdout + trained.stderr
    for words in (["runs"], ["show", "first"], ["logs", "first"], ["report", "first", "-o", "report.html"]):
        done = environment.run("onward", *words)
        assert done.returncode == 0, (words, done.stderr)
    recipe = environment.run("onward", "gateway", "schema", "patchwise")  # of an entry point, as other packages have them
    assert recipe.returncode == 0 and "patchwise" in recipe.stdout, recipe.stderr
    page = environment.run("onward", "help", "params")
    assert page.stdout.startswith("# The params file"), page.stderr
    up = environment.run("onward", "up")
    assert up.returncode == 3 and "pip install 'onward[server]'" in up.stderr, up
    top = environment.run("python", "-c", IN_A_TERMINAL, str(environment.folder / "venv" / "bin" / "onward"), "top")
    assert top.returncode == 3 and "pip install 'onward[tui]'" in top.stdout, top

    environment.install(f"onward[server] @ {package.as_uri()}")
    with environment.server() as lines:
        address = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(address, timeout=PATIENCE).close()  # logs in
        asked = urllib.request.Request(urllib.parse.urljoin(address, "/"), headers={"Accept": "text/html"})
        with browser.open(asked, timeout=PATIENCE) as page:
            assert b'id="app"' in page.read()
        with browser.open(urllib.parse.urljoin(address, "/api/openapi.json"), timeout=PATIENCE) as described:
            assert b'"/experiments/{experiment}/runs"' in described.read()  # of a server extension, by its entry point
