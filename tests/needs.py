"""What tests need of a machine beyond Python: without it they are skipped, except in CI, which must have it."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """`what`: what is not there, and how it is got."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}; CI must have it")
    pytest.skip(what)
