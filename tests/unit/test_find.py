"""Finding a run by what a person types."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.errors import Conflict, InvalidInput, NotFound
from onward.operations.runs.find import find_run
from tests.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path)
    for name in ("digits", "other", "digits"):
        sandbox.play(name)
    return sandbox


def test_a_run_is_found_by_its_id(sandbox: Sandbox) -> None:
    assert find_run(sandbox.context, "k01other").path.name == "2026-11-15_B_other"


def test_a_run_is_found_by_the_beginning_of_its_id(sandbox: Sandbox) -> None:
    assert find_run(sandbox.context, "k02").path.name == "2026-11-15_C_digits"


def test_a_run_is_found_by_its_name_where_only_one_has_it(sandbox: Sandbox) -> None:
    assert find_run(sandbox.context, "other").path.name == "2026-11-15_B_other"


def test_a_run_is_found_by_its_folder_in_every_spelling(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sandbox.root / "2026-11-15_B_other"
    monkeypatch.chdir(sandbox.folder)
    for text in (str(folder), f"{folder}/", "runs/2026-11-15_B_other", "./runs/2026-11-15_B_other", "2026-11-15_B_other", "2026-11-15_B"):
        assert find_run(sandbox.context, text).path == folder
    monkeypatch.chdir(folder)
    assert find_run(sandbox.context, ".").path == folder


def test_a_folder_outside_the_root_is_found_by_its_path_and_beside_it_by_its_name(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Sandbox(tmp_path / "elsewhere")
    run = elsewhere.play("digits")
    assert find_run(sandbox.context, str(run.dir.path)).path == run.dir.path
    monkeypatch.chdir(elsewhere.root)
    (sandbox.root / run.dir.path.name).rename(sandbox.root / "2026-11-14_A_digits")
    assert find_run(sandbox.context, run.dir.path.name).path == run.dir.path


def test_a_name_that_several_have_is_a_conflict_that_names_their_ids(sandbox: Sandbox) -> None:
    with pytest.raises(Conflict) as caught:
        find_run(sandbox.context, "digits")
    assert "2 runs" in caught.value.message
    assert "k00digit (2026-11-15_A_digits), k02digit (2026-11-15_C_digits)" in caught.value.hint
    assert caught.value.exit_code == 5


def test_a_beginning_that_several_ids_have_is_a_conflict(sandbox: Sandbox) -> None:
    with pytest.raises(Conflict, match="3 runs"):
        find_run(sandbox.context, "k0")


def test_a_whole_id_or_name_goes_before_the_beginning_of_another(sandbox: Sandbox) -> None:
    sandbox.play("k02")  # as a name
    assert find_run(sandbox.context, "k02").path.name == "2026-11-15_D_k02"


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_nothing_never_means_the_only_run(tmp_path: Path, text: str) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.play()
    with pytest.raises(InvalidInput):
        find_run(sandbox.context, text)


@pytest.mark.parametrize("text", ["nothing", "*", "2026-11-16", "%s", "x" * 100])
def test_what_is_no_run_is_not_found(sandbox: Sandbox, text: str) -> None:
    with pytest.raises(NotFound) as caught:
        find_run(sandbox.context, text)
    assert str(sandbox.root) in caught.value.message
    assert caught.value.exit_code == 3


def test_a_near_miss_is_guessed(sandbox: Sandbox) -> None:
    with pytest.raises(NotFound) as caught:
        find_run(sandbox.context, "digit")
    assert "did you mean digits?" in caught.value.hint


@pytest.mark.parametrize("text", ["/tmp", "./nowhere", "runs/"])
def test_a_folder_that_is_no_run_is_not_found(sandbox: Sandbox, text: str) -> None:
    with pytest.raises(NotFound, match="is not a run's folder"):
        find_run(sandbox.context, text)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": 1}', "\0"])
def test_a_run_whose_spec_cannot_be_read_does_not_hide_the_others(sandbox: Sandbox, text: str) -> None:
    (sandbox.root / "2026-11-15_A_digits" / "params" / "spec.json").write_text(text)
    assert find_run(sandbox.context, "digits").path.name == "2026-11-15_C_digits"
    assert find_run(sandbox.context, "2026-11-15_A_digits").path.name == "2026-11-15_A_digits"
