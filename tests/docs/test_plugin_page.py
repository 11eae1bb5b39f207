"""The page about adding a scheduler holds the example as it is, so that what a reader copies is what the contract has tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onward.schedulers.base import Scheduler

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "howto" / "add-a-scheduler.md").read_text()
FILES = dict(re.findall(r"^```\w+ title=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("name", ["onward_tsp.py", "pyproject.toml"])
def test_the_page_and_the_example_are_the_same(name: str) -> None:
    assert FILES[name] == (REPO / "examples" / "plugin" / name).read_text()


def test_every_method_of_a_scheduler_has_its_line() -> None:
    methods = [name for name in vars(Scheduler) if not name.startswith("_")]
    assert [name for name in methods if f"| `{name}` |" not in PAGE] == []
