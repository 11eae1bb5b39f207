"""The page about reports: its commands run as they stand, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_coming_from import run_page

pytestmark = pytest.mark.slow


def test_the_page_about_reports(tmp_path: Path) -> None:
    said = run_page("reports.md", tmp_path)
    assert said["onward report digits -o digits.html"].startswith("digits.html: 1 run, ")
    text = (tmp_path / "digits.html").read_text()
    assert "<polyline" in text and "0.1111 at step 8" in text
