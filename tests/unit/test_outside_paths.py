"""Paths out of the project, such as `../data`: they work in the copy as they did at home."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.operations.submit.code_snapshot import CodeSnapshot, freeze_code
from tests.unit.test_code import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "home").mkdir()
    project = Project(tmp_path / "home")
    (tmp_path / "home" / "data" / "mnist").mkdir(parents=True)
    (tmp_path / "home" / "data" / "mnist" / "train").write_text("digits")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "words.txt").write_text("words")
    return project


def frozen(project: Project, *words: str, cwd: Path | None = None) -> tuple[CodeSnapshot, Path]:
    project.copy.mkdir(exist_ok=True)
    snapshot = freeze_code(cwd or project.path, project.copy, exclude=(), runs=project.runs, words=words)
    return snapshot, project.copy / snapshot.workdir


@pytest.mark.parametrize(
    "text",
    [
        "datasets.MNIST('../data', train=True)",
        "open('../data/mnist/train')",
        'os.path.join("..", "data")',
        "Path('..') / 'data'",
        'parser.add_argument("--data", default="./../data")',
    ],
)
@pytest.mark.parametrize("with_git", [False, True])
def test_a_path_in_the_code_leads_where_it_led(project: Project, text: str, with_git: bool) -> None:
    project.write("train.py", text)
    if with_git:
        project.commit()
    snapshot, start = frozen(project)
    assert snapshot.workdir == "project" and (start / "train.py").read_text() == text
    assert (start / "../data/mnist/train").read_text() == "digits"
    assert str(snapshot.facts["outside"]).startswith("../data")


def test_a_path_in_the_command_leads_where_it_led_however_far_up(project: Project) -> None:
    project.write("train.py")
    snapshot, start = frozen(project, "python", "train.py", "--words=../../shared/words.txt", "--data", "../data")
    assert snapshot.workdir == "home/project" and snapshot.facts["outside"] == "../../shared/words.txt, ../data"
    assert (start / "../../shared/words.txt").read_text() == "words"
    assert (start / "../data/mnist/train").read_text() == "digits"


def test_a_path_counts_from_where_the_command_starts_and_from_its_file(project: Project) -> None:
    project.write("src/deep/train.py", "here = Path(__file__).parent / '../../../data'")
    _, start = frozen(project, cwd=project.path / "src")
    assert (start / "deep" / "../../../data/mnist/train").read_text() == "digits"


def test_what_is_to_be_made_outside_is_made_within_the_copy(project: Project) -> None:
    project.write("train.py", "out = '../results'")
    snapshot, start = frozen(project)
    assert "outside" not in snapshot.facts
    (start / "../results").mkdir()
    assert (project.copy / "results").is_dir() and not (project.path.parent / "results").exists()


@pytest.mark.parametrize(
    "text", ["from .. import model", "x = '..'", "a ...", "see ../project/README", "'../../../../../../etc/x'", "1../2"]
)
def test_other_dots_change_nothing(project: Project, text: str) -> None:
    project.write("train.py", text)
    snapshot, _ = frozen(project)
    assert snapshot.workdir == "." and "outside" not in snapshot.facts


def test_the_root_of_runs_is_not_linked(project: Project) -> None:
    project.runs.mkdir()
    project.write("train.py", "root = '../runs'")
    snapshot, start = frozen(project)
    assert "outside" not in snapshot.facts and not (start / "../runs").exists()
