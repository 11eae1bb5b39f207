"""Bounds: requests a second, failed logins, streams at once, a run's files, the length of a line. Beyond them a 4xx; others are served."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from onward.api.access.caller import ApiCaller
from onward.api.access.rate_limits import RateLimit, StreamLimit
from onward.api.access.rights import token_watch
from onward.api.server_log import LONGEST, JsonLines
from onward.clock import ManualClock
from onward.errors import StorageUnavailable, TooMany
from onward.tracker.access.tokens import Rights, Scope
from tests.api import Client
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good

LIMITS = "[server]\nrequests = 3\nlogins = 2\nstreams = 2\nartifacts = 1\n"  # of 1 MiB


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    (tmp_path / "settings.toml").write_text(LIMITS)
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened, ONWARD_SETTINGS=str(tmp_path / "settings.toml"))


# ── requests ──────────────────────────────────────────────────────────────────


def test_a_bucket_empties_and_fills_again() -> None:
    clock = ManualClock()
    rate = RateLimit(2, room=4, clock=clock)
    assert [rate.take("a") for _ in range(4)] == [0, 0, 0, 0]
    assert rate.take("a") == pytest.approx(0.5)
    assert rate.take("b") == 0
    clock.sleep(0.5)
    assert rate.wait("a") == 0
    assert (rate.take("a"), rate.take("a") > 0) == (0, True)
    clock.sleep(-100)  # a clock that was set back fills nothing, and locks nobody out for long
    assert 0 < rate.take("a") <= 0.5
    clock.sleep(0.5)
    assert rate.take("a") == 0
    assert RateLimit(0, room=0, clock=clock).take("a") == 0


def test_many_callers_take_no_memory_without_end() -> None:
    clock = ManualClock()
    rate = RateLimit(1, room=5, clock=clock)
    for number in range(25_000):
        rate.take(str(number))
        clock.sleep(0.001)
    assert len(rate._buckets) <= 10_000


def test_who_asks_too_fast_is_told_when_to_ask_again_and_others_are_served(harness: Harness) -> None:
    answers = [harness.client.get("/healthz") for _ in range(31)]
    assert [answer.status for answer in answers] == [200] * 30 + [429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert answers[-1].headers["content-type"] == "application/problem+json"
    assert harness.as_(Scope.USER).get("/healthz").status == 200
    harness.sandbox.clock.sleep(1)
    assert harness.client.get("/healthz").status == 200
    assert [harness.client.get("/api/2.0/mlflow/experiments/search").status for _ in range(4)][-1] == 429
    assert harness.client.get("/api/2.0/mlflow/experiments/search").json["error_code"] == "REQUEST_LIMIT_EXCEEDED"


def test_points_are_not_counted(harness: Harness) -> None:
    run = harness.run()
    for step in range(50):
        assert harness.client.post(f"/runs/{run}/metrics", {"name": "loss", "value": 1, "step": step}).status == 200


# ── logins ────────────────────────────────────────────────────────────────────


def login(harness: Harness, token: str) -> Any:
    form = {"content-type": "application/x-www-form-urlencoded", "origin": "http://localhost:8765"}
    return Client(harness.server.gate).post("/login", body=urlencode({"token": token}).encode(), headers=form)


def test_logins_that_fail_are_bounded_and_lock_nobody_else_out(harness: Harness) -> None:
    good_one = harness.opened.tokens.create(Scope.USER, now=harness.sandbox.clock.now())[1].text
    for _ in range(5):
        assert login(harness, good_one).status == 200
    assert [login(harness, "wrong").status for _ in range(3)] == [401, 401, 429]
    refused = Client(harness.server.gate).get("/login?code=owl_00000000_" + "a" * 43)
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) <= 60
    assert login(harness, good_one).status == 200  # behind one proxy or tunnel, all share an address with whoever guesses
    code = harness.opened.tokens.create(Scope.LOGIN, now=harness.sandbox.clock.now())[1].text
    assert Client(harness.server.gate).get(f"/login?code={code}").status == 200
    assert login(harness, "wrong").status == 429
    assert Client(harness.server.gate).get("/login").status == 401  # the page itself
    harness.sandbox.clock.sleep(60)
    assert login(harness, "wrong").status == 401


def test_a_session_dies_with_the_token_that_it_was_made_from(harness: Harness) -> None:
    token, secret = harness.opened.tokens.create(Scope.USER, now=harness.sandbox.clock.now())
    other = harness.opened.tokens.create(Scope.USER, now=harness.sandbox.clock.now())[1]
    cookies = [login(harness, one.text).headers["set-cookie"].split(";")[0] for one in (secret, other)]

    def seen() -> list[int]:
        return [Client(harness.server.gate).get("/healthz", headers={"cookie": cookie}).status for cookie in cookies]

    assert seen() == [200, 200]
    good(harness.client.ask("DELETE", f"/api/v1/tokens/{token.id}"))
    assert seen() == [401, 200]


def test_a_session_ends_when_its_token_would(harness: Harness) -> None:
    now = harness.sandbox.clock.now()
    secret = harness.opened.tokens.create(Scope.USER, expires=now + 100, now=now)[1]
    cookie = login(harness, secret.text).headers["set-cookie"].split(";")[0]
    harness.sandbox.clock.sleep(101)
    assert Client(harness.server.gate).get("/healthz", headers={"cookie": cookie}).status == 401


# ── streams ───────────────────────────────────────────────────────────────────


def test_a_user_has_so_many_streams_by_whatever_tokens() -> None:
    streams = StreamLimit(2)
    ada = [ApiCaller(token=str(n), scope=Scope.USER, name="ada", rights=Rights.READ) for n in range(3)]
    run = ApiCaller(token="r", scope=Scope.RUN, run="k1", name="ada")
    held = [streams.begin(one) for one in ada[:2]]
    with pytest.raises(TooMany):
        streams.begin(ada[2])
    streams.end(streams.begin(run))
    streams.end(held[0])
    streams.end(streams.begin(ada[2]))


async def open_stream(harness: Harness, client: Client, path: str) -> tuple[int, asyncio.Task[None]]:
    """The status that comes back, and the stream, which goes on until it is cancelled."""
    begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def receive() -> MutableMapping[str, Any]:
        if not begun.done():
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and not begun.done():
            begun.set_result(message["status"])

    headers = [(b"host", b"localhost:8765"), (b"authorization", f"Bearer {client._token}".encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
    }
    asgi = {"asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 8765)}
    task = asyncio.create_task(harness.server.gate({**scope, **asgi, "client": ("127.0.0.1", 5)}, receive, send))
    return await begun, task


def test_live_streams_and_followed_logs_are_counted_together_and_given_back(harness: Harness) -> None:
    played = harness.sandbox.play()
    played.dir.log(1, "out").write_text("begun\n")
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    follow = f"/api/v1/runs/{played.spec.id}/logs/1/out/follow"

    async def story() -> None:
        ada = [harness.as_(Scope.USER, name="ada", rights=Rights.READ) for _ in range(2)]
        opened = [await open_stream(harness, ada[0], "/api/v1/live"), await open_stream(harness, ada[1], follow)]
        assert [status for status, _ in opened] == [200, 200]
        for client, path in ((ada[0], "/api/v1/live"), (ada[1], follow)):
            refused, task = await open_stream(harness, client, path)
            await task
            assert refused == 429
        other, task = await open_stream(harness, harness.as_(Scope.USER, name="bob"), "/api/v1/live")
        assert other == 200
        for one in (task, opened[0][1]):
            one.cancel()
            await asyncio.wait([one])
        again, last = await open_stream(harness, ada[0], "/api/v1/live")
        assert again == 200
        for one in (last, opened[1][1]):
            one.cancel()
            await asyncio.wait([one])

    asyncio.run(story())
    assert harness.server.services.live.listeners == 0


def test_streams_end_soon_after_their_token_whatever_kind_it_is(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_watch, "EVERY", 0.01)
    played = harness.sandbox.play()
    played.dir.log(1, "out").write_text("begun\n")
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    run = played.spec.id
    follow = f"/api/v1/runs/{run}/logs/1/out/follow"

    def end(client: Client) -> None:
        good(harness.client.ask("DELETE", f"/api/v1/tokens/{str(client._token).split('_')[1]}"))

    def fail(_: Client) -> None:
        harness.opened.tracker.runs.update(run, state="failed", ended=harness.sandbox.clock.now())
        harness.server.services.book.forget()

    async def story() -> None:
        user, expiring = harness.as_(Scope.USER, name="ada"), harness.as_(Scope.USER, expires=harness.sandbox.clock.now() + 60)
        mine = harness.as_(Scope.RUN, run=run)
        for client, path, over in (
            (user, "/api/v1/live", end),
            (expiring, follow, lambda _: harness.sandbox.clock.sleep(61)),
            (mine, follow, fail),
        ):
            other_status, other = await open_stream(harness, harness.as_(Scope.USER, name="bob"), path)
            status, stream = await open_stream(harness, client, path)
            assert (status, other_status) == (200, 200)
            await asyncio.sleep(0.05)
            assert not stream.done()
            await asyncio.to_thread(over, client)
            await asyncio.wait_for(stream, 60)
            assert not other.done()
            other.cancel()
            await asyncio.wait([other])

    asyncio.run(story())
    assert harness.server.services.live.listeners == 0


def test_an_upload_that_lasts_ends_with_its_token_and_leaves_nothing(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_watch, "EVERY", 0.01)
    run, client = harness.run(), harness.as_(Scope.USER)
    path = f"/api/v1/runs/{run}/artifacts/large.bin"

    async def story() -> int:
        waiting, statuses, pieces = asyncio.Event(), [], iter([b"first piece"])

        async def receive() -> MutableMapping[str, Any]:
            piece = next(pieces, None)
            if piece is not None:
                return {"type": "http.request", "body": piece, "more_body": True}
            waiting.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: MutableMapping[str, Any]) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        headers = [(b"host", b"localhost:8765"), (b"authorization", f"Bearer {client._token}".encode())]
        scope = {"type": "http", "method": "PUT", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
        asgi = {"asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "scheme": "http", "headers": headers}
        both = {**scope, **asgi, "server": ("127.0.0.1", 8765), "client": ("127.0.0.1", 5)}
        task = asyncio.create_task(harness.server.gate(both, receive, send))
        await waiting.wait()
        await asyncio.to_thread(harness.client.ask, "DELETE", f"/api/v1/tokens/{str(client._token).split('_')[1]}")
        await asyncio.wait_for(task, 60)
        return int(statuses[0])

    assert asyncio.run(story()) == 401
    assert good(harness.client.get(f"/api/v1/runs/{run}/artifacts"))["artifacts"] == []


# ── files, lines ──────────────────────────────────────────────────────────────


def test_a_run_has_so_much_room_for_files(harness: Harness) -> None:
    run, other = harness.run(), harness.run()
    place = f"/api/v1/runs/{run}/artifacts"
    half = b"x" * (1 << 19)
    assert harness.client.ask("PUT", f"{place}/a", body=half).status == 201
    assert harness.client.ask("PUT", f"{place}/b", body=half + b"x").status == 413
    assert harness.client.ask("PUT", f"{place}/a", body=half + b"x").status == 201  # in place of itself
    assert harness.client.ask("PUT", f"{place}/b", body=half).status == 413
    assert harness.client.ask("PUT", f"{place}/b", body=half[:-1]).status == 201
    refused = harness.client.ask("PUT", f"{place}/c", body=b"")
    assert refused.status == 413
    assert "delete" in refused.json["hint"]
    harness.sandbox.clock.sleep(10)
    info = harness.opened.tracker.runs.get(run)
    mlflow = f"/api/2.0/mlflow-artifacts/artifacts/{info.experiment}/{info.hex_id}/artifacts/c"
    assert harness.client.ask("PUT", mlflow, body=b"x").status == 413
    assert sorted(one["path"] for one in good(harness.client.get(place))["artifacts"]) == ["a", "b"]
    assert harness.client.ask("PUT", f"/api/v1/runs/{other}/artifacts/a", body=half).status == 201
    assert harness.client.ask("DELETE", f"{place}/a").status == 204
    assert harness.client.ask("PUT", mlflow, body=b"x").status == 200


def test_files_of_models_count_as_their_runs_and_those_of_no_run_are_bounded_too(harness: Harness) -> None:
    run, other = harness.run(), harness.run()
    info = harness.opened.tracker.runs.get(run)
    half = b"x" * (1 << 19)

    def model(**of: str) -> str:
        made = harness.client.post("/api/2.0/mlflow/logged-models", {"experiment_id": str(info.experiment), **of})
        return f"/api/2.0/mlflow-artifacts/artifacts/{info.experiment}/models/{good(made)['model']['info']['model_id']}/artifacts"

    first, second, loose = model(source_run_id=run), model(source_run_id=run), model()
    assert harness.client.ask("PUT", f"{first}/a/w.bin", body=half).status == 200
    assert harness.client.ask("PUT", f"{first}/a/w.bin", body=half).status == 200  # in place of itself
    assert harness.client.ask("PUT", f"{second}/w.bin", body=half + b"x").status == 413
    assert harness.client.ask("PUT", f"/api/v1/runs/{run}/artifacts/a", body=half + b"x").status == 413
    assert harness.client.ask("PUT", f"{second}/w.bin", body=half).status == 200
    assert harness.client.ask("PUT", f"/api/v1/runs/{run}/artifacts/a", body=b"x").status == 413
    assert harness.client.ask("PUT", f"/api/v1/runs/{other}/artifacts/a", body=half).status == 201
    assert harness.client.ask("PUT", f"{loose}/w.bin", body=half).status == 200
    assert harness.client.ask("PUT", f"{loose}/v.bin", body=half + b"x").status == 413


def test_a_line_of_the_servers_log_is_never_longer_than_64_kib() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    secret = "owu_3f9a1c02_" + "s" * 43
    record = logging.LogRecord("x", logging.INFO, "f", 1, f"ä{secret}" * 20_000, None, None)
    handler.emit(record)
    line = stream.getvalue().rstrip("\n")
    assert len(line.encode()) <= LONGEST
    assert json.loads(line)["level"] == "info"
    assert "s" * 43 not in line


# ── the database is away ──────────────────────────────────────────────────────


def test_while_the_database_is_away_nobody_is_let_in_and_no_token_is_called_wrong(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise StorageUnavailable("the database does not answer")

    for name in ("check", "redeem"):
        monkeypatch.setattr(harness.opened.tokens, name, away)
    for answer in (harness.client.get("/healthz"), login(harness, "x"), Client(harness.server.gate).get("/login?code=x")):
        assert answer.status == 503
        assert answer.headers["retry-after"]
        assert answer.headers["x-content-type-options"] == "nosniff"
