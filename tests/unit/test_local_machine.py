from __future__ import annotations

from onward.schedulers.local.machine import MachineCapacity, cpus_here, gpus_here, mem_here
from onward.schedulers.local.resource_request import ResourceRequest

MACHINE = MachineCapacity(cpus=4, mem=1000, gpus=("0", "1"))


def test_what_running_jobs_take_is_not_left() -> None:
    left = MACHINE.without([(ResourceRequest(cpus=1, mem=200), ()), (ResourceRequest(cpus=2, gpus=1), ("0",))])
    assert left == MachineCapacity(cpus=1, mem=800, gpus=("1",))


def test_a_job_that_fits_lacks_nothing() -> None:
    assert MACHINE.shortage(ResourceRequest(cpus=4, mem=1000, gpus=2), MACHINE) == ""


def test_a_shortage_names_what_is_needed_and_what_is_free() -> None:
    left = MachineCapacity(cpus=1, mem=100, gpus=())
    assert MACHINE.shortage(ResourceRequest(cpus=2), left) == "needs 2 CPUs, 1 free"
    assert MACHINE.shortage(ResourceRequest(mem=200), left) == "needs 200 MiB of memory, 100 MiB free"
    assert MACHINE.shortage(ResourceRequest(gpus=1), left) == "needs 1 GPU, 0 free"


def test_a_job_that_asked_for_all_memory_waits_for_all_of_it() -> None:
    left = MACHINE.without([(ResourceRequest(mem=1), ())])
    assert MACHINE.shortage(ResourceRequest(mem=0), left) == "needs 1000 MiB of memory, 999 MiB free"
    assert MACHINE.shortage(ResourceRequest(mem=0), MACHINE) == ""


def test_a_job_that_asked_for_no_memory_takes_none() -> None:
    assert MACHINE.without([(ResourceRequest(), ())]).mem == 1000


def test_more_than_the_machine_has_names_both_figures() -> None:
    assert MACHINE.excess(ResourceRequest(cpus=5)) == "it requests 5 CPUs, but this machine has 4"
    assert MACHINE.excess(ResourceRequest(mem=2000)) == "it requests 2000 MiB of memory, but this machine has 1000 MiB"
    assert MACHINE.excess(ResourceRequest(gpus=3)) == "it requests 3 GPUs, but this machine has 2"
    assert MACHINE.excess(ResourceRequest(cpus=4, mem=0, gpus=2)) == ""


def test_this_machine_has_something_to_hand_out() -> None:
    assert cpus_here() >= 1
    assert mem_here() > 0
    assert gpus_here() is None or isinstance(gpus_here(), tuple)
