from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onward.errors import AlreadyClaimed
from onward.rundir.claim import claim, claim_holder, newest_claim
from onward.rundir.layout import RunDir

RACER = """
import sys
from pathlib import Path
from onward.errors import AlreadyClaimed
from onward.rundir.claim import claim
from onward.rundir.layout import RunDir

print("ready", flush=True)
sys.stdin.readline()
try:
    claim(RunDir(Path(sys.argv[1])), 1, job=sys.argv[2])
except AlreadyClaimed as error:
    print("lost", error, flush=True)
else:
    print("won", sys.argv[2], flush=True)
"""


@pytest.fixture(autouse=True)
def params(tmp_path: Path) -> Path:
    folder = RunDir(tmp_path).params
    folder.mkdir()
    return folder


def test_no_leg_is_claimed_on_storage_that_is_not_mounted_now(tmp_path: Path, params: Path) -> None:
    """The claim would be gone when it is mounted, and another job would take the leg as well."""
    params.rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError):
        claim(RunDir(tmp_path), 1, job="7")
    (tmp_path / "away").rename(params)
    claim(RunDir(tmp_path), 1, job="8")


def test_of_twenty_jobs_that_race_for_a_leg_exactly_one_gets_it(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), str(job)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for job in range(20)
    ]
    try:
        for racer in racers:
            assert racer.stdout and racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin
            racer.stdin.write("go\n")
        answers = [racer.communicate(timeout=60)[0].strip() for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    winners = [answer.split()[1] for answer in answers if answer.startswith("won")]
    assert len(winners) == 1, answers
    assert sum(f"claimed by job {winners[0]} on" in answer for answer in answers) == 19, answers
    assert claim_holder(RunDir(tmp_path), 1)["job"] == winners[0]
    assert [path.name for path in RunDir(tmp_path).claims.iterdir()] == ["leg-0001.json"]


def test_a_leg_is_claimed_once_for_ever_even_by_the_same_job(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    claim(run, 1, job="7")
    with pytest.raises(AlreadyClaimed, match="by job 7"):
        claim(run, 1, job="7")
    claim(run, 2, job="8")
    assert claim_holder(run, 2)["pid"] == os.getpid()


def test_a_claim_whose_answer_was_lost_on_the_network_is_still_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link_twice(source: Path, target: Path) -> None:
        real(source, target)
        real(source, target)  # what an NFS client does when the first answer does not come

    monkeypatch.setattr(os, "link", link_twice)
    claim(RunDir(tmp_path), 1, job="7")
    assert claim_holder(RunDir(tmp_path), 1)["job"] == "7"


def test_an_old_count_of_links_does_not_make_a_claim_of_ours_another_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NFS version 3 may tell it: the attributes of a file are kept for a minute."""
    real_link, real_stat = os.link, Path.stat

    def link_twice(source: Path, target: Path) -> None:
        real_link(source, target)
        real_link(source, target)

    def stat_of_before(path: Path, **how: bool) -> os.stat_result:
        seen = list(real_stat(path, **how))
        seen[3] = 1  # st_nlink
        return os.stat_result(seen)

    monkeypatch.setattr(os, "link", link_twice)
    monkeypatch.setattr(Path, "stat", stat_of_before)
    claim(RunDir(tmp_path), 1, job="7")
    monkeypatch.undo()
    assert claim_holder(RunDir(tmp_path), 1)["job"] == "7"


def test_a_claim_that_cannot_be_read_still_holds(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.claims.mkdir(parents=True)
    run.claim(1).write_text("")
    assert claim_holder(run, 1) == {}
    with pytest.raises(AlreadyClaimed):
        claim(run, 1, job="7")


def test_a_leg_that_sees_a_higher_claim_is_fenced_off(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert newest_claim(run) == 0
    claim(run, 1, job="7")
    assert newest_claim(run) == 1
    claim(run, 2, job="8")
    assert newest_claim(run) == 2
    claim(run, 12345, job="9")
    assert newest_claim(run) == 12345


def test_what_a_killed_claimant_left_beside_is_no_claim(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.claims.mkdir(parents=True)
    (run.claims / ".leg-0009.json.node1.77").write_text("{}")
    assert newest_claim(run) == 0
