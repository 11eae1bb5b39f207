"""The parts of reaching a host: ssh's command line and words, what travels, and the archive that is carried."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onward import errors
from onward.errors import (
    AlreadyClaimed,
    Conflict,
    HostUnreachable,
    InvalidInput,
    LoginRefused,
    NoPython,
    OnwardError,
    StorageError,
    StorageFull,
)
from onward.model.plain_data import value_from_json, value_to_json
from onward.model.spec import BestRule, CheckpointRule, Environment, Limits, Outputs, Resources, RunDraft, Script
from onward.operations.ssh.agent_archive import agent_archive
from onward.operations.ssh.code_transfer import drop_links
from onward.operations.ssh.command_line import agent_command, hurried_ssh_line, receive_command, rsync_shell, ssh_line
from onward.operations.ssh.errors import SshFailure, explain, is_no_archive
from onward.operations.ssh.wire_format import decode, encode, error_from_json, error_to_json
from onward.schedulers.cluster_settings import ClusterSettings
from onward.settings import load_settings
from tests.hosts import StandInHost

# ── the command line ──────────────────────────────────────────────────────────


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInHost:
    host = StandInHost(tmp_path / "far")
    monkeypatch.setenv("PATH", f"{host.programs}:{os.environ['PATH']}")
    return host


def options(home: Path, **env: str) -> list[str]:
    line = ssh_line("lab", {"HOME": str(home), **env})
    assert (line[0], line[-2:]) == ("ssh", ["--", "lab"])
    return [word for word in line if "=" in word]


def test_what_the_user_has_left_open_is_filled_in(host: StandInHost, tmp_path: Path) -> None:
    runtime = Path("/tmp") / f"onward-test-{os.getpid()}"
    runtime.mkdir(mode=0o700)
    try:
        given = options(tmp_path, XDG_RUNTIME_DIR=str(runtime))
        assert {"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15", "ControlMaster=auto"} <= set(given)
        assert f"ControlPath={runtime}/onward/%C" in given
        assert (runtime / "onward").stat().st_mode & 0o077 == 0
    finally:
        subprocess.run(["rm", "-r", str(runtime)], check=True)


def test_a_list_waits_a_shorter_time_for_a_connection_than_an_act() -> None:
    line = ["ssh", "-o", "ConnectTimeout=15", "-o", "BatchMode=yes", "--", "lab"]
    assert hurried_ssh_line(line) == ["ssh", "-o", "ConnectTimeout=5", "-o", "BatchMode=yes", "--", "lab"]


def test_what_the_user_has_set_stays(host: StandInHost, tmp_path: Path) -> None:
    host.configure("connecttimeout 4\nserveraliveinterval 60\ncontrolmaster auto\ncontrolpath /home/me/.ssh/abc\nproxyjump gate\n")
    given = options(tmp_path)
    assert not [option for option in given if option.startswith(("ConnectTimeout", "ServerAlive", "Control"))]


def test_a_socket_that_others_could_open_or_whose_path_is_too_long_is_not_used(host: StandInHost, tmp_path: Path) -> None:
    runtime = Path("/tmp") / f"onward-open-{os.getpid()}"
    (runtime / "onward").mkdir(parents=True)
    (runtime / "onward").chmod(0o755)
    try:
        given = options(tmp_path / ("long" * 20), XDG_RUNTIME_DIR=str(runtime))
        assert not [option for option in given if option.startswith("Control")]
    finally:
        subprocess.run(["rm", "-r", str(runtime)], check=True)


def test_a_configuration_that_ssh_cannot_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho '/home/me/.ssh/config: terminating, 1 bad configuration options' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InvalidInput, match="bad configuration options"):
        ssh_line("lab", {})
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(InvalidInput, match="ssh is not on the PATH"):
        ssh_line("lab", {})


def test_commands_there_hold_nothing_that_a_shell_would_change() -> None:
    command = receive_command("python3", "agent-0.pyz", size=1, digest="0")
    program = command.split("'")[1]
    assert not set("!\\$`\n") & set(program)
    assert command.count("'") == 2
    assert agent_command("/opt/my python", "agent-0.pyz") == "'/opt/my python' -I -S ~/.cache/onward/agent-0.pyz agent"
    assert rsync_shell(["ssh", "-o", "ControlPath=/a b/%C", "--", "lab"]) == "ssh -o 'ControlPath=/a b/%C'"


# ── the profile ───────────────────────────────────────────────────────────────


def profile(folder: Path, text: str) -> ClusterSettings:
    (folder / "settings.toml").write_text(text)
    settings = load_settings({"ONWARD_SETTINGS": str(folder / "settings.toml"), "HOME": "/home/me"})
    cluster, found = settings.cluster("lab")
    assert cluster.ssh == found.ssh
    return found


def test_the_root_of_an_ssh_profile_is_left_as_it_is_written(tmp_path: Path) -> None:
    for root in ("~/runs", "$NOT_SET_HERE/runs", "/scratch/runs"):
        found = profile(tmp_path, f'[clusters.lab]\nssh = "me@lab.org"\nscheduler = "slurm"\nroot = "{root}"\n')
        assert (found.ssh, str(found.root)) == ("me@lab.org", root)


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "lab;id", "a b", "", "lab:22", "$HOST", "me@", "@lab"])
def test_what_is_no_host_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidInput, match=r"clusters\.lab\.ssh"):
        profile(tmp_path, f'[clusters.lab]\nssh = "{host}"\nscheduler = "slurm"\n')


def test_local_is_this_machine(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="local is this machine"):
        profile(tmp_path, '[clusters.local]\nssh = "lab"\n')


# ── words ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        ("carol@127.0.0.1: Permission denied (keyboard-interactive).", LoginRefused, "asks for a password or a code"),
        ("me@lab: Permission denied (publickey,password).", LoginRefused, "asks for a password or a code"),
        ("me@lab: Permission denied (publickey).", LoginRefused, "accepts none of your keys"),
        ("Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures", LoginRefused, "accepts none of your keys"),
        ("Host key verification failed.", LoginRefused, "is unknown on this machine"),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            LoginRefused,
            "shows another host key than before",
        ),
        ("ssh: Could not resolve hostname lab: Name or service not known", HostUnreachable, "cannot be reached"),
        ("ssh: connect to host lab port 22: Connection refused", HostUnreachable, "cannot be reached"),
        ("ssh: connect to host lab port 22: No route to host", HostUnreachable, "cannot be reached"),
        ("ssh: connect to host lab port 22: Connection timed out", HostUnreachable, "cannot be reached"),
        ("kex_exchange_identification: Connection closed by remote host", HostUnreachable, "cannot be reached"),
        ("client_loop: send disconnect: Broken pipe", HostUnreachable, "broke"),
        ("Timeout, server lab not responding.", HostUnreachable, "broke"),
        ("", HostUnreachable, "exit code 255"),
        ("/home/me/.ssh/config: line 3: Bad configuration option: controlmastr", InvalidInput, "cannot use its configuration"),
    ],
)
def test_what_ssh_says_is_taken_for_what_it_means(words: str, kind: type[OnwardError], said: str) -> None:
    error = explain(SshFailure(host="lab", python="python3", code=255, words=words))
    assert type(error) is kind
    assert said in error.message
    assert "lab" in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("code", "words", "kind", "said"),
    [
        (127, "bash: line 1: /no/python3: No such file or directory", NoPython, "there is no python3 on lab"),
        (126, "bash: line 1: /no/python3: Permission denied", NoPython, "there is no python3 on lab"),
        (127, "bash: line 1: python3: command not found", NoPython, "there is no python3 on lab"),
        (1, "python3: Command not found.", NoPython, "there is no python3 on lab"),
        (127, "sh: 1: python3: not found", NoPython, "there is no python3 on lab"),
        (86, "onward: this is Python 3.6 at /usr/bin/python3", NoPython, "needs 3.11 or later: onward: this is Python 3.6"),
        (2, "Unknown option: -I", NoPython, "too old"),
        (1, "OSError: [Errno 122] Disk quota exceeded", StorageFull, "no room left on lab"),
        (1, "PermissionError: [Errno 13] Permission denied: '/home/me/.cache/onward'", StorageError, "cannot be written"),
        (1, "ImportError: something", OnwardError, "gave an unexpected answer"),
    ],
)
def test_what_is_wrong_there_is_taken_for_what_it_means(code: int, words: str, kind: type[OnwardError], said: str) -> None:
    error = explain(SshFailure(host="lab", python="python3", code=code, words=words))
    assert type(error) is kind
    assert said in error.message
    assert error.hint


def test_a_complaint_of_the_archive_itself_is_told_from_one_of_what_is_in_it() -> None:
    assert is_no_archive("python3: can't open file '/h/.cache/onward/agent-1.pyz': [Errno 2] No such file or directory", "agent-1.pyz")
    assert is_no_archive('  File "/h/.cache/onward/agent-1.pyz", line 1\nSyntaxError', "agent-1.pyz")
    assert not is_no_archive('  File "/h/.cache/onward/agent-1.pyz/onward/errors.py", line 1\nKeyError', "agent-1.pyz")
    assert not is_no_archive("", "agent-1.pyz")


# ── what travels ──────────────────────────────────────────────────────────────


def test_a_draft_comes_back_as_it_was_sent() -> None:
    draft = RunDraft(
        name="a",
        experiment="b",
        cluster="lab",
        command=("python3", "train.py", "ü\n"),
        params={"lr": 0.1, "seed": 1, "none": None},
        resources=Resources(time=60, gpus="a100:2", extra=("--x=1", "-l y")),
        limits=Limits(total_time=5),
        checkpoints=CheckpointRule(best=BestRule(metric="loss", mode="min")),
        variables={"A": "b"},
        environment=Environment(modules=("cuda",), setup=("true",)),
        outputs=Outputs(out="%j.out"),
        script=Script(name="x.sh", folder="/here", shell=("/bin/bash",)),
        exclude=("data/*",),
    )
    assert value_from_json(RunDraft, decode(encode(value_to_json(draft))) or {}) == draft


def test_a_profile_comes_back_as_it_was_sent() -> None:
    profile = ClusterSettings(name="lab", scheduler="slurm", ssh="lab", root=Path("$WORK/runs"), defaults=Resources(mem=5))
    assert value_from_json(ClusterSettings, value_to_json(profile)) == profile
    assert value_from_json(ClusterSettings, {**value_to_json(profile), "of a newer version": 1}) == profile


@pytest.mark.parametrize("kind", [Conflict, AlreadyClaimed, StorageFull, InvalidInput, LoginRefused])
def test_an_error_comes_back_with_its_class_words_and_hint(kind: type[OnwardError]) -> None:
    error = error_from_json(error_to_json(kind("what", hint="next")), host="lab")
    assert (type(error), error.message, error.hint) == (kind, "what (on lab)", "next")


def test_an_error_of_a_class_that_is_not_known_here_is_of_the_nearest_that_is() -> None:
    class Newer(errors.Conflict):
        pass

    assert type(error_from_json(error_to_json(Newer("x")), host="lab")) is Conflict
    assert type(error_from_json({"classes": ["SystemExit", "os"], "message": "x", "hint": ""}, host="lab")) is OnwardError


@pytest.mark.parametrize("noise", [b"", b"\n", b"Welcome\n", b"\x1e{\n", b"\x1e[]\n", b'\x1e{"a": 1}', b"{}\n", b"\xff\xfe\n"])
def test_other_peoples_lines_are_noise(noise: bytes) -> None:
    assert decode(noise) is None


def test_a_line_of_ours_may_stand_behind_words_without_an_end() -> None:
    assert decode(b"Welcome" + encode({"a": "ü"})) == {"a": "ü"}


# ── the archive ───────────────────────────────────────────────────────────────


def test_the_verbs_run_from_the_archive_with_the_standard_library_alone(tmp_path: Path) -> None:
    archive = agent_archive()
    path = tmp_path / archive.name
    path.write_bytes(archive.build())
    script = f"""
import sys
sys.path.insert(0, {str(path)!r})
import onward.operations.ssh.agent
roots = {{name.partition(".")[0] for name in sys.modules}} - {{"__main__", "onward"}}
assert roots <= sys.stdlib_module_names, roots - sys.stdlib_module_names
print(onward.__file__)
"""
    bare = [os.path.realpath(sys.executable), "-I", "-S"]
    done = subprocess.run([*bare, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(path))
    entry = subprocess.run([*bare, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert (entry.returncode, "usage" in entry.stderr) == (2, True)  # it serves the local queue's keeper too


def test_the_same_modules_give_the_same_name_and_others_another() -> None:
    assert agent_archive().name == agent_archive().name
    other = type(agent_archive())({**agent_archive().modules, "onward/errors.py": b""})
    assert other.name != agent_archive().name


# ── code ──────────────────────────────────────────────────────────────────────


def test_links_to_this_machine_are_left_behind_and_those_within_the_code_stay(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "data").symlink_to("/data/large")
    (tmp_path / "sub" / "more").symlink_to("/data/more")
    (tmp_path / "within").symlink_to("sub")
    assert drop_links(tmp_path) == ["data", "sub/more"]
    assert sorted(os.listdir(tmp_path)) == ["a.py", "sub", "within"]
