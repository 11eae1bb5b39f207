"""The table of scripts that were cut and killed: each is in it, with as many changed lines as it has."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_coming_from import DOCS
from tests.public_scripts.cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=[case.script for case in CASES])
def test_a_public_script_is_in_the_table_with_the_number_of_its_changed_lines(case: Case) -> None:
    [row] = re.findall(rf"^\| `{re.escape(case.script)}`.*$", (DOCS / "frameworks.md").read_text(), re.MULTILINE)
    assert row.split("|")[3].split()[0] == str(case.lines)
