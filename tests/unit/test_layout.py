from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from onward.rundir.layout import LegLocal, RunDir, folder_name, leg_of, letter, runs_under


def test_letters_count_the_runs_of_a_day_as_spreadsheets_do() -> None:
    assert [letter(n) for n in (0, 1, 25, 26, 27, 51, 52, 701, 702)] == ["A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]


@given(st.sets(st.integers(0, 20_000), min_size=2))
def test_no_two_runs_of_a_day_get_the_same_letters(numbers: set[int]) -> None:
    assert len({letter(n) for n in numbers}) == len(numbers)


def test_runs_are_listed_oldest_first_beyond_the_alphabet_too(tmp_path: Path) -> None:
    names = [folder_name("2026-11-15", letter(n), "digits") for n in range(60)]
    names += [folder_name("2026-11-16", "A", "a"), folder_name("2027-01-01", "A", "Z_with_underscores")]
    for name in reversed(names):
        run = RunDir(tmp_path / name)
        run.make()
        run.spec.write_text("{}")
    assert [run.path.name for run in runs_under(tmp_path)] == names


def test_what_is_no_run_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "by-hand").mkdir()
    (tmp_path / "2026-11-15_A_half-made").mkdir()
    (tmp_path / "2026-11-15_notes.txt").write_text("")
    assert runs_under(tmp_path) == []
    assert runs_under(tmp_path / "nowhere") == []


@given(st.integers(1, 10**6))
def test_the_leg_of_a_file_is_read_from_its_name(leg: int) -> None:
    run = RunDir(Path("/runs/x"))
    for path in (run.script(leg), run.claim(leg), run.leg_journal(leg), run.log(leg, "out")):
        assert leg_of(path.name) == leg


def test_files_of_no_leg_have_no_number() -> None:
    assert [leg_of(name) for name in ("desk-1.jsonl", "leg-1.out", ".leg-0001.json")] == [None, None, None]


def test_a_legs_local_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    local = LegLocal(tmp_path / "onward-1" / "leg-0001")
    local.make()
    local.make()
    assert local.path.stat().st_mode & 0o077 == 0
    assert all(path.is_dir() for path in (local.checkpoints, local.empty, local.spool, local.logs, local.tensorboard))
    assert not local.stop_file.exists() and not local.resume.exists()
