"""The server that jobs send their records to: named in the settings or by variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.operations.context import OperationsContext
from onward.operations.tracker_access.server import tracker_settings
from onward.schedulers.cluster_settings import Settings, TrackerSettings
from onward.settings import load_settings


def load(tmp_path: Path, text: str, **env: str) -> Settings:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return load_settings({"ONWARD_SETTINGS": str(path), "HOME": "/home/ada", **env})


def test_a_tracker_is_an_address_and_a_file(tmp_path: Path) -> None:
    read = load(tmp_path, '[tracker]\nurl = "https://tracker.lab.org/onward/"\ntoken-file = "~/token"\n')
    assert read.tracker == TrackerSettings(url="https://tracker.lab.org/onward", token_file=Path("/home/ada/token"))
    assert load(tmp_path, "").tracker is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('url = "https://x.org"', "tracker.token-file: missing"),
        ('token-file = "/x"', "tracker.url: missing"),
        ('url = "tracker.lab.org"\ntoken-file = "/x"', "a URL such as"),
        ('url = "https://x.org/t/owu_1_secret"\ntoken-file = "/x"', "without a token in it"),
        ('url = "https://me:secret@x.org"\ntoken-file = "/x"', "without a token in it"),
        ('url = "https://x.org"\ntoken-file = "$NOWHERE/x"', "NOWHERE, which is not set"),
        ('url = "https://x.org"\ntoken = "owu_1_secret"', "tracker.token: unknown key"),
    ],
)
def test_a_tracker_that_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said.replace(".", r"\.")):
        load(tmp_path, f"[tracker]\n{text}\n")


def test_variables_count_before_the_settings_but_not_those_of_a_job() -> None:
    named = TrackerSettings(url="https://settings", token_file=Path("/s"))
    variables = {"ONWARD_TRACKER_URL": "https://variables/", "ONWARD_TOKEN_FILE": "/v"}
    assert tracker_settings(OperationsContext(env={}, _settings=Settings(tracker=named))) == named
    assert tracker_settings(OperationsContext(env=variables, _settings=Settings(tracker=named))) == TrackerSettings(
        url="https://variables", token_file=Path("/v")
    )
    assert tracker_settings(OperationsContext(env={**variables, "ONWARD_RUN_ID": "x"}, _settings=Settings(tracker=named))) == named
    assert tracker_settings(OperationsContext(env={"ONWARD_TRACKER_URL": "https://variables"}, _settings=Settings())) is None
