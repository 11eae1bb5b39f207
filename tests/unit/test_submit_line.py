"""Options of sbatch and qsub: every one has its fate in a table, in batch scripts and on Onward's own command line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.inputs.scripts import gridengine_options, qsub_lines, sbatch_lines, slurm_options
from onward.inputs.scripts.batch_script import read_script
from onward.inputs.scripts.option_table import Fate, OptionRule, read_table
from onward.inputs.scripts.requested_options import RequestedOptions, ScriptOption
from onward.inputs.scripts.submit_line import applied, split_off
from onward.model.spec import Resources, RunDraft

TABLES = {"slurm": slurm_options.OPTIONS, "gridengine": gridengine_options.OPTIONS}
RULES = [(family, rule) for family, table in TABLES.items() for rule in table.values()]
FLAGS = "--name -J --cluster --time -t --gpus -G --partition -p --nodes -N --param -P --account -A --mem --env"
OWN = {**dict.fromkeys(FLAGS.split(" "), True), "-h": False, "--help": False}

# `man sbatch` of 22.05, and what came with 23.02, 23.11, 24.05 and 24.11.
SBATCH = """
account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint container contiguous core-spec
cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error exclude exclusive export
export-file extra-node-info get-user-env gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help hint
hold ignore-pbs input job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus
network nice no-kill no-requeue nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode
output overcommit oversubscribe parsable partition power prefer priority profile propagate qos quiet reboot requeue reservation signal
sockets-per-node spread-job switches test-only thread-spec threads-per-core time time-min tmp uid usage use-min-nodes verbose version wait
wait-all-nodes wckey wrap
container-id extra oom-kill-step segment stepmgr tres-bind tres-per-task
"""
# `qsub -help` of 8.1.9
QSUB = """
-@ -a -ac -A -ar -b -binding -c -ckpt -clear -cwd -C -dc -dl -e -h -hard -help -hold_jid -hold_jid_ad -i -j -js -jsv -l -m -masterq -M -N
-notify -now -o -P -p -pe -q -R -r -S -sc -shell -soft -sync -t -tc -terse -V -v -verify -w -wd
"""

VALUES = {  # of options that read theirs; x does for the others
    "--array": "1-3",
    "--mem": "4G",
    "--time": "1:00",
    "--signal": "B:USR1@60",
    "--open-mode": "append",
    "--export": "ALL,A=1",
    "--nodes": "1",
    "--ntasks": "2",
    "--ntasks-per-node": "2",
    "--cpus-per-task": "2",
    "--gpus": "1",
    "--gres": "gpu:1",
    "-l": "h_rt=60",
    "-j": "y",
    "-t": "1-3",
    "-v": "A=1",
    "-binding": "linear:1",
    "-pe": "smp 4",
}


def words_of_rule(rule: OptionRule) -> list[str]:
    if rule.value in ("none", "maybe"):
        return [rule.name]
    return [rule.name, *VALUES.get(rule.name, "x").split()]


def test_every_option_of_sbatch_and_qsub_has_its_fate() -> None:
    assert {f"--{name}" for name in SBATCH.split()} <= TABLES["slurm"].keys()
    assert set(QSUB.split()) <= TABLES["gridengine"].keys()


def test_every_option_that_this_machines_sbatch_lists_has_its_fate_and_its_letter() -> None:
    if shutil.which("sbatch") is None:
        pytest.skip("Slurm is not installed here")
    said = subprocess.run(["sbatch", "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    listed = re.findall(r"^\s+(?:(-\w),?\s+)?(--[a-z][a-z-]+)", said, re.MULTILINE)
    assert len(listed) > 90
    assert {name for _, name in listed} <= TABLES["slurm"].keys()
    assert {(letter, name) for letter, name in listed if letter} <= {(rule.short, name) for name, rule in TABLES["slurm"].items()}


@pytest.mark.parametrize("family", TABLES)
def test_what_is_taken_is_what_the_reader_has_a_meaning_for(family: str) -> None:
    known: Mapping[str, object] = {"slurm": sbatch_lines, "gridengine": qsub_lines}[family]._KNOWN
    taken = {name for name, rule in TABLES[family].items() if rule.fate is Fate.TAKEN}
    assert taken == {f"--{name}" if family == "slurm" else name for name in known}


@pytest.mark.parametrize(("family", "rule"), RULES, ids=lambda given: given if isinstance(given, str) else given.name)
def test_a_batch_script_may_have_any_option_or_says_why_not(family: str, rule: OptionRule, tmp_path: Path) -> None:
    mark = {"slurm": "#SBATCH", "gridengine": "#$"}[family]
    script = tmp_path / "train.sh"
    script.write_text(f"#!/bin/bash\n{mark} {' '.join(words_of_rule(rule))}\ntrue\n")
    if rule.fate is Fate.REFUSED:
        with pytest.raises(InvalidInput, match=re.escape(rule.words)):
            read_script(script, [], scheduler=family, cluster=family, env={})
        return
    read = read_script(script, [], scheduler=family, cluster=family, env={})
    assert bool(read.notes) == (rule.fate is Fate.NOTED)
    if rule.fate is Fate.HANDED_ON:
        assert read.draft.resources.extra


@pytest.mark.parametrize(("family", "rule"), RULES, ids=lambda given: given if isinstance(given, str) else given.name)
def test_the_command_line_takes_any_option_or_says_why_not(family: str, rule: OptionRule) -> None:
    words = words_of_rule(rule)
    kept, given = split_off([*words, "python", "train.py"], OWN)
    if words[0] in OWN:  # ours have Slurm's spelling
        assert kept[: len(words)] == words and not given
        return
    assert kept == ["python", "train.py"]
    draft = RunDraft(name="run", experiment="run", cluster="x", command=("python", "train.py"))
    own = [one.of(family) for one in given]
    assert [one.family for one in own] == [family]
    alone = RequestedOptions()
    {"slurm": sbatch_lines, "gridengine": qsub_lines}[family].take(own[0].option, alone)
    if rule.fate is Fate.REFUSED or "in a batch script" in rule.words:
        with pytest.raises(InvalidInput) as caught:
            applied(draft, own, scheduler=family, cluster="x", env={}, asked=())
        assert str(own[0].option) in caught.value.message
    else:
        made, notes = applied(draft, own, scheduler=family, cluster="x", env={}, asked=())
        assert bool(notes) == (rule.fate is Fate.NOTED)
        assert (made.resources.extra != ()) == (rule.fate is Fate.HANDED_ON or ("handed on" in rule.words and bool(alone.extra)))


def line(*words: str, scheduler: str = "slurm", **others: object) -> tuple[RunDraft, list[str]]:
    _, given = split_off([*words, "true"], OWN)
    draft = RunDraft(name="run", experiment="run", cluster="lab", command=("true",), **others)  # type: ignore[arg-type]
    return applied(draft, [one.of(scheduler) for one in given], scheduler=scheduler, cluster="lab", env={"B": "2"}, asked=())


def test_options_of_the_scheduler_reach_its_job() -> None:
    made, notes = line("--comment=a note", "-L", "matlab:1", "-k", "--job-name=deep", "--export=NONE,A=1", "--signal=USR1@90")
    assert made.resources.extra == ('--comment="a note"', "--licenses=matlab:1", "--no-kill", "--export=NONE,A=1")
    assert (made.name, made.variables, made.carry, made.stop_signal, made.stop_lead, notes) == ("deep", {"A": "1"}, False, "USR1", 90, [])
    made, _ = line("-l", "h_rt=1:00:00,h_vmem=4G", "-pe", "smp", "4", "-v", "A=1,B", scheduler="gridengine")
    assert (made.resources.time, made.resources.extra) == (3600, ("-l h_vmem=4G", "-pe smp 4"))
    assert made.variables == {"A": "1", "B": "2"}


def test_the_line_wins_over_the_params_file() -> None:
    made, _ = line("--comment=new", resources=Resources(extra=("--comment=old", "--nice=5")))
    assert made.resources.extra == ("--nice=5", "--comment=new")


def test_an_option_of_another_scheduler_is_refused_there_and_means_nothing_on_this_machine() -> None:
    with pytest.raises(InvalidInput, match="--comment=x: is an option of sbatch, and the cluster lab is Grid Engine; leave it out"):
        line("--comment=x", scheduler="gridengine")
    with pytest.raises(InvalidInput, match="-pe smp 4: is an option of qsub, and the cluster lab is Slurm; leave it out"):
        line("-pe", "smp", "4")
    made, notes = line("--comment=x", "--export=NONE", scheduler="local")
    assert (made.resources.extra, made.carry) == ((), False)
    assert notes == ["--comment=x: not passed on: it does not apply to the local queue"]


def test_a_letter_of_both_is_the_clusters_own() -> None:
    with pytest.raises(InvalidInput, match="--version: this belongs on sbatch's own command line"):
        line("-V")
    assert line("-V", scheduler="gridengine")[0].carry
    with pytest.raises(InvalidInput, match="-b y: a batch script is a script"):
        line("-b", "y", scheduler="gridengine")
    assert line("-v", "A=1", scheduler="gridengine")[0].variables == {"A": "1"}
    assert split_off(["-v", "true"], OWN)[0] == ["true"]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        line("--dependency=afterok:1", "--hold", "-o", "out.txt", "--array=1-10%4")
    said = caught.value.message.splitlines()
    assert [sentence.split(":")[0] for sentence in said] == ["--dependency=afterok", "--hold", "--output=out.txt", "--array=1-10%4"]
    assert "a command's output is in the run's logs" in said[2] and "submit a part of the array at a time" in said[3]
    assert caught.value.hint == "onward help scheduler-options lists what each option becomes"


def test_our_own_flags_their_values_and_what_nobody_knows_stay() -> None:
    words = ["--time", "1:00", "-p", "gpu", "-pgpu", "--mem=4G", "--cluster", "lab", "--no-such-thing", "python", "--comment=x"]
    assert split_off(words, OWN) == (words, [])
    kept, given = split_off(["--comment=x", "params.yaml", "--hold", "--", "--nice"], OWN)
    assert kept == ["params.yaml", "--", "--nice"] and [one.option.name for one in given] == ["--comment", "--hold"]
    with pytest.raises(InvalidInput, match="--lic: --licenses has no value"):
        split_off(["--lic"], OWN)


def test_before_a_batch_script_options_win_over_its_lines(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/bash\n#SBATCH --comment=old --mem=4G -o old.txt\n#SBATCH --array=1-9 --nice=3\ntrue\n")
    _, given = split_off(["--comment=new", "--mem-per-cpu=1G", "-o", "new.txt", "-a", "1-2", "train.sh"], {})
    draft = read_script(script, [], scheduler="slurm", cluster="slurm", env={}, given=given).draft
    assert draft.resources == Resources(extra=("--nice=3", "--comment=new", "--mem-per-cpu=1G"))
    assert draft.outputs and draft.outputs.out == "new.txt" and draft.script and draft.script.array == "1-2"
    _, wrong = split_off(["-pe", "smp", "2", "--hold", "train.sh"], {})
    with pytest.raises(InvalidInput) as caught:
        read_script(script, [], scheduler="slurm", cluster="slurm", env={}, given=wrong)
    assert caught.value.message.splitlines() == [
        "-pe smp 2: is an option of qsub, and the script is written for Slurm; leave it out",
        "--hold: every leg would be held; leave it out, and submit when the run may start",
    ]


def test_a_row_that_cannot_be_read_is_a_fault_of_the_table() -> None:
    with pytest.raises(ValueError, match="not a row: '--mem one'"):
        read_table("--mem one")
    assert str(ScriptOption(name="--mem", value="4G", line=0)) == "--mem=4G"
