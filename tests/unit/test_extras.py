"""Every package that only an extra brings has its sentence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from onward.extras import EXTRA_OF, missing_extra

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_each_extra_brings_the_packages_whose_absence_it_is_named_for() -> None:
    brought = {
        re.split(r"[\[>=<]", requirement)[0].replace("-", "_"): extra
        for extra, requirements in PROJECT["optional-dependencies"].items()
        if extra != "all"
        for requirement in requirements
    }
    assert {**brought, "starlette": brought["fastapi"]} == EXTRA_OF


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    error = missing_extra(ModuleNotFoundError("No module named 'fastapi.routing'", name="fastapi.routing"))
    assert error and "fastapi" in error.message and error.hint == "pip install 'onward[server]'"
    assert missing_extra(ModuleNotFoundError("No module named 'onwards'", name="onwards")) is None
    assert missing_extra(ModuleNotFoundError("it has no name")) is None
