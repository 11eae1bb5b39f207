"""Batch scripts as they are: what is read out of their directive lines, and what is refused by line."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.errors import InvalidInput
from onward.inputs.params.file import parse_params
from onward.inputs.params.scheduler_options import check_extra, option_refusal
from onward.inputs.scripts.batch_script import ParsedScript, expand_array, is_batch_script, read_script
from onward.inputs.scripts.contradictions import option_subject, replaced, without_clashes
from onward.inputs.scripts.line_words import MalformedDirective, quoted, words_of
from onward.inputs.scripts.requested_options import MOST_TASKS, ScriptOption, tasks_of
from onward.model.spec import Outputs, Resources, RunDraft, spec_from_json, spec_to_json
from onward.schedulers.slurm.scheduler import SlurmScheduler
from tests.histories import make_spec

SEED_C = (Path(__file__).parents[2] / "examples" / "sbatch_script" / "train_model.sh").read_text()
SEED_E = (Path(__file__).parents[2] / "examples" / "qsub_chain" / "job.qsub").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def read(folder: Path, text: str | bytes, *arguments: str, scheduler: str = "slurm", name: str = "train.sh", **env: str) -> ParsedScript:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_script(path, arguments, scheduler=scheduler, cluster="auto", env=env)


def sbatch(folder: Path, *lines: str, body: str = "python train.py\n", **others: Any) -> ParsedScript:
    return read(folder, "\n".join(["#!/bin/bash", *(f"#SBATCH {line}" for line in lines), body]), **others)


def qsub(folder: Path, *lines: str, body: str = "python train.py\n", **others: Any) -> ParsedScript:
    return read(folder, "\n".join(["#!/bin/bash", *(f"#$ {line}" for line in lines), body]), scheduler="gridengine", **others)


def refused(error: pytest.ExceptionInfo[InvalidInput]) -> str:
    return error.value.message


# ── the seeds' own scripts ────────────────────────────────────────────────────


def test_the_sbatch_script_of_the_example_becomes_a_run(folder: Path) -> None:
    draft = read(folder, SEED_C, "--seed", "1", name="train_model.sh").draft
    assert (draft.name, draft.experiment) == ("hyperopt-v1", "hyperopt-v1")
    assert draft.resources == Resources(partition="gpu", nodes=1, ntasks=1, cpus_per_task=8, mem=32 * 1024, gres="gpu:1", time=86400)
    assert draft.outputs == Outputs(out="logs/%j.out", err="logs/%j.err")
    assert draft.script is not None
    assert (draft.script.shell, draft.script.arguments, draft.script.family) == (("/bin/bash",), ("--seed", "1"), "slurm")
    assert draft.command == ("/bin/bash", "train_model.sh", "--seed", "1")
    assert draft.script_text == SEED_C
    assert not draft.freeze and draft.carry and draft.stop_signal is None


def test_the_qsub_script_of_the_example_becomes_a_run(folder: Path) -> None:
    found = read(folder, SEED_E, scheduler="gridengine", name="job.qsub")
    draft = found.draft
    assert draft.name == "job"
    assert draft.resources == Resources(extra=("-P tianlabdl", "-l gpus=1", "-l gpu_c=3.5"))
    assert draft.outputs == Outputs(out="$JOB_NAME.o$JOB_ID", err="$JOB_NAME.e$JOB_ID", append=True)
    assert draft.script is not None and draft.script.shell == ("/bin/bash", "-l")
    assert draft.script.job_name == "job.qsub"
    assert not draft.carry  # qsub passes nothing of the shell without -V
    assert found.notes == ()


# ── where reading stops ───────────────────────────────────────────────────────


def test_sbatch_reads_up_to_the_first_command_and_qsub_to_the_end(folder: Path) -> None:
    text = "#!/bin/bash\n\n# a comment\n   # another\n#SBATCH --time=10\necho\n#SBATCH --mem=nonsense\n"
    assert read(folder, text).draft.resources == Resources(time=600)
    text = "#!/bin/bash\n#$ -N one\necho\n#$ -l h_rt=60\n"
    assert read(folder, text, scheduler="gridengine").draft.resources.time == 60


def test_a_directive_must_stand_at_the_beginning_of_its_line(folder: Path) -> None:
    assert read(folder, "#!/bin/bash\n #SBATCH --time=10\n# SBATCH --time=10\n##SBATCH --time=10\ntrue\n").draft.resources == Resources()


def test_what_follows_a_hash_on_a_line_is_a_comment(folder: Path) -> None:
    assert sbatch(folder, "--time=10 # ten minutes --mem=1G").draft.resources == Resources(time=600)


# ── spellings of sbatch ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--time=1:00:00", {"time": 3600}),
        ("--time 1:00:00", {"time": 3600}),
        ("-t 60", {"time": 3600}),
        ("-t60", {"time": 3600}),
        ("-t=60", {"time": 3600}),
        ("--mem=4G", {"mem": 4096}),
        ("--mem=0", {"mem": 0}),
        ("-p gpu,cpu -A ml", {"partition": "gpu,cpu", "account": "ml"}),
        ("-N2 -n 8 --ntasks-per-node=4 -c2", {"nodes": 2, "ntasks": 8, "ntasks_per_node": 4, "cpus_per_task": 2}),
        ("-G a100:2", {"gpus": "a100:2"}),
        ('--constraint="a100|h100"', {"constraint": "a100|h100"}),
        ("-w node[01-02] -x node03", {"nodelist": "node[01-02]", "exclude": "node03"}),
        ("--mail-type=end,fail --mail-user=me@x.org", {"mail_type": "END,FAIL", "mail_user": "me@x.org"}),
        ("-q high --reservation=r", {"qos": "high", "reservation": "r"}),
    ],
)
def test_options_in_every_spelling_become_resources(folder: Path, line: str, expected: Mapping[str, Any]) -> None:
    assert sbatch(folder, line).draft.resources == Resources(**expected)


@pytest.mark.parametrize(
    ("short", "whole"), [("--part=gpu", "partition"), ("--acco=ml", "account"), ("--constr=x", "constraint"), ("--res=r", "reservation")]
)
def test_long_options_may_be_shortened_as_getopt_has_it(folder: Path, short: str, whole: str) -> None:
    assert getattr(sbatch(folder, short).draft.resources, whole)


@pytest.mark.parametrize(
    "line",
    [
        "--licenses=matlab:2",
        "--exclusive",
        "--exclusive=user",
        "--nice=100",
        "--hint=nomultithread",
        "--mem-per-cpu=4G",
        "--gpus-per-node=a100:2",
        "--time=UNLIMITED",
        "--nodes=1-2",
        "--tmp=10G",
        "--something-new=7",
        "--switches=1@10:00",
    ],
)
def test_what_we_have_no_word_for_is_passed_on_as_it_is(folder: Path, line: str) -> None:
    assert sbatch(folder, line).draft.resources == Resources(extra=(line,))


def test_short_options_that_are_passed_on_are_written_out(folder: Path) -> None:
    assert sbatch(folder, "-L matlab -O -k --something-new 7").draft.resources.extra == (
        "--licenses=matlab",
        "--overcommit",
        "--no-kill",
        "--something-new=7",
    )


def test_a_value_with_blanks_and_quotes_goes_on_in_quotes(folder: Path) -> None:
    [passed] = sbatch(folder, "--comment='two \"words\"'").draft.resources.extra
    assert words_of(passed) == ['--comment=two "words"']


def test_name_files_folder_and_mode(folder: Path) -> None:
    draft = sbatch(folder, "-J 'My run (β)' -o out.%j -e err.%j --open-mode=append -D sub").draft
    assert draft.name == "My-run" and draft.script is not None and draft.script.job_name == "My run (β)"
    assert draft.outputs == Outputs(out="out.%j", err="err.%j", append=True)
    assert draft.folder == "sub"


def test_without_a_line_the_output_is_where_sbatch_puts_it(folder: Path) -> None:
    assert sbatch(folder).draft.outputs == Outputs(out="slurm-%j.out")
    assert sbatch(folder, "-a 1-2").draft.outputs == Outputs(out="slurm-%A_%a.out")


def test_on_a_cluster_of_another_kind_only_the_output_files_that_the_script_names_are_written(folder: Path) -> None:
    assert sbatch(folder, scheduler="local").draft.outputs == Outputs()
    assert sbatch(folder, "-o out.%j", scheduler="local").draft.outputs == Outputs(out="out.%j")
    script = "#!/bin/bash\n#$ -N x\npython train.py\n"
    assert read(folder, script, scheduler="local").draft.outputs == Outputs(append=True)


@pytest.mark.parametrize(
    ("value", "signal", "lead", "to"),
    [
        ("B:USR1@120", "USR1", 120, "shell"),
        ("USR2", "USR2", 60, "steps"),
        ("SIGTERM@30", "TERM", 30, "steps"),
        ("RB:10@5", "USR1", 5, "shell"),
    ],
)
def test_a_signal_is_how_and_when_the_script_is_asked_to_stop(folder: Path, value: str, signal: str, lead: int, to: str) -> None:
    draft = sbatch(folder, f"--signal={value}").draft
    assert draft.script is not None
    assert (draft.stop_signal, draft.stop_lead, draft.script.signal_to) == (signal, lead, to)


def test_the_environment_is_kept_unless_the_script_says_otherwise(folder: Path) -> None:
    assert sbatch(folder, "--export=ALL").draft.carry
    some = sbatch(folder, "--export=ALL,A=1").draft
    assert some.carry and some.variables == {"A": "1"} and some.resources.extra == ()
    none = sbatch(folder, "--export=NONE").draft
    assert not none.carry and none.resources.extra == ("--export=NONE",)
    only = sbatch(folder, "--export=A=1,B").draft
    assert not only.carry and only.variables == {"A": "1"}


# ── what sbatch's lines may not say ───────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--dependency=afterok:7", "Onward itself queues the legs of a run"),
        ("-d singleton", "Onward itself queues the legs of a run"),
        ("-H", "every leg would be held"),
        ("--begin=now+1hour", "every leg would wait again"),
        ("-M other", "a run stays on one cluster"),
        ("--input=file", "write < FILE"),
        ("--array=1-10%2", "none waits for another"),
        ("--array=5-1", "an ascending range"),
        ("--array=x", "expected tasks such as 1-10"),
        ("--array=0-5000", "more than 1000 tasks"),
        ("--array=0-99999999", "more than 1000 tasks"),
        ("--array=99999999", "expected tasks up to 9999999"),
        ("--time=soon", "'soon' is not a time; write minutes, MM:SS, HH:MM:SS or D-HH:MM:SS"),
        ("--time", "--time has no value"),
        ("-t", "-t has no value"),
        ("--mem=lots", "not a memory size"),
        ("--open-mode=sideways", "expected append or truncate"),
        ("--exclude=./hosts", "expected their names"),
        ("--signal=B:KILL@5", "that a program can catch"),
        ("--signal=@@", "expected a signal such as"),
        ("-Z", "-Z is not an option of sbatch"),
        ("gpu", "found 'gpu', expected an option"),
        ("hetjob", "heterogeneous jobs"),
        ("--comment='open", "an unclosed quote"),
        ("--n=1", "an ambiguous short form of"),
        ("--acc=ml", "an ambiguous short form of: --account, --acctg-freq"),
        ("--test-only", "--dry-run"),
        ("--wrap=x", "write the command after --"),
    ],
)
def test_what_cannot_be_is_refused_by_line(folder: Path, line: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        sbatch(folder, "--nodes=1", line)
    assert refused(error).startswith(f"{folder}/train.sh:3: ") and said in refused(error)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("--time=10", "-t 20", "--time=20: line 2 says --time=10; remove one of the two"),
        ("-J a", "--job-name=b", "line 2 says --job-name=a"),
        ("--mem=4G", "--mem-per-cpu=1G", "--mem-per-cpu=1G: contradicts --mem=4G in line 2"),
        ("--requeue", "--no-requeue", "contradicts --requeue"),
        ("--gres=gpu:1", "--gpus=2", "--gpus=2: line 2 says --gres=gpu:1; remove one of the two"),
        ("-G 2", "--gres=disk:1,gpu:1", "--gres=disk:1,gpu:1: line 2 says --gpus=2"),
        ("--licenses=a", "--licenses=b", "line 2 says --licenses=a"),
    ],
)
def test_lines_that_contradict_each_other_are_refused(folder: Path, first: str, second: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        sbatch(folder, first, second)
    assert refused(error).startswith(f"{folder}/train.sh:3: ") and said in refused(error)


def test_two_folders_to_start_in_are_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="-wd /tmp: contradicts -cwd in line 2"):
        qsub(folder, "-cwd", "-wd /tmp")


def test_saying_the_same_twice_is_no_contradiction(folder: Path) -> None:
    assert sbatch(folder, "--time=10 --licenses=a", "-t 10 -L a").draft.resources == Resources(time=600, extra=("--licenses=a",))


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_lines(folder: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        sbatch(folder, "--mem=lots", "--hold", "--time=x")
    assert [line.split(":")[1] for line in refused(error).splitlines()] == ["2", "3", "4"]


def test_a_script_of_our_own_chain_is_noted_not_refused(folder: Path) -> None:
    found = sbatch(folder, "--requeue --no-kill", body="trap 'scontrol requeue $SLURM_JOB_ID' USR1\npython train.py\nsbatch $0\n")
    assert [note.removeprefix(f"{folder}/train.sh:") for note in found.notes] == [
        ("2: --requeue: not passed on; Onward itself queues the legs of a run, one after another, also after preemption or a lost node"),
        "3: scontrol requeue: will be refused; Onward queues the next leg itself",
        "5: sbatch: queues a job that Onward does not know; Onward itself queues the next leg",
    ]
    assert found.draft.resources.extra == ("--no-kill",)


# ── the lines of qsub ─────────────────────────────────────────────────────────


def test_options_of_qsub_in_one_line(folder: Path) -> None:
    draft = qsub(folder, "-N digits -cwd -l h_rt=1:00:00,gpus=2 -pe smp 4 -q all.q -m ea -j y -o logs/").draft
    assert draft.name == "digits"
    assert draft.resources == Resources(time=3600, extra=("-l gpus=2", "-pe smp 4", "-q all.q", "-m ea"))
    assert draft.outputs == Outputs(out="logs/", append=True)
    assert draft.folder == "."


@pytest.mark.parametrize(("value", "seconds"), [("90", 90), ("1:30:00", 5400), ("::30", 30), ("2::", 7200), ("36:00:00", 129600)])
def test_times_are_read_as_grid_engine_writes_them(folder: Path, value: str, seconds: int) -> None:
    assert qsub(folder, f"-l h_rt={value}").draft.resources.time == seconds


@pytest.mark.parametrize(
    ("lines", "outputs"),
    [
        ((), Outputs(out="$JOB_NAME.o$JOB_ID", err="$JOB_NAME.e$JOB_ID", append=True)),
        (("-j y",), Outputs(out="$JOB_NAME.o$JOB_ID", append=True)),
        (("-j n -o a",), Outputs(out="a", err="$JOB_NAME.e$JOB_ID", append=True)),
        (("-o host:/a/b -e :/c",), Outputs(out="/a/b", err="/c", append=True)),
        (("-e x", "-j yes"), Outputs(out="$JOB_NAME.o$JOB_ID", append=True)),
        (("-t 1-2",), Outputs(out="$JOB_NAME.o$JOB_ID.$TASK_ID", err="$JOB_NAME.e$JOB_ID.$TASK_ID", append=True)),
    ],
)
def test_output_files_of_qsub(folder: Path, lines: tuple[str, ...], outputs: Outputs) -> None:
    assert qsub(folder, *lines).draft.outputs == outputs


def test_variables_are_those_that_the_line_names(folder: Path) -> None:
    draft = qsub(folder, "-v A=x,HERE,GONE", HERE="1", OTHER="2").draft
    assert draft.variables == {"A": "x", "HERE": "1"} and not draft.carry
    assert qsub(folder, "-V").draft.carry


def test_a_soft_limit_and_notify_are_signals_before_the_limit(folder: Path) -> None:
    soft = qsub(folder, "-l s_rt=0:50:00", "-l h_rt=1:00:00").draft
    assert (soft.stop_signal, soft.stop_lead, soft.resources.extra) == ("USR1", 600, ())
    noted = qsub(folder, "-notify").draft
    assert noted.script is not None
    assert (noted.stop_signal, noted.stop_lead, noted.script.signal_to) == ("USR2", 60, "all")


def test_the_shell_is_the_one_that_grid_engine_would_start(folder: Path) -> None:
    def shell(text: str) -> tuple[str, ...]:
        script = read(folder, text, scheduler="gridengine").draft.script
        assert script is not None
        return script.shell

    assert shell("#$ -N a\ntrue\n") == ("/bin/sh",)
    assert shell("#!/bin/bash\n#$ -N a\ntrue\n") == ("/bin/bash", "-l")
    assert shell("#!/bin/bash -e\n#$ -N a\ntrue\n") == ("/bin/bash", "-l", "-e")
    assert shell("#!/bin/bash -le\n#$ -N a\ntrue\n") == ("/bin/bash", "-le")
    assert shell("#!/bin/csh\n#$ -S /bin/bash\ntrue\n") == ("/bin/bash", "-l")
    assert shell("#!/usr/bin/env python3\n#$ -N a\npass\n") == ("/usr/bin/env", "python3")


def test_the_shell_of_sbatch_is_the_first_lines_with_all_that_follows_as_one_word(folder: Path) -> None:
    script = read(folder, "#!/usr/bin/env -S bash -l \n#SBATCH -n1\n").draft.script
    assert script is not None and script.shell == ("/usr/bin/env", "-S bash -l")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-hold_jid other", "Onward itself queues the legs of a run"),
        ("-hold_jid_ad other", "Onward itself queues the legs of a run"),
        ("-h", "every leg would be held"),
        ("-a 12312359", "every leg would wait again"),
        ("-tc 3", "none waits for another"),
        ("-t 0-3", "expected tasks from 1"),
        ("-t n", "expected tasks such as"),
        ("-l h_rt=soon", "expected a time as Grid Engine writes it"),
        ("-l h_rt=0", "longer than zero"),
        ("-j perhaps", "expected y or n"),
        ("-v 1=2", "expected NAME or NAME=VALUE"),
        ("-N", "-N has no value"),
        ("-N a/b:c", "expected a name without blanks and /"),
        ("-pe smp", "-pe has too few values"),
        ("smp", "found 'smp', expected an option"),
        ("-i file", "write < FILE"),
        ("-b y", "a program is written after --"),
        ("-@ file", "a file of options"),
        ("-o 'open", "an unclosed quote"),
        ("-now y", "breaks the chain"),
    ],
)
def test_what_cannot_be_on_a_line_of_qsub_is_refused_by_line(folder: Path, line: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        qsub(folder, "-N a" if "-N" not in line else "-V", line)
    assert refused(error).startswith(f"{folder}/train.sh:3: ") and said in refused(error)


def test_two_values_of_one_resource_are_refused_and_two_resources_are_not(folder: Path) -> None:
    assert qsub(folder, "-l a=1", "-l b=2,a=1").draft.resources.extra == ("-l a=1", "-l b=2")
    with pytest.raises(InvalidInput, match=r"train\.sh:3: -l a=2: line 2 says -l a=1; remove one of the two"):
        qsub(folder, "-l a=1", "-l a=2")
    with pytest.raises(InvalidInput, match=r"train.sh:3: -pe mpi 8: line 2 says -pe smp 4"):
        qsub(folder, "-pe smp 4", "-pe mpi 8")


def test_a_soft_limit_needs_a_longer_hard_one(folder: Path) -> None:
    for line in ("-l s_rt=60", "-l s_rt=60,h_rt=60"):
        with pytest.raises(InvalidInput, match="request a longer h_rt"):
            qsub(folder, line)


def test_what_the_run_does_by_itself_is_noted(folder: Path) -> None:
    found = qsub(folder, "-sync y -r n -terse -ckpt x")
    assert ["-sync y" in found.notes[0], "-ckpt x" in found.notes[1], len(found.notes)] == [True, True, 2]


def test_an_option_of_another_grid_engine_goes_on_with_its_values(folder: Path) -> None:
    assert qsub(folder, "-newopt a b -p -10 -binding set linear:2").draft.resources.extra == (
        "-newopt a b",
        "-p -10",
        "-binding set linear:2",
    )


# ── whose script it is ────────────────────────────────────────────────────────


def test_a_script_for_the_other_scheduler_is_refused_with_a_way_out(folder: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        read(folder, "#!/bin/bash\n\n#$ -N a\ntrue\n")
    assert refused(error) == f"{folder}/train.sh:3: the script is written for Grid Engine, but the cluster auto is Slurm"
    assert "lines too" in error.value.hint
    with pytest.raises(InvalidInput, match="written for Slurm, but the cluster auto is Grid Engine"):
        sbatch(folder, "-n1", scheduler="gridengine")


def test_a_script_with_lines_for_both_is_read_by_the_clusters(folder: Path) -> None:
    text = "#!/bin/bash\n#SBATCH --time=10\n#$ -l h_rt=120\ntrue\n"
    assert read(folder, text).draft.resources.time == 600
    assert read(folder, text, scheduler="gridengine").draft.resources.time == 120
    assert read(folder, text, scheduler="local").draft.resources.time == 600


def test_any_other_cluster_takes_either(folder: Path) -> None:
    assert read(folder, "#!/bin/bash\n#$ -l h_rt=120\ntrue\n", scheduler="local").draft.resources.time == 120
    assert read(folder, "#!/bin/bash\ntrue\n", scheduler="local").draft.resources == Resources()


def test_what_is_a_batch_script(folder: Path) -> None:
    (folder / "plain").write_text("#!/bin/sh\ntrue\n")
    (folder / "job").write_text("#!/bin/sh\n#SBATCH -n1\ntrue\n")
    (folder / "job.py").write_text("#!/usr/bin/env python3\n#$ -N a\n")
    (folder / "train.py").write_text("print('#SBATCH')\n#SBATCH\n")
    (folder / "binary").write_bytes(b"#!\0#SBATCH")
    for word, is_one in {
        "plain": False,
        "job": True,
        "job.py": True,
        "train.py": False,
        "binary": False,
        "no.sh": True,
        "x": False,
    }.items():
        assert is_batch_script(word, folder) is is_one, word
    assert not is_batch_script(".", folder)
    assert not is_batch_script("a\0b", folder)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"#!/bin/bash\n\0", "is not text"),
        (b"#!/bin/bash\ntrue\r\n", "train.sh:2: the line has a DOS line ending"),
        (b"#SBATCH -n1\ntrue\n", "expected #! and the program that runs it"),
        (b"#" * (5 << 20), "larger than 4 MB"),
    ],
)
def test_a_file_that_no_scheduler_would_take_is_refused(folder: Path, data: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(folder, data)


def test_a_script_that_is_not_there_is_missed_by_name(folder: Path) -> None:
    (folder / "train.sh").write_text("#!/bin/sh\n")
    with pytest.raises(InvalidInput) as error:
        read_script(folder / "trian.sh", (), scheduler="slurm", cluster="auto", env={})
    assert "no script" in refused(error) and error.value.hint == "did you mean train.sh?"
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_script(folder, (), scheduler="slurm", cluster="auto", env={})


def test_a_script_in_another_encoding_is_kept_to_the_byte(folder: Path) -> None:
    data = "#!/bin/bash\n# größe\n#SBATCH -n1\ntrue\n".encode("latin-1")
    assert read(folder, data).draft.script_text.encode(errors="surrogateescape") == data


# ── arrays ────────────────────────────────────────────────────────────────────


def draft_of(folder: Path, array: str, name: str = "sweep") -> RunDraft:
    return sbatch(folder, f"-J {name} -a {array}").draft


def test_each_task_is_a_run(folder: Path) -> None:
    drafts = expand_array(draft_of(folder, "1,3-7:2"))
    assert [draft.name for draft in drafts] == ["sweep-1", "sweep-3", "sweep-5", "sweep-7"]
    assert [draft.script.task for draft in drafts if draft.script] == [1, 3, 5, 7]
    long = expand_array(draft_of(folder, "10", name="n" * 64))[0].name
    assert len(long) == 64 and long.endswith("n-10")


def test_seven_tasks_in_qsubs_short_form(folder: Path) -> None:
    assert [draft.name for draft in expand_array(qsub(folder, "-N a -t 3").draft)] == ["a-1", "a-2", "a-3"]


def test_a_script_that_is_no_array_is_one_run(folder: Path) -> None:
    draft = sbatch(folder).draft
    assert expand_array(draft) == [draft]


@given(st.lists(st.integers(0, 900), min_size=1, max_size=30, unique=True))
def test_tasks_are_read_as_they_are_written(numbers: list[int]) -> None:
    assert tasks_of(",".join(map(str, numbers))) == numbers


@given(st.integers(0, 500), st.integers(0, 400), st.integers(1, 50))
def test_a_range_of_tasks_is_what_python_makes_of_it(first: int, length: int, step: int) -> None:
    assert tasks_of(f"{first}-{first + length}:{step}") == list(range(first, first + length + 1, step))


@pytest.mark.parametrize("text", ["", "1-", "-3", "a", "1:2", "1-3:0", "1,,2", f"0-{MOST_TASKS}", "1-9999999"])
def test_what_is_no_tasks_is_refused(text: str) -> None:
    with pytest.raises(MalformedDirective):
        tasks_of(text)


# ── words ─────────────────────────────────────────────────────────────────────


@given(
    st.lists(st.text(string.printable.replace("\n", "").replace("\r", "").replace("\x0b", "").replace("\x0c", ""), min_size=1), max_size=6)
)
def test_what_is_quoted_is_read_back(words: list[str]) -> None:
    assert words_of(" ".join(quoted(word) for word in words)) == words


@given(st.text(st.characters(exclude_characters="\n\r")))
def test_any_line_is_read_or_refused_and_nothing_else(line: str) -> None:
    try:
        words_of(line)
    except MalformedDirective:
        pass


@given(st.randoms(use_true_random=False), st.sampled_from(["#SBATCH", "#$"]))
def test_any_script_is_read_or_refused_and_nothing_else(rng: random.Random, mark: str) -> None:
    pieces = [
        "-t",
        "--time",
        "=",
        "10",
        "-l",
        "a=1,b",
        "--mem",
        '"',
        "'",
        "\\",
        "#",
        "-",
        "--",
        " ",
        "-pe",
        "smp",
        "-J",
        "%",
        "é",
        "--array",
        "1-3",
    ]
    lines = [mark + " " + "".join(rng.choice(pieces) + rng.choice(["", " "]) for _ in range(rng.randrange(8))) for _ in range(4)]
    folder = Path("/tmp")
    path = folder / f"onward-any-{rng.randrange(1 << 60)}.sh"
    path.write_text("\n".join(["#!/bin/sh", *lines]))
    try:
        read_script(path, (), scheduler="slurm" if mark == "#SBATCH" else "gridengine", cluster="auto", env={})
    except InvalidInput as error:
        assert error.message
    finally:
        path.unlink()


# ── flags, profiles and the script ────────────────────────────────────────────


def test_an_option_is_about_a_thing() -> None:
    found = [option_subject(entry) for entry in ("--mem-per-cpu=4G", "--exclusive", "-l gpus=1", '-l "a b=1"', "-pe smp 4", "-V")]
    assert found == ["--mem-per-cpu", "--exclusive", "-l gpus", "-l a b", "-pe", "-V"]


def test_a_flag_replaces_what_the_script_says_about_the_same() -> None:
    asked = Resources(gres="gpu:1,disk:5", extra=("--mem-per-cpu=4G", "--licenses=a", "-P other", "-l gpus=1"))
    assert replaced(asked, ["mem", "account"]).extra == ("--licenses=a", "-l gpus=1")
    assert replaced(asked, ["gpus"]) == Resources(gres="disk:5", extra=("--mem-per-cpu=4G", "--licenses=a", "-P other"))
    assert replaced(Resources(gpus="2"), ["gres"]).gpus is None
    assert replaced(asked, []) == asked


def test_a_profiles_default_does_not_speak_against_the_script() -> None:
    asked = Resources(extra=("-P mine", "--mem-per-cpu=4G"))
    filled = Resources(account="lab", mem=100, partition="gpu", extra=asked.extra)
    assert without_clashes(asked, filled) == Resources(partition="gpu", extra=asked.extra)
    assert without_clashes(Resources(account="me"), Resources(account="me", mem=1)) == Resources(account="me", mem=1)


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (Resources(), ("--licenses=a", "--mem-per-cpu=4G")),
        (Resources(mem=100), ("--licenses=a",)),
        (Resources(extra=("--mem-per-gpu=1G",)), ("--licenses=a", "--mem-per-gpu=1G")),
        (Resources(extra=("--licenses=b",)), ("--mem-per-cpu=4G", "--licenses=b")),
    ],
)
def test_a_profiles_option_stays_unless_something_about_the_same_was_asked(asked: Resources, kept: tuple[str, ...]) -> None:
    filled = replace(asked, extra=("--licenses=a", "--mem-per-cpu=4G", *asked.extra))
    assert without_clashes(asked, filled) == replace(asked, extra=kept)


@pytest.mark.parametrize(
    "entry", ["--dependency=afterok:1", "-hold_jid 5", "--requeue", "-sync y", "--time=5", "-l h_rt=5", "--signal=USR1"]
)
def test_an_option_that_is_ours_cannot_be_handed_through(entry: str) -> None:
    assert option_refusal(entry)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("--arra=1-3", "submit each task as a run"),
        ("--hol", "every leg would be held"),
        ("--requ", "Onward itself queues the legs"),
        ("--outp=F", "the run's logs"),
        ("--depend=afterok:1", "Onward itself queues the legs"),
        ("--licenses=a --arra=1-3", "submit each task as a run"),  # a second one on the same line
        ("--mem=300M", "expected resources.mem"),
        ("--nodes=2", "expected resources.nodes"),
        ("--tasks-per=2", "expected resources.ntasks-per-node"),
        ("--comment=a note", "quote a value with blanks"),
        ("--gpus-p=1", "is an ambiguous short form of"),
        ('--comment="a', "an unclosed quote"),
    ],
)
def test_an_abbreviated_option_is_what_sbatch_takes_it_for(entry: str, said: str) -> None:
    assert said in option_refusal(entry)


@pytest.mark.parametrize(
    ("scheduler", "entry", "said"),
    [
        ("slurm", "-t 3:00", "expected resources.time"),
        ("slurm", "-N 4", "expected resources.nodes"),
        ("slurm", "-a1-3", "submit each task as a run"),
        ("slurm", "-H", "would be held"),
        ("slurm", "-o x", "the run's logs"),
        ("slurm", "-l gpus=1", "is not an option of sbatch"),
        ("gridengine", "-t 1-3", "submit each task as a run"),
        ("gridengine", "-N a", "the run's name"),
        ("gridengine", "-o x", "the run's logs"),
        ("gridengine", "-e x", "the run's logs"),
        ("gridengine", "-l gpus=1,h_rt=5", "expected resources.time"),
        ("gridengine", "-h", "would be held"),
    ],
)
def test_a_letter_means_what_the_clusters_own_scheduler_makes_of_it(scheduler: str, entry: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)) as error:
        check_extra(Resources(extra=(entry,)), scheduler)
    assert error.value.hint


@pytest.mark.parametrize(
    ("scheduler", "asked"),
    [
        ("slurm", Resources(nodes=1, extra=("-N 2-4",))),
        ("slurm", Resources(mem=100, extra=("--mem-per-c=1G",))),
        ("gridengine", Resources(partition="a.q", extra=("-q b.q",))),
        ("gridengine", Resources(mem=100, extra=("-l gpus=1,h_vmem=1G",))),
    ],
)
def test_an_option_that_speaks_against_our_own_words_is_refused(scheduler: str, asked: Resources) -> None:
    with pytest.raises(InvalidInput, match="sets the same"):
        check_extra(asked, scheduler)
    check_extra(Resources(extra=asked.extra), scheduler)


@pytest.mark.parametrize("entry", ["--licenses=a", "-l gpus=1", "-pe smp 4", "--exclusive", "-ac x=y"])
def test_any_other_can(entry: str) -> None:
    assert option_refusal(entry) == ""


def test_options_are_written_as_their_scheduler_writes_them() -> None:
    written = [
        str(ScriptOption(name=name, value=value, line=1))
        for name, value in (("--a", None), ("--a", "b c"), ("-l", "x=1"), ("-pe smp", "4"))
    ]
    assert written == ["--a", '--a="b c"', "-l x=1", "-pe smp 4"]


# ── on their way to the scheduler ─────────────────────────────────────────────


def test_what_was_passed_on_stands_on_the_jobs_own_lines(tmp_path: Path) -> None:
    asked = Resources(extra=("--licenses=a", "--mem-per-cpu=1G", '--comment="a b"'))
    lines = SlurmScheduler().directives(asked, output=tmp_path / "log")
    assert lines[-3:] == ["#SBATCH --licenses=a", "#SBATCH --mem-per-cpu=1G", '#SBATCH --comment="a b"']


def test_memory_that_grew_stands_instead_of_memory_by_the_cpu(tmp_path: Path) -> None:
    lines = SlurmScheduler().directives(Resources(mem=2048, extra=("--mem-per-cpu=1G", "--licenses=a")), output=tmp_path / "log")
    assert "#SBATCH --mem=2G" in lines and "#SBATCH --licenses=a" in lines
    assert not [line for line in lines if "mem-per-cpu" in line]


def params(extra: str) -> RunDraft:
    return parse_params(f"name: a\ntrain:\n  command: x\n  resources: {{extra: {extra}}}\n", "params.yaml")


def test_a_params_file_may_hold_options_in_the_schedulers_words() -> None:
    assert params("""[--licenses=matlab, '--comment="a b"', -l gpu_c=3.5, --exclusive]""").resources.extra == (
        "--licenses=matlab",
        '--comment="a b"',
        "-l gpu_c=3.5",
        "--exclusive",
    )


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("[licenses]", "expected an option as on a directive line"),
        ('["--a\\nb"]', "expected an option as on a directive line"),
        ("[--dependency=afterok:1]", "Onward itself queues the legs of a run"),
        ("[--arra=1-3]", "submit each task as a run"),
        ("[-hold_jid 7]", "Onward itself queues the legs of a run"),
        ("[--time=5]", "expected resources.time"),
        ("[5]", "expected an option"),
        ("--licenses=a", "expected a list"),
    ],
)
def test_an_option_in_a_params_file_that_cannot_be_is_refused_by_line(extra: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        params(extra)
    assert refused(error).startswith("params.yaml:4: train.resources.extra") and said in refused(error)


def test_a_run_of_a_script_is_read_back_as_it_was_written(folder: Path) -> None:
    draft = expand_array(sbatch(folder, "-a 1-3 --signal=USR1@9 -L x").draft)[1]
    spec = make_spec(script=draft.script, outputs=draft.outputs, resources=draft.resources, stop_signal="USR1", stop_lead=9)
    assert spec_from_json(json.loads(json.dumps(spec_to_json(spec)))) == spec
