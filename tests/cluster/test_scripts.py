"""Batch scripts as people have them, through the third door, on real schedulers: they outlive their limit and end as if unbroken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from beds.software import SoftwareBed
from tests.cluster.conftest import REPO, Person, RunOnBed
from tests.cluster.test_ssh import Traveller, alice_from_afar
from tests.cluster.whole import assert_whole

__all__ = ["alice_from_afar"]

pytestmark = pytest.mark.cluster

SBATCH = REPO / "examples" / "sbatch_script"
QSUB = REPO / "examples" / "qsub_chain"


def copied(person: Person, example: Path, script: str, **puts: str) -> None:
    """The example's files in this test's folder, with what this cluster has put into the script."""
    for path in example.iterdir():
        if path.suffix != ".md":
            text = path.read_text()
            for old, new in puts.items() if path.name == script else ():
                text = text.replace({"venv": "/path/to/venv", "project": "tianlabdl", "memory": "--mem=32G"}[old], new)
            person.write(path.name, text)
    person.run("python3", "-m", "venv", "--without-pip", ".venv")


def unbroken_result(example: Path, scratch: Path, *arguments: str, result: str) -> bytes:
    shutil.copy(example / "train.py", scratch)
    env = {**os.environ, "EPOCH_SECONDS": "0"}
    subprocess.run([sys.executable, "train.py", *arguments], cwd=scratch, env=env, check=True, capture_output=True)
    return (scratch / result).read_bytes()


def until_done(run: RunOnBed, *, within: float = 400) -> dict[str, object]:
    done = run.folder / "params" / "done.json"
    wait_for(done.exists, within=within, what=lambda: f"the end of the run\n{run.log()}")
    closed: dict[str, object] = json.loads(done.read_text())
    return closed


def wait_for(holds: Callable[[], object], *, within: float, what: Callable[[], str]) -> None:
    give_up = time.monotonic() + within
    while not holds():
        if time.monotonic() > give_up:
            pytest.fail(f"within {within} s there was not {what()}")
        time.sleep(0.5)


def ends(run: RunOnBed) -> list[tuple[int, str]]:
    return [(event["leg"], event["end"]) for event in run.events() if event["kind"] in ("ended", "found")]


def jobs(run: RunOnBed) -> list[str]:
    return [event["job"] for event in run.events() if event["kind"] == "claimed"]


# ── Slurm ─────────────────────────────────────────────────────────────────────


@pytest.mark.takes("nodes")
def test_a_script_for_sbatch_outlives_its_limit_and_ends_as_if_unbroken(alice: Person, software: SoftwareBed, tmp_path: Path) -> None:
    alice.environment.update(software.environment())
    alice.environment.update(EXPERIMENT_ID="exp-001", EPOCH_SECONDS="1.3")
    copied(alice, SBATCH, "train_model.sh", venv=str(alice.home / ".venv"), memory="--mem=300M")
    run = alice.submit("--time", "1:00", "train_model.sh")
    wait_for(lambda: jobs(run), within=120, what=lambda: f"a first leg\n{run.log()}")
    growing = alice.home / "logs" / f"{jobs(run)[0]}.out"
    wait_for(lambda: growing.exists() and "epoch 3:" in growing.read_text(), within=120, what=lambda: f"lines in {growing}\n{run.log()}")

    assert until_done(run)["state"] == "finished", run.log()
    answer = ends(run)
    assert len(answer) >= 3 and "time_limit" in [end for _, end in answer] and answer[-1][1] == "done", run.log()
    result = "experiments/exp-001/checkpoints/last.json"
    arguments = ("--experiment-id", "exp-001", "--learning-rate", "0.001", "--batch-size", "32", "--epochs", "100")
    assert (alice.home / result).read_bytes() == unbroken_result(SBATCH, tmp_path, *arguments, result=result)
    for number, job in enumerate(jobs(run), start=1):
        printed = (alice.home / "logs" / f"{job}.out").read_text()
        assert printed == (run.folder / "logs" / f"leg-{number:04d}.out").read_text()
        assert (alice.home / "logs" / f"{job}.err").read_text() == ""
    assert "training is complete" in printed
    assert run.jobs_left() == []


SAYS = """\
#!/bin/bash
#SBATCH -J says --mem=100M -t 5 --array=2,4
#SBATCH -o out/%x-%A_%a.txt
cd $SLURM_SUBMIT_DIR
echo task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, job $SLURM_JOB_NAME, arguments: "$@"
srun bash -c 'echo step of $SLURM_JOB_ID'
(sleep 600) &
echo mistaken >&2
exit $1
"""


def test_each_task_of_an_array_is_a_run_and_its_exit_code_is_not_dropped(alice: Person) -> None:
    alice.write("says.sh", SAYS)
    body = json.loads(alice.onward("submit", "--json", "--max-restarts", "0", "says.sh", "3", "two words").stdout)["runs"]
    assert [one["name"] for one in body] == ["says-2", "says-4"]
    for one, task in zip(body, (2, 4), strict=True):
        run = RunOnBed(person=alice, id=one["id"], folder=Path(one["folder"]))
        closed = until_done(run)
        assert closed["state"] == "failed" and "exit code 3" in json.dumps(run.events()), run.log()
        [job] = jobs(run)
        lines = (alice.home / "out" / f"says-{job}_{task}.txt").read_text().splitlines()
        assert lines == [f"task {task} of 2, job says, arguments: 3 two words", f"step of {job}", "mistaken"]


SIGNALLED = """\
#!/bin/bash
#SBATCH --mem=100M --time=1 --signal={to}USR1@40 --output=one.log
trap 'echo told; kill $!; exit 0' USR1
[ -e seen ] && {{ echo again; exit 0; }}
touch seen
{work}
"""
TOLD = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(print("told")))
time.sleep(300)
"""
WORK = {
    "B:": "sleep 300 & wait",
    "": "srun --overlap python3 told.py",
}


@pytest.mark.parametrize("to", ["B:", ""], ids=["to the shell", "to the steps"])
def test_a_signal_that_the_script_set_comes_before_the_limit_and_the_next_leg_goes_on(alice: Person, to: str) -> None:
    alice.write("told.py", TOLD)
    alice.write("signalled.sh", SIGNALLED.format(to=to, work=WORK[to]))
    run = alice.submit("signalled.sh")
    assert until_done(run)["state"] == "finished", run.log()
    assert ends(run) == [(1, "time_limit"), (2, "done")], run.log()
    assert (alice.home / "one.log").read_text().splitlines() == ["told", "again"]


BUSY = """\
#!/bin/bash
#SBATCH --mem=200M --time=5 --ntasks=2 --oversubscribe
#SBATCH --output=busy.txt
module load onward-test/2.0
module list 2>&1 | grep -c onward-test/2.0
source .venv/bin/activate
python -c 'import sys; print(sys.prefix)'
mpirun --oversubscribe -np 2 bash -c 'echo rank $OMPI_COMM_WORLD_RANK' | sort
srun --ntasks=2 bash -c 'echo task $SLURM_PROCID' | sort
(sleep 1; echo from behind) &
wait
echo mine $MINE
"""


def test_modules_a_venv_mpirun_srun_and_background_processes_work_as_under_sbatch(alice: Person, software: SoftwareBed) -> None:
    alice.environment.update(software.environment(), MINE="kept")
    alice.write("busy.sh", BUSY)
    alice.run("python3", "-m", "venv", "--without-pip", ".venv")
    run = alice.submit("busy.sh")
    assert until_done(run)["state"] == "finished", run.log()
    said = [
        line for line in (alice.home / "busy.txt").read_text().splitlines() if not line.startswith("srun: ")
    ]  # mpirun's step is just going
    assert said == ["1", str(alice.home / ".venv"), "rank 0", "rank 1", "task 0", "task 1", "from behind", "mine kept"]


BARE = """\
#!/bin/bash
#SBATCH --mem=100M -t 5 --export=GIVEN=1 -o bare.txt --comment='a "note"'
echo mine $MINE given $GIVEN, job $SLURM_JOB_ID
"""


def test_a_script_that_wants_no_environment_gets_none_and_strange_options_reach_slurm(alice: Person) -> None:
    alice.environment.update(MINE="kept")
    alice.write("bare.sh", BARE)
    run = alice.submit("bare.sh")
    assert until_done(run)["state"] == "finished", run.log()
    [job] = jobs(run)
    assert (alice.home / "bare.txt").read_text() == f"mine given 1, job {job}\n"
    assert 'Comment=a "note"' in alice.run("scontrol", "show", "job", job).stdout


KNOWING = """\
#!/bin/bash
#SBATCH --mem=400M --time=1 --output=knowing.txt
exec python3 train.py --epochs 26 --pause 0.1 --out weights.npz
"""


def test_a_script_whose_training_knows_of_onward_is_asked_to_stop_and_resumed(alice: Person, unbroken: Callable[[int], Path]) -> None:
    alice.write("knowing.sh", KNOWING)
    run = alice.submit("knowing.sh")
    until_done(run)
    assert_whole(run, out=alice.home / "weights.npz", unbroken=unbroken(26))
    assert (1, "time_limit") in ends(run)
    [first] = [event for event in run.events() if event["kind"] == "ended" and event["leg"] == 1]
    assert first["reason"] == "stopped before the time limit"  # by itself, with its checkpoint saved


FAR = "#!/bin/bash\n#SBATCH -t 5 -o says-%j.txt\ncd $SLURM_SUBMIT_DIR\ncat data.txt\npwd -P\n"


def test_a_script_goes_through_ssh_with_the_folder_it_stands_in(alice_from_afar: Traveller) -> None:
    alice_from_afar.write("data.txt", "carried\n")
    alice_from_afar.write("far.sh", FAR)
    id, folder = alice_from_afar.submitted("far.sh")
    run = RunOnBed(person=alice_from_afar, id=id, folder=folder)
    assert until_done(run)["state"] == "finished", run.log()
    [job] = jobs(run)
    code = (folder / "code").resolve()
    assert (code / f"says-{job}.txt").read_text() == f"carried\n{code}\n"
    assert (folder / "logs" / "leg-0001.out").read_text() == f"carried\n{code}\n"


# ── Grid Engine ───────────────────────────────────────────────────────────────


@pytest.mark.takes("hosts")
def test_a_script_for_qsub_outlives_its_limit_and_ends_as_if_unbroken(ge_alice: Person, software: SoftwareBed, tmp_path: Path) -> None:
    copied(ge_alice, QSUB, "job.qsub", project="ml")
    run = ge_alice.submit("--time", "1:00", "--max-legs", "9", "--env", "EPOCH_SECONDS=2.2", "job.qsub")
    assert until_done(run)["state"] == "finished", run.log()
    answer = ends(run)
    assert len(answer) >= 3 and "time_limit" in [end for _, end in answer] and answer[-1][1] == "done", run.log()
    result = "checkpoints/checkpoint.json"
    assert (ge_alice.home / result).read_bytes() == unbroken_result(QSUB, tmp_path, result=result)
    for number, job in enumerate(jobs(run), start=1):
        assert (ge_alice.home / f"job.qsub.o{job}").read_text() == (run.folder / "logs" / f"leg-{number:04d}.out").read_text()
    assert "Resuming from epoch" in (ge_alice.home / f"job.qsub.o{jobs(run)[1]}").read_text()
    assert run.jobs_left() == []


QSAYS = """\
#!/bin/bash
#$ -N says -cwd -j y -o logs/ -v WORD=two,HERS
#$ -t 2-3
echo task $SGE_TASK_ID of $SGE_TASK_LAST, job $JOB_NAME $JOB_ID, word $WORD, hers $HERS, other $OTHER
"""


def test_tasks_variables_and_a_folder_for_outputs_on_grid_engine(ge_alice: Person) -> None:
    ge_alice.environment.update(HERS="mine", OTHER="not passed on")
    ge_alice.write("says.qsub", QSAYS)
    body = json.loads(ge_alice.onward("submit", "--json", "says.qsub").stdout)["runs"]
    for one, task in zip(body, (2, 3), strict=True):
        run = RunOnBed(person=ge_alice, id=one["id"], folder=Path(one["folder"]))
        assert until_done(run)["state"] == "finished", run.log()
        [job] = jobs(run)
        written = (ge_alice.home / "logs" / f"says.o{job}.{task}").read_text()
        assert written == f"task {task} of 3, job says {job}, word two, hers mine, other\n"
