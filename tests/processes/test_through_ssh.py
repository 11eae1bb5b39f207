"""Runs on a host behind ssh, with a stand-in for ssh itself: every verb, from here, on folders that are there."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.errors import HostUnreachable
from onward.model.spec import spec_to_json
from onward.operations.ssh.call import SshCaller
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from tests.benches import end_local_queue, until
from tests.histories import make_spec
from tests.hosts import Laptop, StandInHost
from tests.servers import Running

TRAIN = """\
import json, os, sys, time
import onward

run = onward.init(total_steps={steps})
saved = run.resume()
first = json.loads((saved / "state.json").read_text())["step"] + 1 if saved else 0
for step in range(first, {steps}):
    time.sleep({pause})
    run.log({{"loss": 1 / (step + 1)}}, step=step)
    print("step", step, flush=True)
    if run.should_stop():
        with run.checkpoint(step) as folder:
            (folder / "state.json").write_text(json.dumps({{"step": step}}))
        sys.exit(75)
with run.checkpoint({steps}) as folder:
    (folder / "state.json").write_text(json.dumps({{"step": {steps}}}))
run.finish()
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[StandInHost]:
    host = StandInHost(tmp_path / "far")
    yield host
    for folder in (host.folder, tmp_path / "near"):
        end_local_queue(folder / "queue")


@pytest.fixture
def laptop(tmp_path: Path, host: StandInHost) -> Laptop:
    laptop = Laptop(tmp_path / "near", host)
    laptop.write("train.py", TRAIN.format(steps=3, pause=0.01))
    return laptop


def submit(laptop: Laptop, *flags: str, command: tuple[str, ...] = ("python3", "train.py")) -> tuple[str, Path]:
    body = laptop.json("submit", "--cluster", "lab", "--json", *flags, "--", *command)
    assert body["host"] == "lab"
    return body["id"], Path(body["folder"])


def until_over(folder: Path) -> None:
    until(lambda: RunDir(folder).done.exists(), seconds=180, what=f"the end of {folder}")


# ── a run ─────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_run_is_submitted_looked_at_and_read_from_here_and_lies_there(laptop: Laptop, host: StandInHost) -> None:
    laptop.write("data/large.bin", "x")
    id, folder = submit(laptop, "--code-exclude", "data", "--env", "WORD=secret-of-mine")
    assert folder.parent == host.home / "runs"
    until_over(folder)
    shown = laptop.json("show", id, "--json")
    assert (shown["state"], shown["host"], shown["cluster"], shown["folder"]) == ("finished", "lab", "lab", str(folder))
    assert laptop.onward("logs", id[:5]).stdout == "step 0\nstep 1\nstep 2\n"
    assert laptop.onward("logs", id, "-f", "-n", "1").stdout == "step 2\n"
    assert [c["step"] for c in laptop.json("checkpoints", id, "--verify", "--json")["checkpoints"]] == [3]
    [listed] = laptop.json("runs", "--json")["runs"]
    assert (listed["id"], listed["host"]) == (id, "lab")
    assert f"lab:{folder}" in laptop.onward("show", id).stdout
    assert laptop.json("show", f"lab:{folder}", "--json")["id"] == id
    assert laptop.json("tend", "--json")["looked_at"] == 0
    again = laptop.onward("cancel", id)
    assert (again.returncode, "is finished and cannot be cancelled" in again.stderr) == (5, True)

    spec = read_run(RunDir(folder)).spec
    assert spec.cluster.ssh is None  # there, it is reached from where one is
    assert spec.code["from"] == f"{socket.gethostname()}:{laptop.project}"
    assert sorted(os.listdir(folder / "code")) == ["train.py"]
    assert not list((host.home / "runs" / ".arriving").iterdir())
    assert not (laptop.folder / "runs").exists()
    assert "secret-of-mine" not in json.dumps(host.calls())
    environment = json.loads((folder / "params" / "environment.json").read_text())
    assert environment["WORD"] == "secret-of-mine"
    assert environment["HOME"] == str(host.home)
    assert sum("hashlib" in call["command"] for call in host.calls()) == len(host.archives()), "an archive is carried once"


@pytest.mark.slow
def test_what_a_run_there_made_is_fetched_to_here_and_only_once(laptop: Laptop, host: StandInHost) -> None:
    laptop.write("train.py", TRAIN.format(steps=3, pause=0.01) + "open('table.csv', 'w').write('1,2')\n")
    id, folder = submit(laptop)
    until_over(folder)
    planned = laptop.json("fetch", id, "--dry-run", "--json")
    assert "code/table.csv" in {file["path"] for file in planned["files"] if file["state"] == "to fetch"}
    assert not (laptop.project / folder.name).exists()
    done = laptop.onward("fetch", id, "--checkpoints", "newest")
    assert done.returncode == 0, done.stderr
    here = laptop.project / folder.name
    assert done.stdout == f"{here}\n"
    assert (here / "code" / "table.csv").read_text() == "1,2"
    assert (here / "logs" / "leg-0001.out").read_text() == "step 0\nstep 1\nstep 2\n"
    assert len(list((here / "results" / "checkpoints").glob("*/state.json"))) == 1
    assert not (here / "code" / "train.py").exists()
    assert "nothing new to fetch" in laptop.onward("fetch", id, "--checkpoints", "newest").stderr
    missing = laptop.onward("fetch", id, "tables.csv")
    assert (missing.returncode, "code/table.csv" in missing.stderr) == (3, True)


@pytest.mark.slow
def test_a_run_is_followed_stopped_and_resumed(laptop: Laptop, host: StandInHost) -> None:
    laptop.write("train.py", TRAIN.format(steps=2000, pause=0.05))
    id, folder = submit(laptop)
    dir = RunDir(folder)
    until(lambda: dir.log(1, "out").exists() and "step 3" in dir.log(1, "out").read_text(), seconds=120)
    stopped = laptop.json("stop", id, "--json")
    assert stopped["state"] in ("running", "cancelled")
    until_over(folder)
    assert "cancelled" in laptop.onward("show", id).stdout
    resumed = laptop.onward("resume", id, "--max-legs", "5")
    assert resumed.returncode == 0, resumed.stderr
    assert "leg 2 is job" in resumed.stderr
    until(lambda: dir.log(2, "out").exists() and "step" in dir.log(2, "out").read_text(), seconds=120)
    assert laptop.json("cancel", id, "--json")["state"] == "cancelled"


@pytest.mark.slow
def test_a_run_is_cloned_there_with_the_code_it_froze(laptop: Laptop, host: StandInHost) -> None:
    id, folder = submit(laptop, "--param", "lr=0.1", "--env", "WORD=mine")
    laptop.write("train.py", "raise SystemExit('not this one')")
    seen = laptop.json("clone", id, "--param", "lr=0.2", "--dry-run", "--json")
    assert Path(seen["folder"]).parent == host.home / "runs"
    body = laptop.json("clone", id, "--param", "lr=0.2", "--name", "again", "--json")
    assert (body["host"], body["name"], body["id"] != id) == ("lab", "again", True)
    until_over(Path(body["folder"]))
    run = read_run(RunDir(Path(body["folder"])))
    assert (run.state, run.spec.params) == ("finished", {"lr": 0.2})
    assert json.loads(RunDir(Path(body["folder"])).environment.read_text())["WORD"] == "mine"
    until_over(folder)


@pytest.mark.slow
def test_a_clone_whose_answer_was_lost_is_unclear_and_not_asked_for_again(laptop: Laptop, host: StandInHost) -> None:
    _, folder = submit(laptop)
    host.fail(says="Connection to lab closed by remote host.\n", within=" agent", skip=2, after=True)  # found, its draft told, cloned
    done = laptop.onward("clone", f"lab:{folder}")
    assert done.returncode != 0 and "whether a clone of" in done.stderr and "run onward runs when lab answers again" in done.stderr
    runs = sorted((host.home / "runs").glob("20*"))
    assert len(runs) == 2
    for run in runs:
        until_over(run)


@pytest.mark.slow
def test_run_follows_to_the_end_and_exits_as_the_run_did(laptop: Laptop) -> None:
    done = laptop.onward("run", "--cluster", "lab", "--", "python3", "train.py")
    assert done.returncode == 0, done.stderr
    assert "finished in 1 leg" in done.stderr
    laptop.write("train.py", "raise SystemExit(3)")
    failed = laptop.onward("run", "--cluster", "lab", "--max-restarts", "0", "--", "python3", "train.py")
    assert failed.returncode == 7, failed.stderr


@pytest.mark.slow
def test_logs_go_on_at_the_byte_they_had_reached_when_the_connection_broke(laptop: Laptop, host: StandInHost) -> None:
    laptop.write("train.py", TRAIN.format(steps=120, pause=0.1))
    id, folder = submit(laptop)
    out, err = laptop.folder / "out", laptop.folder / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        follower = laptop.start("logs", "-f", id, stdout=stdout, stderr=stderr)
    try:
        until(lambda: "step 20" in out.read_text(), seconds=120, what="step 20 here")
        host.cut()
        assert follower.wait(180) == 0, err.read_text()
    finally:
        follower.kill()
        follower.wait()
    lines = [line for line in out.read_text().splitlines() if line.startswith("step")]
    assert lines == [f"step {n}" for n in range(120)]
    assert "retrying" in err.read_text()
    assert "lab answers again" in err.read_text()
    until_over(folder)


@pytest.mark.slow
def test_a_submit_whose_answer_was_lost_is_asked_again_and_makes_one_run(laptop: Laptop, host: StandInHost) -> None:
    laptop.json("runs", "--json")  # the archive is there from now on
    host.fail(says="Connection to lab closed by remote host.\n", within=" agent", skip=1, after=True)  # the first asks for a place
    done = laptop.onward("submit", "--cluster", "lab", "--json", "--", "python3", "train.py")
    assert done.returncode == 0, done.stderr
    assert "the connection to lab broke" in done.stderr
    [folder] = (host.home / "runs").glob("20*")
    assert json.loads(done.stdout)["folder"] == str(folder)
    assert len(read_run(RunDir(folder)).legs[1].submissions) == 1
    until_over(folder)


@pytest.mark.slow
def test_a_submit_that_is_asked_again_while_the_first_goes_on_makes_one_run(laptop: Laptop, host: StandInHost) -> None:
    """Its first asking is slow at login: it goes on when the second comes, so that both are at it together."""
    laptop.json("runs", "--json")
    meet = 'if mkdir "$HOME/first"; then until [ -e "$HOME/second" ]; do sleep 0.05; done; else touch "$HOME/second"; fi\n'
    (host.home / ".profile").write_text(meet)
    host.fail(says="Connection to lab closed by remote host.\n", within=" agent", goes_on=True)
    laptop.project.rename(host.home / "project")
    (laptop.project).symlink_to(host.home / "project")
    done = laptop.onward("submit", "--cluster", "lab", "--json", "--no-freeze", "--", "python3", "train.py")
    assert done.returncode == 0, done.stderr
    assert "retrying" in done.stderr
    arriving = host.home / "runs" / ".arriving"
    until(lambda: not list(arriving.iterdir()), seconds=60, what="the end of both askings")
    [folder] = (host.home / "runs").glob("20*")
    assert json.loads(done.stdout)["folder"] == str(folder)
    assert len(read_run(RunDir(folder)).legs[1].submissions) == 1
    until_over(folder)


# ── several hosts ─────────────────────────────────────────────────────────────


def lay(root: Path, name: str, id: str) -> Path:
    """A run as it lies in a folder, over long ago."""
    dir = RunDir(root / f"2026-11-15_A_{name}")
    dir.make()
    dir.spec.write_text(json.dumps(spec_to_json(make_spec(name=name, id=id))))
    return dir.path


@pytest.fixture
def two(tmp_path: Path, host: StandInHost) -> Laptop:
    """A laptop and two hosts: `digits` is on both, `only` on the second, `mine` here."""
    laptop = Laptop(tmp_path / "near", host, others=("hub",))
    lay(laptop.folder / "runs", "mine", "aaaa1111")
    lay(host.home / "runs", "digits", "bbbb1111")
    home = host.second("hub")
    lay(home / "runs", "digits", "cccc1111")
    lay(home / "runs", "only", "dddd1111")
    return laptop


def test_a_run_is_found_wherever_it_is(two: Laptop, host: StandInHost) -> None:
    listed = two.json("runs", "--json")["runs"]
    assert {(entry["id"], entry["host"]) for entry in listed} == {
        ("aaaa1111", None),
        ("bbbb1111", "lab"),
        ("cccc1111", "hub"),
        ("dddd1111", "hub"),
    }
    for text, id in (("only", "dddd1111"), ("bb", "bbbb1111"), ("mine", "aaaa1111"), ("hub:2026-11-15_A_digits", "cccc1111")):
        assert two.json("show", text, "--json")["id"] == id
    several = two.onward("show", "digits")
    assert several.returncode == 5
    assert "cccc1111 (hub:2026-11-15_A_digits)" in several.stderr
    assert "bbbb1111 (lab:2026-11-15_A_digits)" in several.stderr
    before = len(host.calls())
    assert two.json("show", "aaaa1111", "--json")["host"] is None
    assert len(host.calls()) == before, "what is surely here asks nobody"


def test_nothing_is_ended_by_a_name_that_a_silent_host_may_have_too(two: Laptop, host: StandInHost) -> None:
    host.fail(says="ssh: connect to host lab port 22: No route to host\n", within="lab ", times=-1)
    shown = two.onward("show", "only")
    assert (shown.returncode, "did not look for 'only' on lab" in shown.stderr) == (0, True)
    refused = two.onward("cancel", "only")
    assert refused.returncode == 6
    assert "use its full id: dddd1111" in refused.stderr
    assert two.onward("cancel", "dddd1111").returncode == 0


def test_all_of_mine_are_cancelled_here_and_there(two: Laptop) -> None:
    body = two.json("cancel", "--all", "--yes", "--json")["runs"]
    assert {run["host"] for run in body} == {None, "lab", "hub"}
    assert {(run["state"], run["error"]) for run in body} == {("cancelled", "")}
    assert two.json("cancel", "--all", "--yes", "--json")["runs"] == []


def test_a_host_that_is_silent_keeps_none_of_the_others_from_being_cancelled(two: Laptop, host: StandInHost) -> None:
    host.fail(says="ssh: connect to host lab port 22: No route to host\n", within="lab ", times=-1)
    said = two.onward("cancel", "--all", "--yes")
    assert (said.returncode, "nothing on lab is cancelled: lab cannot be reached" in said.stderr) == (6, True)
    assert "only is cancelled" in said.stderr


# ── what is wrong is said ─────────────────────────────────────────────────────


def test_a_host_that_does_not_answer_is_named_in_the_list_and_the_rest_is_shown(laptop: Laptop, host: StandInHost) -> None:
    host.fail(says="ssh: connect to host lab port 22: Connection refused\n", times=-1)
    said = laptop.onward("runs")
    assert said.returncode == 0
    assert "the runs on lab are not shown: lab cannot be reached" in said.stderr
    body = laptop.json("runs", "--json")
    assert body["runs"] == []
    assert body["unanswered"][0]["host"] == "lab"
    asked = laptop.onward("show", "digits")
    assert (asked.returncode, "Connection refused" in asked.stderr) == (6, True)
    tended = laptop.onward("tend")
    assert (tended.returncode, "nothing was done" in tended.stderr) == (6, True)
    examined = laptop.onward("doctor")
    assert (examined.returncode, "BAD  lab" in examined.stdout) == (1, True)


def test_a_host_that_is_silent_is_not_waited_for_for_ever(host: StandInHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{host.programs}:{os.environ['PATH']}")
    mute = host.folder / "mute"
    mute.write_text("#!/bin/sh\nexec sleep 3\n")
    mute.chmod(0o755)
    caller = SshCaller("lab", python=str(mute), env={})
    with pytest.raises(HostUnreachable, match="lab gave no answer within 1 s"):
        caller.call({"verb": "runs", "with": {}, "profiles": []}, within=1)


def test_a_password_is_never_asked_for_and_the_way_round_is_said(laptop: Laptop, host: StandInHost) -> None:
    host.fail(says="far@lab: Permission denied (publickey,keyboard-interactive).\n", times=-1)
    said = laptop.onward("submit", "--cluster", "lab", "--", "python3", "train.py")
    assert said.returncode == 4
    assert "asks for a password or a code" in said.stderr
    assert "log in once with `ssh lab`" in said.stderr
    assert "BatchMode=yes" in host.calls()[0]["options"]


def test_a_missing_or_old_python_there_is_named_with_the_key_to_set(laptop: Laptop, host: StandInHost, tmp_path: Path) -> None:
    only = tmp_path / "only"
    only.mkdir()
    host.set_environment(**{**host.environment, "PATH": str(only)})
    said = laptop.onward("show", "x")
    assert said.returncode == 6, said.stderr  # nothing here, and the host cannot be asked
    assert "there is no python3 on lab" in said.stderr
    assert "`python`" in said.stderr


def test_a_cluster_is_looked_at_where_it_is(laptop: Laptop, host: StandInHost) -> None:
    body = laptop.json("cluster", "lab", "--json")
    assert (body["name"], body["host"], body["scheduler"]) == ("lab", "lab", "local")
    assert [queue["nodes"] for queue in body["queues"]] == [[body["nodes"][0]["name"]]]
    assert "local through lab, 1 node" in laptop.onward("cluster", "lab").stdout


def test_one_bad_profile_of_a_host_does_not_break_the_others(laptop: Laptop, host: StandInHost) -> None:
    settings = Path(laptop.env["ONWARD_SETTINGS"])
    closed, long = host.folder / "closed", f"/{'x' * 300}"
    closed.write_text("a file")
    profiles = {"nopython": 'python = "/nope/python"', "unset": 'root = "$NO_SUCH_DISK/runs"'}
    profiles |= {"closed": f'root = "{closed}/x"', "unreadable": f'root = "{long}"'}
    more = [f'[clusters.{name}]\nssh = "lab"\nscheduler = "local"\n{key}\n' for name, key in profiles.items()]
    settings.write_text("".join(more) + settings.read_text())
    done = laptop.onward("submit", "--cluster", "lab", "--", "python3", "train.py")
    assert done.returncode == 0, done.stderr
    listed = laptop.onward("runs")
    assert (listed.returncode, done.stdout.strip() in listed.stdout) == (0, True), listed.stderr
    assert "clusters.unset.root: $NO_SUCH_DISK is not set there" in listed.stderr
    assert f"the runs in {long} cannot be read" in listed.stderr
    examined = laptop.onward("doctor").stdout
    assert "ok   lab " in examined
    bad = {line.split()[1]: line for line in examined.splitlines() if line.startswith("BAD")}
    assert "clusters.nopython.python: there is no /nope/python on lab" in bad["nopython"]
    assert "$NO_SUCH_DISK is not set there" in bad["unset"]
    assert "cannot be written; set clusters.closed.root" in bad["closed"]
    assert "ONWARD_ROOT" not in bad["closed"]
    for name, words in (("nopython", "clusters.nopython.python"), ("unset", "clusters.unset.root"), ("closed", str(closed))):
        refused = laptop.onward("submit", "--cluster", name, "--", "python3", "train.py")
        assert (refused.returncode != 0, words in refused.stderr) == (True, True), refused.stderr
    assert any("ConnectTimeout=5" in call["options"] for call in host.calls())


def test_a_folder_on_a_host_of_no_profile_is_told_from_one_that_is_no_run(laptop: Laptop) -> None:
    said = laptop.onward("show", "elsewhere:/scratch/runs/2026-11-15_A_digits")
    assert said.returncode == 3
    assert "elsewhere is not the host of any profile here" in said.stderr
    assert "ssh = 'elsewhere'" in said.stderr


def test_a_disk_that_is_full_there_is_said(laptop: Laptop, host: StandInHost) -> None:
    host.fail(says="OSError: [Errno 28] No space left on device\n", code=1, within="hashlib", times=-1)
    said = laptop.onward("submit", "--cluster", "lab", "--", "python3", "train.py")
    assert said.returncode == 1
    assert "there is no room left on lab" in said.stderr


def test_an_error_there_comes_back_with_its_class_words_and_exit_code(laptop: Laptop) -> None:
    missing = laptop.onward("submit", "--cluster", "lab", "--", "python3", "nowhere.py")
    assert missing.returncode == 2
    assert "no script nowhere.py" in missing.stderr
    unknown = laptop.onward("show", "nothing")
    assert unknown.returncode == 3
    assert "lab:" in unknown.stderr
    unset = Path(laptop.env["ONWARD_SETTINGS"])
    unset.write_text(unset.read_text().replace("~/runs", "$NO_SUCH_DISK/runs"))
    said = laptop.onward("submit", "--cluster", "lab", "--", "python3", "train.py")
    assert (said.returncode, "$NO_SUCH_DISK is not set there" in said.stderr) == (2, True)


def test_code_that_stays_where_it_stands_must_stand_there_too(laptop: Laptop) -> None:
    gone = laptop.project.with_name("elsewhere")
    laptop.project.rename(gone)
    laptop.project = gone
    shutil.copytree(gone, laptop.folder / "copy")
    said = laptop.onward("submit", "--cluster", "lab", "--no-freeze", "--", "python3", "train.py")
    assert said.returncode == 0, said.stderr  # the stand-in sees the same disk


def test_what_a_shell_prints_at_login_does_not_matter(laptop: Laptop, host: StandInHost) -> None:
    noisy = host.folder / "noisy"
    noisy.write_text("#!/bin/sh\necho Welcome to the lab\nprintf 'no newline'\nexec python3 \"$@\"\n")
    noisy.chmod(0o755)
    settings = Path(laptop.env["ONWARD_SETTINGS"])
    settings.write_text(settings.read_text() + f'python = "{noisy}"\n')
    body = laptop.json("runs", "--json")
    assert (body["runs"], body["unanswered"]) == ([], [])
    here, there = body["roots"]
    assert not here.startswith("lab:") and there.startswith("lab:/") and there.endswith("/runs")


def test_a_damaged_archive_there_is_replaced(laptop: Laptop, host: StandInHost) -> None:
    laptop.json("runs", "--json")
    [archive] = host.archives()
    archive.write_bytes(b"torn")
    assert laptop.json("runs", "--json")["unanswered"] == []
    assert stat.S_IMODE(archive.parent.stat().st_mode) == 0o700


def test_where_rsync_is_missing_the_code_goes_as_a_stream(laptop: Laptop, host: StandInHost, tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    for program in ("python3", "git", "sh", "env"):
        (few / program).symlink_to(shutil.which(program) or "/bin/false")
    laptop.env["PATH"] = f"{host.programs}:{few}"
    laptop.write("package/module.py", "")
    (laptop.project / "link.py").symlink_to("train.py")
    done = laptop.onward("submit", "--cluster", "lab", "--json", "--", "python3", "train.py")
    assert done.returncode == 0, done.stderr
    assert "rsync is missing here: the code was copied as a tar stream" in done.stderr
    code = Path(json.loads(done.stdout)["folder"]) / "code"
    assert sorted(os.listdir(code)) == ["link.py", "package", "train.py"]


def test_a_program_that_only_a_login_shell_finds_is_found(laptop: Laptop, host: StandInHost) -> None:
    programs = host.folder / "sbin"
    programs.mkdir()
    fake = programs / "sbatch"
    fake.write_text("#!/bin/sh\necho slurm 22.05.8\n")
    fake.chmod(0o755)
    (host.home / ".profile").write_text(f'echo hello; PATH="{programs}:$PATH"; export PATH\n')
    settings = Path(laptop.env["ONWARD_SETTINGS"])
    settings.write_text(settings.read_text().replace('scheduler = "local"', 'scheduler = "slurm"'))
    host.set_environment(**{**host.environment, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    if shutil.which("sbatch", path="/usr/bin:/bin"):
        host.set_environment(**{**host.environment, "PATH": str(_only_python(host.folder))})
    output = laptop.onward("submit", "--cluster", "lab", "--dry-run", "--", "python3", "train.py")
    assert output.returncode == 0, output.stderr
    assert "sbatch" in output.stderr


def _only_python(folder: Path) -> Path:
    only = folder / "only-python"
    only.mkdir()
    (only / "python3").symlink_to(os.path.realpath(sys.executable))
    return only


@pytest.mark.slow
def test_jobs_there_send_what_they_write_to_a_server_named_here_by_a_token_of_their_own(
    laptop: Laptop, host: StandInHost, tmp_path: Path
) -> None:
    laptop.write("train.py", "print('hello from afar', flush=True)\n" + TRAIN.format(steps=3, pause=0.01))
    with Running(tmp_path / "server") as server:
        token = server.token("--name", "ada")
        (laptop.folder / "token").write_text(token)
        (laptop.folder / "token").chmod(0o600)
        settings = laptop.folder / "settings.toml"
        settings.write_text(settings.read_text() + f'[tracker]\nurl = "{server.url}"\ntoken-file = "{laptop.folder / "token"}"\n')
        id, folder = submit(laptop)
        secret = RunDir(folder).tracker_token
        assert (secret.stat().st_mode & 0o777, secret.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert secret.read_text().startswith("owr_")
        until_over(folder)
        until(lambda: server.ask("GET", f"/api/v1/runs/{id}/logs/1/out", token=token)[2].startswith(b"hello from afar"), seconds=60)
        until(lambda: server.json("GET", f"/api/v1/runs/{id}", token)["state"] == "finished", seconds=60)
        points = server.json("GET", f"/api/v1/runs/{id}/points?metric=loss", token)["points"]
        assert [point["step"] for point in points] == [0, 1, 2]
        own, given = token.split("_", 2)[2], secret.read_text().split("_", 2)[2]
        assert own not in json.dumps(host.calls()) and given not in json.dumps(host.calls())
        there = [path for path in host.home.rglob("*") if path.is_file() and own.encode() in path.read_bytes()]
        assert there == []  # the user's own token stays here
