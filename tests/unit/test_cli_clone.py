"""`onward clone`: the code of another run, as it froze it, with what the flags say instead."""

from __future__ import annotations

import json

import pytest

from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from tests.sandbox import Sandbox
from tests.unit.test_cli import Onward
from tests.unit.test_cli import onward as onward
from tests.unit.test_cli import sandbox as sandbox


def first(onward: Onward, *flags: str) -> str:
    command = ("python3", "train.py", "--lr", "{params.lr}")
    return onward("submit", "--param", "lr=0.1", "--param", "seed=1", "--env", "KEY=secret", *flags, "--", *command).out.strip()


def dir_of(sandbox: Sandbox, run: str) -> RunDir:
    return next(dir for dir in sandbox.context.runs() if read_run(dir).spec.id == run)


def test_a_clone_is_a_new_run_of_the_same_code_with_the_changes(onward: Onward, sandbox: Sandbox) -> None:
    before = first(onward, "--mem", "2G")
    sandbox.write("train.py", "print('changed since')\n")
    said = onward("clone", before[:5], "--param", "lr=0.2", "--name", "again", "--cpus-per-task", "3", "--max-legs", "5", "--env", "MORE=1")
    assert said.code == 0, said.err
    assert "again: leg 1 is job" in said.err
    dir = dir_of(sandbox, said.out.strip())
    spec = read_run(dir).spec
    assert (spec.name, spec.experiment, spec.params) == ("again", "train", {"lr": 0.2, "seed": 1})
    assert (spec.resources.mem, spec.resources.cpus_per_task, spec.limits.max_legs) == (2048, 3, 5)
    assert (dir.code / "train.py").read_text() == "print('trained')\n"
    variables = json.loads(dir.environment.read_text())
    assert (variables["KEY"], variables["MORE"]) == ("secret", "1")
    assert read_run(dir_of(sandbox, before)).spec.params == {"lr": 0.1, "seed": 1}


def test_without_flags_it_is_the_same_again(onward: Onward, sandbox: Sandbox) -> None:
    before = first(onward)
    said = onward("clone", before, "--json")
    spec, source = read_run(dir_of(sandbox, said.json["id"])).spec, read_run(dir_of(sandbox, before)).spec
    assert (said.json["name"], said.json["host"], spec.id != source.id) == (source.name, None, True)
    assert (spec.command, spec.params, spec.resources, spec.limits) == (source.command, source.params, source.resources, source.limits)


def test_a_dry_run_prints_the_script_and_queues_nothing(onward: Onward, sandbox: Sandbox) -> None:
    before = first(onward)
    folders = sandbox.folders()
    said = onward("clone", before, "--dry-run", "--mem", "3G", "--name", "other")
    assert (said.code, said.out.startswith("#!"), "nothing is queued" in said.err, "_other" in said.err) == (0, True, True, True)
    assert onward("clone", before, "--dry-run", "--json").json["command"]
    assert sandbox.folders() == folders


def test_a_param_that_the_run_did_not_have_is_taken_and_told(onward: Onward, sandbox: Sandbox) -> None:
    said = onward("clone", first(onward), "--param", "rl=0.2")
    assert said.code == 0 and "had no param rl; it had lr, seed" in said.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--param", "lr"), "found no =, expected NAME=VALUE"),
        (("--mem", "much"), "--mem"),
        (("--max-legs", "0"), "--max-legs"),
        (("--cluster", "moon"), "moon"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_made(onward: Onward, sandbox: Sandbox, flags: tuple[str, ...], words: str) -> None:
    before = first(onward)
    folders = sandbox.folders()
    said = onward("clone", before, *flags)
    assert said.code in (2, 3) and words in said.err
    assert sandbox.folders() == folders


@pytest.mark.parametrize("flag", [("--param", "lr=1"), ("--launcher", "srun")])
def test_a_batch_script_takes_no_params(onward: Onward, sandbox: Sandbox, flag: tuple[str, ...]) -> None:
    sandbox.write("train.sh", "#!/bin/bash\n#SBATCH --mem=2G\npython3 train.py\n")
    before = onward("submit", "train.sh").out.strip()
    said = onward("clone", before, *flag)
    assert (said.code, f"{flag[0]} does not apply to a batch script" in said.err) == (2, True)
    again = onward("clone", before, "--mem", "4G")
    assert again.code == 0, again.err
    assert read_run(dir_of(sandbox, again.out.strip())).spec.resources.mem == 4096


def test_code_is_not_taken_to_another_machine(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    before = first(onward)
    settings = sandbox.folder / "settings.toml"
    settings.write_text('[clusters.far]\nscheduler = "slurm"\nssh = "login.far"\n')
    monkeypatch.setenv("ONWARD_SETTINGS", str(settings))
    said = onward("clone", before, "--cluster", "far")
    assert said.code == 2 and "cluster far is on login.far" in said.err and "is on this machine" in said.err
