"""`onward up` as people meet it: a process, a port, a link; stopped, killed, backed up, behind TLS."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.servers import PATIENCE, Running

SEED_SCRIPT = """\
# train.py - runs on HPC node
import os
import requests

TRACKER_API = os.environ.get("TRACKER_API", "http://tracker.internal")
EXPERIMENT_ID = os.environ["EXPERIMENT_ID"]
SLURM_JOB_ID = os.environ.get("SLURM_JOB_ID")

import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--learning-rate", type=float, default=0.001)
args = parser.parse_args()

def create_run():
    response = requests.post(
        f"{TRACKER_API}/experiments/{EXPERIMENT_ID}/runs",
        json={
            "slurm_job_id": SLURM_JOB_ID,
            "seed": args.seed,
            "config": vars(args)
        }
    )
    return response.json()["run_id"]

def log_metric(run_id, name, value, step):
    requests.post(
        f"{TRACKER_API}/runs/{run_id}/metrics",
        json={"name": name, "value": value, "step": step}
    )

# Training loop
run_id = create_run()
for epoch in range(int(os.environ["FIRST"]), int(os.environ["LAST"])):
    train_loss = 1.0 / (epoch + 1)
    val_acc = 1 - train_loss

    log_metric(run_id, "train_loss", train_loss, epoch)
    log_metric(run_id, "val_accuracy", val_acc, epoch)
print(run_id)
"""


def test_the_link_logs_a_browser_in_once_and_the_cookie_does_the_rest(tmp_path: Path) -> None:
    with Running(tmp_path) as server:
        code = server.link.removeprefix(server.url)
        status, headers, _ = server.ask("GET", code)
        assert status == 200
        cookie = headers["set-cookie"].split(";")[0]
        assert server.ask("GET", code)[0] == 401
        assert server.ask("GET", "/", headers={"cookie": cookie})[0] == 200
        assert server.ask("GET", "/healthz")[0] == 401
        again = server.onward("token", "login")
        assert again.stdout.startswith(f"{server.url}/login?code=owl_")
        assert server.stop() == 0
        said = server.log
    assert code.split("_", 2)[2] not in said
    assert cookie.split("_", 3)[3] not in said


def test_an_older_script_runs_unchanged_and_a_restarted_job_goes_on_with_its_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SEED_SCRIPT)
    with Running(tmp_path / "server") as server:
        token = server.token()
        kept = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        env = {**kept, "TRACKER_API": f"{server.url}/t/{token}", "EXPERIMENT_ID": "exp-001", "SLURM_JOB_ID": "12345", "HOME": str(tmp_path)}

        def train(first: int, last: int) -> str:
            both = {**env, "FIRST": str(first), "LAST": str(last)}
            done = subprocess.run(
                [sys.executable, "train.py"], cwd=tmp_path, env=both, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        run = train(0, 6)
        assert train(4, 10) == run
        [chart] = server.json("GET", f"/api/v1/series?run={run}&metric=train_loss", token)["series"]
        assert chart["steps"] == list(range(10))
        assert chart["superseded"] == 2
        shown = server.json("GET", f"/api/v1/runs/{run}", token)
        assert [leg["job"] for leg in shown["legs"]] == ["12345", "12345"]
        assert shown["params"]["learning_rate"] == "0.001"
        status, _, body = server.ask(
            "POST",
            f"/t/{token}/webhooks/slurm",
            body=b"job_id=12345&status=completed",
            headers={"content-type": "application/x-www-form-urlencoded"},
        )
        assert (status, json.loads(body)) == (200, {"received": True})
        assert token.split("_", 2)[2] not in server.log


ODD = [
    *("/api/v1/runs/../x", "/api/v1/runs/%2e%2e/x", "/api/v1/runs#x", "/api/v1/runs/a\\b", "/api/v1/runs/%5c", "/../../etc/passwd"),
    *("http://evil.test/", "//evil.test/../x", "*", "/api/v1/runs/%252e%252e/x", "/api/v1/runs/%00"),
]


def test_an_odd_target_on_the_wire_is_a_4xx(tmp_path: Path) -> None:
    with Running(tmp_path) as server:
        token = server.token()
        parts = urlsplit(server.url)
        for target in ODD:
            asked = f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE) as wire, wire.makefile("rb") as answer:
                wire.sendall(asked.encode())
                line = answer.readline()
            assert line.split()[1].startswith(b"4"), f"{target}: {line!r}"


def test_a_second_server_of_the_same_file_is_refused_and_a_taken_port_too(tmp_path: Path) -> None:
    with Running(tmp_path) as server:
        second = server.onward("up", "--port", "0")
        assert second.returncode == 5
        assert server.url in second.stderr
        port = str(urlsplit(server.url).port)
        third = server.onward("up", "--port", port, "--db", str(tmp_path / "other.db"))
        assert third.returncode == 5
        assert port in third.stderr


def test_listeners_hear_of_a_run_and_are_let_go_when_the_server_stops(tmp_path: Path) -> None:
    with Running(tmp_path) as server:
        token = server.token()
        parts = urlsplit(server.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        connection.request("GET", "/api/v1/live", headers={"authorization": f"Bearer {token}"})
        stream = connection.getresponse()
        assert stream.status == 200
        assert b"hello" in b"".join(stream.readline() for _ in range(5))
        run = server.json("POST", "/experiments/e/runs", token, {})["run_id"]
        server.json("PATCH", f"/runs/{run}", token, {"status": "completed"})
        heard: list[str] = []
        while not heard or heard[-1] != "finished":
            line = stream.readline()
            if line.startswith(b"data:"):
                body = json.loads(line[5:])
                if body["event"] == "run_status_changed" and body["run_id"] == run:
                    heard.append(body["status"])
        assert heard in (["running", "finished"], ["finished"])
        server.process.send_signal(signal.SIGTERM)
        assert stream.read() is not None  # to its end: it is closed from the other side
        assert server.process.wait(PATIENCE) == 0
        connection.close()


def test_a_backup_is_taken_while_it_serves_and_can_be_served(tmp_path: Path) -> None:
    with Running(tmp_path / "a") as server:
        token = server.token()
        run = server.json("POST", "/experiments/e/runs", token, {})["run_id"]
        server.json("POST", f"/runs/{run}/metrics", token, {"name": "loss", "value": 1, "step": 0})
        assert server.ask("PUT", f"/api/v1/runs/{run}/artifacts/a/b.txt", token=token, body=b"content")[0] == 201
        view = {"page": "runs", "name": "mine", "query": "q=x", "shared": True}
        assert server.ask("PUT", "/api/v1/views", token=token, json=view)[0] in (200, 201)
        done = server.onward("backup", str(tmp_path / "copy"), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["files"]["count"] == 1
        assert server.onward("backup", str(tmp_path / "copy")).returncode == 5
    with Running(tmp_path / "b", db=str(tmp_path / "copy" / "tracker.db")) as server:
        assert server.json("GET", f"/api/v1/runs/{run}/metrics", token)["metrics"]["loss"]["value"] == 1
        assert [view["name"] for view in server.json("GET", "/api/v1/views?page=runs", token)["views"]] == ["mine"]
        assert server.ask("GET", f"/api/v1/runs/{run}/artifacts/a/b.txt", token=token)[2] == b"content"


def test_behind_tls(tmp_path: Path) -> None:
    made = [
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
        *("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")),
    ]
    subprocess.run(made, check=True, capture_output=True, timeout=PATIENCE)
    with Running(tmp_path / "server", "--certfile", str(tmp_path / "cert.pem"), "--keyfile", str(tmp_path / "key.pem")) as server:
        assert server.url.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        context.check_hostname = False
        parts = urlsplit(server.url)
        connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=PATIENCE, context=context)
        connection.request("GET", server.link.removeprefix(server.url))
        answer = connection.getresponse()
        assert answer.status == 200
        assert "Secure" in (answer.getheader("set-cookie") or "")
        connection.close()


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--keyfile", "k.pem"], 2, "--certfile"),
        (["--certfile", "nowhere.pem"], 3, "nowhere.pem"),
        (["--root-path", "onward"], 2, "--root-path"),
        (["--port", "70000"], 2, "70000"),
        (["--db", "mysql://host/db"], 2, "mysql"),
        (["--db", "."], 2, "is a folder"),
        (["--db", "postgresql://ann@127.0.0.1:1/onward"], 6, "PostgreSQL is running"),
        (["--name", "http://x/y"], 2, "--name"),
        (["--host", "203.0.113.1", "--port", "0"], 5, "203.0.113.1"),
    ],
)
def test_what_cannot_be_served_is_said_in_words(tmp_path: Path, flags: list[str], code: int, words: str) -> None:
    env = {**os.environ, "ONWARD_STATE_DIR": str(tmp_path), "ONWARD_ROOT": str(tmp_path / "runs")}
    command = [sys.executable, "-m", "onward", "up", *flags]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "→" in done.stderr  # what next
    assert list(tmp_path.rglob("*.server")) == []


def test_two_servers_on_one_host_do_not_log_each_other_out(tmp_path: Path) -> None:
    with Running(tmp_path / "a") as one, Running(tmp_path / "b") as two:
        cookies = []
        for server in (one, two):
            _, headers, _ = server.ask("GET", server.link.removeprefix(server.url))
            cookies.append(headers["set-cookie"].split(";")[0])
        names = {cookie.partition("=")[0] for cookie in cookies}
        assert len(names) == 2  # a browser keeps both, and sends both to both
        for server in (one, two):
            assert server.ask("GET", "/healthz", headers={"cookie": "; ".join(cookies)})[0] == 200
        assert one.stop() == 0
        one.start()
        assert one.ask("GET", "/healthz", headers={"cookie": "; ".join(cookies)})[0] == 200


def test_tokens_are_listed_without_secrets_and_end_when_revoked(tmp_path: Path) -> None:
    with Running(tmp_path) as server:
        token = server.token("--name", "laptop", "--rights", "read", "--expires", "30-0")
        assert server.ask("GET", "/api/v1/runs", token=token)[0] == 200
        listed = server.onward("token", "list")
        assert "laptop" in listed.stdout
        assert token.split("_", 2)[2] not in listed.stdout
        assert server.onward("token", "revoke", token.split("_")[1]).returncode == 0
        until = time.monotonic() + PATIENCE
        while server.ask("GET", "/api/v1/runs", token=token)[0] == 200:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert server.onward("token", "revoke", "deadbeef").returncode == 3
        assert server.onward("token", "create", "--scope", "king").returncode == 2
        assert server.onward("token", "create", "--scope", "run").returncode == 2
        assert server.onward("token", "create", "--expires", "soon").returncode == 2
        assert server.onward("token", "create", "--scope", "run", "--run", "nosuch").returncode == 3
