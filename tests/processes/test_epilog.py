"""Epilogs tell of a job's end: signed, whatever its owner called it, within two seconds and always with exit code 0."""

from __future__ import annotations

import json
import os
import pwd
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from onward.api.access.allowed_hosts import HostRules
from onward.api.app import make_server
from onward.errors import InvalidInput, NotFound
from onward.operations.admin import epilog_scripts
from onward.operations.admin.job_end_hint import body_of, headers_of
from onward.operations.tracker_access.location import OpenTracker, tracker_location
from onward.tracker.access.tokens import Scope
from onward.tracker.runs.registry import NewRun
from tests.api import Answer, Client
from tests.databases import tracker_in
from tests.sandbox import Sandbox

MORTAL = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
HOSTILE = ["nm$(id>HERE)", "`id>HERE`", "a\nb\nc", '"; id>HERE; "', "'; id>HERE; '", "\\", "-rf *", "ü\udcff", "x" * 5000]


class Listener:
    """Takes what is posted, and answers 202, or nothing at all."""

    def __init__(self, *, silent: bool = False) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.got.append((self.path, dict(self.headers.items()), body))
                self.send_response(202)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._silent = socket.create_server(("127.0.0.1", 0)) if silent else None
        self._server = None if silent else HTTPServer(("127.0.0.1", 0), Handler)
        port = self._silent.getsockname()[1] if self._silent else self._server.server_port if self._server else 0
        self.url = f"http://127.0.0.1:{port}"
        if self._server:
            self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
            self._thread.start()

    def close(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        if self._silent:
            self._silent.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


class Harness:
    def __init__(self, folder: Path, opened: OpenTracker) -> None:
        self.sandbox = Sandbox(folder / "desk")
        self.clock = self.sandbox.clock
        self.opened = opened
        at = tracker_location({"HOME": str(folder)}, str(folder / "tracker.db"))
        self.server = make_server(opened.tracker, opened.tokens, self.sandbox.context, at, hosts=HostRules(), tend=False)
        self.looked = 0
        self.server.services.hinted = self._look
        self.secret = self.token()

    def _look(self) -> None:
        self.looked += 1

    def token(self, scope: Scope = Scope.WEBHOOK) -> str:
        return self.opened.tokens.create(scope, now=self.clock.now())[1].text

    def send(self, body: bytes, headers: dict[str, str]) -> Answer:
        return Client(self.server.gate).ask("POST", "/webhooks/hints", body=body, headers=headers)

    def hint(self, job: str = "4711", *, secret: str | None = None, id: str = "id-12345678", at: float = 0.0) -> Answer:
        now = self.clock.now() + at
        body = body_of("slurm", {b"SLURM_JOB_ID": job.encode()}, now)
        return self.send(body, headers_of(secret or self.secret, body, id, now))


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        made = opened.tracker.runs.create(NewRun(run_id="abcdefgh", source="onward", leg=1))
        opened.tracker.runs.set_leg(made.run_id, 1, job="4711", cluster="slurm")
        yield Harness(tmp_path, opened)


# ── the server's side ─────────────────────────────────────────────────────────


def test_a_hint_about_a_job_of_ours_makes_the_server_look_and_changes_nothing(harness: Harness) -> None:
    before = harness.opened.tracker.runs.get("abcdefgh")
    answer = harness.hint()
    assert (answer.status, answer.json) == (202, {"received": True, "known": True})
    assert harness.looked == 1
    assert harness.opened.tracker.runs.get("abcdefgh") == before


def test_a_hint_about_a_job_of_somebody_else_does_not(harness: Harness) -> None:
    assert harness.hint("99").json == {"received": True, "known": False}
    assert harness.looked == 0


def test_a_task_of_an_array_is_known_by_its_array(harness: Harness) -> None:
    harness.opened.tracker.runs.set_leg("abcdefgh", 1, job="4700_3")
    now = harness.clock.now()
    env = {b"SLURM_JOB_ID": b"4713", b"SLURM_ARRAY_JOB_ID": b"4700", b"SLURM_ARRAY_TASK_ID": b"3"}
    body = body_of("slurm", env, now)
    assert harness.send(body, headers_of(harness.secret, body, "id-12345678", now)).json["known"] is True


def test_forged_late_early_repeated_and_unsigned_hints_are_refused(harness: Harness) -> None:
    other = harness.token(Scope.USER)
    assert harness.hint(secret=other).status == 401
    assert harness.hint(secret="oww_00000000_" + "a" * 43).status == 401
    assert harness.hint(at=-301).status == 401
    assert harness.hint(at=301).status == 401
    assert harness.hint(id="short").status == 401
    now = harness.clock.now()
    body = body_of("slurm", {b"SLURM_JOB_ID": b"4711"}, now)
    good = headers_of(harness.secret, body, "id-12345678", now)
    assert harness.send(body + b" ", good).status == 401
    assert harness.send(body, {**good, "webhook-timestamp": str(int(now) + 1)}).status == 401
    assert harness.send(body, {**good, "webhook-signature": "v1,"}).status == 401
    assert harness.send(body, {**good, "webhook-signature": "v1,ü".encode().decode("latin-1")}).status == 401
    assert harness.send(body, {k: v for k, v in good.items() if k != "webhook-signature"}).status == 401
    assert harness.send(b"x" * 20_000, headers_of(harness.secret, b"x" * 20_000, "id-12345678", now)).status == 401
    assert harness.looked == 0
    assert harness.send(body, good).status == 202
    assert harness.send(body, good).status == 401  # the same again
    assert harness.looked == 1


def test_a_signature_opens_no_other_door(harness: Harness) -> None:
    now = harness.clock.now()
    body = body_of("slurm", {b"SLURM_JOB_ID": b"4711"}, now)
    headers = headers_of(harness.secret, body, "id-12345678", now)
    for path in ("/webhooks/slurm", "/api/v1/runs", "/webhooks/hints/"):
        assert Client(harness.server.gate).ask("POST", path, body=body, headers=headers).status == 401
    assert Client(harness.server.gate).ask("GET", "/webhooks/hints", headers=headers).status == 401


def test_two_secrets_stand_until_one_is_revoked(harness: Harness) -> None:
    new = harness.token()
    assert harness.hint(id="id-00000001").status == 202
    assert harness.hint(id="id-00000002", secret=new).status == 202
    harness.opened.tokens.revoke(harness.secret, now=harness.clock.now())
    assert harness.hint(id="id-00000003").status == 401
    assert harness.hint(id="id-00000004", secret=new).status == 202


def test_what_is_no_hint_is_refused_with_words(harness: Harness) -> None:
    now = harness.clock.now()
    for number, body in enumerate(
        [b"{}", b"[]", b"no", b'{"scheduler": "slurm", "job_id": "1; rm"}', b'{"scheduler": "x", "job_id": "1"}']
    ):
        answer = harness.send(body, headers_of(harness.secret, body, f"id-0000000{number}", now))
        assert 400 <= answer.status < 500
    assert harness.looked == 0


# ── the scripts ───────────────────────────────────────────────────────────────


def installed(folder: Path, url: str, secret: str) -> epilog_scripts.InstalledEpilogs:
    return epilog_scripts.install_epilogs(folder, url, secret=lambda: secret, gridengine_user=MORTAL)


def run(script: Path, env: dict[str, str], *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    raw = {os.fsencode(key): os.fsencode(value) for key, value in env.items()}
    return subprocess.run([script, *words], env=raw, capture_output=True, timeout=60, cwd=cwd, check=False)


@pytest.mark.parametrize("name", HOSTILE)
def test_slurms_epilog_tells_what_slurm_says_whatever_the_name(harness: Harness, listener: Listener, tmp_path: Path, name: str) -> None:
    done = installed(tmp_path / "et c'", listener.url, harness.secret)
    env = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": name.replace("HERE", str(tmp_path / "ran")), "SLURM_JOB_COMMENT": "`id`"}
    env |= {"SLURM_JOB_USER": "alice", "SLURM_JOB_EXIT_CODE2": "0:0", "SLURM_CLUSTER_NAME": "bed"}
    said = run(done.slurm, env)
    assert (said.returncode, said.stdout, said.stderr) == (0, b"", b"")
    assert not (tmp_path / "ran").exists()
    ((path, headers, body),) = listener.got
    assert path == "/webhooks/hints"
    data = json.loads(body)
    assert (data["scheduler"], data["job_id"], data["user"], data["cluster"]) == ("slurm", "4711", "alice", "bed")
    assert data["name"] == os.fsencode(env["SLURM_JOB_NAME"]).decode("utf-8", "replace")[:200]
    assert "comment" not in data
    assert harness.secret not in str(headers) + body.decode()
    harness.clock.sleep(time.time() - harness.clock.now())
    lower = {key.lower(): value for key, value in headers.items() if key.lower().startswith(("webhook", "content-type"))}
    assert harness.send(body, lower).json == {"received": True, "known": True}


def test_grid_engines_epilog_believes_the_schedulers_argument(harness: Harness, listener: Listener, tmp_path: Path) -> None:
    done = installed(tmp_path / "etc", listener.url, harness.secret)
    os.chown(done.folder / "gridengine.secret", os.geteuid(), -1)
    env = {"JOB_ID": "1$(id)", "JOB_NAME": HOSTILE[0], "SGE_TASK_ID": "undefined", "PATH": "/nonexistent"}
    env |= {"PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": "/x", "LC_ALL": "xx", "http_proxy": "http://127.0.0.1:1"}
    assert run(done.gridengine, env, "4711").returncode == 0
    assert json.loads(listener.got[0][2])["job_id"] == "4711"
    assert run(done.gridengine, env, "4711; id").returncode == 0
    assert json.loads(listener.got[1][2])["job_id"] == "1$(id)"  # which the server refuses


def test_a_server_that_is_away_or_silent_does_not_hold_the_epilog_up(tmp_path: Path, harness: Harness) -> None:
    quiet = Listener(silent=True)
    try:
        for index, url in enumerate((quiet.url, "http://127.0.0.1:9", "http://onward.invalid")):
            done = installed(tmp_path / str(index), url, harness.secret)
            assert run(done.slurm, {"SLURM_JOB_ID": "1"}).returncode == 0
    finally:
        quiet.close()


@pytest.mark.parametrize("spoil", ["mode", "link", "gone", "settings", "program"])
def test_whatever_is_wrong_with_its_files_the_exit_code_is_0(harness: Harness, listener: Listener, tmp_path: Path, spoil: str) -> None:
    done = installed(tmp_path / "etc", listener.url, harness.secret)
    secret = done.folder / "slurm.secret"
    match spoil:
        case "mode":
            secret.chmod(0o644)
        case "link":
            secret.rename(tmp_path / "elsewhere")
            secret.symlink_to(tmp_path / "elsewhere")
        case "gone":
            secret.unlink()
        case "settings":
            (done.folder / "hint.json").write_text("{")
        case "program":
            (done.folder / "hint.py").unlink()
    said = run(done.slurm, {"SLURM_JOB_ID": "1"})
    assert (said.returncode, said.stderr, listener.got) == (0, b"", [])


def test_the_program_is_plain_python_and_says_what_is_wrong_when_run_by_hand(harness: Harness, tmp_path: Path) -> None:
    done = installed(tmp_path / "etc", "http://127.0.0.1:9", harness.secret)
    said = subprocess.run(
        [sys.executable, "-I", "-S", done.folder / "hint.py", "slurm"], capture_output=True, text=True, timeout=60, check=False
    )
    assert said.returncode == 0
    assert "the hint was not sent" in said.stderr


# ── installing ────────────────────────────────────────────────────────────────


def test_secrets_are_for_one_alone_and_are_kept_until_renewed(harness: Harness, tmp_path: Path) -> None:
    done = installed(tmp_path / "etc", "https://tracker.example.org/onward/", harness.secret)
    for name in ("slurm.secret", "gridengine.secret"):
        assert stat.S_IMODE((done.folder / name).stat().st_mode) == 0o600
        assert (done.folder / name).read_text().strip() == harness.secret
    readable = [path for path in done.folder.iterdir() if path.stat().st_mode & 0o077]
    assert not [path for path in readable if harness.secret in path.read_text()]
    assert json.loads((done.folder / "hint.json").read_text())["url"] == "https://tracker.example.org/onward"
    again = epilog_scripts.install_epilogs(
        tmp_path / "etc", "http://other", secret=lambda: pytest.fail("a secret is there"), gridengine_user=MORTAL
    )
    assert [path.name for path in again.kept] == ["slurm.secret", "gridengine.secret"]
    new = harness.token()
    epilog_scripts.install_epilogs(tmp_path / "etc", "http://other", secret=lambda: new, renew=True, gridengine_user=MORTAL)
    assert (done.folder / "slurm.secret").read_text().strip() == new
    assert sorted(path.name for path in done.folder.iterdir()) == [
        "epilog-gridengine", "epilog-slurmctld", "gridengine.secret", "hint.json", "hint.py", "slurm.secret",
    ]  # fmt: skip


def test_what_to_configure_is_said(harness: Harness, tmp_path: Path) -> None:
    done = installed(tmp_path / "etc", "http://tracker:8765", harness.secret)
    said = "\n".join(epilog_scripts.installation_steps(done))
    assert f"EpilogSlurmctld={done.folder}/epilog-slurmctld" in said
    assert f"{MORTAL}@{done.folder}/epilog-gridengine $job_id" in said


def test_root_does_not_run_what_a_jobs_owner_can_influence(harness: Harness, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="root"):
        epilog_scripts.install_epilogs(tmp_path / "etc", "http://x", secret=lambda: harness.secret, gridengine_user="root")
    if os.geteuid() == 0:
        done = epilog_scripts.install_epilogs(tmp_path / "etc", "http://x", secret=lambda: harness.secret)
        assert not (done.folder / "gridengine.secret").exists()
        assert "--gridengine-user" in epilog_scripts.installation_steps(done)[1]


@pytest.mark.parametrize(
    "url", ["tracker:8765", "ftp://x", "http://", "http://a b", "http://u:p@x", "http://x/t/oww_1", "http://x/?a=b", "http://x\n"]
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput):
        installed(tmp_path / "etc", url, "x")
    assert not (tmp_path / "etc").exists()


def test_another_kind_of_token_and_unknown_users_are_refused(harness: Harness, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="webhook"):
        installed(tmp_path / "etc", "http://x", harness.token(Scope.USER))
    with pytest.raises(NotFound, match="nosuch"):
        epilog_scripts.install_epilogs(tmp_path / "etc2", "http://x", secret=lambda: harness.secret, slurm_user="nosuch")
