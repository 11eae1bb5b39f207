from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from onward.rundir.layout import LegLocal, RunDir
from onward.sdk import contract
from onward.sdk.ranks import ranks_of
from onward.supervisor.ranks.rank_states import RankExit, RankNotes, RankStates
from onward.supervisor.ranks.rank_wrapper import LaunchPlan, LegNode, rank_environment

ENTRY = "import sys; from onward.supervisor.entry import main; sys.exit(main(sys.argv[1:]))"

# ── which process am I ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, (0, 1, 0)),
        ({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}, (3, 4, 1)),
        ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0"}, (2, 4, 0)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, (1, 2, 1)),
        ({"HOROVOD_RANK": "5", "HOROVOD_SIZE": "8", "HOROVOD_LOCAL_RANK": "1"}, (5, 8, 1)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}, (1, 2, 1)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}, (0, 1, 0)),  # a batch script is one process
        ({"RANK": "3", "WORLD_SIZE": "4", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, (3, 4, 0)),  # torchrun in a step
        ({"RANK": "7"}, (0, 1, 0)),
        ({"RANK": "4", "WORLD_SIZE": "4"}, (0, 1, 0)),
        ({"RANK": "x", "WORLD_SIZE": "4"}, (0, 1, 0)),
        ({contract.RANK: "1", contract.WORLD_SIZE: "2", contract.LOCAL_RANK: "1", "RANK": "0", "WORLD_SIZE": "9"}, (1, 2, 1)),
    ],
)
def test_a_process_finds_its_rank_by_the_variables_of_what_started_it(env: dict[str, str], expected: tuple[int, int, int]) -> None:
    found = ranks_of(env)
    assert (found.rank, found.world_size, found.local_rank) == expected


# ── how ranks ended, together ─────────────────────────────────────────────────


def ended(*codes: int, world: int | None = None) -> RankStates:
    ranks = RankStates(world=world or len(codes))
    ranks.exits = {rank: RankExit(rank=rank, code=code, at=100.0 + rank) for rank, code in enumerate(codes)}
    return ranks


@pytest.mark.parametrize(
    ("codes", "launcher", "expected"),
    [
        ((0, 0, 0), 0, 0),
        ((75, 75, 75), 0, 75),
        ((75, 0, 0), 0, 75),
        ((75, 75), 1, 75),  # whatever the launcher makes of it
        ((0, 3, -9), 1, 3),  # the first to fail
        ((75, 1), 1, 1),
        ((-9, -15), -9, -9),
    ],
)
def test_the_exit_codes_of_all_ranks_make_one(codes: tuple[int, ...], launcher: int, expected: int) -> None:
    assert ended(*codes).code(launcher) == expected


def test_without_a_note_of_every_rank_the_launchers_own_failure_counts() -> None:
    assert ended(0, world=4).code(-9) == -9
    assert ended(75, world=4).code(0) == 75
    assert RankStates().code(42) == 42


def test_the_evidence_names_the_rank_that_failed_first_and_its_node() -> None:
    ranks = ended(0, 0, 0)
    ranks.exits[1] = RankExit(rank=1, code=-15, at=101.0, host="g1", last="Terminated")
    ranks.exits[2] = RankExit(rank=2, code=1, at=100.5, host="g2", last="Traceback …\nValueError: no such data set")
    assert ranks.evidence().splitlines()[0] == "rank 2 of 3 on g2: exit code 1"
    assert ranks.evidence().endswith("ValueError: no such data set")
    assert ended(75, 75).evidence() == ""


def test_ranks_that_stayed_are_told_from_those_that_had_left_and_from_those_that_failed() -> None:
    ranks = RankStates(world=4)
    ranks.exits = {0: RankExit(rank=0, code=-9, at=11.0), 3: RankExit(rank=3, code=75, at=5.0)}
    assert ranks.stayed(since=10.0) == "ranks 0, 1, 2 stayed, rank 3 had left"
    assert ranks.first_failure(before=10.0) is None and ranks.first_failure() is not None
    assert RankStates().stayed(since=10.0) == ""
    assert RankStates(world=40).stayed(since=1.0) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 32 more stayed"


def test_ranks_that_ended_well_while_others_go_on_are_named() -> None:
    ranks = RankStates(world=3)
    ranks.exits = {2: RankExit(rank=2, code=0, at=5.0)}
    assert ranks.left_alone(before=4.0) == ""
    assert ranks.left_alone(before=9.0) == "rank 2 ended with exit code 0 while ranks 0, 1 continued, and may wait for it"
    ranks.exits |= {rank: RankExit(rank=rank, code=0, at=6.0) for rank in (0, 1)}
    assert ranks.left_alone(before=9.0) == ""


def test_of_the_last_words_of_a_rank_the_last_line_is_told() -> None:
    assert RankExit(rank=0, code=1, at=1.0, last="Traceback\n  x\nValueError: no\n\n").last_line == "ValueError: no"
    assert RankExit(rank=0, code=1, at=1.0).last_line == ""
    assert len(RankExit(rank=0, code=1, at=1.0, last="x" * 5000).last_line) == 200


def test_notes_are_told_once_and_again_when_they_change(tmp_path: Path) -> None:
    notes = RankNotes(tmp_path)
    (tmp_path / "task-00000.json").write_text('{"world": 2}')
    (tmp_path / "half.json").write_text('{"wor')
    assert notes.new() == [("task-00000.json", {"world": 2})]
    assert notes.new() == []
    beside = tmp_path / "beside"
    beside.write_text('{"world": 4}')
    os.replace(beside, tmp_path / "task-00000.json")
    assert notes.new() == [("task-00000.json", {"world": 4})]
    assert RankNotes(tmp_path / "nowhere").new() == []


def test_a_note_that_is_not_ours_is_passed_over() -> None:
    ranks = RankStates()
    ranks.take([("rank-00000.json", {"rank": "x"}), ("exit-00000.json", {}), ("other.json", {"a": 1})])
    assert ranks.reports == {} and ranks.exits == {}


# ── what a rank finds around it ───────────────────────────────────────────────


def plan(tmp_path: Path, *command: str, launcher: str = "torchrun", resume: str | None = None, **env: str) -> LaunchPlan:
    first, second = (tmp_path / name for name in ("n0", "n1"))
    for folder in (first, second):
        LegLocal(folder).make()
    return LaunchPlan(
        launcher=launcher,
        command=command or ("train", "--from", "{checkpoints.read}", "--to", "{checkpoints.write}"),
        params={},
        cwd=str(tmp_path),
        environment={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "4", **env},
        nodes=(LegNode(host="g1", local=str(first), resume=resume), LegNode(host="g2.cluster", local=str(second), resume=resume)),
        resume_step=7 if resume else None,
    )


def test_a_plan_is_read_as_it_was_written_and_by_its_owner_alone(tmp_path: Path) -> None:
    made = plan(tmp_path, SECRET="x")
    made.write(tmp_path / "plan.json")
    assert LaunchPlan.read(tmp_path / "plan.json") == made
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o600


def test_a_node_is_found_by_the_short_or_the_long_name(tmp_path: Path) -> None:
    made = plan(tmp_path)
    assert [made.node(host).host for host in ("g1", "g1.cluster", "g2", "elsewhere")] == ["g1", "g1", "g2.cluster", "g1"]


def test_a_rank_gets_its_own_nodes_folders_and_the_supervisors_environment(tmp_path: Path) -> None:
    made = plan(tmp_path, resume="/node/resume", ONWARD_CHECKPOINT_DIR="/first/checkpoints", RANK="9")
    there = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "OMP_NUM_THREADS": "1", "PATH": "/bare", "CUDA_VISIBLE_DEVICES": "1"}
    env = rank_environment(made, made.nodes[1], ranks_of(there), there)
    assert env[contract.CHECKPOINT_DIR] == str(tmp_path / "n1" / "checkpoints")
    assert env[contract.RANKS_DIR] == str(tmp_path / "n1" / "ranks")
    assert (env[contract.RESUME_DIR], env[contract.RESUME_STEP]) == ("/node/resume", "7")
    assert (env[contract.RANK], env[contract.WORLD_SIZE], env[contract.LOCAL_RANK]) == ("3", "4", "1")
    assert (env["RANK"], env["CUDA_VISIBLE_DEVICES"]) == ("3", "1"), "what belongs to this task stays"
    assert (env["PATH"], env["OMP_NUM_THREADS"]) == (os.environ["PATH"], "4"), "the rest is the supervisor's"


@pytest.mark.parametrize(("set_to", "expected"), [("/n0/tensorboard", "n1/tensorboard"), ("/my/own", "/my/own")])
def test_a_rank_finds_the_trainers_folder_for_event_files_on_its_own_node_unless_the_user_chose_one(
    tmp_path: Path, set_to: str, expected: str
) -> None:
    made = plan(tmp_path, TENSORBOARD_LOGGING_DIR=set_to, ONWARD_TENSORBOARD_DIR="/n0/tensorboard")
    env = rank_environment(made, made.nodes[1], ranks_of({}), {})
    assert env["TENSORBOARD_LOGGING_DIR"] == str(tmp_path / expected)


def test_ranks_of_srun_and_mpirun_find_torchs_names_too(tmp_path: Path) -> None:
    made = plan(tmp_path, launcher="srun")
    there = {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0"}
    env = rank_environment(made, made.nodes[1], ranks_of(there), there)
    assert (env["RANK"], env["WORLD_SIZE"], env["LOCAL_RANK"]) == ("2", "4", "0")


# ── the task itself ───────────────────────────────────────────────────────────


def task(tmp_path: Path, code: str, **env: str) -> subprocess.Popen[str]:
    run = RunDir(tmp_path / "run")
    run.params.mkdir(parents=True)
    plan(tmp_path, sys.executable, "-c", code).write(run.launch(1))
    return subprocess.Popen(
        [sys.executable, "-c", ENTRY, "task", str(run.path), "1"],
        env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "SLURMD_NODENAME": "g2", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def exit_note(tmp_path: Path) -> dict[str, object]:
    note: dict[str, object] = json.loads((tmp_path / "n1" / "ranks" / "exit-00001.json").read_text())
    return note


def test_exit_code_75_is_kept_from_the_launcher_and_noted(tmp_path: Path) -> None:
    process = task(tmp_path, "import os, sys; print(os.environ['ONWARD_RANK']); sys.exit(75)")
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "1\n")
    assert exit_note(tmp_path)["code"] == 75


def test_a_failure_reaches_the_launcher_and_is_noted_with_the_ranks_last_words(tmp_path: Path) -> None:
    process = task(tmp_path, "raise ValueError('no such data set')")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "ValueError: no such data set" in err
    note = exit_note(tmp_path)
    assert note["code"] == 1 and note["host"] == "g2.cluster" and "ValueError: no such data set" in str(note["last"])


def test_a_killed_rank_is_noted_with_its_signal(tmp_path: Path) -> None:
    process = task(tmp_path, "import os; os.kill(os.getpid(), 9)")
    process.communicate(timeout=60)
    assert process.returncode == 137
    assert exit_note(tmp_path)["code"] == -9


def wait_for(path: Path) -> None:
    give_up = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < give_up, f"{path} did not come"
        time.sleep(0.02)


def test_a_launcher_that_ends_its_task_ends_the_rank_and_what_it_started(tmp_path: Path) -> None:
    code = "import subprocess, sys, time, pathlib; p = subprocess.Popen(['sleep', '600']); pathlib.Path('pid').write_text(str(p.pid)); "
    process = task(tmp_path, code + "pathlib.Path('up').touch(); time.sleep(600)")
    wait_for(tmp_path / "up")
    process.send_signal(signal.SIGTERM)  # from its parent, as a launcher's is
    process.communicate(timeout=60)
    assert exit_note(tmp_path)["code"] == -signal.SIGTERM
    state = Path(f"/proc/{(tmp_path / 'pid').read_text()}/status")
    assert not state.exists() or "zombie" in state.read_text()


def test_a_launcher_that_is_killed_takes_the_rank_with_it(tmp_path: Path) -> None:
    """As where a scheduler kills what it knows of, and the launcher's daemons on other hosts with it: nobody else would end the ranks."""
    run = RunDir(tmp_path / "run")
    run.params.mkdir(parents=True)
    plan(tmp_path, "sleep", "600").write(run.launch(1))
    launcher = subprocess.Popen(
        ["/bin/sh", "-c", '"$@" & wait', "sh", sys.executable, "-c", ENTRY, "task", str(run.path), "1"],
        env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "SLURMD_NODENAME": "g2"},
    )
    note = tmp_path / "n1" / "ranks" / "task-00001.json"
    wait_for(note)
    launcher.kill()
    launcher.wait()
    wait_until_gone(json.loads(note.read_text())["pid"])


def test_a_task_that_is_killed_takes_the_rank_with_it(tmp_path: Path) -> None:
    process = task(tmp_path, "import time; time.sleep(600)")
    note = tmp_path / "n1" / "ranks" / "task-00001.json"
    wait_for(note)
    process.kill()
    process.communicate(timeout=60)
    wait_until_gone(json.loads(note.read_text())["pid"])


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_notices_that_a_scheduler_sends_to_every_process_do_not_kill_a_rank_that_does_not_heed_them(tmp_path: Path, number: int) -> None:
    run = RunDir(tmp_path / "run")
    run.params.mkdir(parents=True)
    code = f"import os, sys; os.kill(os.getpid(), {int(number)}); sys.exit(75)"
    replace(plan(tmp_path, sys.executable, "-c", code), deaf=True).write(run.launch(1))
    env = {**os.environ, "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "SLURMD_NODENAME": "g2"}
    subprocess.run([sys.executable, "-c", ENTRY, "task", str(run.path), "1"], env=env, timeout=60)
    assert exit_note(tmp_path)["code"] == 75


def wait_until_gone(pid: int) -> None:
    give_up = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and "zombie" not in Path(f"/proc/{pid}/status").read_text():
        if time.monotonic() > give_up:
            os.kill(pid, signal.SIGKILL)
            pytest.fail(f"process {pid} lives on")
        time.sleep(0.02)


def test_a_term_from_elsewhere_is_left_to_the_supervisor(tmp_path: Path) -> None:
    code = "import pathlib, time\npathlib.Path('up').touch()\nwhile not pathlib.Path('go').exists(): time.sleep(0.02)\n"
    process = task(tmp_path, code)
    wait_for(tmp_path / "up")
    subprocess.run(["/bin/sh", "-c", f"kill -TERM {process.pid}"], check=True)
    time.sleep(0.3)
    assert process.poll() is None
    (tmp_path / "go").touch()
    process.communicate(timeout=60)
    assert process.returncode == 0 and exit_note(tmp_path)["code"] == 0


def test_a_command_that_is_not_there_is_said_with_the_node(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    run.params.mkdir(parents=True)
    plan(tmp_path, "/nowhere/train").write(run.launch(1))
    done = subprocess.run(
        [sys.executable, "-c", ENTRY, "task", str(run.path), "1"],
        env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", "SLURMD_NODENAME": "g2"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 127 and "/nowhere/train cannot be started on g2" in done.stderr
    assert exit_note(tmp_path)["code"] == 127
