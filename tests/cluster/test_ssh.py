"""Through a real sshd to another user's home and a real Slurm: alice stays here, her runs are carol's there."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from beds.ssh import HOST, MFA_HOST, THERE, SshBed
from tests.cluster.conftest import Person

pytestmark = [pytest.mark.cluster]

TRAIN = """\
import json, sys, time
import onward

steps, pause = int(sys.argv[1]), float(sys.argv[2])
run = onward.init(total_steps=steps)
saved = run.resume()
first = json.loads((saved / "state.json").read_text())["step"] + 1 if saved else 0
for step in range(first, steps):
    time.sleep(pause)
    run.log({"loss": 1 / (step + 1)}, step=step)
    print("step", step, flush=True)
    stop = run.should_stop()
    if stop or step == steps - 1:
        with run.checkpoint(step) as folder:
            (folder / "state.json").write_text(json.dumps({"step": step}))
    if stop:
        sys.exit(75)
run.finish()
"""
SETTINGS = """\
[clusters.far]
ssh = "{host}"
scheduler = "slurm"
root = "{root}"
defaults = {{ mem = "300M" }}
"""


@dataclass(kw_only=True)
class Traveller(Person):
    """Alice without the beds' variables: what she asks for is asked there."""

    root: Path

    def settle(self, host: str = HOST) -> None:
        self.write("settings.toml", SETTINGS.format(host=host, root=self.root))

    def ssh(self, *words: str) -> subprocess.CompletedProcess[str]:
        """By the connection that Onward keeps open."""
        sockets = Path(self.environment["HOME"]) / ".cache" / "onward" / "ssh" / "%C"
        return self.run("ssh", "-o", f"ControlPath={sockets}", *words, check=False)

    def master(self) -> int | None:
        found = re.search(r"pid=(\d+)", self.ssh("-O", "check", HOST).stderr)
        return int(found[1]) if found else None

    def submitted(self, *flags: str) -> tuple[str, Path]:
        run = self.submit("--cluster", "far", *flags)
        return run.id, run.folder


@pytest.fixture
def alice_from_afar(alice: Person, request: pytest.FixtureRequest) -> Iterator[Traveller]:
    if not SshBed().is_up():
        if os.environ.get("CI"):
            pytest.fail("the ssh bed is not up, and CI must have it: make beds")
        pytest.skip("the ssh bed is not up: make beds (Debian, root)")
    there = Path(pwd.getpwnam(THERE).pw_dir) / "tests" / alice.home.name
    keep = {name: value for name, value in alice.environment.items() if not name.startswith(("SLURM_", "SGE_"))}
    environment = {**keep, "ONWARD_SETTINGS": str(alice.home / "settings.toml")}
    person = Traveller(user=alice.user, home=alice.home, python=alice.python, environment=environment, root=there / "runs")
    person.settle()
    person.write("train.py", TRAIN)
    yield person
    person.settle()
    for folder in person.root.glob("20*"):
        if not (folder / "params" / "done.json").exists():
            person.onward("cancel", f"{HOST}:{folder}", check=False)
    person.ssh("-O", "exit", HOST)
    shutil.rmtree(there, ignore_errors=True)


def until(holds: Callable[[], object], *, within: float = 180, what: str) -> None:
    give_up = time.monotonic() + within
    while not holds():
        assert time.monotonic() < give_up, f"{what} did not come within {within} s"
        time.sleep(0.3)


def lines_of(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith("step")] if path.exists() else []


def test_a_run_that_is_cut_by_its_limit_finishes_and_is_followed_from_here(alice_from_afar: Traveller) -> None:
    alice = alice_from_afar
    id, folder = alice.submitted("--time", "1", "--", "python3", "train.py", "160", "0.5")
    assert folder.parent == alice.root
    assert pwd.getpwuid(folder.stat().st_uid).pw_name == THERE
    out = alice.home / "followed"
    who = pwd.getpwnam(alice.user)
    with out.open("w") as file:
        follower = subprocess.Popen(
            [alice.python, "-m", "onward", "logs", "-f", id],
            cwd=alice.home,
            env=alice.environment,
            user=who.pw_uid,
            group=who.pw_gid,
            extra_groups=[],
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        until(lambda: len(lines_of(out)) > 10, what="ten steps here")
        until(alice.master, what="a connection that is kept for the next calls")
        os.kill(alice.master() or 0, signal.SIGKILL)
        _, said = follower.communicate(timeout=420)
    finally:
        follower.kill()
        follower.wait()
    assert follower.returncode == 0, said
    assert "retrying" in said
    assert f"{HOST} answers again" in said
    assert lines_of(out) == [f"step {n}" for n in range(160)], "each once, in their order"
    shown = alice.onward("show", id[:6], "--json").stdout
    assert '"state": "finished"' in shown
    assert '"end": "time_limit"' in shown
    assert "160" in alice.onward("runs").stdout
    assert alice.onward("checkpoints", id, "--verify").returncode == 0
    assert not (alice.home / "runs").exists()


def test_a_run_is_stopped_and_goes_on_from_where_it_was(alice_from_afar: Traveller) -> None:
    alice = alice_from_afar
    id, folder = alice.submitted("--time", "5", "--", "python3", "train.py", "4000", "0.2")
    until(lambda: len(lines_of(folder / "logs" / "leg-0001.out")) > 5, what="five steps")
    alice.onward("stop", id)
    until(lambda: (folder / "params" / "done.json").exists(), what="its end")
    assert "cancelled" in alice.onward("show", id).stdout
    alice.onward("resume", id)
    until(lambda: len(lines_of(folder / "logs" / "leg-0002.out")) > 2, what="steps of leg 2")
    first = lines_of(folder / "logs" / "leg-0002.out")[0]
    assert first == f"step {len(lines_of(folder / 'logs' / 'leg-0001.out'))}"
    alice.onward("cancel", id)
    assert "cancelled" in alice.onward("show", id).stdout


def test_a_batch_script_is_carried_with_its_folder_and_its_output_is_where_it_says(alice_from_afar: Traveller) -> None:
    alice = alice_from_afar
    lines = ["#!/bin/bash", "#SBATCH --time=2 --mem=300M", "#SBATCH -o out-%j.txt", 'echo "job $SLURM_JOB_ID"', "python3 train.py 3 0.1"]
    alice.write("train.sh", "\n".join(lines) + "\n")
    id, folder = alice.submitted("train.sh")
    until(lambda: (folder / "params" / "done.json").exists(), what="its end")
    said = alice.onward("logs", id).stdout
    assert "step 2" in said
    [out] = (folder / "code").glob("out-*.txt")
    assert f"job {out.stem.removeprefix('out-')}\n" in out.read_text()


def test_a_host_that_wants_a_second_factor_is_said_in_words_and_nobody_is_asked(alice_from_afar: Traveller) -> None:
    alice_from_afar.settle(MFA_HOST)
    refused = alice_from_afar.onward("submit", "--cluster", "far", "--", "python3", "train.py", "1", "0", check=False, timeout=60)
    assert refused.returncode == 4, refused.stderr
    assert f"{MFA_HOST} asks for a password or a code" in refused.stderr
    assert f"log in once with `ssh {MFA_HOST}`" in refused.stderr
    listed = alice_from_afar.onward("runs", check=False, timeout=60)
    assert listed.returncode == 0
    assert f"the runs on {MFA_HOST} are not shown" in listed.stderr


def test_a_host_key_that_is_not_known_is_never_taken_unseen(alice_from_afar: Traveller) -> None:
    alice = alice_from_afar
    shutil.copytree(Path(alice.environment["HOME"]) / ".ssh", alice.home / ".ssh")
    (alice.home / ".ssh" / "onward_known_hosts").write_text("")
    for path in (alice.home / ".ssh", *(alice.home / ".ssh").iterdir()):
        os.chown(path, pwd.getpwnam(alice.user).pw_uid, -1)
    config = alice.home / ".ssh" / "config"
    config.write_text(config.read_text().replace("~/.ssh", str(alice.home / ".ssh")))
    shim = alice.write("ssh", f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
    shim.chmod(0o755)
    strange = replace(
        alice, environment={**alice.environment, "PATH": f"{alice.home}:{alice.environment['PATH']}", "HOME": str(alice.home)}
    )
    said = strange.onward("show", "x", check=False)
    assert said.returncode == 4, said.stderr
    assert f"the host key of {HOST} is unknown on this machine" in said.stderr
