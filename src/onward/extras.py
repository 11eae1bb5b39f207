"""Packages that only some verbs need: which extra brings each, and the error when one is missing."""

from __future__ import annotations

from onward.errors import NotFound

EXTRA_OF = {
    "fastapi": "server",
    "starlette": "server",
    "uvicorn": "server",
    "httptools": "server",
    "uvloop": "server",
    "textual": "tui",
    "aio_pika": "gateway",
    "psycopg": "postgres",
    "pyarrow": "parquet",
}


def missing_extra(error: ModuleNotFoundError) -> NotFound | None:
    """What to tell the user, or None if the module belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(package)
    if not extra:
        return None
    return NotFound(f"this needs the package {package}, which is not installed", hint=f"pip install 'onward[{extra}]'")
