"""What a training wrote into its working folder comes from the server as artifacts do; the code beside it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.operations.submit.new_run import submit
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from tests.databases import tracker_in
from tests.unit.test_api_routes import Scene, good


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with tracker_in(tmp_path) as opened:
        yield Scene(tmp_path, opened)


def submitted(scene: Scene, **others: Any) -> tuple[str, RunDir]:
    scene.place.write("lib/model.py", "secret = 7\n")
    draft = scene.place.draft(command=("python3", "train.py"), **others)
    dir = submit(scene.place.desk, draft, cwd=scene.place.project)
    scene.opened.tracker.files.look(scene.place.desk.roots)
    return f"/api/v1/runs/{read_run(dir).spec.id}/written", dir


def test_files_are_listed_and_downloaded_and_code_is_neither(scene: Scene) -> None:
    at, dir = submitted(scene)
    assert good(scene.client.get(at)) == {"files": [], "more": 0}
    (dir.code / "out").mkdir()
    (dir.code / "out" / "loss.csv").write_text("1,2")
    (told,) = good(scene.client.get(at))["files"]
    assert (told["path"], told["is_dir"], told["bytes"]) == ("out", True, None)
    (told,) = good(scene.client.get(f"{at}?path=out"))["files"]
    assert (told["path"], told["is_dir"], told["bytes"]) == ("out/loss.csv", False, 3)
    answer = scene.client.get(f"{at}/out/loss.csv")
    assert (answer.status, answer.text) == (200, "1,2")
    assert answer.headers["content-disposition"].startswith("attachment") and "sandbox" in answer.headers["content-security-policy"]
    for path in ("train.py", "lib/model.py"):
        refused = scene.client.get(f"{at}/{path}")
        assert refused.status == 404 and "not a file that the training wrote" in refused.text and "secret" not in refused.text


def test_very_many_files_come_page_by_page(scene: Scene) -> None:
    at, dir = submitted(scene)
    for number in range(1_050):
        (dir.code / f"{number:04d}.bin").touch()
    first = good(scene.client.get(at))
    assert (len(first["files"]), first["more"]) == (200, 850)
    rest = good(scene.client.get(f"{at}?limit=1000&after={first['files'][-1]['path']}"))
    assert (len(rest["files"]), rest["more"], rest["files"][0]["path"]) == (850, 0, "0200.bin")
    assert scene.client.get(f"{at}?limit=1001").status == 400


def test_where_the_code_was_not_frozen_there_is_nothing(scene: Scene) -> None:
    at, _ = submitted(scene, freeze=False)
    assert good(scene.client.get(at)) == {"files": [], "more": 0}
    assert "nothing tells what the training" in scene.client.get(f"{at}/train.py").text
