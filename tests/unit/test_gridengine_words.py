"""Slurm's words for resources in Grid Engine's: by default, and by a site's own table."""

from __future__ import annotations

import pytest

from onward.errors import InvalidInput
from onward.model.spec import Resources
from onward.schedulers.gridengine.resource_options import options


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Resources(), []),
        (Resources(time=3600), ["-l h_rt=3600"]),
        (Resources(mem=32768), ["-l h_vmem=32768M"]),
        (Resources(mem=0), []),
        (Resources(cpus_per_task=8, mem=1000), ["-pe smp 8", "-l h_vmem=125M"]),
        (Resources(cpus_per_task=3, mem=1000), ["-pe smp 3", "-l h_vmem=334M"]),
        (Resources(ntasks=4), ["-pe smp 4"]),
        (Resources(nodes=1, ntasks=1, cpus_per_task=1), []),
        (Resources(gpus="2"), ["-l gpus=2"]),
        (Resources(gpus="a100:2"), ["-l gpus=2", "-l gpu_type=a100"]),
        (Resources(gres="gpu:1"), ["-l gpus=1"]),
        (Resources(gres="gpu:a100:2,tmp:20"), ["-l gpus=2", "-l gpu_type=a100", "-l tmp=20"]),
        (Resources(gpus="0"), []),
        (Resources(partition="gpu.q", account="ml", reservation="12"), ["-q gpu.q", "-P ml", "-ar 12"]),
        (Resources(constraint="avx2,gpu_c=3.5"), ["-l avx2", "-l gpu_c=3.5"]),
        (Resources(nodelist="e1"), ["-l hostname=e1"]),
        (Resources(nodelist="e1,e2", exclude="e3"), ["-l hostname=(e1|e2)&!e3"]),
        (Resources(exclude="e1,e2"), ["-l hostname=!e1&!e2"]),
        (Resources(mail_user="a@b.org", mail_type="END,FAIL"), ["-M a@b.org", "-m ea"]),
        (Resources(mail_type="NONE"), ["-m n"]),
        (Resources(mail_type="ALL,END"), ["-m bea"]),
        (Resources(extra=("-l gpu_c=3.5", "-R y")), ["-l gpu_c=3.5", "-R y"]),
    ],
)
def test_resources_are_said_in_its_words(asked: Resources, said: list[str]) -> None:
    assert options(asked, {}) == said


def test_a_site_calls_things_by_its_own_names() -> None:
    names = {
        "mem": "mem_per_core/slot",
        "cpus-per-task": "omp",
        "gpus": "gpu/slot",
        "partition": "class",
        "account": "-A",
        "qos": "-js",
        "time": "wall",
    }
    asked = Resources(time=60, mem=4096, cpus_per_task=4, gpus="4", partition="long", account="me", qos="5")
    assert options(asked, names) == [
        "-pe omp 4",
        "-l wall=60",
        "-l mem_per_core=1024M",
        "-l gpu=1",
        "-l class=long",
        "-A me",
        "-js 5",
    ]


def test_several_nodes_need_a_parallel_environment_of_the_site() -> None:
    asked = Resources(nodes=2, ntasks_per_node=2, cpus_per_task=4, mem=8000, gres="gpu:2")
    with pytest.raises(InvalidInput, match="2 nodes need a parallel environment") as caught:
        options(asked, {})
    assert "names" in caught.value.hint
    assert options(asked, {"nodes": "mpi_{slots}"}) == ["-pe mpi_8 16", "-l h_vmem=1000M", "-l gpus=4"]


@pytest.mark.parametrize(
    ("asked", "names", "words"),
    [
        (Resources(qos="high"), {}, "qos: Grid Engine does not support it"),
        (Resources(constraint="a|b"), {}, "constraint: 'a|b' cannot be expressed"),
        (Resources(nodelist="e[a-b]"), {}, "hosts: found"),
        (Resources(gpus="3", cpus_per_task=2), {"gpus": "gpu/slot"}, "3 GPUs cannot be divided among 2 slots"),
        (Resources(extra=("-l a\n#$ -P x",)), {}, "line break"),
    ],
)
def test_what_cannot_be_said_is_refused(asked: Resources, names: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        options(asked, names)
    assert words in caught.value.message
