from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.model.spec import CheckpointRule, Cluster
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk import contract
from onward.supervisor.preparation import environment
from onward.supervisor.preparation.environment import (
    inherited_variables,
    local_folder,
    training_command,
    training_environment,
    working_folder,
)
from tests.histories import make_spec


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    made.make()
    return made


@pytest.fixture
def local(tmp_path: Path) -> LegLocal:
    return LegLocal(tmp_path / "local")


def test_what_belongs_to_the_submitting_shell_or_job_is_not_carried() -> None:
    ours = {"PATH": "/bin", "CONDA_PREFIX": "/env", "WANDB_MODE": "offline", "HOME": "/home/ada", "LD_LIBRARY_PATH": "/lib"}
    jobs = {"SLURM_JOB_ID": "1", "SBATCH_TIMELIMIT": "5", "ONWARD_LEG": "3", "TMPDIR": "/tmp/job1", "CUDA_VISIBLE_DEVICES": "3"}
    shells = {"PWD": "/x", "SSH_AUTH_SOCK": "/x", "BASH_FUNC_module%%": "() {", "DISPLAY": ":0", "TMUX_PANE": "1", "_": "/bin/env"}
    assert inherited_variables({**jobs, **ours, **shells}) == ours


# ── environment ───────────────────────────────────────────────────────────────


def test_a_training_finds_all_it_needs(run: RunDir, local: LegLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ONWARD_")]:  # of the test suite itself
        monkeypatch.delenv(name)
    spec = make_spec(checkpoints=CheckpointRule(every="600"))
    env = training_environment(spec, run, local, leg=4, deadline=1234.6, resume=(Path("/node/resume"), 88))
    fields = {name: value for name, value in env.items() if name.startswith("ONWARD_")}
    assert fields == {
        contract.RUN_ID: "k3x9q2m7",
        contract.RUN_DIR: str(run.path),
        contract.LEG: "4",
        contract.DEADLINE: "1235",
        contract.STOP_FILE: str(local.stop_file),
        contract.CHECKPOINT_DIR: str(local.checkpoints),
        contract.CHECKPOINT_EVERY: "600",
        contract.RESUME_DIR: "/node/resume",
        contract.RESUME_STEP: "88",
        contract.SAVE_SOCKET: str(local.save_socket),
        contract.SPOOL_DIR: str(local.spool),
        contract.TENSORBOARD_DIR: str(local.tensorboard),
        contract.ARTIFACTS_DIR: str(local.artifacts),
        contract.RANKS_DIR: str(local.ranks),
    }
    assert (env["PERSISTENT_CHECKPOINTS_DIR"], env["LOCAL_CHECKPOINTS_DIR"]) == ("/node/resume", str(local.checkpoints))
    assert (env["EXPERIMENT_ID"], env["PYTHONUNBUFFERED"], env["PYTHONFAULTHANDLER"]) == ("digits", "1", "1")


def test_names_that_scripts_and_trainers_know_lead_to_the_same_folders(
    run: RunDir, local: LegLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR", raising=False)
    env = training_environment(make_spec(), run, local, leg=1, deadline=None, resume=None)
    assert env["TENSORBOARD_LOGGING_DIR"] == env["LOCAL_TENSORBOARD_DIR"] == str(local.tensorboard)
    assert (env["LOCAL_LOGGING_DIR"], env["PERSISTENT_LOGGING_DIR"]) == (str(local.logs), str(run.logs))


def test_a_folder_for_the_trainers_event_files_that_the_user_chose_stays(run: RunDir, local: LegLocal) -> None:
    run.environment.write_text(json.dumps({"TENSORBOARD_LOGGING_DIR": "/my/own"}))
    env = training_environment(make_spec(), run, local, leg=1, deadline=None, resume=None)
    assert env["TENSORBOARD_LOGGING_DIR"] == "/my/own"


def test_what_does_not_apply_is_absent_even_if_an_outer_run_left_it(run: RunDir, local: LegLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (contract.DEADLINE, contract.RESUME_DIR, contract.RESUME_STEP):
        monkeypatch.setenv(name, "7")
    env = training_environment(make_spec(), run, local, leg=1, deadline=None, resume=None)
    assert not {contract.DEADLINE, contract.RESUME_DIR, contract.RESUME_STEP} & set(env)
    assert env["PERSISTENT_CHECKPOINTS_DIR"] == str(local.empty)


def test_the_frozen_variables_win_over_the_nodes(run: RunDir, local: LegLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A", "B"):
        monkeypatch.setenv(name, "node")
    run.environment.write_text(json.dumps({"B": "frozen"}))
    env = training_environment(make_spec(), run, local, leg=1, deadline=None, resume=None)
    assert (env["A"], env["B"]) == ("node", "frozen")


def test_the_frozen_onward_comes_last_on_the_path_of_modules(run: RunDir, local: LegLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine:/other")
    env = training_environment(make_spec(), run, local, leg=1, deadline=None, resume=None)
    assert env["PYTHONPATH"] == f"/mine:/other:{run.supervisor}"
    monkeypatch.delenv("PYTHONPATH")
    env = training_environment(make_spec(), run, local, leg=1, deadline=None, resume=None)
    assert env["PYTHONPATH"] == str(run.supervisor), "an empty part would mean the working folder"


# ── command ───────────────────────────────────────────────────────────────────


def test_placeholders_are_filled_in(local: LegLocal) -> None:
    command = (
        "python",
        "t.py",
        "--lr={params.lr}",
        "{params.deep}",
        "{checkpoints.read}",
        "{checkpoints.write}",
        "{tensorboard}",
        "{other}",
    )
    spec = make_spec(command=command, params={"lr": 0.1, "deep": True, "none": None})
    first = training_command(spec.command, spec.params, local, resume=None)
    assert first == ("python", "t.py", "--lr=0.1", "true", str(local.empty), str(local.checkpoints), str(local.tensorboard), "{other}")
    assert training_command(spec.command, spec.params, local, resume=(Path("/node/resume"), 7))[4] == "/node/resume"


def test_a_placeholder_for_nothing_is_named(local: LegLocal) -> None:
    with pytest.raises(InvalidInput, match=r"params\.rate"):
        training_command(("x", "{params.rate}"), {}, local, resume=None)


def test_a_training_starts_in_the_frozen_code_or_where_the_user_stood(run: RunDir) -> None:
    assert working_folder(make_spec(workdir="sub", code={"frozen": True}), run) == run.code / "sub"
    assert working_folder(make_spec(workdir="/home/ada/p", code={"frozen": False}), run) == Path("/home/ada/p")


# ── the node's disk ───────────────────────────────────────────────────────────


def test_the_local_folder_is_where_the_profile_the_job_or_the_system_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_TMPDIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "system"))
    assert under(None).is_relative_to(tmp_path / "system")
    monkeypatch.setenv("SLURM_TMPDIR", str(tmp_path / "job"))
    assert under(None).is_relative_to(tmp_path / "job")
    monkeypatch.setenv("FAST", str(tmp_path / "fast"))
    assert under("$FAST/disk").is_relative_to(tmp_path / "fast" / "disk")


def test_a_disk_named_by_a_variable_that_is_not_set_here_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_TMPDIR", str(tmp_path / "job"))
    monkeypatch.delenv("NOT_HERE", raising=False)
    assert under("$NOT_HERE/x").is_relative_to(tmp_path / "job")
    assert "$NOT_HERE/x" in caplog.text
    assert os.listdir(tmp_path) == ["job"]


def test_nobody_else_may_look_into_it_and_legs_do_not_share_it(tmp_path: Path) -> None:
    first, second = under(str(tmp_path), leg=1), under(str(tmp_path), leg=2)
    assert first != second and first.parent == second.parent
    assert (tmp_path / f"onward-{os.getuid()}").stat().st_mode & 0o077 == 0


def test_a_name_that_leads_elsewhere_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / f"onward-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert not under(str(tmp_path / "disk")).resolve().is_relative_to(tmp_path / "elsewhere")
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_that_somebody_else_made_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "onward-0").mkdir()
    os.chown(tmp_path / "onward-0", 12345, 12345)
    found = under(str(tmp_path))
    assert not found.is_relative_to(tmp_path / "onward-0")
    assert found.is_relative_to(tmp_path)


def under(disk: str | None, *, leg: int = 1) -> Path:
    local = local_folder(make_spec(cluster=Cluster(name="c", scheduler="slurm", local_disk=disk)), leg)
    assert local.checkpoints.is_dir() and local.path.name == f"leg-{leg:04d}"
    return local.path


# ── disks that are memory ─────────────────────────────────────────────────────


def test_a_disk_in_memory_is_passed_over_for_one_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints there would be taken from the job's memory."""
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    disk.mkdir()
    monkeypatch.setattr(environment, "is_in_memory", lambda folder: folder.is_relative_to(memory))
    monkeypatch.setattr(environment, "_SYSTEM_DISKS", (str(disk),))
    monkeypatch.setattr("tempfile.tempdir", str(memory / "tmp"))
    monkeypatch.setenv("SLURM_TMPDIR", str(memory / "job"))
    assert under(None).is_relative_to(disk)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmpdir"))
    assert under(None).is_relative_to(tmp_path / "tmpdir")


def test_where_all_disks_are_memory_the_first_is_taken_and_what_a_profile_names_always_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "is_in_memory", lambda _folder: True)
    monkeypatch.setenv("SLURM_TMPDIR", str(tmp_path / "job"))
    assert under(None).is_relative_to(tmp_path / "job")
    assert under(str(tmp_path / "named")).is_relative_to(tmp_path / "named")
