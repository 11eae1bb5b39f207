"""The page's types of the API: `python -m tests.web.types FILE` writes them; `scripts/api-types` does so for the page."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import build_web
from onward.api.app import make_api

KEPT = build_web.WEB / "src" / "api.gen.ts"


def write(to: Path) -> None:
    described = make_api().openapi()  # no route is called, so nothing is served
    with tempfile.TemporaryDirectory() as own:
        openapi = Path(own) / "openapi.json"
        openapi.write_text(json.dumps(described))
        build_web.types(openapi, to)


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
