from __future__ import annotations

from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.model.spec import Resources
from onward.schedulers.local.resource_request import ResourceRequest, directive_lines, parse_directives

OUT = Path("/runs/a b/out=1.log")


def read_back(resources: Resources) -> ResourceRequest:
    return parse_directives("\n".join(["#!/bin/bash", *directive_lines(resources, output=OUT), "", "echo hi"]))


def test_what_directives_ask_for_is_what_submit_reads() -> None:
    asked = Resources(time=90061, mem=1536, cpus_per_task=2, gpus="a100:2", nodes=1)
    assert read_back(asked) == ResourceRequest(cpus=2, mem=1536, gpus=2, time=90061, output=str(OUT))


def test_seconds_are_kept() -> None:
    assert read_back(Resources(time=10)).time == 10


def test_nothing_asked_is_one_cpu_without_limits() -> None:
    assert read_back(Resources()) == ResourceRequest(all_gpus=True, output=str(OUT))


def test_all_memory_is_told_apart_from_no_limit() -> None:
    assert read_back(Resources(mem=0)).mem == 0


@pytest.mark.parametrize("resources", [Resources(ntasks=3, cpus_per_task=2), Resources(ntasks_per_node=3, cpus_per_task=2, nodes=1)])
def test_tasks_multiply_cpus(resources: Resources) -> None:
    assert read_back(resources).cpus == 6


def test_gpus_are_counted_in_either_spelling() -> None:
    assert read_back(Resources(gres="gpu:a100:2")).gpus == 2


def test_no_gpus_is_told_apart_from_no_word_about_them() -> None:
    assert (read_back(Resources(gpus="0")).gpus, read_back(Resources(gpus="0")).all_gpus) == (0, False)
    assert read_back(Resources(gres="license:1")).all_gpus


def test_words_that_are_only_names_leave_no_line() -> None:
    names = Resources(
        partition="gpu", account="ml", qos="high", reservation="r", constraint="c", mail_user="a@b", nodelist="n1", exclude="n2"
    )
    assert directive_lines(names, output=OUT) == directive_lines(Resources(), output=OUT)


def test_more_than_one_node_cannot_be_had() -> None:
    with pytest.raises(InvalidInput, match="nodes: 2"):
        directive_lines(Resources(nodes=2), output=OUT)


def test_only_the_head_of_a_script_counts() -> None:
    assert parse_directives("#!/bin/bash\n# words\n\n#ONWARD --gpus=1\necho hi\n#ONWARD --gpus=7\n").gpus == 1


@pytest.mark.parametrize("line", ["--nodes=2", "--time", "--gpus=many", "--cpus-per-task=0", "--mem=lots", "--time=soon", "mem"])
def test_a_line_that_means_nothing_is_refused_by_name(line: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_directives(f"#ONWARD {line}\n")
    assert line.strip("-").partition("=")[0] in caught.value.message or line.partition("=")[2] in caught.value.message
    assert caught.value.hint
