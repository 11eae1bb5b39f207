"""Submit: a folder with everything frozen and one job, or nothing at all."""

from __future__ import annotations

import json
import re
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from onward.errors import InvalidInput, NotFound, SchedulerUnavailable, StorageError, SubmitRefused, SubmitUnclear
from onward.model.job import JobId, JobState
from onward.model.run import RunState
from onward.model.spec import Environment, Limits, Resources
from onward.operations.context import OperationsContext
from onward.operations.repair.tend import tend
from onward.operations.submit import new_run as module
from onward.operations.submit.new_run import preview
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir, letter
from tests.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


# ── the folder ────────────────────────────────────────────────────────────────


def test_a_run_gets_a_folder_of_day_letter_and_name_and_one_queued_job(sandbox: Sandbox) -> None:
    dir = sandbox.submit()
    assert re.fullmatch(r"2026-11-1[456]_A_digits", dir.path.name)
    assert dir.path.parent == sandbox.root
    run = read_run(dir)
    assert run.state is RunState.SUBMITTED
    assert run.legs[1].job == "1"
    [job] = sandbox.scheduler.jobs.values()
    assert job.status.name.startswith("digits.1.")
    assert job.script == dir.script(1)
    assert re.fullmatch("[0-9a-z]{8}", run.spec.id)


def test_the_next_run_of_the_day_gets_the_next_letter_whatever_its_name(sandbox: Sandbox) -> None:
    names = [sandbox.submit(name=name).path.name.split("_", 1)[1] for name in ("digits", "other", "digits")]
    assert names == ["A_digits", "B_other", "C_digits"]


def test_after_z_comes_aa(sandbox: Sandbox) -> None:
    day = sandbox.submit().path.name[:10]
    for n in range(1, 26):
        (sandbox.root / f"{day}_{letter(n)}_x").mkdir()
    assert sandbox.submit().path.name == f"{day}_AA_digits"


def test_another_day_begins_with_a(sandbox: Sandbox) -> None:
    sandbox.submit()
    sandbox.clock.sleep(2 * 86400)
    assert "_A_" in sandbox.submit().path.name


def test_submits_at_once_get_a_folder_and_a_letter_each(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "build_archive", lambda target, also, share: target.write_bytes(b""))  # the slow part, of no matter here
    together = threading.Barrier(6)
    made: list[Path] = []

    def one(number: int) -> None:
        together.wait()
        made.append(sandbox.submit(name=f"run{number}").path)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.name.split("_")[1] for path in made) == list("ABCDEF")
    assert len(sandbox.scheduler.jobs) == 6
    assert sandbox.folders() == sorted(path.name for path in made)  # no mark is left


def test_the_mark_of_a_submit_that_was_killed_costs_a_letter_and_no_more(sandbox: Sandbox) -> None:
    day = sandbox.submit().path.name[:10]
    (sandbox.root / f".{day}_B").mkdir()
    assert sandbox.submit().path.name == f"{day}_C_digits"


def test_a_root_that_cannot_be_written_to_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sandbox = Sandbox(tmp_path, env={"ONWARD_ROOT": str(tmp_path / "file" / "runs")})
    with pytest.raises(InvalidInput) as caught:
        sandbox.submit()
    assert "cannot store runs in" in caught.value.message
    assert "ONWARD_ROOT" in caught.value.hint


# ── what is frozen, and who may read it ───────────────────────────────────────


def test_the_environment_is_kept_for_its_owner_alone_and_without_the_shells_own_affairs(tmp_path: Path) -> None:
    sandbox = Sandbox(
        tmp_path, env={"API_KEY": "hush-hush", "SLURM_JOB_ID": "7", "SBATCH_ACCOUNT": "a", "ONWARD_LEG": "3", "TMPDIR": "/x", "OMP": "4"}
    )
    dir = sandbox.submit()
    assert stat.S_IMODE(dir.environment.stat().st_mode) == 0o600
    kept = json.loads(dir.environment.read_text())
    assert kept["API_KEY"] == "hush-hush"
    assert kept["OMP"] == "4"
    assert [name for name in kept if name.startswith(("SLURM_", "SBATCH_", "ONWARD_", "TMP"))] == []


def test_a_secret_of_the_shell_is_in_no_other_file(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, env={"API_KEY": "hush-hush"})
    dir = sandbox.submit()
    holding = [path for path in dir.path.rglob("*") if path.is_file() and b"hush-hush" in path.read_bytes()]
    assert holding == [dir.environment]
    command = sandbox.scheduler.submit_command(dir.script(1), name="x")
    assert "hush-hush" not in " ".join(command)


def test_the_run_holds_its_code_its_supervisor_and_what_was_asked(sandbox: Sandbox) -> None:
    dir = sandbox.submit(params={"lr": 0.1}, resources=Resources(time=3600, mem=1024), limits=Limits(max_legs=4), variables={"A": "b"})
    spec = read_run(dir).spec
    assert (dir.code / "train.py").read_text() == "print('trained')\n"
    assert dir.supervisor.stat().st_size > 10_000
    assert (spec.params, spec.resources.mem, spec.limits.max_legs) == ({"lr": 0.1}, 1024, 4)
    assert json.loads(dir.environment.read_text())["A"] == "b"
    assert "variables" not in json.loads(dir.spec.read_text()), "a variable may be a secret, and the spec is for all to read"
    assert spec.workdir == "."
    assert spec.code["frozen"] is True


def test_without_freezing_the_command_runs_where_the_user_stood(sandbox: Sandbox) -> None:
    dir = sandbox.submit(freeze=False)
    spec = read_run(dir).spec
    assert spec.workdir == str(sandbox.project)
    assert spec.code == {"frozen": False}
    assert list(dir.code.iterdir()) == []


def test_a_profile_fills_in_what_is_not_asked(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[clusters.lab]\nscheduler = "local"\ncpus = 4\ndefaults = { time = "2:00:00", mem = "2G" }\n')
    sandbox = Sandbox(tmp_path, env={"ONWARD_SETTINGS": str(settings)})
    spec = read_run(sandbox.submit(cluster="lab", resources=Resources(mem=512))).spec
    assert (spec.resources.time, spec.resources.mem) == (7200, 512)
    assert (spec.cluster.name, spec.cluster.scheduler, spec.cluster.cpus) == ("lab", "local", 4)


def test_a_profiles_root_is_where_its_runs_go(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[clusters.lab]\nscheduler = "local"\nroot = "{tmp_path}/shared"\n')
    sandbox = Sandbox(tmp_path, env={"ONWARD_SETTINGS": str(settings), "ONWARD_ROOT": ""})
    assert sandbox.submit(cluster="lab").path.parent == tmp_path / "shared"


# ── bad input makes nothing ───────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        ({"command": ("no-such-program",)}, "not on the PATH"),
        ({"command": ("python3", "nowhere.py")}, "no script nowhere.py"),
        ({"command": ("python3", "broken.py")}, "broken.py:2"),
        ({"resources": Resources(mem=2048), "limits": Limits(mem_max=1024)}, "mem-max"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_made(sandbox: Sandbox, draft: dict[str, Any], message: str) -> None:
    sandbox.write("broken.py", "x = 1\ndef (:\n")
    with pytest.raises(InvalidInput) as caught:
        sandbox.submit(**draft)
    assert message in caught.value.message
    assert sandbox.folders() == []
    assert sandbox.scheduler.jobs == {}


def test_a_cluster_nobody_knows_is_refused_before_anything_is_made(sandbox: Sandbox) -> None:
    with pytest.raises(NotFound, match="lokal"):
        sandbox.submit(cluster="lokal")
    assert sandbox.folders() == []


def test_where_there_is_no_sbatch_that_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    sandbox = Sandbox(tmp_path, env={"PATH": str(tmp_path / "bin")})
    with pytest.raises(SchedulerUnavailable, match="sbatch is not on the PATH"):
        sandbox.submit(cluster="slurm")
    assert sandbox.folders() == []


def test_code_that_is_too_large_leaves_no_folder(sandbox: Sandbox) -> None:
    for n in range(21):
        with sandbox.write(f"part{n}.bin").open("wb") as file:
            file.truncate(10 << 20)
    with pytest.raises(InvalidInput, match="too large to freeze: 22 files"):
        sandbox.submit()
    assert sandbox.folders() == []


def test_a_disk_that_fills_while_the_run_is_stored_leaves_no_folder(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(target: Path, **_: object) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(module, "build_archive", full)
    with pytest.raises(StorageError, match="No space left on device"):
        sandbox.submit()
    assert sandbox.folders() == []


def test_ctrl_c_before_anybody_was_asked_leaves_no_folder(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(target: Path, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "build_archive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sandbox.submit()
    assert sandbox.folders() == []


# ── what the scheduler answers ────────────────────────────────────────────────


def test_refused_by_the_scheduler_nothing_stays_behind(sandbox: Sandbox) -> None:
    sandbox.scheduler.refuse = "no such partition"
    with pytest.raises(SubmitRefused, match="no such partition"):
        sandbox.submit()
    assert sandbox.folders() == []


def test_an_answer_that_was_lost_is_looked_up_and_there_is_one_job(sandbox: Sandbox) -> None:
    sandbox.scheduler.lose = True
    dir = sandbox.submit()
    assert read_run(dir).legs[1].job == "1"
    assert len(sandbox.scheduler.jobs) == 1


def test_a_submit_that_was_swallowed_is_made_again(sandbox: Sandbox) -> None:
    sandbox.scheduler.swallow = True
    dir = sandbox.submit()
    assert read_run(dir).legs[1].job == "1"
    assert len(sandbox.scheduler.jobs) == 1


@pytest.mark.parametrize("accepted", [True, False])
def test_unclear_the_folder_stays_and_tend_goes_on_with_one_job(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, accepted: bool) -> None:
    real = sandbox.scheduler.submit

    def then_silent(script: Path, *, name: str, after: JobId | None = None) -> JobId:
        sandbox.scheduler.lose, sandbox.scheduler.swallow = accepted, not accepted
        try:
            return real(script, name=name, after=after)
        finally:
            sandbox.scheduler.down = True

    with monkeypatch.context() as patched:
        patched.setattr(sandbox.scheduler, "submit", then_silent)
        with pytest.raises(SubmitUnclear) as caught:
            sandbox.submit()
    assert "tend" in caught.value.hint
    [folder] = sandbox.folders()
    dir = RunDir(sandbox.root / folder)
    assert read_run(dir).legs[1].job is None

    sandbox.scheduler.down = False
    sandbox.clock.sleep(60)
    done = tend(sandbox.context)
    assert done.problems == []
    assert len(done.acted) == 1
    assert [job.status.state for job in sandbox.scheduler.jobs.values()] == [JobState.QUEUED]
    assert read_run(dir).legs[1].job == "1"
    assert tend(sandbox.context).acted == []


# ── the preview ───────────────────────────────────────────────────────────────


def test_a_preview_makes_nothing_and_shows_the_very_script_that_submit_writes(sandbox: Sandbox) -> None:
    sandbox.submit()
    before = sandbox.folders()
    draft = sandbox.draft(name="later", resources=Resources(time=90, mem=512))
    seen = preview(sandbox.context, draft, cwd=sandbox.project)
    assert sandbox.folders() == before
    assert len(sandbox.scheduler.jobs) == 1
    dir = module.submit(sandbox.context, draft, cwd=sandbox.project)
    assert dir.path == seen.folder
    assert dir.script(1).read_text() == seen.script
    assert seen.command[-1] == str(dir.script(1))


def test_a_preview_of_what_cannot_run_says_so(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidInput):
        preview(sandbox.context, sandbox.draft(command=("python3", "nowhere.py")), cwd=sandbox.project)
    assert not sandbox.root.exists()


@pytest.mark.parametrize("launcher", ["mpirun", "horovodrun"])
def test_a_launcher_that_is_not_there_is_said_before_anything_is_queued(sandbox: Sandbox, launcher: str) -> None:
    sandbox.context.env = {**sandbox.context.env, "PATH": str(sandbox.folder / "bin")}
    (sandbox.folder / "bin").mkdir()
    (sandbox.folder / "bin" / "python3").symlink_to(sys.executable)
    with pytest.raises(InvalidInput, match=f"the program {launcher} is not on the PATH"):
        sandbox.submit(launcher=launcher)
    assert not sandbox.scheduler.jobs
    sandbox.submit(launcher=launcher, environment=Environment(setup=("export PATH=/opt/mpi/bin:$PATH",)))


@pytest.mark.parametrize("line", ["if true; then", "echo 'a", "done"])
def test_a_setup_line_that_bash_cannot_read_is_said_before_anything_is_queued(sandbox: Sandbox, line: str) -> None:
    with pytest.raises(InvalidInput, match="bash cannot read it") as error:
        sandbox.submit(environment=Environment(setup=("true", line)))
    assert error.value.message.startswith(f"setup line 2 `{line}`") and error.value.hint
    assert not sandbox.scheduler.jobs and sandbox.folders() == []


def test_options_are_judged_by_the_words_of_the_clusters_own_scheduler(sandbox: Sandbox) -> None:
    programs = sandbox.folder / "bin"
    programs.mkdir()
    for name in ("sbatch", "qsub"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    sandbox.context.env = {**sandbox.context.env, "PATH": f"{programs}:{sandbox.context.env['PATH']}"}
    for cluster, said in (("slurm", "expected resources.time"), ("gridengine", "submit each task as a run")):
        with pytest.raises(InvalidInput, match=said):
            sandbox.submit(cluster=cluster, resources=Resources(extra=("-t 1-3",)))


@pytest.mark.parametrize(("option", "refused"), [("--licenses=a", None), ("--job-name=x", "found --job-name=x"), ("-t 5", "found -t 5")])
def test_a_profiles_options_in_slurms_words_reach_the_script_or_are_refused_by_their_place(
    sandbox: Sandbox, option: str, refused: str | None
) -> None:
    (sandbox.folder / "sbatch").write_text("#!/bin/sh\n")
    (sandbox.folder / "sbatch").chmod(0o755)
    (sandbox.folder / "settings.toml").write_text(f'[clusters.s]\nscheduler = "slurm"\ndefaults = {{extra = ["{option}"]}}\n')
    env = {
        **sandbox.context.env,
        "ONWARD_SETTINGS": str(sandbox.folder / "settings.toml"),
        "PATH": f"{sandbox.folder}:{sandbox.context.env['PATH']}",
    }
    context = OperationsContext(env=env, clock=sandbox.clock)
    if refused is None:
        assert f"#SBATCH {option}\n" in preview(context, sandbox.draft(cluster="s"), cwd=sandbox.project).script
    else:
        with pytest.raises(InvalidInput) as raised:
            preview(context, sandbox.draft(cluster="s"), cwd=sandbox.project)
        assert refused in raised.value.message and "clusters.s.defaults.extra" in raised.value.message


def test_a_profiles_python_that_is_not_here_is_spoken_of_in_a_preview(sandbox: Sandbox) -> None:
    settings = sandbox.folder / "settings.toml"
    for python, said in (("/nope/python", 1), (sys.executable, 0)):
        settings.write_text(f'[clusters.local]\npython = "{python}"\n')
        sandbox.context = OperationsContext(
            env={**sandbox.context.env, "ONWARD_SETTINGS": str(settings)}, clock=sandbox.clock, make_scheduler=lambda _: sandbox.scheduler
        )
        notes = preview(sandbox.context, sandbox.draft(), cwd=sandbox.project).notes
        assert len(notes) == said and all(python in words for words in notes)
