"""The page about keeping runs watched: its commands run as they stand, and what it prints is what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.operations.repair.timer import TendTimer
from tests.docs.test_coming_from import DOCS, run_page
from tests.unit.test_timer import Machine


@pytest.mark.slow
def test_the_page_about_keeping_runs_watched(tmp_path: Path) -> None:
    said = run_page("keep-runs-watched.md", tmp_path)
    [submitted] = [text for command, text in said.items() if command.startswith("onward submit")]
    assert "onward tend --install" in submitted
    assert "none without a job" in said["onward doctor || true"]
    assert "watched" in said["onward show watched"]


def test_what_the_page_says_that_an_install_prints_is_what_it_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch).with_systemd()
    printed = TendTimer(env=machine.env, folder=Path("/home/ada/project")).install(cron=False)
    shown = (DOCS / "keep-runs-watched.md").read_text()
    assert [line for line in printed if line.replace(str(machine.home), "/home/ada") not in shown] == []
