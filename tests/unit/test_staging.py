"""The publisher's own word on how far it is, and how an older checkpoint makes way for a newer one at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onward.checkpoints.copying import SourceChanged
from onward.checkpoints.publishing.publisher import PublishReport
from onward.sdk import contract
from onward.supervisor.leg import publisher_process


@pytest.fixture
def beat(tmp_path: Path) -> publisher_process.Heartbeat:
    made = publisher_process.Heartbeat(tmp_path)
    made.begin(PublishReport(kind="publishing", step=100, bytes=10))
    return made


def commit(folder: Path, step: int) -> None:
    mount = folder / contract.step_folder(step)
    mount.mkdir()
    (mount / contract.COMMIT_FILE).write_text("{}")


def test_it_says_how_far_a_publish_is(
    beat: publisher_process.Heartbeat, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_process, "_input_ends", lambda: False)
    beat.begin(PublishReport(kind="publishing", step=200, bytes=10))
    beat.moved(4)
    beat.moved(3)
    body = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(report["kind"], report["bytes"]) for report in body] == [("publishing", 10), ("moving", 4)], "at most every ten seconds"


@pytest.mark.parametrize(("newer", "ends", "stops"), [(True, True, True), (True, False, False), (False, True, False)])
def test_an_older_checkpoint_makes_way_only_when_the_training_has_gone_and_a_newer_one_waits(
    beat: publisher_process.Heartbeat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newer: bool, ends: bool, stops: bool
) -> None:
    monkeypatch.setattr(publisher_process, "_input_ends", lambda: ends)
    commit(tmp_path, 100)
    if newer:
        commit(tmp_path, 200)
    if not stops:
        beat.moved(1)
        return
    with pytest.raises(SourceChanged, match="step 100 was dropped in favor of that of step 200"):
        beat.moved(1)
