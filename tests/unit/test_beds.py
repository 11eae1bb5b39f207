"""What the test beds work out before they touch anything: texts, tables, and the words for what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beds import __main__ as command
from beds import gridengine_config as config
from beds import hosts
from beds.errors import BedError
from beds.gridengine_daemons import NETWORK, host_named
from beds.gridengine_layout import HOSTS, QUEUES, Layout
from beds.gridengine_objects import instances
from beds.process import Process
from beds.ssh import with_block

QSTAT = """\
queuename                      qtype resv/used/tot. load_avg arch          states
---------------------------------------------------------------------------------
all.q@e1                       BIP   0/1/8          0.60     lx-amd64
---------------------------------------------------------------------------------
all.q@e2                       BIP   0/0/8          -NA-     lx-amd64      au
"""


def test_queue_instances_are_read_with_their_letters() -> None:
    assert instances(QSTAT) == {"all.q@e1": "", "all.q@e2": "au"}
    assert instances("error: commlib error: got select error (Connection refused)\n") == {}


def test_a_dump_keeps_what_is_not_asked_for() -> None:
    assert (
        config.changed("# made\nqname template\nslots 1\nshell /bin/csh\n", {"slots": "8"}) == "qname template\nshell /bin/csh\nslots 8\n"
    )


def test_a_queue_has_only_the_hosts_that_there_are() -> None:
    text = config.queue("", QUEUES[0], HOSTS[:1])
    assert "hostlist e1\n" in text
    assert "[e3=" not in text, "a sequence number for a host that is not there is refused"


def test_every_name_of_this_machine_is_the_masters() -> None:
    assert config.aliases("ge-master", ["vm", "localhost", "vm"]) == "ge-master vm localhost\n"
    assert config.aliases("e1", ["vm"]) == "e1 ge-master vm localhost\n", "the one host of a machine without namespaces is the machine"


def test_a_machine_without_namespaces_has_one_host_and_says_so(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert [host.name for host in layout.hosts] == ["e1", "e2", "e3"]
    layout.chosen_hosts.write_text("e1")
    assert not layout.separate
    with pytest.raises(BedError, match="no network namespaces"):
        host_named(layout, "e2")
    with pytest.raises(BedError, match="no host 'e9'"):
        host_named(layout, "e9")


def test_names_of_interfaces_are_short_enough_for_the_kernel() -> None:
    names = [NETWORK.bridge, *(f"{NETWORK.bridge}-{host}" for host in NETWORK.hosts)]
    assert max(map(len, names)) <= 15


def test_a_block_in_somebodys_file_is_replaced_and_the_rest_stays() -> None:
    once = with_block("Host mine\n  User me\n", "Host bed")
    assert once == with_block(once, "Host bed")
    assert once.endswith("Host mine\n  User me\n")
    assert with_block(once, "") == "Host mine\n  User me\n"


def test_the_lines_of_one_bed_in_the_hosts_file_leave_others_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hosts"
    file.write_text("127.0.0.1 localhost\n")
    monkeypatch.setattr(hosts, "_HOSTS", file)
    hosts.ensure(Path("/beds/one"), ["a", "b"])
    hosts.ensure_each(Path("/beds/two"), {"10.0.0.1": ["c"], "10.0.0.2": ["d"]})
    hosts.ensure(Path("/beds/one"), ["a"])
    assert "10.0.0.2 d" in file.read_text() and "127.0.0.1 a #" in file.read_text()
    hosts.remove(Path("/beds/one"))
    hosts.remove(Path("/beds/two"))
    assert file.read_text() == "127.0.0.1 localhost\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cut"], "cut needs a node"),
        (["stop-qmaster", "e1"], "stop-qmaster takes no node"),
        (["crash", "z9"], "no bed has a node 'z9'"),
        (["unplug", "g1"], "the slurm bed knows no unplug"),
        (["start-qmaster", "--hard"], "--hard goes with stop-"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["fault", *words]) == 1
    assert said in capsys.readouterr().err


def test_a_process_knows_how_long_it_has_run() -> None:
    own, first = Process.of(os.getpid()), Process.of(1)
    assert own and first
    before = own.age
    assert 0 < before <= own.age < first.age, "the first process of a machine is older"
