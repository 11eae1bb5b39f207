"""Runs counted by what they share: one query for a list that is grouped, and for the states above it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from onward.operations.tracker_access.location import open_tracker, tracker_location
from tests.databases import new_database
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(new_database(tmp_path / "tracker.db"))


@pytest.fixture
def harness(tmp_path: Path, address: str) -> Iterator[Harness]:
    with open_tracker(tracker_location({"ONWARD_STATE_DIR": str(tmp_path / "state")}, address)) as opened:
        harness = Harness(tmp_path, opened)
        for rate, state, team in ((10, "running", "a"), (9, "failed", "a"), (9, "running", "b"), (None, "finished", None)):
            run = harness.run(
                name=f"lr {rate}",
                state="running",
                params={} if rate is None else {"lr": rate},
                tags={} if team is None else {"team": team},
                experiment="digits" if team == "a" else "language",
            )
            if state != "running":
                good(harness.client.ask("PATCH", f"/api/v1/runs/{run}", json={"state": state}))
        yield harness


def counts(harness: Harness, query: str) -> dict[str | None, int]:
    return {group["value"]: group["runs"] for group in good(harness.client.get(f"/api/v1/run-groups?{query}"))["groups"]}


def test_runs_are_counted_by_state_experiment_tag_and_param(harness: Harness) -> None:
    assert counts(harness, "by=state") == {"running": 2, "failed": 1, "finished": 1}
    assert counts(harness, "by=experiment") == {"digits": 2, "language": 2}
    assert counts(harness, "by=tags.team") == {"a": 2, "b": 1, None: 1}
    assert list(counts(harness, "by=params.lr").items()) == [("9", 2), ("10", 1), (None, 1)]  # as numbers, those without last


def test_a_group_says_the_states_of_its_runs(harness: Harness) -> None:
    groups = good(harness.client.get("/api/v1/run-groups?by=params.lr"))["groups"]
    assert groups[0]["states"] == {"failed": 1, "running": 1}


def test_a_filter_a_state_and_words_narrow_what_is_counted(harness: Harness) -> None:
    assert counts(harness, "by=state&filter=params.lr%20%3D%209") == {"running": 1, "failed": 1}
    assert counts(harness, "by=experiment&state=failed") == {"digits": 1}
    answer = good(harness.client.get("/api/v1/run-groups?by=state&filter=lr%20none"))  # no id has such letters
    assert (answer["read_as"], [group["runs"] for group in answer["groups"]]) == ("text", [1])
    assert answer["note"]


@pytest.mark.parametrize("by", ["experiment", "params.lr", "tags.team", "state"])
def test_a_filter_may_ask_for_what_is_counted_and_more(harness: Harness, by: str) -> None:
    asked = "experiment = digits and params.lr = 9 and tags.team = a and state = failed"
    assert list(counts(harness, f"by={by}&filter={quote(asked)}").values()) == [1]


def test_archived_runs_are_counted_only_when_asked_for(harness: Harness) -> None:
    run = good(harness.client.get("/api/v1/runs?filter=state%20%3D%20failed"))["runs"][0]["id"]
    good(harness.client.ask("PATCH", f"/api/v1/runs/{run}", json={"archived": True}))
    assert "failed" not in counts(harness, "by=state")
    assert counts(harness, "by=state&archived=true") == {"failed": 1}


def test_more_groups_than_were_asked_for_are_told(harness: Harness) -> None:
    answer = good(harness.client.get("/api/v1/run-groups?by=state&limit=2"))
    assert (len(answer["groups"]), answer["more"]) == (2, True)


@pytest.mark.parametrize("by", ["metrics.loss", "created", "nonsense", "", "a%00b", "params.lr%20desc%20x"])
def test_what_runs_are_not_grouped_by_is_told(harness: Harness, by: str) -> None:
    answer = harness.client.get(f"/api/v1/run-groups?by={by}")
    assert answer.status == 400, answer.text
    assert answer.json["hint"]
