"""Environments that are built once: named by their content, never half there, and the line that failed is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from onward.errors import PreparationFailed
from onward.model.pipelines.environment_build import Build, build_from_json, build_to_json
from onward.pipelines.build import Builder, Environments, main
from onward.rundir.freeze import build_archive


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    return Environments(tmp_path / "runs")


def builder(environments: Environments, *, run: str = "run1", leg: int = 1, env: Mapping[str, str] | None = None) -> Builder:
    environments.root.mkdir(exist_ok=True)
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(environments.root), **(env or {})}
    return Builder(environments=environments, run=run, leg=leg, env=surroundings, cwd=environments.root)


def plain(*setup: str, **more: object) -> Build:
    return Build(name="main", tool="none", setup=setup, **more)  # type: ignore[arg-type]


# ── its name ──────────────────────────────────────────────────────────────────


def test_the_same_content_has_the_same_key_whatever_it_is_called() -> None:
    build = Build(name="main", requirements=("requirements.txt",), files={"requirements.txt": "numpy==2.0"})
    assert replace(build, name="other").key == build.key
    assert replace(build, files={"requirements.txt": "numpy==2.1"}).key != build.key
    assert replace(build, setup=("true",)).key != build.key


def test_a_build_survives_the_way_through_json() -> None:
    build = Build(
        name="main", tool="conda", definition="e.yml", files={"e.yml": "x"}, setup=("a", "b"), modules=("cuda/12.0",), opam="4.11.2"
    )
    assert build_from_json(json.loads(json.dumps(build_to_json(build)))) == build


# ── the lines that make it ────────────────────────────────────────────────────


def test_each_tool_is_called_in_its_own_words() -> None:
    def made(**expected: object) -> tuple[str, ...]:
        return Build(name="main", **expected).making("/p", "/f")  # type: ignore[arg-type]

    assert made(python="3.11", packages=("numpy<2", "a b")) == (
        "python3.11 -m venv /p",
        "/p/bin/python -m pip install --disable-pip-version-check 'numpy<2' 'a b'",
    )
    assert made(tool="uv", python="3.12", requirements=("r.txt",)) == (
        "uv venv --python 3.12 /p",
        "uv pip install --python /p/bin/python --requirement /f/r.txt",
    )
    assert made(tool="conda", definition="environment.yml") == ("conda env create --yes --prefix /p --file /f/environment.yml",)
    assert made(tool="mamba", definition="explicit.lock") == ("mamba create --yes --prefix /p --file /f/explicit.lock",)
    assert made(tool="micromamba", definition="e.yaml", requirements=("r.txt",)) == (
        "micromamba create --yes --prefix /p --file /f/e.yaml",
        "/p/bin/python -m pip install --disable-pip-version-check --requirement /f/r.txt",
    )
    assert made(tool="conda", python="3.9", packages=("tensorflow",)) == ("conda create --yes --prefix /p python=3.9 tensorflow",)
    assert made(tool="none", opam="4.11.2") == ("mkdir -p /p", "mkdir -p /p/opam", "opam switch create /p/opam 4.11.2 --yes")


def test_an_environment_is_used_as_its_tool_wants_it() -> None:
    assert Build(name="m", tool="uv").used("/p").venv == "/p"
    assert Build(name="m", tool="conda", modules=("cuda",)).used("/p").conda == "/p"
    assert Build(name="m", tool="none", opam="4", activate=("export A=1",)).used("/p").setup == (
        'eval "$(opam env --switch=/p/opam --set-switch)"',
        "export A=1",
    )


def test_a_container_is_put_before_the_command_and_not_built() -> None:
    build = Build(name="m", image="lab.sif", image_options=("--nv",))
    assert not build.is_built and build.prefix_command() == ("apptainer", "exec", "--nv", "lab.sif")


# ── building ──────────────────────────────────────────────────────────────────


def test_a_virtual_environment_is_built_once_and_works_where_it_is_found(environments: Environments) -> None:
    build = Build(name="main", python=sys.executable, setup=('echo "made in $VIRTUAL_ENV" > "$ONWARD_PREFIX/said"',))
    assert builder(environments).build(build)
    prefix = environments.prefix(build.key)
    assert (prefix / "said").read_text().strip() == f"made in {prefix.resolve()}"
    shown = subprocess.run([prefix / "bin" / "python", "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True)
    assert Path(shown.stdout.strip()).resolve() == prefix.resolve()
    assert not builder(environments, run="run2").build(build)
    assert len(list(environments.made.iterdir())) == 1


def test_the_line_that_fails_is_told_with_its_number_and_its_words(environments: Environments) -> None:
    build = plain("true", "echo fine", "echo no such thing >&2; false", "touch never", activate=("export A=1",))
    with pytest.raises(PreparationFailed) as error:
        builder(environments).build(build)
    assert error.value.message.startswith("the environment main: its setup failed: setup line 3 `echo no such thing")
    assert "no such thing" in error.value.hint
    assert not environments.is_whole(build.key) and not environments.link(build.key).exists()


def test_a_failed_build_keeps_its_log_until_it_is_tried_again(environments: Environments) -> None:
    build = plain("echo working", "test -e ready")
    with pytest.raises(PreparationFailed):
        builder(environments).build(build)
    assert "working" in (environments.made / f"{build.key}-run1.1" / "build.log").read_text()
    (environments.root / "ready").touch()
    assert builder(environments, leg=2).build(build)
    assert sorted(path.name for path in environments.made.iterdir()) == [f"{build.key}-run1.2"]


def test_of_two_builders_the_first_is_found_and_the_other_goes(environments: Environments) -> None:
    build = plain("true")
    first, second = (environments.attempt(build.key, run, 1) for run in ("one", "two"))
    for folder in (first, second):
        (folder / "build.json").write_text("{}")
    assert environments.show(build.key, first) and not environments.show(build.key, second)
    assert environments.link(build.key).resolve() == first.resolve()


def test_in_a_root_of_another_user_each_builds_for_himself(environments: Environments, monkeypatch: pytest.MonkeyPatch) -> None:
    environments.root.mkdir()
    assert environments.path.name == ".environments"
    monkeypatch.setattr(os, "getuid", lambda: environments.root.stat().st_uid + 1)
    assert environments.path.name == f".environments-{environments.root.stat().st_uid + 1}"


def test_an_environment_that_was_cleaned_away_is_built_anew(environments: Environments) -> None:
    import shutil

    build = plain("true")
    builder(environments).build(build)
    shutil.rmtree(environments.link(build.key).resolve())
    assert builder(environments, run="run2").build(build)
    assert environments.is_whole(build.key)


def test_a_build_killed_at_any_moment_is_never_half_there(environments: Environments, tmp_path: Path) -> None:
    archive, described = tmp_path / "supervisor.pyz", tmp_path / "build.json"
    build_archive(archive)
    build = plain(*(f"sleep 0.05; echo {n}" for n in range(8)), 'touch "$ONWARD_PREFIX/whole"')
    described.write_text(json.dumps(build_to_json(build)))
    environments.root.mkdir()
    command = [sys.executable, str(archive), "build", str(environments.root), str(described)]
    for leg, seconds in enumerate((0.15, 0.3, 0.45, 0.6), 1):
        process = subprocess.Popen(command, env={**os.environ, "ONWARD_RUN_ID": "killed", "ONWARD_LEG": str(leg)}, start_new_session=True)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        assert not environments.is_whole(build.key) or (environments.prefix(build.key) / "whole").exists()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{environments.link(build.key)}" in done.stdout
    assert (environments.prefix(build.key) / "whole").exists()


def test_what_a_failed_build_says_is_in_the_runs_own_words(environments: Environments, tmp_path: Path) -> None:
    archive, described = tmp_path / "supervisor.pyz", tmp_path / "build.json"
    build_archive(archive)
    described.write_text(json.dumps(build_to_json(plain("echo broken; exit 3"))))
    environments.root.mkdir()
    done = subprocess.run(
        [sys.executable, str(archive), "build", str(environments.root), str(described)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "setup line 1 `echo broken; exit 3` failed with exit code 3" in done.stderr and "broken" in done.stderr


def test_a_place_where_nothing_can_be_kept_is_named(environments: Environments, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    described = tmp_path / "build.json"
    described.write_text(json.dumps(build_to_json(plain("true"))))
    environments.root.mkdir()
    environments.path.write_text("no folder")
    assert main([str(environments.root), str(described)]) == 1
    assert f"the environment main cannot be stored in {environments.path}: Not a directory" in capsys.readouterr().err
