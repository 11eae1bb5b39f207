from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.schedulers.state_folder import state_folder, state_folder_problem


def test_the_state_folder_follows_the_variables_in_their_order() -> None:
    env = {"HOME": "/home/ada"}
    assert state_folder(env) == Path("/home/ada/.local/state/onward")
    assert state_folder({**env, "XDG_STATE_HOME": "relative"}) == Path("/home/ada/.local/state/onward")
    assert state_folder({**env, "XDG_STATE_HOME": "/state"}) == Path("/state/onward")
    assert state_folder({**env, "XDG_STATE_HOME": "/state", "ONWARD_STATE_DIR": "/own"}) == Path("/own")


def test_without_home_the_users_entry_counts() -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert state_folder({}) == state_folder({"HOME": ""}) == Path(home, ".local", "state", "onward")


def test_a_user_without_any_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    with pytest.raises(InvalidInput, match="no home folder") as caught:
        state_folder({})
    assert "ONWARD_STATE_DIR" in caught.value.hint
    assert "set ONWARD_STATE_DIR" in state_folder_problem({})


def test_a_state_folder_that_cannot_be_made_is_a_problem_and_one_that_can_be_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    problem = state_folder_problem({"ONWARD_STATE_DIR": str(tmp_path / "file" / "state")})
    assert problem == f"{tmp_path}/file/state cannot be created: set ONWARD_STATE_DIR to a folder that you may write to"
    assert "cannot be written" in state_folder_problem({"ONWARD_STATE_DIR": str(tmp_path / "file")})
    assert state_folder_problem({"ONWARD_STATE_DIR": str(tmp_path / "not" / "there")}) == ""
