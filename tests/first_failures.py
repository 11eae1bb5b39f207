"""A pytest plugin: every test that fails is written to a file, so that a failure that a second try hides is still seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_WIDTH = 200


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called in the main process for the reports of all workers; a worker itself writes nothing."""
    path = os.environ.get("ONWARD_FIRST_FAILURES")
    if not path or not report.failed or "PYTEST_XDIST_WORKER" in os.environ:
        return
    with Path(path).open("a") as lines:
        lines.write(f"{report.nodeid}\t{report.when}\t{_reason(report)}\n")


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else report.longreprtext
    return " ".join(text.split())[:_WIDTH]
