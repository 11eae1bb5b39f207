"""A server as it is used: live events with cursors over a lost connection, a log followed as it grows, demo data, a proxy before it."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from beds.postgres import Postgres, free_port
from onward.model.run import LegEnd
from tests.http_load import wait_until
from tests.needs import missing
from tests.sandbox import Sandbox
from tests.servers import PATIENCE, Running


class Listener:
    """One stream: its events as they come. `heard` is the id of the last."""

    def __init__(self, url: str, path: str, token: str, **headers: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        sent = {"authorization": f"Bearer {token}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        self._connection.request("GET", parts.path + path, headers=sent)
        self._stream = self._connection.getresponse()
        assert self._stream.status == 200, self._stream.read()
        self.heard = ""

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._connection.close()

    def events(self) -> Iterator[dict[str, Any]]:
        while line := self._stream.readline():
            if line.startswith(b"id:"):
                self.heard = line[3:].strip().decode()
            if line.startswith(b"data:"):
                yield json.loads(line[5:])

    def first(self, **wanted: Any) -> dict[str, Any]:
        return next(event for event in self.events() if all(event.get(key) == value for key, value in wanted.items()))


def test_a_listener_that_lost_its_connection_hears_what_it_missed_and_after_a_restart_that_it_must_read_anew(tmp_path: Path) -> None:
    with Running(tmp_path) as server:
        token = server.token()
        run, other = (server.json("POST", "/experiments/e/runs", token, {})["run_id"] for _ in range(2))
        with Listener(server.url, f"/api/v1/live?run={run}&event=run_status_changed", token) as listener:
            assert next(listener.events())["event"] == "hello"
            server.json("PATCH", f"/runs/{run}", token, {"status": "failed"})
            listener.first(event="run_status_changed", run_id=run, status="failed")
            cursor = listener.heard
        for status in ("running", "completed"):  # while nobody listens
            for one in (other, run):
                server.json("PATCH", f"/runs/{one}", token, {"status": status})
            time.sleep(1.5)  # commits that come together are told together
        for how in ({"last_event_id": cursor}, {}):
            query = "" if how else f"&cursor={cursor}"
            with Listener(server.url, f"/api/v1/live?run={run}&event=run_status_changed{query}", token, **how) as listener:
                answer = listener.events()
                assert next(answer)["event"] == "hello"
                missed = [next(answer), next(answer)]
                assert [(one["run_id"], one["status"]) for one in missed] == [(run, "running"), (run, "finished")]
        server.kill()
        server.start()
        with Listener(server.url, "/api/v1/live", token, last_event_id=cursor) as listener:
            assert next(listener.events())["event"] == "reset"
        for odd in ("x", "-1", "a" * 100, f"{cursor}0000"):
            with Listener(server.url, f"/api/v1/live?cursor={odd}", token) as listener:
                assert next(listener.events())["event"] == "reset"
        assert server.ask("GET", f"/api/v1/live?cursor={'a' * 101}", token=token)[0] == 400


def test_a_run_of_ours_tells_its_states_as_its_journal_is_written(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "desk")
    with Running(tmp_path / "server", "--no-tend", root=sandbox.root) as server:
        token = server.token()
        with Listener(server.url, "/api/v1/live?event=run_status_changed", token) as listener:
            assert next(listener.events())["event"] == "hello"
            played = sandbox.play()
            listener.first(run_id=played.spec.id, status="submitted")
            played.begin(1)
            listener.first(run_id=played.spec.id, status="running")
            played.end(1, LegEnd.DONE)
            listener.first(run_id=played.spec.id, status="finished")


def test_a_log_is_followed_as_it_grows_and_gone_on_with_where_it_was_left(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "desk")
    played = sandbox.play()
    log = played.dir.log(1, "out")
    log.write_bytes(b"first\n")
    with Running(tmp_path / "server", "--no-tend", root=sandbox.root) as server:
        token = server.token()
        address = f"/api/v1/runs/{played.spec.id}/logs/1"
        wait_until(lambda: server.ask("GET", f"{address}/out", token=token)[0] == 200)
        with Listener(server.url, f"{address}/out/follow", token) as listener:
            assert next(listener.events()) == {"offset": 0, "text": "first\n"}
            with log.open("ab") as file:
                file.write("Größe\n".encode())
            assert next(listener.events())["text"] == "Größe\n"
            assert listener.heard == "14"
        with log.open("ab") as file:
            file.write(b"x" * 100_000)  # a line without an end comes in parts
        with Listener(server.url, f"{address}/out/follow", token, last_event_id="14") as listener:
            parts = [next(listener.events()), next(listener.events())]
            assert [(part["offset"], len(part["text"])) for part in parts] == [(14, 65536), (14 + 65536, 100_000 - 65536)]
        with Listener(server.url, f"{address}/err/follow", token) as listener:  # not there yet
            played.dir.log(1, "err").write_text("late")
            assert next(listener.events())["text"] == "late"
        with Listener(server.url, f"{address}/out/follow?offset=-3", token, last_event_id="nonsense") as listener:
            assert next(listener.events())["text"] == "xxx"
        for odd, status in (("9/out", 200), ("-1/out", 400), ("1/spec.json", 400), ("x/out", 400)):
            if status != 200:
                assert server.ask("GET", f"/api/v1/runs/{played.spec.id}/logs/{odd}/follow", token=token)[0] == status
        assert server.ask("GET", "/api/v1/runs/nosuchrn/logs/1/out/follow", token=token)[0] == 404


def test_demo_data_fills_an_empty_store_once(tmp_path: Path) -> None:
    with Running(tmp_path, "--demo-data") as server:
        token = server.token()
        runs = server.json("GET", "/api/v1/runs?count=true", token)
        assert runs["total"] == 10
        assert {run["state"] for run in runs["runs"]} == {"running", "waiting", "finished", "failed", "cancelled"}
        legs = {run["id"]: run["leg"] for run in runs["runs"]}
        many = max(legs, key=lambda id: legs[id])
        [chart] = server.json("GET", f"/api/v1/series?run={many}&metric=loss", token)["series"]
        assert chart["points"] == 2000
        assert chart["superseded"] == 100
        server.stop()
        server.start()
        assert server.json("GET", "/api/v1/runs?count=true", token)["total"] == 10
        assert "demo data: 0 runs" in server.log


def test_a_backup_of_postgresql_can_be_restored_and_served(postgres: Postgres, address: str, tmp_path: Path) -> None:
    if shutil.which("pg_dump") is None:
        missing("pg_dump is not installed: apt-get install postgresql-client")
    with Running(tmp_path / "a", db=address) as server:
        token = server.token()
        run = server.json("POST", "/experiments/e/runs", token, {})["run_id"]
        server.json("POST", f"/runs/{run}/metrics", token, {"name": "loss", "value": 1, "step": 0})
        assert server.ask("PUT", f"/api/v1/runs/{run}/artifacts/b.txt", token=token, body=b"content")[0] == 201
        view = {"page": "runs", "name": "mine", "query": "q=x", "shared": True}
        assert server.ask("PUT", "/api/v1/views", token=token, json=view)[0] in (200, 201)
        done = server.onward("backup", str(tmp_path / "copy"), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["files"]["count"] == 1
    url = postgres.create("restored")
    subprocess.run(["pg_restore", "--no-owner", f"--dbname={url}", str(tmp_path / "copy" / "tracker.dump")], check=True, timeout=PATIENCE)
    with Running(tmp_path / "b", "--files", str(tmp_path / "copy" / "tracker.files"), db=url) as server:
        assert server.json("GET", f"/api/v1/runs/{run}/metrics", token)["metrics"]["loss"]["value"] == 1
        assert [view["name"] for view in server.json("GET", "/api/v1/views?page=runs", token)["views"]] == ["mine"]
        assert server.ask("GET", f"/api/v1/runs/{run}/artifacts/b.txt", token=token)[2] == b"content"


NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_max_body_size 0; default_type text/plain;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; proxy_request_buffering off; proxy_max_temp_file_size 0;
  server {{
    listen 127.0.0.1:{port};
    location /onward/ {{ proxy_pass {url}{strip}; proxy_http_version 1.1; proxy_set_header Host $http_host; }}
    location / {{ return 404; }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(folder: Path, url: str, *, strip: bool) -> Iterator[str]:
    folder.mkdir()
    port = free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, url=url, strip="/" if strip else ""))
    process = subprocess.Popen(
        [shutil.which("nginx") or "/usr/sbin/nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    )
    try:
        wait_until(lambda: (folder / "nginx.pid").exists() and _answers(port))
        yield f"http://127.0.0.1:{port}/onward"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _answers(port: int) -> bool:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == 404
        except OSError:
            return False


@pytest.mark.parametrize("strip", [True, False], ids=["the proxy takes the prefix off", "the proxy leaves it on"])
def test_behind_a_reverse_proxy_under_a_path(tmp_path: Path, strip: bool) -> None:
    if not (shutil.which("nginx") or Path("/usr/sbin/nginx").exists()):
        missing("nginx is not installed: apt-get install nginx-light")
    with Running(tmp_path / "server", "--root-path", "/onward") as server:
        token = server.token()
        direct = urlsplit(server.url)
        with nginx(tmp_path / "nginx", f"{direct.scheme}://{direct.netloc}", strip=strip) as url:
            code = server.link.partition("/login")[2]
            server.url = url

            def ask(method: str, path: str, **others: Any) -> tuple[int, dict[str, str], bytes]:
                return server.ask(method, f"/onward{path}", **others)

            status, headers, page = ask("GET", f"/login{code}")
            assert status == 200
            assert "Path=/onward" in headers["set-cookie"]
            assert b'url=/onward/"' in page
            cookie = {"cookie": headers["set-cookie"].split(";")[0]}
            assert b'href="/onward/docs"' in ask("GET", "/", headers=cookie)[2]
            origin = url.removesuffix("/onward")
            made = ask("POST", "/api/v1/runs", headers={**cookie, "origin": origin}, json={"name": "by a page"})
            assert made[0] == 201
            assert ask("POST", "/api/v1/runs", headers={**cookie, "origin": "http://evil.test"}, json={})[0] == 403
            run = json.loads(ask("POST", f"/t/{token}/experiments/e/runs", json={})[2])["run_id"]
            assert ask("POST", f"/t/{token}/runs/{run}/metrics", json={"name": "loss", "value": 1, "step": 0})[0] == 200
            assert ask("PUT", f"/api/v1/runs/{run}/artifacts/a%20b.txt", token=token, body=b"x" * 200_000)[0] == 201
            assert len(ask("GET", f"/api/v1/runs/{run}/artifacts/a%20b.txt", token=token)[2]) == 200_000
            assert ask("GET", "/api/v1/runs")[0] == 401
            assert json.loads(ask("GET", "/api/openapi.json", token=token)[2])["servers"] == [{"url": "/onward"}]
            for odd in ("/api/v1/runs/%2e%2e/%2e%2e/x", "/api/v1/runs/%5cx", "/api/v1/runs/%252e%252e"):
                assert 400 <= ask("GET", odd, token=token)[0] < 500
            with Listener(url, "/api/v1/live", token) as listener:
                assert next(listener.events())["event"] == "hello"
                ask("PATCH", f"/runs/{run}", token=token, json={"status": "completed"})
                listener.first(run_id=run, status="finished")
