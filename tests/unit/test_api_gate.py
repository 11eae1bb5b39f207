"""The gate: nothing behind it is reached without a token that stands, from a foreign Host or Origin, or by an odd path."""

from __future__ import annotations

import base64
import io
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from onward.api.access.allowed_hosts import HostRules
from onward.api.access.gate import AccessGate, Receive, Scope, Send
from onward.api.access.login import LoginPage
from onward.api.access.rights.route_lookup import Routes
from onward.api.access.token_cache import FRESH, TokenCache
from onward.api.app import make_api
from onward.api.extensions import rights_table
from onward.api.server_log import JsonLines, log
from onward.clock import ManualClock
from onward.errors import StorageUnavailable
from onward.operations.tracker_access.location import OpenTracker
from onward.tracker.access.tokens import AFTER_ARCHIVE, AFTER_END, Rights
from onward.tracker.access.tokens import Scope as TokenScope
from onward.tracker.runs.registry import NewRun
from tests.api import Answer, Client
from tests.databases import tracker_in

ROUTES = Routes(make_api(), rights_table())  # no route is called


class Behind:
    """What the gate lets through."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.scopes: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append((scope["method"], scope["path"]))
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


class Harness:
    def __init__(self, opened: OpenTracker, *, root: str = "") -> None:
        self.clock = ManualClock(1_794_744_000.0)
        self.store = store = opened.tokens
        self.runs = opened.tracker.runs
        self.behind = Behind()
        self.book = TokenCache(store, self.clock)
        rules = HostRules.of(bound="127.0.0.1", machine="node7", given=["tracker.example.org"])
        login = LoginPage(store, self.clock, cookie="onward_session_k1")
        self.gate = AccessGate(self.behind, routes=ROUTES, book=self.book, hosts=rules, login=login, root=root)

    def run(self) -> str:
        return self.runs.create(NewRun(experiment="digits", name="digits", source="seed")).run_id

    def token(self, scope: TokenScope = TokenScope.USER, **others: Any) -> str:
        return self.store.create(scope, now=self.clock.now(), **others)[1].text

    def client(self, token: str | None = None, **others: Any) -> Client:
        return Client(self.gate, token, **others)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenTracker]:
    with tracker_in(tmp_path) as opened:
        yield opened


@pytest.fixture
def harness(opened: OpenTracker) -> Harness:
    return Harness(opened)


METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/readyz", "/metrics", "/docs", "/runs/1/metrics", "/webhooks/slurm", "/nowhere", "/login", "/t/"]
)
def test_without_a_token_nothing_is_reached(harness: Harness, method: str, path: str) -> None:
    answer = harness.client().ask(method, path)
    assert answer.status == 401
    assert "www-authenticate" in answer.headers
    assert harness.behind.seen == []


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer owu_00000000_" + "a" * 43},
        {"authorization": "Bearer "},
        {"authorization": "Basic " + base64.b64encode(b"ada:secret").decode()},
        {"x-api-key": "key"},
        {"cookie": "onward_session_k1=owu_00000000_" + "a" * 43},
        {"cookie": "other=1"},
        {"x-forwarded-user": "root", "x-forwarded-for": "127.0.0.1"},
    ],
)
def test_a_wrong_token_opens_nothing(harness: Harness, headers: dict[str, str]) -> None:
    assert harness.client().get("/api/v1/runs", headers=headers).status == 401
    assert harness.behind.seen == []


def test_a_token_opens_in_each_of_its_ways(harness: Harness) -> None:
    token = harness.token()
    basic = base64.b64encode(f"ada:{token}".encode()).decode()
    for headers in (
        {"authorization": f"Bearer {token}"},
        {"x-api-key": token},
        {"authorization": f"Basic {basic}"},
        {"cookie": f"onward_session_k1={token}"},
    ):
        assert harness.client().get("/api/v1/runs", headers=headers).status == 200
    assert harness.client().get(f"/t/{token}/api/v1/runs").status == 200
    assert harness.behind.seen == [("GET", "/api/v1/runs")] * 5


def test_behind_the_gate_nobody_sees_the_token_of_an_address(harness: Harness) -> None:
    token = harness.token()
    harness.client().get(f"/t/{token}/runs/k1?x=1")
    scope = harness.behind.scopes[0]
    assert token not in str({key: value for key, value in scope.items() if key != "state"})
    assert scope["state"]["caller"].token == token.split("_")[1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("host", ["evil.test", "localhost.evil.test", "localhost:8765.evil.test", ""])
def test_a_foreign_host_is_refused_whatever_the_token(harness: Harness, method: str, host: str) -> None:
    assert harness.client(harness.token(), host=host).ask(method, "/api/v1/runs").status == 421
    assert harness.client(harness.token()).ask(method, "/api/v1/runs", headers={"host": None}).status == 421
    assert harness.behind.seen == []


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("origin", ["http://evil.test", "null", "http://localhost:3000", "https://localhost:8765.evil.test"])
def test_a_foreign_origin_is_refused_whatever_the_token(harness: Harness, method: str, origin: str) -> None:
    token = harness.token()
    for headers in ({"origin": origin}, {"origin": origin, "cookie": f"onward_session_k1={token}", "authorization": None}):
        assert harness.client(token).ask(method, "/api/v1/runs", headers=headers).status == 403
    assert harness.client().post(f"/t/{token}/api/v1/runs", headers={"origin": origin}).status == 403
    assert harness.behind.seen == []


def test_a_browser_that_writes_must_say_where_it_came_from(harness: Harness) -> None:
    cookie = {"cookie": f"onward_session_k1={harness.token()}"}
    assert harness.client().post("/api/v1/runs", headers=cookie).status == 403
    assert harness.client().post("/api/v1/runs", headers={**cookie, "origin": "http://localhost:8765"}).status == 200
    assert harness.client().get("/api/v1/runs", headers=cookie).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../x",
        "/runs/%2e%2e/x",
        "/runs/%2E%2e",
        "/runs/..%2fx",
        "/a%5cb",
        "/a\\b",
        "/a%23b",
        "/a#b",
        "/a%00",
        "/%252e%252e/x",
        "/a/%2e/b",
        "/a%0ab",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_an_odd_path_is_refused(harness: Harness, method: str, path: str) -> None:
    token = harness.token()
    assert harness.client(token).ask(method, path).status == 400
    assert harness.client().ask(method, f"/t/{token}{path}").status == 400
    assert harness.behind.seen == []


def test_web_sockets_are_refused(harness: Harness) -> None:
    import asyncio

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    asyncio.run(harness.gate({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


# ── what a token may do ───────────────────────────────────────────────────────


def test_a_reader_reads_and_an_admin_manages_tokens(harness: Harness) -> None:
    reader, writer, admin = (harness.client(harness.token(rights=rights)) for rights in Rights)
    assert reader.get("/api/v1/runs").status == 200
    assert reader.post("/api/v1/runs/search").status == 200
    for method, path in (("POST", "/runs/k1/metrics"), ("PUT", "/api/v1/views"), ("PATCH", "/runs/k1"), ("DELETE", "/api/v1/views/1")):
        assert reader.ask(method, path).status == 403
        assert writer.ask(method, path).status == 200
    for method, path in (("GET", "/api/v1/tokens"), ("POST", "/api/v1/tokens"), ("DELETE", "/api/v1/tokens/1")):
        assert reader.ask(method, path).status == writer.ask(method, path).status == 403
        assert admin.ask(method, path).status == 200


def test_what_is_no_route_is_answered_by_the_gate_and_goes_no_further(harness: Harness) -> None:
    admin = harness.client(harness.token(rights=Rights.ADMIN))
    missing, wrong = admin.get("/nowhere"), admin.ask("DELETE", "/api/v1/runs")
    assert (missing.status, wrong.status, wrong.headers["allow"]) == (404, 405, "GET, POST")
    assert admin.get("/api/2.0/mlflow/registered-models/search").json["error_code"] == "ENDPOINT_NOT_FOUND"
    assert harness.behind.seen == []


def test_a_run_token_is_held_to_its_run(harness: Harness) -> None:
    run, other = harness.run(), harness.run()
    mine = harness.client(harness.token(TokenScope.RUN, run=run))
    for method, path in (
        ("POST", f"/runs/{run}/metrics"),
        ("POST", f"/runs/{run}/metrics/batch"),
        ("POST", f"/runs/{run}/artifacts"),
        ("PUT", f"/api/v1/runs/{run}/artifacts/a/b.txt"),
        ("GET", f"/api/v1/runs/{run}"),
        ("GET", f"/runs/{run}"),
        ("POST", "/experiments/digits/runs"),
        ("POST", "/api/2.0/mlflow/runs/log-metric"),
        ("GET", "/healthz"),
    ):
        assert mine.ask(method, path).status == 200, path
    for method, path in (
        ("POST", f"/runs/{other}/metrics"),
        ("GET", f"/api/v1/runs/{other}"),
        ("GET", "/api/v1/runs"),
        ("POST", f"/api/v1/runs/{run}/cancel"),
        ("PATCH", f"/api/v1/runs/{run}"),
        ("POST", "/webhooks/slurm"),
        ("GET", "/metrics"),
        ("GET", "/"),
    ):
        assert mine.ask(method, path).status == 403, path


def test_a_run_token_ends_with_its_run_and_comes_back_with_it(harness: Harness) -> None:
    run = harness.run()
    token = harness.token(TokenScope.RUN, run=run)

    def seen() -> tuple[int, int]:
        harness.book.forget()
        client = harness.client(token)
        return client.post(f"/runs/{run}/metrics").status, client.post(f"/api/v1/runs/{run}/pieces").status

    harness.clock.sleep(3600)
    for state in ("finished", "failed", "cancelled"):
        assert seen() == (200, 200)
        harness.runs.update(run, state=state, ended=harness.clock.now())
        assert seen() == (403, 200)  # its last job may send what is left of the folder
        harness.clock.sleep(AFTER_END)
        assert seen() == (401, 401)
        harness.runs.update(run, state="running", ended=None)
    assert seen() == (200, 200)
    harness.runs.archive(run)
    assert seen() == (200, 200)  # out of the lists, and still training
    harness.clock.sleep(time.time() - harness.clock.now() + AFTER_ARCHIVE)
    assert seen() == (401, 401)


def test_a_token_made_for_the_next_leg_of_an_ended_run_waits_for_that_leg(harness: Harness) -> None:
    run = harness.run()
    harness.runs.update(run, state="failed", ended=harness.clock.now())
    harness.clock.sleep(86400)
    client = harness.client(harness.token(TokenScope.RUN, run=run))
    harness.clock.sleep(7 * 86400)  # in the queue
    assert (client.post(f"/api/v1/runs/{run}/pieces").status, client.post(f"/runs/{run}/metrics").status) == (200, 403)
    harness.runs.update(run, state="running", ended=None)  # as its journal says once it was sent
    harness.clock.sleep(60 * 86400)
    assert client.post(f"/runs/{run}/metrics").status == 200
    harness.runs.update(run, state="failed", ended=harness.clock.now())
    harness.clock.sleep(AFTER_END)
    assert client.post(f"/api/v1/runs/{run}/pieces").status == 401


def test_a_webhook_token_hints_and_nothing_else(harness: Harness) -> None:
    hook = harness.client(harness.token(TokenScope.WEBHOOK))
    assert hook.post("/webhooks/slurm").status == 200
    for method, path in (("GET", "/api/v1/runs"), ("POST", "/runs/k1/metrics"), ("GET", "/healthz"), ("POST", "/api/v1/records")):
        assert hook.ask(method, path).status == 403


def test_an_agent_pushes_records_and_hints(harness: Harness) -> None:
    agent = harness.client(harness.token(TokenScope.AGENT, cluster="slurm"))
    assert agent.post("/api/v1/records").status == 200
    assert agent.post("/webhooks/slurm").status == 200
    assert agent.get("/api/v1/runs").status == 403


def test_a_login_code_opens_no_route(harness: Harness) -> None:
    assert harness.client(harness.token(TokenScope.LOGIN)).get("/api/v1/runs").status == 401


# ── ends ──────────────────────────────────────────────────────────────────────


def test_a_revoked_token_is_refused_where_the_clock_was_set_back(harness: Harness) -> None:
    token = harness.token()
    assert harness.client(token).get("/api/v1/runs").status == 200
    harness.clock.sleep(-3600)
    harness.store.revoke(token.split("_")[1], now=harness.clock.now())
    assert harness.client(token).get("/api/v1/runs").status == 401


def test_a_revoked_token_is_refused_within_seconds_or_at_once_where_it_was_revoked(harness: Harness) -> None:
    token = harness.token()
    client = harness.client(token)
    assert client.get("/api/v1/runs").status == 200
    harness.store.revoke(token.split("_")[1], now=harness.clock.now())
    harness.clock.sleep(FRESH)
    assert client.get("/api/v1/runs").status == 401
    other = harness.client(harness.token())
    assert other.get("/api/v1/runs").status == 200
    harness.book.forget()
    assert other.get("/api/v1/runs").status == 200


def test_a_token_is_refused_from_the_second_it_expires(harness: Harness) -> None:
    client = harness.client(harness.token(expires=harness.clock.now() + 1))
    assert client.get("/api/v1/runs").status == 200
    harness.clock.sleep(1)
    assert client.get("/api/v1/runs").status == 401


# ── answers ───────────────────────────────────────────────────────────────────


def test_a_refusal_is_a_problem_and_under_mlflows_paths_mlflows(harness: Harness) -> None:
    ours = harness.client().get("/api/v1/runs")
    assert ours.headers["content-type"] == "application/problem+json"
    assert ours.json["status"] == 401
    assert "onward token create" in ours.json["hint"]
    theirs = harness.client().get("/api/2.0/mlflow/runs/get")
    assert theirs.json["error_code"] == "UNAUTHENTICATED"
    assert "message" in theirs.json


def test_every_answer_tells_browsers_to_be_careful(harness: Harness) -> None:
    for answer in (
        harness.client().get("/"),
        harness.client(harness.token()).get("/"),
        harness.client().get("/", headers={"accept": "text/html"}),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"


def test_a_body_that_is_too_long_is_refused(harness: Harness) -> None:
    client = harness.client(harness.token())
    assert client.post("/api/v1/runs", body=b"x" * (2 << 20)).status == 413
    assert client.ask("PUT", "/api/v1/runs/k1/artifacts/a", body=b"x" * (2 << 20)).status == 200


def test_behind_a_proxy_the_prefix_may_be_on_the_path_or_taken_off(opened: OpenTracker) -> None:
    harness = Harness(opened, root="/onward")
    client = harness.client(harness.token())
    assert client.get("/onward/api/v1/runs").status == 200
    assert client.get("/api/v1/runs").status == 200
    assert harness.client().get(f"/onward/t/{harness.token()}/api/v1/runs").status == 200
    assert harness.behind.seen == [("GET", "/onward/api/v1/runs")] * 3
    assert harness.client().get("/onward/api/v1/runs").status == 401


# ── logging in ────────────────────────────────────────────────────────────────


def session(answer: Answer) -> str:
    name, _, rest = answer.headers["set-cookie"].partition("=")
    assert name == "onward_session_k1"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(rest.split("; "))
    return rest.split(";")[0]


def test_a_browser_comes_to_where_it_went_once_it_is_logged_in(harness: Harness) -> None:
    asked = harness.client().get("/runs/k1?smooth=3&x=%22", headers={"accept": "text/html"})
    assert asked.status == 401
    assert 'name="to" value="/runs/k1?smooth=3&amp;x=%22"' in asked.text
    form = f"token={harness.token()}&to=%2Fruns%2Fk1%3Fsmooth%3D3"
    answer = harness.client().post("/login", body=form.encode(), headers={"origin": "http://localhost:8765"})
    assert 'content="0; url=/runs/k1?smooth=3"' in answer.text


@pytest.mark.parametrize("to", ["//evil.test/", "https://evil.test", "/\\evil.test", "/a\nb", "javascript:alert(1)", '/"><script>', ""])
def test_a_login_leads_nowhere_else(harness: Harness, to: str) -> None:
    form = urlencode({"token": harness.token(), "to": to})
    answer = harness.client().post("/login", body=form.encode(), headers={"origin": "http://localhost:8765"})
    assert answer.status == 200
    assert "evil" not in answer.text and "alert" not in answer.text and "<script>" not in answer.text


def test_a_login_link_is_good_once(harness: Harness) -> None:
    code = harness.token(TokenScope.LOGIN, name="ada", rights=Rights.ADMIN, expires=harness.clock.now() + 60)
    first = harness.client().get(f"/login?code={code}")
    assert first.status == 200
    cookie = session(first)
    assert cookie != code
    assert harness.client().get("/api/v1/runs", headers={"cookie": f"onward_session_k1={cookie}"}).status == 200
    assert harness.behind.scopes[0]["state"]["caller"].name == "ada"
    second = harness.client().get(f"/login?code={code}")
    assert second.status == 401
    assert "set-cookie" not in second.headers


def test_a_token_can_be_pasted_into_the_form(harness: Harness) -> None:
    answer = harness.client().post("/login", body=f"token={harness.token()}".encode(), headers={"origin": "http://localhost:8765"})
    assert answer.status == 200
    assert session(answer)
    assert harness.client().post("/login", body=b"token=nonsense").status == 401
    assert harness.client().post("/login", body=f"token={harness.token(TokenScope.RUN, run=harness.run())}".encode()).status == 401
    assert harness.client().post("/login", body=b"token=" + b"x" * 10_000).status == 401
    assert harness.client().post("/login", body=f"token={harness.token()}".encode(), headers={"origin": "http://evil.test"}).status == 403


def test_a_browser_without_a_token_gets_a_page_that_says_how(harness: Harness) -> None:
    answer = harness.client().get("/", headers={"accept": "text/html,*/*"})
    assert answer.status == 401
    assert "onward token login" in answer.text
    assert "<script" not in answer.text


# ── logs ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    before = log.level
    log.setLevel(logging.DEBUG)
    yield stream
    log.removeHandler(handler)
    log.setLevel(before)


def test_no_token_is_ever_logged(harness: Harness, said: io.StringIO) -> None:
    token = harness.token()
    code = harness.token(TokenScope.LOGIN, expires=harness.clock.now() + 60)
    client = harness.client(token)
    client.get("/api/v1/runs")
    harness.client().get(f"/t/{token}/runs/1?token={token}")
    harness.client().get(f"/t/{token}/../x")
    harness.client().get(f"//t/{token}/x")
    harness.client().get(f"/x/t/{token}/x")
    harness.client(token, host="evil.test").get(f"/t/{token}/x")
    harness.client().get("/api/v1/runs", headers={"cookie": f"onward_session_k1={token}", "x-api-key": token})
    answer = harness.client().get(f"/login?code={code}")
    log.error("a fault with %s in it", token)
    lines = said.getvalue()
    assert len(lines.splitlines()) == 9
    for secret in (token, code, session(answer)):
        assert secret.split("_", 2)[2] not in lines


def test_a_line_is_json_and_says_who_asked_what(harness: Harness, said: io.StringIO) -> None:
    token = harness.token()
    harness.client(token).get("/runs/k1")
    line = json.loads(said.getvalue())
    assert line["message"] == "GET /runs/k1 200"
    assert line["token"] == token.split("_")[1]
    assert line["level"] == "info"
    assert line["ms"] >= 0


def test_while_the_database_is_away_who_was_known_a_moment_ago_still_is(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    known, unknown = harness.token(), harness.token()
    assert harness.book.check(known) is not None

    def away(*_: object, **__: object) -> None:
        raise StorageUnavailable("the database does not answer")

    monkeypatch.setattr(harness.store, "check", away)
    harness.clock.sleep(10)
    assert harness.book.check(known) is not None
    with pytest.raises(StorageUnavailable):
        harness.book.check(unknown)
    harness.clock.sleep(60)
    with pytest.raises(StorageUnavailable):
        harness.book.check(known)
