"""The third door on the command line: `onward submit [flags] script [arguments]`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir
from tests.sandbox import Sandbox
from tests.unit.test_cli import Onward, onward, sandbox

__all__ = ["onward", "sandbox"]

SCRIPT = "#!/bin/bash\n#SBATCH -J digits -t 10 --mem=1G --licenses=x -o logs/%j.out\n#SBATCH --gres=gpu:1\npython3 train.py\n"


@pytest.fixture
def script(sandbox: Sandbox) -> Path:
    return sandbox.write("train_model.sh", SCRIPT)


def submitted(onward: Onward, *words: str) -> RunDir:
    return RunDir(Path(onward("submit", "--json", "--cluster", "local", *words).json["folder"]))


def test_a_script_is_kept_to_the_byte_and_runs_where_it_stands(onward: Onward, sandbox: Sandbox, script: Path) -> None:
    dir = submitted(onward, "train_model.sh", "--lr", "0.1", "-x")
    spec = read_spec(dir)
    assert dir.batch_script.read_text() == SCRIPT and dir.batch_script.stat().st_mode & 0o100
    assert (spec.name, spec.workdir, spec.code["frozen"]) == ("digits", str(sandbox.project), False)
    assert spec.command == ("/bin/bash", "train_model.sh", "--lr", "0.1", "-x")
    assert spec.script is not None and spec.script.submitted_from == str(sandbox.project) and spec.script.folder == str(sandbox.project)
    assert (spec.resources.time, spec.resources.mem, spec.resources.gres, spec.resources.extra) == (600, 1024, "gpu:1", ("--licenses=x",))
    script.write_text("changed")
    assert dir.batch_script.read_text() == SCRIPT


def test_flags_before_the_script_win_over_its_lines(onward: Onward, script: Path) -> None:
    dir = submitted(onward, "--time", "20", "--gpus", "2", "--name", "other", "--max-legs", "3", "train_model.sh", "--time", "30")
    spec = read_spec(dir)
    assert (spec.name, spec.resources.time, spec.resources.gpus, spec.resources.gres, spec.limits.max_legs) == ("other", 1200, "2", None, 3)
    assert spec.script is not None and spec.script.arguments == ("--time", "30") and spec.script.job_name == "digits"


def test_what_follows_two_dashes_is_a_command_whatever_its_name(onward: Onward, sandbox: Sandbox, script: Path) -> None:
    script.chmod(0o755)
    spec = read_spec(submitted(onward, "--", "./train_model.sh", "--", "a"))
    assert spec.script is None and spec.command == ("./train_model.sh", "--", "a") and spec.code["frozen"] is not False


def test_a_file_without_a_suffix_is_known_by_its_lines(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("job", SCRIPT)
    assert read_spec(submitted(onward, "job")).script is not None


def test_a_dry_run_queues_nothing_and_shows_the_job(onward: Onward, sandbox: Sandbox, script: Path) -> None:
    said = onward("submit", "--cluster", "local", "--dry-run", "train_model.sh")
    assert said.code == 0 and said.out.startswith("#!/bin/bash\n") and sandbox.folders() == []


def test_tasks_of_an_array_are_runs(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("sweep.sh", "#!/bin/bash\n#SBATCH --array=1-3\ntrue\n")
    body = onward("submit", "--json", "--cluster", "local", "sweep.sh").json["runs"]
    assert [one["name"] for one in body] == ["sweep-1", "sweep-2", "sweep-3"]
    said = onward("submit", "--cluster", "local", "sweep.sh")
    assert len(said.out.split()) == 3
    assert "each of the 3 tasks becomes a run like this" in onward("submit", "--cluster", "local", "--dry-run", "sweep.sh").err


def test_an_array_is_not_followed(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("sweep.sh", "#!/bin/bash\n#SBATCH --array=1-3\ntrue\n")
    said = onward("run", "--cluster", "local", "sweep.sh")
    assert said.code == 2 and "an array of 3 tasks" in said.err and sandbox.folders() == []


def test_a_task_that_is_refused_tells_which_were_queued(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("sweep.sh", "#!/bin/bash\n#SBATCH --array=1-3\ntrue\n")
    real = sandbox.scheduler.submit

    def submit(*arguments: object, **named: object) -> object:
        if len(sandbox.scheduler.jobs) == 1:
            sandbox.scheduler.refuse = "enough"
        return real(*arguments, **named)  # type: ignore[arg-type]

    sandbox.scheduler.submit = submit  # type: ignore[assignment, method-assign]
    said = onward("submit", "--cluster", "local", "sweep.sh")
    assert said.code == 1 and "enough" in said.err and "already queued: " in said.err
    assert len(sandbox.folders()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.sh",), "no script nothing.sh"),
        (("--param", "a=1", "train_model.sh"), "--param does not apply to a batch script"),
        (("--code-exclude", "x", "train_model.sh"), "--code-exclude does not apply to a batch script"),
        (("--launcher", "srun", "train_model.sh"), "--launcher does not apply to a batch script"),
        (("bad.sh",), "bad.sh:2: --hold"),
        (("--time", "never", "train_model.sh"), "--time"),
        (("lost.sh",), "lost.sh starts in "),
        (("open.sh",), "open.sh:3: bash cannot read it: "),
        (("strange.sh",), "strange.sh is run by /no/such/interp, but there is no such program"),
        (("shell.sh",), "shell.sh is run by /no/such, but there is no such program"),
        (("--setup", 'echo "unclosed', "train_model.sh"), "setup line 1"),
        (("train_model.sh", "--dry-run"), "--dry-run after train_model.sh is an argument of the script: the run would be queued"),
        (("pipe.sh",), "pipe.sh is not a regular file"),
        (("dangling.sh",), "dangling.sh is a link to nowhere.sh, which does not exist"),
    ],
)
def test_bad_input_is_one_line_and_queues_nothing(
    onward: Onward, sandbox: Sandbox, script: Path, words: tuple[str, ...], said: str
) -> None:
    sandbox.write("bad.sh", "#!/bin/bash\n#SBATCH --hold\ntrue\n")
    sandbox.write("lost.sh", "#!/bin/bash\n#SBATCH -D nowhere\ntrue\n")
    sandbox.write("open.sh", "#!/bin/bash\nif true; then\n")
    sandbox.write("strange.sh", "#!/no/such/interp\ntrue\n")
    sandbox.write("shell.sh", "#!/bin/bash\n#$ -S /no/such\ntrue\n")
    os.mkfifo(sandbox.project / "pipe.sh")
    (sandbox.project / "dangling.sh").symlink_to("nowhere.sh")
    answer = onward("submit", "--cluster", "local", *words)
    assert answer.code == 2 and said in answer.err and sandbox.folders() == []


def test_a_flag_of_ours_after_the_script_is_the_scripts_and_that_is_said(onward: Onward, sandbox: Sandbox, script: Path) -> None:
    said = onward("submit", "--json", "--cluster", "local", "train_model.sh", "--max-legs=3", "--lr", "1")
    spec = read_spec(RunDir(Path(said.json["folder"])))
    assert spec.script is not None and spec.script.arguments == ("--max-legs=3", "--lr", "1")
    assert "note: --max-legs=3 after train_model.sh is passed to the script; put Onward's flags before it" in said.err
    assert "--lr after" not in said.err


def test_options_of_sbatch_may_stand_before_a_command_and_before_a_script(onward: Onward, sandbox: Sandbox, script: Path) -> None:
    said = onward("submit", "--json", "--cluster", "local", "--job-name=deep", "--comment", "a note", "-o", "x.out", "train_model.sh")
    spec = read_spec(RunDir(Path(said.json["folder"])))
    assert (spec.name, spec.outputs.out if spec.outputs else None) == ("deep", "x.out")
    assert '--comment="a note"' in spec.resources.extra
    said = onward(
        "submit", "--json", "--cluster", "local", "--job-name=line", "--nice", "--wait", "--export=NONE", "--", "python3", "train.py"
    )
    folder = RunDir(Path(said.json["folder"]))
    assert read_spec(folder).name == "line" and json.loads(folder.environment.read_text()) == {}
    assert "note: --nice: not passed on: it does not apply to the local queue" in said.err
    assert "note: --wait: not passed on; `onward run` instead" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--dependency=afterok:1", "--", "true"), "--dependency=afterok:1: Onward itself queues the legs of a run"),
        (("--output=x", "--", "true"), "--output=x: a command's output is in the run's logs"),
        (("--wrap=hostname",), "--wrap=hostname: write the command after --, as in onward submit -- sh -c"),
        (("-pe", "smp", "4", "--hold", "train_model.sh"), "-pe smp 4: is an option of qsub, and the script is written for Slurm"),
        (("--name", "a", "--job-nam", "b", "--", "true"), "--job-name=b: --name says the same; which of the two?"),
        (("--comment",), "--comment: --comment has no value"),
        (("--no-such-option", "--", "true"), "no-such-option"),
        (("--scheduler-option=x", "--", "true"), "--scheduler-option is Onward's own"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_what_to_do_instead(
    onward: Onward, sandbox: Sandbox, script: Path, words: tuple[str, ...], said: str
) -> None:
    answer = onward("submit", "--cluster", "local", *words)
    assert answer.code == 2 and said in answer.err and sandbox.folders() == []


def test_a_refusal_names_the_line_it_is_about(onward: Onward, sandbox: Sandbox, script: Path) -> None:
    sandbox.scheduler.refuse = "Invalid license specification"
    said = onward("submit", "--cluster", "local", "train_model.sh")
    assert said.code == 1 and "Invalid license" in said.err
    assert "train_model.sh:2" in said.err


def test_notes_are_said_and_do_not_disturb_json(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("noted.sh", "#!/bin/bash\n#SBATCH --requeue\ntrue\n")
    said = onward("submit", "--json", "--cluster", "local", "noted.sh")
    assert said.json["id"] and "note: noted.sh:2: --requeue: not passed on" in said.err


def test_a_script_starts_in_the_folder_that_it_names(onward: Onward, sandbox: Sandbox) -> None:
    (sandbox.project / "sub").mkdir()
    sandbox.write("sub.sh", "#!/bin/bash\n#SBATCH -D sub\ntrue\n")
    spec = read_spec(submitted(onward, "sub.sh"))
    assert spec.workdir == str(sandbox.project / "sub")
    assert spec.script is not None and spec.script.submitted_from == str(sandbox.project)


def test_the_shells_environment_goes_with_a_script_for_sbatch_and_not_with_one_for_qsub(
    onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("BASH_FUNC_module%%", "() {  eval x\n}")
    sandbox.write("a.sh", "#!/bin/bash\n#SBATCH -n1\ntrue\n")
    sandbox.write("b.sh", "#!/bin/bash\n#$ -N b\n#$ -v GIVEN=2\ntrue\n")
    sbatch = json.loads(submitted(onward, "a.sh").environment.read_text())
    assert sbatch["MINE"] == "1" and "BASH_FUNC_module%%" in sbatch
    qsub = json.loads(submitted(onward, "--env", "MORE=3", "b.sh").environment.read_text())
    assert qsub == {"GIVEN": "2", "MORE": "3"}
    line = json.loads(submitted(onward, "--", "python3", "train.py").environment.read_text())
    assert line["MINE"] == "1" and "BASH_FUNC_module%%" not in line


def test_a_script_for_another_scheduler_is_refused(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.write("job.qsub", "#!/bin/bash\n#$ -N a\ntrue\n")
    said = onward("submit", "--cluster", "slurm", "job.qsub")
    assert said.code == 2 and "job.qsub:2: the script is written for Grid Engine, but the cluster slurm is Slurm" in said.err
