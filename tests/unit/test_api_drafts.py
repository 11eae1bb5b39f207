"""A run that is still being written: told what is wrong with it and what would be queued, as its author types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.tracker.access.tokens import Rights, Scope
from tests.databases import tracker_in
from tests.unit.test_api_acts import FILE
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[server]\ncode = ["{tmp_path}/desk/project"]\n')
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened, ONWARD_SETTINGS=str(settings))


def check(harness: Harness, file: str, folder: str | None = None) -> Any:
    asked = {"file": file, "folder": str(harness.sandbox.project) if folder is None else folder}
    return good(harness.client.post("/api/v1/drafts/search", asked))


def test_a_good_draft_shows_what_would_be_queued_and_queues_nothing(harness: Harness) -> None:
    seen = check(harness, FILE)
    assert seen["problems"] == []
    assert seen["script"].startswith("#!")
    assert seen["command"]
    assert seen["data"]["train"]["params"] == {"lr": 0.1, "seed": 1}
    assert harness.sandbox.folders() == []


def test_all_that_is_wrong_is_told_with_its_line_and_what_is_right_is_read(harness: Harness) -> None:
    seen = check(harness, FILE.replace("mem: 2G", "mem: much, tiem: 3").replace("cluster: local", "claster: local"))
    assert [(one["line"], one["at"]) for one in seen["problems"]] == [
        (3, "claster"),
        (7, "train.resources.mem"),
        (7, "train.resources.tiem"),
    ]
    assert seen["data"]["name"] == "digits"
    assert seen["script"] == ""


@pytest.mark.parametrize("file", ["", "[]", "a: &x 1\nb: *x", "name: [" * 3000, "\t", "name: digits", "!!python/object:os.system {}"])
def test_a_text_that_is_no_params_file_is_told_as_such(harness: Harness, file: str) -> None:
    seen = check(harness, file)
    assert seen["problems"]
    assert all(one["problem"] for one in seen["problems"])


def test_a_folder_that_is_not_allowed_is_a_problem_of_the_draft(harness: Harness) -> None:
    [problem] = check(harness, FILE, "/")["problems"]
    assert problem["hint"] == "only code in those folders is run"
    assert check(harness, FILE, "")["problems"]


def test_a_cluster_that_nobody_knows_is_a_problem_of_the_draft(harness: Harness) -> None:
    assert check(harness, FILE.replace("cluster: local", "cluster: moon"))["problems"]


def test_the_folders_of_the_settings_are_told_with_their_params_files(harness: Harness) -> None:
    project = harness.sandbox.project
    assert good(harness.client.get("/api/v1/drafts/folders")) == {"folders": [{"path": str(project), "file": None}]}
    (project / "params.yaml").write_text(FILE)
    assert good(harness.client.get("/api/v1/drafts/folders"))["folders"][0]["file"] == FILE
    (project / "params.yaml").write_bytes(b"\xff\xfe\x00")
    assert good(harness.client.get("/api/v1/drafts/folders"))["folders"][0]["file"] is None


def test_where_the_settings_name_no_folder_a_draft_says_so(tmp_path: Path) -> None:
    with tracker_in(tmp_path) as opened:
        harness = Harness(tmp_path, opened)
        assert good(harness.client.get("/api/v1/drafts/folders")) == {"folders": []}
        assert "server.code" in check(harness, FILE)["problems"][0]["hint"]


def test_who_may_only_read_may_check_a_draft_and_narrow_tokens_may_not(harness: Harness) -> None:
    assert harness.as_(Scope.USER, rights=Rights.READ).post("/api/v1/drafts/search", {"file": FILE}).status == 200
    assert harness.as_(Scope.AGENT, cluster="local").post("/api/v1/drafts/search", {"file": FILE}).status == 403
