"""Trainings of several processes and nodes on real Slurm and Grid Engine: real torchrun, srun and mpirun, cut in every way."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beds.slurm import SlurmBed
from tests.cluster.conftest import REPO, Person, RunOnBed

pytestmark = [pytest.mark.cluster]

EXAMPLE = REPO / "examples" / "torchrun" / "train.py"
TWO_BY_TWO = ("--nodes", "2", "--ntasks-per-node", "2", "--mem", "1500M")

Unbroken = Callable[[int, int], Path]


@pytest.fixture(scope="session")
def unbroken_ranks(tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    """The final weights of the example, trained by so many processes of one torchrun for so many steps, with nothing in between."""
    made: dict[tuple[int, int], Path] = {}

    def weights(processes: int, steps: int) -> Path:
        if (processes, steps) not in made:
            folder = tmp_path_factory.mktemp("unbroken")
            env = {name: value for name, value in os.environ.items() if not name.startswith("ONWARD_")}
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), str(EXAMPLE)]
            subprocess.run(
                [*command, "--steps", str(steps), "--out", str(folder / "w.pt")],
                env={**env, "ONWARD_RUN_DIR": str(folder / "run"), "OMP_NUM_THREADS": "1"},
                check=True,
                capture_output=True,
                timeout=300,
            )
            made[processes, steps] = folder / "w.pt"
        return made[processes, steps]

    return weights


@pytest.fixture
def nodes_whole(bed: SlurmBed) -> Iterator[Callable[[str], None]]:
    """Crashes nodes of Slurm's, and heals them whatever comes."""
    crashed: list[str] = []

    def crash(node: str) -> None:
        crashed.append(node)
        bed.crash(node)

    yield crash
    for node in crashed:
        bed.heal(node)


def train(person: Person, *flags: str, steps: int, pause: float = 0.1, more: tuple[str, ...] = ()) -> tuple[RunOnBed, Path]:
    shutil.copy(EXAMPLE, person.home / "train.py")
    out = person.home / "weights.pt"
    command = ["python3", "train.py", "--steps", str(steps), "--pause", str(pause), "--out", str(out), *more]
    return person.submit(*flags, "--", *command), out


def assert_equal(ours: Path, theirs: Path) -> None:
    import torch

    first, second = (torch.load(path, weights_only=True) for path in (ours, theirs))
    assert sorted(first) == sorted(second)
    for name in second:
        assert torch.equal(first[name], second[name]), f"{name} differs from the unbroken training"


def until_logged(run: RunOnBed, leg: int, within: float) -> None:
    """Until rank 0 of this leg has logged a step: then all ranks are in their loop."""
    give_up = time.monotonic() + within
    while not any('"m":' in path.read_text() for path in (run.folder / "spool").glob(f"leg-{leg:04d}.train-*")):
        assert time.monotonic() < give_up, f"leg {leg} did not log a step:\n{run.log()}"
        time.sleep(0.3)


def until_published(run: RunOnBed, leg: int, *, within: float = 180) -> None:
    give_up = time.monotonic() + within
    while not any(event["kind"] == "published" and event["leg"] == leg for event in run.events()):
        assert time.monotonic() < give_up, f"leg {leg} published nothing:\n{run.log()}"
        assert not (run.folder / "params" / "done.json").exists(), f"the run ended:\n{run.log()}"
        time.sleep(0.5)


def stopped_at(run: RunOnBed, leg: int) -> dict[int, int]:
    """The step at which each rank of a leg says that it stopped."""
    printed = run.folder / "logs" / f"leg-{leg:04d}.out"
    text = printed.read_text() if printed.exists() else ""
    return {int(rank): int(step) for rank, step in re.findall(r"rank (\d+) stopped at step (\d+)", text)}


def ends(run: RunOnBed) -> dict[int, str]:
    return {event["leg"]: event["end"] for event in run.events() if event["kind"] in ("ended", "found")}


def assert_stopped_together(run: RunOnBed, *, ranks: int) -> int:
    """In every leg that ended by being asked, all ranks stopped at one step, and that step was saved. Returns how many legs did."""
    graceful = 0
    saved = {(event["leg"], event["step"]) for event in run.events() if event["kind"] == "published"}
    for event in run.events():
        leg, end = event["leg"], event.get("end")
        if event["kind"] != "ended" or end not in ("time_limit", "again") or "did not stop by itself" in event["reason"]:
            continue
        at = stopped_at(run, leg)
        assert sorted(at) == list(range(ranks)), f"leg {leg}: {at}\n{run.log()}"
        assert len(set(at.values())) == 1, f"leg {leg}: ranks stopped at different steps: {at}"
        assert (leg, at[0]) in saved, f"leg {leg}: step {at[0]} was not published"
        graceful += 1
    return graceful


def processes_naming(text: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in words and int(process.name) != os.getpid():
            found.append(f"{process.name}: {words}")
    return found


def assert_nothing_runs(run: RunOnBed) -> None:
    give_up = time.monotonic() + 30
    while processes_naming(str(run.folder)) and time.monotonic() < give_up:
        time.sleep(0.5)
    assert processes_naming(str(run.folder)) == []


@pytest.mark.takes("nodes", "v100", "pair")
def test_torchrun_on_two_nodes_cut_by_limit_node_and_preemption_ends_as_if_unbroken(
    alice: Person, nodes_whole: Callable[[str], None], unbroken_ranks: Unbroken
) -> None:
    steps = 1300
    run, out = train(alice, "--launcher", "torchrun", *TWO_BY_TWO, "--time", "1:00", "-p", "spot", "-x", "c1,c2", steps=steps)
    until_published(run, 1)
    nodes = run.show()["legs"][0]["nodes"]
    alice.run("sbatch", "-p", "gpu", "-w", nodes[1], "--exclusive", "-t", "1", "-o", "/dev/null", "--wrap", "sleep 5")
    until_published(run, 2)
    lost = run.show()["legs"][1]["nodes"][1]
    nodes_whole(lost)
    shown = run.until_over(within=480)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert_equal(out, unbroken_ranks(4, steps))
    assert assert_stopped_together(run, ranks=4) >= 1
    assert {"preempted", "node_lost", "time_limit", "done"} <= set(ends(run).values()), ends(run)
    assert_nothing_runs(run)


@pytest.mark.takes("pair")
def test_a_checkpoint_that_all_ranks_write_is_gathered_from_both_nodes(alice: Person, unbroken_ranks: Unbroken) -> None:
    steps = 600
    run, out = train(alice, "--launcher", "torchrun", *TWO_BY_TWO, "--time", "1:00", steps=steps, more=("--save-from", "all"))
    until_published(run, 1)
    alice.onward("stop", run.id)
    shown = run.until_over(within=120)
    assert shown["state"] == "cancelled", (shown["reason"], run.log())
    step = stopped_at(run, 1)[0]
    files = sorted(path.name for path in (run.folder / "results" / "checkpoints" / f"leg-0001.step-{step:08d}").iterdir())
    assert files == ["manifest.json", "network.pt", *(f"optimizer-{rank}.pt" for rank in range(4))]
    alice.onward("resume", run.id)
    shown = run.until_over(within=400)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert_equal(out, unbroken_ranks(4, steps))
    assert assert_stopped_together(run, ranks=4) >= 2, "once on request, once before the limit"
    assert_nothing_runs(run)


@pytest.mark.takes("pair")
def test_srun_starts_the_ranks_and_they_stop_together(alice: Person, unbroken_ranks: Unbroken) -> None:
    steps = 600
    run, out = train(alice, "--launcher", "srun", *TWO_BY_TWO, "--time", "1:00", steps=steps)
    shown = run.until_over(within=400)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert_equal(out, unbroken_ranks(4, steps))
    assert assert_stopped_together(run, ranks=4) >= 1
    assert_nothing_runs(run)


@pytest.mark.takes("pair")
def test_mpirun_starts_the_ranks_and_they_stop_together(alice: Person, unbroken_ranks: Unbroken) -> None:
    steps = 600
    run, out = train(alice, "--launcher", "mpirun", *TWO_BY_TWO, "--time", "1:00", steps=steps)
    shown = run.until_over(within=400)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert_equal(out, unbroken_ranks(4, steps))
    assert assert_stopped_together(run, ranks=4) >= 1
    assert_nothing_runs(run)


FAILS = """
import time
import onward
run = onward.init()
if run.rank == 3:
    time.sleep(2)
    raise ValueError("rank 3 has no such data set")
time.sleep(600)
"""


@pytest.mark.takes("pair")
@pytest.mark.parametrize("launcher", ["torchrun", "srun", "mpirun"])
def test_a_rank_that_fails_ends_the_others_and_is_named(alice: Person, launcher: str) -> None:
    alice.write("fails.py", FAILS)
    run = alice.submit("--launcher", launcher, *TWO_BY_TWO, "--time", "10:00", "--max-restarts", "0", "--", "python3", "fails.py")
    shown = run.until_over(within=180)
    assert shown["state"] == "failed", (shown["reason"], run.log())
    words = alice.onward("show", run.id).stdout
    assert "rank 3 of 4 on " in words and "ValueError: rank 3 has no such data set" in words, words
    assert_nothing_runs(run)


HEAVY = """
import time
import onward
run = onward.init()
ballast = bytearray(b"x") * (96 << 20)
until = time.monotonic() + 26
while time.monotonic() < until:
    sum(range(100_000))
    time.sleep(0.05)
run.finish()
"""


@pytest.mark.takes("pair")
def test_both_nodes_are_sampled_with_what_runs_on_each(alice: Person) -> None:
    alice.write("heavy.py", HEAVY)
    flags = ("--launcher", "srun", "--nodes", "2", "--ntasks-per-node", "1", "--mem", "400M", "--time", "5:00")
    run = alice.submit(*flags, "--", "python3", "heavy.py")
    shown = run.until_over(within=180)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    peaks: dict[str, float] = {}
    for path in (run.folder / "spool").glob("leg-0001.system*.jsonl"):
        for key, value in ((k, v) for line in path.read_text().splitlines() for k, v in json.loads(line)["m"].items()):
            peaks[key] = max(peaks.get(key, 0.0), value)
    for node in shown["legs"][0]["nodes"]:
        figures = {name: peaks.get(f"system/node/{node}/{name}", 0.0) for name in ("rss_mib", "cpu_percent", "host_mem_total_mib")}
        assert figures["rss_mib"] >= 96 and figures["cpu_percent"] > 0 and figures["host_mem_total_mib"] > 0, (node, peaks, run.log())
    assert len(shown["legs"][0]["nodes"]) == 2 and all(key.startswith("system/node/") for key in peaks)
    assert_nothing_runs(run)


@pytest.mark.takes("pair")
def test_a_cancelled_training_of_two_nodes_leaves_nothing_running(alice: Person) -> None:
    run, _ = train(alice, "--launcher", "torchrun", *TWO_BY_TWO, "--time", "10:00", steps=100_000)
    until_logged(run, 1, 120)
    alice.onward("cancel", run.id)
    shown = run.until_over(within=120)
    assert shown["state"] == "cancelled"
    assert_nothing_runs(run)


@pytest.mark.takes("pair")
def test_a_killed_rank_is_followed_by_a_leg_that_goes_on(alice: Person, unbroken_ranks: Unbroken) -> None:
    steps = 300
    run, out = train(alice, "--launcher", "torchrun", *TWO_BY_TWO, "--time", "10:00", steps=steps)
    until_published(run, 1)
    victim = [line for line in processes_naming("train.py --steps") if str(out) in line and "torch.distributed" not in line][-1]
    os.kill(int(victim.split(":")[0]), signal.SIGKILL)
    shown = run.until_over(within=240)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert_equal(out, unbroken_ranks(4, steps))
    assert ends(run)[1] == "crashed", (run.log(), shown["legs"])


def test_a_script_with_horovods_flags_goes_on_from_its_own_checkpoints(alice: Person) -> None:
    """No line of it knows of Onward: it is ended at the limit, and finds the newest of its files where the flag says."""
    for name in ("train.py", "params.yaml"):
        shutil.copy(REPO / "examples" / "horovod_flags" / name, alice.home / name)
    out = alice.home / "weights.json"
    text = (alice.home / "params.yaml").read_text().replace("--base-lr {params.base-lr}", f"--base-lr {{params.base-lr}} --out {out}")
    alice.write("params.yaml", text.replace("epochs: 90", "epochs: 70"))
    run = alice.submit("params.yaml")
    shown = run.until_over(within=300)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert set(ends(run).values()) == {"time_limit", "done"}
    assert "rank 1 goes on from checkpoint-epoch-" in (run.folder / "logs" / "leg-0002.out").read_text()
    unbroken = alice.home / "unbroken.json"
    folder = alice.home / "by-hand" / "checkpoints"
    flags = ["--read-checkpoints-from", str(folder), "--write-checkpoints-to", str(folder), "--epochs", "70", "--seconds-an-epoch", "0"]
    alice.run("mkdir", "-p", str(folder))
    alice.run("mpirun", "-np", "2", "--oversubscribe", "python3", "train.py", *flags, "--base-lr", "0.5", "--out", str(unbroken))
    assert json.loads(out.read_text()) == json.loads(unbroken.read_text())


# ── Grid Engine ───────────────────────────────────────────────────────────────

SPREAD = 'cluster = "gridengine"\n[clusters.gridengine]\nnames = { nodes = "mpi{slots}" }\n'


@pytest.mark.takes("hosts")
def test_mpirun_on_two_hosts_of_grid_engine_outlives_the_limit(ge_alice: Person, unbroken_ranks: Unbroken) -> None:
    steps = 600
    ge_alice.write("settings.toml", SPREAD)
    flags = ("--launcher", "mpirun", "--nodes", "2", "--ntasks-per-node", "2", "--time", "1:00")
    run, out = train(ge_alice, *flags, steps=steps)
    shown = run.until_over(within=400)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert len(shown["legs"][0]["nodes"]) == 2
    assert_equal(out, unbroken_ranks(4, steps))
    assert assert_stopped_together(run, ranks=4) >= 1
    assert_nothing_runs(run)


@pytest.mark.takes("hosts")
def test_a_killed_supervisor_leaves_no_rank_on_any_host_of_grid_engine(ge_alice: Person) -> None:
    """Grid Engine ends what it knows of: the launcher's daemons on other hosts, and not what they started."""
    ge_alice.write("settings.toml", SPREAD)
    run, out = train(ge_alice, "--launcher", "mpirun", "--nodes", "2", "--ntasks-per-node", "2", "--time", "10:00", steps=100_000)
    until_published(run, 1)
    ranks = [line for line in processes_naming("train.py --steps") if str(out) in line]
    assert len(ranks) >= 4
    supervisor = next(line for line in processes_naming("supervisor.pyz leg") if str(run.folder) in line)
    os.kill(int(supervisor.split(":")[0]), signal.SIGKILL)
    until_logged(run, 2, 240)
    living = {line.split(":")[0] for line in processes_naming("train.py --steps")}
    assert not [line for line in ranks if line.split(":")[0] in living], f"ranks of leg 1 run beside leg 2:\n{run.log()}"
    ge_alice.onward("cancel", run.id)
    run.until_over(within=120)
    assert_nothing_runs(run)


@pytest.mark.takes("hosts")
def test_a_deleted_job_of_several_hosts_saves_before_it_goes(ge_alice: Person) -> None:
    """The notice reaches every process of the job, and mpirun has given its ranks back the signal that we made it deaf to."""
    ge_alice.write("settings.toml", SPREAD)
    run, _ = train(ge_alice, "--launcher", "mpirun", "--nodes", "2", "--ntasks-per-node", "2", "--time", "10:00", steps=100_000)
    until_published(run, 1)
    ge_alice.run("qdel", next(event["job"] for event in run.events() if event["kind"] == "claimed"))
    shown = run.until_over(within=120)
    assert shown["state"] == "cancelled", (shown["reason"], run.log())
    assert "saved and stopped" in shown["legs"][0]["reason"], run.log()
    assert shown["checkpoints"][-1]["step"] == shown["progress"]["step"], run.log()
    assert_nothing_runs(run)


@pytest.mark.takes("hosts")
def test_torchrun_on_one_host_of_grid_engine_outlives_the_limit(ge_alice: Person, unbroken_ranks: Unbroken) -> None:
    steps = 600
    run, out = train(ge_alice, "--launcher", "torchrun", "--ntasks", "2", "--time", "1:00", steps=steps)
    shown = run.until_over(within=400)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert_equal(out, unbroken_ranks(2, steps))
    assert assert_stopped_together(run, ranks=2) >= 1
    assert_nothing_runs(run)


@pytest.mark.takes("hosts")
def test_ranks_whose_address_space_is_too_small_get_more_of_it(ge_alice: Person) -> None:
    """h_vmem limits what a process reserves: libraries cannot be mapped, threads cannot start, and nothing is ever killed."""
    run, out = train(ge_alice, "--launcher", "torchrun", "--ntasks", "2", "--time", "5:00", "--mem", "300M", "--mem-max", "8G", steps=30)
    shown = run.until_over(within=300)
    assert shown["state"] == "finished", (shown["reason"], run.log())
    assert shown["legs"][0]["end"] == "out_of_memory" and out.exists(), (shown["legs"], run.log())
    assert "Traceback" not in run.log(), run.log()


def test_torchrun_over_hosts_of_grid_engine_is_refused_at_submit(ge_alice: Person) -> None:
    ge_alice.write("settings.toml", SPREAD)
    flags = ("--launcher", "torchrun", "--nodes", "2", "--ntasks-per-node", "2", "--time", "1:00")
    output = ge_alice.onward("submit", *flags, "--", "python3", "train.py", check=False)
    assert output.returncode == 2 and "torchrun over 2 nodes" in output.stderr, output.stderr
