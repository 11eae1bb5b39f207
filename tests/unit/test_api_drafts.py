"""A run that is still being written: told what is wrong with it and what would be queued, as its author types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.api.access.allowed_hosts import HostRules
from onward.api.app import make_server
from onward.operations.tracker_access.location import OpenTracker, login_link, tracker_location
from onward.operations.tracker_access.owner_logins import OwnerLogins
from onward.tracker.access.tokens import Rights, Scope
from tests.api import Client
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
    nothing = {"folders": [{"path": str(project), "file": None, "files": []}], "advice": ""}
    assert good(harness.client.get("/api/v1/drafts/folders")) == nothing
    (project / "params.yaml").write_text(FILE)
    assert good(harness.client.get("/api/v1/drafts/folders"))["folders"][0]["file"] == FILE
    (project / "params.yaml").write_bytes(b"\xff\xfe\x00")
    assert good(harness.client.get("/api/v1/drafts/folders"))["folders"][0]["file"] is None


def test_where_the_settings_name_no_folder_a_draft_says_so(tmp_path: Path) -> None:
    with tracker_in(tmp_path) as opened:
        harness = Harness(tmp_path, opened)
        answer = good(harness.client.get("/api/v1/drafts/folders"))
        assert answer["folders"] == [] and "`server.code`" in answer["advice"]
        assert check(harness, FILE)["problems"][0]["hint"] == answer["advice"]


def test_all_params_files_of_a_folder_are_told_and_nothing_else_of_it(harness: Harness, tmp_path: Path) -> None:
    project = harness.sandbox.project
    (project / "params.yaml").write_text(FILE)
    (project / "large.yml").write_text(FILE + "# large\n")
    (project / "secrets.yaml").write_text("password: x\n")
    (project / "big.yaml").write_text("train:\n" + "#" * 70_000)
    (tmp_path / "elsewhere.yaml").write_text(FILE)
    (project / "link.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    [folder] = good(harness.client.get("/api/v1/drafts/folders"))["folders"]
    assert [one["name"] for one in folder["files"]] == ["params.yaml", "large.yml"]


# ── the user who runs the server ──────────────────────────────────────────────


class Owned(Harness):
    """A server that knows its own user's logins; its settings name no folder."""

    def __init__(self, folder: Path, opened: OpenTracker) -> None:
        super().__init__(folder, opened, ONWARD_STATE_DIR=str(folder / "state"), ONWARD_SETTINGS="")
        self.owners = OwnerLogins(self.sandbox.context.env)
        at = tracker_location({"HOME": str(folder)}, str(folder / "tracker.db"))
        self.server = make_server(
            opened.tracker, opened.tokens, self.sandbox.context, at, hosts=HostRules(), tend=False, owners=self.owners
        )

    def browser(self, *, rights: Rights = Rights.ADMIN, own: bool = True) -> Client:
        link = login_link(self.opened.tokens, "", name="ada", rights=rights, minutes=5, owners=self.owners if own else None)
        answer = Client(self.server.gate, None).get(link)
        cookie = answer.headers["set-cookie"].split(";")[0]
        return Client(self.server.gate, cookie.partition("=")[2])


@pytest.fixture
def owned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Owned]:
    (tmp_path / "desk").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with tracker_in(tmp_path) as opened:
        yield Owned(tmp_path, opened)


def folders_of(client: Client) -> list[str]:
    return [one["path"] for one in good(client.get("/api/v1/drafts/folders"))["folders"]]


def test_the_users_own_browser_starts_runs_from_folders_that_were_submitted_from_before(owned: Owned) -> None:
    project = owned.sandbox.project
    browser = owned.browser()
    assert folders_of(browser) == []
    assert "Run `onward submit` once" in good(browser.get("/api/v1/drafts/folders"))["advice"]
    owned.sandbox.submit()
    assert folders_of(browser) == [str(project)]
    assert good(browser.post("/api/v1/runs", {"file": FILE, "folder": str(project)}), 201)["state"] == "submitted"
    refused = browser.post("/api/v1/runs", {"file": FILE, "folder": "/"})
    assert refused.status == 403 and "is not a folder under" in refused.json["detail"]


def test_the_folder_where_the_server_was_started_counts_unless_the_home_lies_in_it(
    owned: Owned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = owned.browser()
    (tmp_path / "project").mkdir()
    for here, counts in ((tmp_path / "project", True), (tmp_path, False), (tmp_path.parent, False), (Path("/"), False)):
        monkeypatch.chdir(here)
        assert folders_of(browser) == ([str(here)] if counts else [])


@pytest.mark.parametrize("who", ["an admin's token", "a write token", "a link made by someone else", "a reader's own link"])
def test_nobody_elses_token_or_browser_may_use_these_folders(owned: Owned, who: str) -> None:
    owned.sandbox.submit()
    match who:
        case "an admin's token":
            client = owned.as_(Scope.USER, rights=Rights.ADMIN)
        case "a write token":
            client = owned.as_(Scope.USER, rights=Rights.WRITE)
        case "a link made by someone else":
            client = owned.browser(own=False)
        case _:
            client = owned.browser(rights=Rights.READ)
    assert folders_of(client) == []
    assert client.post("/api/v1/runs", {"file": FILE, "folder": str(owned.sandbox.project)}).status == 403
    assert check_as(client, FILE, str(owned.sandbox.project))["problems"]


def check_as(client: Client, file: str, folder: str) -> Any:
    return good(client.post("/api/v1/drafts/search", {"file": file, "folder": folder}))


def test_a_note_of_a_login_counts_only_if_this_user_wrote_it(owned: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    owned.owners.add("0a1b2c3d")
    assert owned.owners.has("0a1b2c3d")
    assert not owned.owners.has("../roots") and not owned.owners.has("ffffffff")
    monkeypatch.setattr("os.getuid", lambda: 4242)
    assert not owned.owners.has("0a1b2c3d")


def test_who_may_only_read_may_check_a_draft_and_narrow_tokens_may_not(harness: Harness) -> None:
    assert harness.as_(Scope.USER, rights=Rights.READ).post("/api/v1/drafts/search", {"file": FILE}).status == 200
    assert harness.as_(Scope.AGENT, cluster="local").post("/api/v1/drafts/search", {"file": FILE}).status == 403
