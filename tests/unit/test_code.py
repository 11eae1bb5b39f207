"""Freezing code: what git knows, or a copy by rule; the rest is linked, and runs are never part of it."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from onward.errors import InvalidInput, StorageError
from onward.model.spec import Script
from onward.operations.submit.arriving_code import unpack_code
from onward.operations.submit.clone import CopiedCode
from onward.operations.submit.code_snapshot import CodeSnapshot, freeze_code
from onward.rundir.layout import RunDir
from tests.sandbox import Sandbox


class Project:
    """A folder to freeze, with or without git."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "project"
        self.path.mkdir()
        self.runs = folder / "runs"
        self.copy = folder / "copy"

    def write(self, name: str, text: str = "x = 1\n") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def sized(self, name: str, size: int) -> Path:
        path = self.write(name)
        os.truncate(path, size)
        return path

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        identity = ["-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always"]
        done = subprocess.run(["git", *identity, *arguments], cwd=cwd or self.path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, cwd: Path | None = None) -> str:
        self.git("init", "-q", "-b", "main", cwd=cwd)
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-q", "--allow-empty", "-m", "all", cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)

    def freeze(self, *, cwd: Path | None = None, exclude: tuple[str, ...] = (), runs: Path | None = None) -> CodeSnapshot:
        self.copy.mkdir(exist_ok=True)
        return freeze_code(cwd or self.path, self.copy, exclude=exclude, runs=runs or self.runs)

    def run_folder(self, path: Path) -> Path:
        RunDir(path).make()
        (path / "params" / "spec.json").write_text("{}")
        return path

    def copied(self) -> list[str]:
        """Real files of the copy; links are not entered."""
        found = (Path(folder) / name for folder, _, names in os.walk(self.copy) for name in names)
        return sorted(str(path.relative_to(self.copy)) for path in found if not path.is_symlink())

    def linked(self) -> dict[str, str]:
        found = (Path(folder) / name for folder, folders, names in os.walk(self.copy) for name in (*folders, *names))
        return {str(path.relative_to(self.copy)): os.readlink(path) for path in found if path.is_symlink()}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# ── with git ──────────────────────────────────────────────────────────────────


def test_tracked_and_new_files_are_copied_and_the_commit_is_recorded(project: Project) -> None:
    project.write("train.py")
    project.write("pkg/model.py")
    commit = project.commit()
    project.write("new.py")
    frozen = project.freeze()
    assert project.copied() == ["new.py", "pkg/model.py", "train.py"]
    assert frozen.workdir == "."
    assert frozen.facts["git_commit"] == commit
    assert frozen.facts["git_branch"] == "main"
    assert frozen.facts["git_dirty"] is True
    assert frozen.facts["files"] == 3
    assert not (project.copy / ".git").exists()


def test_a_clean_repository_has_no_diff(project: Project) -> None:
    project.write("train.py")
    project.commit()
    frozen = project.freeze()
    assert (frozen.diff, frozen.facts["git_dirty"]) == ("", False)


def test_uncommitted_changes_are_copied_and_recorded_as_a_diff(project: Project) -> None:
    project.write("train.py", "lr = 0.1\n")
    project.commit()
    project.write("train.py", "lr = 0.2\n")
    frozen = project.freeze()
    assert (project.copy / "train.py").read_text() == "lr = 0.2\n"
    assert "-lr = 0.1\n+lr = 0.2" in frozen.diff
    assert frozen.facts["git_dirty"] is True


def test_a_deleted_file_that_is_still_tracked_is_no_trouble(project: Project) -> None:
    project.write("train.py")
    project.write("old.py")
    project.commit()
    (project.path / "old.py").unlink()
    project.freeze()
    assert project.copied() == ["train.py"]


def test_what_git_ignores_is_linked_so_that_relative_paths_to_data_go_on_working(project: Project) -> None:
    project.write(".gitignore", "data/\n*.ckpt\n__pycache__/\n")
    project.write("train.py")
    project.write("data/train.csv", "1,2\n")
    project.write("models/a.ckpt")
    project.write("models/model.py")
    project.write("__pycache__/train.pyc")
    project.commit()
    project.freeze()
    assert project.copied() == [".gitignore", "models/model.py", "train.py"]
    assert project.linked() == {"data": str(project.path / "data"), "models/a.ckpt": str(project.path / "models/a.ckpt")}
    assert (project.copy / "data" / "train.csv").read_text() == "1,2\n"


def test_a_submodule_is_copied_without_what_it_ignores(project: Project, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "lib.py").write_text("y = 2\n")
    (library / ".gitignore").write_text("cache/\n")
    project.commit(cwd=library)
    project.write("train.py")
    project.commit()
    project.git("submodule", "--quiet", "add", str(library), "lib")
    project.git("commit", "-q", "-m", "lib")
    project.write("lib/cache/big.bin")
    project.freeze()
    assert project.copied() == [".gitmodules", "lib/.gitignore", "lib/lib.py", "train.py"]
    assert project.linked() == {"lib/cache": str(project.path / "lib" / "cache")}


def test_a_submodule_that_is_not_checked_out_is_no_trouble(project: Project) -> None:
    project.write("train.py")
    project.commit()
    project.git("update-index", "--add", "--cacheinfo", f"160000,{project.git('rev-parse', 'HEAD')},lib")
    (project.path / "lib").mkdir()
    project.freeze()
    assert project.copied() == ["train.py"]


def test_a_clone_inside_is_copied_too(project: Project) -> None:
    project.write("train.py")
    project.commit()
    project.write("other/tool.py")
    project.commit(cwd=project.path / "other")
    project.freeze()
    assert project.copied() == ["other/tool.py", "train.py"]


def test_from_a_subfolder_the_whole_repository_is_copied_and_the_command_starts_where_it_was_given(project: Project) -> None:
    project.write("lib.py")
    project.write("experiments/a/train.py")
    project.commit()
    frozen = project.freeze(cwd=project.path / "experiments" / "a")
    assert frozen.workdir == "experiments/a"
    assert project.copied() == ["experiments/a/train.py", "lib.py"]


def test_a_subfolder_without_any_code_is_there_all_the_same(project: Project) -> None:
    project.write(".gitignore", "out/*\n")
    project.write("train.py")
    project.write("out/data.csv")
    project.commit()
    frozen = project.freeze(cwd=project.path / "out")
    assert frozen.workdir == "out"
    assert not (project.copy / "out").is_symlink()
    assert project.linked() == {"out/data.csv": str(project.path / "out" / "data.csv")}


def test_a_folder_that_its_repository_ignores_is_frozen_as_any_folder(project: Project) -> None:
    """A home folder kept in git, with everything in it ignored, must not mean that nothing is frozen."""
    project.write(".gitignore", "*\n")
    project.write("work/train.py")
    project.commit()
    frozen = project.freeze(cwd=project.path / "work")
    assert project.copied() == ["train.py"]
    assert "git_commit" not in frozen.facts


def test_a_large_file_is_linked_even_if_git_tracks_it(project: Project) -> None:
    project.write("train.py")
    big = project.sized("weights.bin", (10 << 20) + 1)
    project.sized("small.bin", 10 << 20)
    project.commit()
    project.freeze()
    assert project.copied() == ["small.bin", "train.py"]
    assert project.linked() == {"weights.bin": str(big)}


def test_a_repository_without_a_commit_can_be_frozen(project: Project) -> None:
    project.write("train.py")
    project.git("init", "-q")
    frozen = project.freeze()
    assert project.copied() == ["train.py"]
    assert frozen.facts["git_commit"] is None


def test_where_git_cannot_list_its_files_nothing_is_frozen_by_halves(project: Project) -> None:
    project.write("train.py")
    project.commit()
    (project.path / ".git" / "index").write_bytes(b"nonsense")
    with pytest.raises(StorageError, match="git could not list"):
        project.freeze()


# ── without git ───────────────────────────────────────────────────────────────


def test_without_git_hidden_folders_caches_and_environments_are_not_copied(project: Project) -> None:
    project.write("train.py")
    project.write("pkg/model.py")
    project.write(".hidden/x.py")
    project.write("venv/pyvenv.cfg")
    project.write("venv/lib/y.py")
    project.write("env/conda-meta/history")
    project.write("pkg/__pycache__/model.pyc")
    frozen = project.freeze()
    assert project.copied() == ["pkg/model.py", "train.py"]
    assert frozen.facts == {"frozen": True, "from": str(project.path), "files": 2, "bytes": 12}


def test_an_environment_in_the_folder_is_linked_so_that_its_python_still_starts(project: Project) -> None:
    project.write("train.py")
    project.write(".venv/bin/python")
    project.freeze()
    assert project.linked() == {".venv": str(project.path / ".venv")}


def test_large_files_and_what_the_user_excludes_are_linked(project: Project) -> None:
    project.write("train.py")
    project.write("data/a.csv")
    project.write("notes/one.txt")
    project.write("notes/two.md")
    project.sized("weights.bin", (10 << 20) + 1)
    project.freeze(exclude=("data/", "*.txt"))
    assert project.copied() == ["notes/two.md", "train.py"]
    assert set(project.linked()) == {"data", "notes/one.txt", "weights.bin"}
    assert (project.copy / "data" / "a.csv").exists()


def test_too_many_files_are_refused_with_a_way_out(project: Project) -> None:
    for n in range(5001):
        project.write(f"d{n // 100}/f{n}.py", "")
    with pytest.raises(InvalidInput) as caught:
        project.freeze()
    assert "5001 files" in caught.value.message
    assert "--no-freeze" in caught.value.hint
    assert project.copied() == []


# ── names and links ───────────────────────────────────────────────────────────

ODD = ("with space.py", "line\nbreak.py", "größe.py", "-dash.py", "'quote\".py", "tab\t.py", "語.py", "dir with space/a.py")


@pytest.mark.parametrize("with_git", [True, False])
def test_files_of_any_name_are_copied(project: Project, with_git: bool) -> None:
    for name in ODD:
        project.write(name)
    if with_git:
        project.commit()
    project.freeze()
    assert project.copied() == sorted(ODD)
    assert project.linked() == {}


@pytest.mark.parametrize("with_git", [True, False])
def test_a_name_that_is_no_utf8_is_there_in_the_copy(project: Project, with_git: bool) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    project.write(name)
    project.write("train.py")
    if with_git:
        project.commit()
    project.freeze()
    assert (project.copy / name).read_text() == "x = 1\n"


@pytest.mark.parametrize("with_git", [True, False])
def test_links_lead_where_they_led_and_stay_inside_the_copy_where_they_were_inside(
    project: Project, tmp_path: Path, with_git: bool
) -> None:
    (tmp_path / "elsewhere").mkdir()
    project.write("src/pkg/model.py")
    for name, leads_to in (
        ("pkg", "src/pkg"),
        ("same.py", "src/pkg/model.py"),
        ("data", str(tmp_path / "elsewhere")),
        ("dangling", "nowhere"),
        ("loop", "loop"),
    ):
        (project.path / name).symlink_to(leads_to)
    if with_git:
        project.commit()
    project.freeze()
    assert project.copied() == ["same.py", "src/pkg/model.py"]
    assert project.linked()["pkg"] == "src/pkg"
    assert project.linked()["data"] == str(tmp_path / "elsewhere")
    assert not (project.copy / "dangling").exists()
    project.write("src/pkg/model.py", "x = 2\n")
    assert (project.copy / "pkg" / "model.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("name", ["secret.key", "alone/secret.key"])
def test_a_file_that_may_not_be_read_is_linked_and_named(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    project.write("train.py")
    secret = project.write(name)
    real = shutil.copy2

    def copy2(source: Path, target: Path) -> str | Path:
        if source == secret:  # whoever runs the tests may be root, who may read everything
            raise PermissionError(13, "Permission denied", str(source))
        return real(source, target)

    monkeypatch.setattr(shutil, "copy2", copy2)
    frozen = project.freeze()
    assert project.copied() == ["train.py"]
    assert project.linked() == {name: str(secret)}
    assert frozen.facts["files"] == 1
    (note,) = frozen.notes
    assert note.startswith(f"{name} cannot be read (Permission denied)") and f"code: {{exclude: [{name}]}}" in note


def test_a_pipe_and_other_things_that_are_no_files_are_linked(project: Project) -> None:
    project.write("train.py")
    os.mkfifo(project.path / "pipe")
    project.freeze()
    assert project.copied() == ["train.py"]
    assert project.linked() == {"pipe": str(project.path / "pipe")}


def test_modes_are_kept(project: Project) -> None:
    project.write("run.sh").chmod(0o755)
    project.freeze()
    assert (project.copy / "run.sh").stat().st_mode & 0o777 == 0o755


def test_an_edit_after_the_freeze_does_not_reach_the_copy(project: Project) -> None:
    script = project.write("train.py", "lr = 0.1\n")
    project.commit()
    project.freeze()
    script.write_text("lr = 0.2\n")
    assert (project.copy / "train.py").read_text() == "lr = 0.1\n"


# ── runs are never part of it ─────────────────────────────────────────────────


@pytest.mark.parametrize("with_git", [True, False])
def test_a_root_of_runs_inside_the_project_is_neither_copied_nor_linked(project: Project, with_git: bool) -> None:
    project.write("train.py")
    if with_git:
        project.commit()
    runs = project.path / "runs"
    mine = project.run_folder(runs / "2026-11-15_A_digits")
    (runs / "by-hand").mkdir()
    (runs / "by-hand" / "x.py").write_text("")
    project.copy = mine / "code"
    frozen = project.freeze(runs=runs)
    assert project.copied() == ["train.py"]
    assert project.linked() == {}
    assert frozen.facts.get("git_dirty", False) is False


def test_the_root_is_known_also_through_a_link(project: Project, tmp_path: Path) -> None:
    project.write("train.py")
    project.run_folder(project.path / "runs" / "2026-11-15_A_digits")
    (tmp_path / "short").symlink_to(project.path / "runs")
    project.freeze(runs=tmp_path / "short")
    assert (project.copied(), project.linked()) == (["train.py"], {})


@pytest.mark.parametrize("with_git", [True, False])
def test_where_the_project_itself_is_the_root_its_code_is_frozen_and_its_runs_are_not(project: Project, with_git: bool) -> None:
    project.write("train.py")
    if with_git:
        project.commit()
    mine = project.run_folder(project.path / "2026-11-15_A_digits")
    project.copy = mine / "code"
    project.freeze(runs=project.path)
    assert (project.copied(), project.linked()) == (["train.py"], {})


def test_a_project_inside_the_root_is_frozen(project: Project, tmp_path: Path) -> None:
    project.write("train.py")
    project.freeze(runs=tmp_path)
    assert project.copied() == ["train.py"]


def test_runs_of_another_root_are_left_alone_too(project: Project) -> None:
    project.write("train.py")
    project.run_folder(project.path / "old" / "2026-11-14_A_digits")
    project.write("old/plot.py")
    project.freeze()
    assert (project.copied(), project.linked()) == (["old/plot.py", "train.py"], {})


# ── who may read it ───────────────────────────────────────────────────────────


def modes(folder: Path) -> dict[str, int]:
    found = [folder, *(Path(here) / name for here, folders, names in os.walk(folder) for name in (*folders, *names))]
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in found if ".git" not in path.parts}


@pytest.fixture
def guarded(tmp_path: Path) -> Project:
    """Code of which some is nobody else's business."""
    project = Project(tmp_path)
    for name in ("train.py", "keys/deep/token.txt", "shared/model.py"):
        project.write(name)
    for name, mode in {"keys": 0o700, "keys/deep": 0o755, "keys/deep/token.txt": 0o600, "shared": 0o750, ".": 0o711}.items():
        (project.path / name).chmod(mode)
    return project


@pytest.mark.parametrize("known_to_git", [True, False])
def test_nobody_may_read_more_of_the_copy_than_of_the_code(guarded: Project, known_to_git: bool) -> None:
    if known_to_git:
        guarded.commit()
    frozen = guarded.freeze()
    assert modes(guarded.copy) == modes(guarded.path)
    assert frozen.diff_mode == (0o600 if known_to_git else 0o644)


def test_a_folder_that_we_may_not_write_to_can_be_copied_and_deleted(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("closed/a.py")
    (project.path / "closed").chmod(0o555)
    project.freeze()
    assert modes(project.copy)["closed"] == 0o755
    shutil.rmtree(project.copy)


def test_a_group_that_a_run_folder_hands_on_stays(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("train.py")
    project.copy.mkdir()
    project.copy.chmod(0o2775)
    project.path.chmod(0o750)
    project.freeze()
    assert modes(project.copy)["."] == 0o2750


def test_a_clone_and_a_tar_stream_keep_who_may_read(guarded: Project, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.add(guarded.path, arcname=".", recursive=False)
        for name in sorted(os.listdir(guarded.path)):
            archive.add(guarded.path / name, arcname=name)
    stream.seek(0)
    room, copy = tmp_path / "room", tmp_path / "clone"
    room.mkdir()
    unpack_code(room, stream, files=3)
    assert modes(room) == modes(guarded.path)
    copy.mkdir()
    CopiedCode(id="k3x9q2m7", code=guarded.path, frozen=CodeSnapshot(workdir=".", facts={}, diff=""), since=1e12).move(copy)
    assert modes(copy) == modes(guarded.path)


@pytest.mark.parametrize(("mode", "copied"), [(0o600, 0o700), (0o644, 0o755), (0o640, 0o750), (0o755, 0o755)])
def test_a_batch_script_is_read_by_whom_its_author_lets_read_it(tmp_path: Path, mode: int, copied: int) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.write("job.sh", "#!/bin/bash\ntrue\n").chmod(mode)
    script = Script(name="job.sh", folder=str(sandbox.project), shell=("/bin/bash",))
    dir = sandbox.submit(script=script, script_text="#!/bin/bash\ntrue\n", command=("/bin/bash", "job.sh"))
    assert stat.S_IMODE(dir.batch_script.stat().st_mode) == copied
