from __future__ import annotations

import pytest

from onward.errors import InvalidInput
from onward.model.spec import Resources
from onward.supervisor.ranks.launchers import HostRanks, check_launcher, launch, ranks_by_host

TASK = ("/usr/bin/python3", "/run/params/supervisor.pyz", "task", "/run", "3")
COMMAND = ("python3", "train.py")
TWO = (HostRanks(host="g1", tasks=2), HostRanks(host="g2", tasks=2))
ONE = (HostRanks(host="g1", tasks=4),)


def argv(launcher: str, laid: tuple[HostRanks, ...], resources: Resources | None = None, command: tuple[str, ...] = COMMAND) -> str:
    made = launch(launcher, laid, task=TASK, command=command, resources=resources or Resources(), port=29500)
    return " ".join(made.argv)


# ── how many processes each host gets ─────────────────────────────────────────


@pytest.mark.parametrize(
    ("launcher", "resources", "slurm", "expected"),
    [
        ("srun", Resources(nodes=2, ntasks_per_node=3), "", [3, 3]),
        ("srun", Resources(nodes=2, ntasks=5), "", [3, 2]),
        ("srun", Resources(nodes=2, ntasks=5), "4,1", [4, 1]),
        ("srun", Resources(nodes=2, ntasks=4), "2(x2)", [2, 2]),
        ("srun", Resources(nodes=2, ntasks=4), "1(x2)", [2, 2]),
        ("srun", Resources(nodes=2), "", [1, 1]),
        ("torchrun", Resources(nodes=2, gres="gpu:a100:4"), "1(x2)", [4, 4]),
        ("torchrun", Resources(nodes=2, gpus="8"), "", [4, 4]),
        ("torchrun", Resources(nodes=2, gpus="8", ntasks_per_node=2), "", [2, 2]),
        ("mpirun", Resources(nodes=2, gres="gpu:4"), "", [1, 1]),
    ],
)
def test_each_host_gets_the_processes_that_were_asked_for(launcher: str, resources: Resources, slurm: str, expected: list[int]) -> None:
    laid = ranks_by_host(launcher, resources, ("g1", "g2"), {"SLURM_TASKS_PER_NODE": slurm} if slurm else {})
    assert [rank_place.tasks for rank_place in laid] == expected
    assert [rank_place.host for rank_place in laid] == ["g1", "g2"]


def test_grid_engine_says_in_its_hostfile_how_many_slots_each_host_has() -> None:
    hostfile = "node1.cluster 4 all.q@node1 UNDEFINED\nnode2.cluster 2 all.q@node2 UNDEFINED\n"
    hosts = ("node1.cluster", "node2.cluster")
    assert [p.tasks for p in ranks_by_host("mpirun", Resources(), hosts, {}, hostfile=hostfile)] == [4, 2]
    assert [p.tasks for p in ranks_by_host("mpirun", Resources(cpus_per_task=2), hosts, {}, hostfile=hostfile)] == [2, 1]


# ── what is started ───────────────────────────────────────────────────────────


def test_srun_starts_every_rank_in_one_step_that_ends_with_the_first_failure() -> None:
    words = argv("srun", TWO, Resources(cpus_per_task=3))
    assert words.startswith("srun --overlap --kill-on-bad-exit=1 --nodes=2 --ntasks=4 --cpus-per-task=3 --ntasks-per-node=2 ")
    assert words.endswith(" ".join(TASK))


def test_srun_lays_out_uneven_tasks_by_itself() -> None:
    assert "--ntasks-per-node" not in argv("srun", (HostRanks(host="g1", tasks=3), HostRanks(host="g2", tasks=2)))


def test_torchrun_is_started_once_on_each_node_with_all_its_cpus() -> None:
    words = argv("torchrun", TWO, Resources(cpus_per_task=3))
    assert words.startswith("srun --overlap --kill-on-bad-exit=1 --nodes=2 --ntasks=2 --cpus-per-task=6 --ntasks-per-node=1 ")
    assert "supervisor.pyz spread -- python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=2 --node-rank={node}" in words
    assert "--master-addr=g1 --master-port=29500" in words
    assert words.endswith("--no-python " + " ".join(TASK))


def test_torchrun_on_one_node_needs_no_srun() -> None:
    words = argv("torchrun", ONE)
    assert words.startswith("/usr/bin/python3 /run/params/supervisor.pyz spread -- python3 -m torch.distributed.run --nnodes=1")
    assert "--nproc-per-node=4" in words and "--master-addr=127.0.0.1" in words


def test_torchrun_of_the_commands_own_python_is_taken_where_it_is_one() -> None:
    assert " /env/bin/python3.11 -m torch.distributed.run " in argv("torchrun", ONE, command=("/env/bin/python3.11", "train.py"))
    assert " -- torchrun --nnodes=1" in argv("torchrun", ONE, command=("./train.sh",))


def test_torchrun_leaves_the_schedulers_term_to_the_supervisor() -> None:
    assert "--signals-to-handle=SIGINT,SIGQUIT" in argv("torchrun", ONE)


def test_mpirun_is_told_hosts_and_slots() -> None:
    assert argv("mpirun", TWO).startswith("mpirun -np 4 --host g1:2,g2:2 ")


def test_horovodrun_is_told_hosts_and_slots() -> None:
    assert argv("horovodrun", TWO) == "horovodrun -np 4 -H g1:2,g2:2 " + " ".join(TASK)
    assert argv("horovodrun", ONE).startswith("horovodrun -np 4 -H localhost:4 ")


@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_ranks_are_told_where_to_meet_unless_their_launcher_does_so(launcher: str) -> None:
    made = launch(launcher, TWO, task=TASK, command=COMMAND, resources=Resources(), port=29500)
    assert made.variables == {"MASTER_ADDR": "g1", "MASTER_PORT": "29500"}
    assert launch("torchrun", TWO, task=TASK, command=COMMAND, resources=Resources(), port=1).variables == {}


# ── what is refused ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("launcher", "resources", "scheduler", "words"),
    [
        ("srun", Resources(), "gridengine", "srun needs Slurm"),
        ("srun", Resources(), "local", "srun needs Slurm"),
        ("torchrun", Resources(nodes=2), "gridengine", "torchrun over 2 nodes"),
        ("torchrun", Resources(nodes=2, ntasks=5), "slurm", "5 tasks do not divide evenly over 2 nodes"),
    ],
)
def test_what_a_launcher_can_never_do_is_said_at_submit(launcher: str, resources: Resources, scheduler: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        check_launcher(launcher, resources, srun_steps=scheduler == "slurm", scheduler=scheduler)
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("launcher", "resources", "scheduler"),
    [
        ("plain", Resources(nodes=2), "local"),
        ("srun", Resources(nodes=2, ntasks=5), "slurm"),
        ("torchrun", Resources(nodes=2, ntasks=6), "slurm"),
        ("torchrun", Resources(ntasks=2), "gridengine"),
        ("mpirun", Resources(nodes=2), "gridengine"),
    ],
)
def test_what_a_launcher_can_do_is_let_pass(launcher: str, resources: Resources, scheduler: str) -> None:
    check_launcher(launcher, resources, srun_steps=scheduler == "slurm", scheduler=scheduler)


def test_torchrun_does_not_start_with_as_many_processes_here_and_others_there() -> None:
    with pytest.raises(InvalidInput, match="3 on g1, 2 on g2"):
        argv("torchrun", (HostRanks(host="g1", tasks=3), HostRanks(host="g2", tasks=2)))


def test_a_launcher_that_nobody_knows_is_said_with_those_that_are_known() -> None:
    with pytest.raises(InvalidInput, match="mpiexec is not a launcher"):
        argv("mpiexec", ONE)
