"""The page about clusters: its commands run as they stand, and its picture has the words of the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_coming_from import DOCS, run_page
from tests.unit.test_cluster_page import PAGE

pytestmark = pytest.mark.slow


def test_the_page_about_clusters(tmp_path: Path) -> None:
    said = run_page("cluster.md", tmp_path)
    shown = said["onward cluster local"]
    assert "digits.1." in shown and "Could start now" in shown
    [names] = [text for command, text in said.items() if "--json" in command]
    assert names.startswith("['digits.1.")


def test_the_picture_on_the_page_is_laid_out_as_the_real_one() -> None:
    text = (DOCS / "cluster.md").read_text()
    drawn = text.split("```text\n")[1].split("```")[0].splitlines()
    heads = [line for line in PAGE.splitlines() if line[:1].isupper()]
    assert [line for line in drawn if line[:1].isupper()] == heads
