"""The matrix of rights: every route × every kind of token × every method, as the table says, and as the server really answers.

`python -m tests.rights` (or `scripts/rights`) writes docs/reference/rights.md and tests/recorded/rights.tsv from the table.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

from onward.api.access.allowed_hosts import HostRules
from onward.api.access.rights.access_rules import Right, RunAccess
from onward.api.access.rights.rights_of_routes import BEFORE_ROUTES
from onward.api.app import ApiServer, make_server
from onward.api.extensions import rights_table
from onward.operations.tracker_access.location import OpenTracker, tracker_location
from onward.tracker.access.tokens import Rights, Scope
from onward.tracker.runs.registry import NewRun
from tests.sandbox import Sandbox

PAGE = Path(__file__).parents[1] / "docs/reference/rights.md"
RECORDED = Path(__file__).parent / "recorded/rights.tsv"

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
TOKENS = ("none", "read", "write", "admin", "run", "other run", "ended run", "agent", "other agent", "webhook", "revoked")
NOT_WALKED = ("the page", "/login")  # the one needs a header, the other is the gate's own
YES = "yes"
_CLUSTER = "slurm"
_MLFLOW = "/api/2.0/mlflow"
_FILES = "/api/2.0/mlflow-artifacts/artifacts"


# ── as the table says ─────────────────────────────────────────────────────────


def routes() -> dict[str, dict[str, Right]]:
    """Path templates, and the right of each method that they take."""
    found: dict[str, dict[str, Right]] = {}
    for name, right in {**rights_table(), **BEFORE_ROUTES}.items():
        method, _, path = name.partition(" ")
        found.setdefault(path, {})[method] = right
    return found


def expected(right: Right, token: str) -> str:
    """Said on its own here, not by the server's function: two readings of one table."""
    if right.user is None:
        return YES
    match token:
        case "none" | "revoked":
            return "401"
        case "read" | "write" | "admin":
            order = list(Rights)
            return YES if order.index(Rights(token)) >= order.index(right.user) else "403"
        case "run":
            return YES if right.run is not RunAccess.NO else "403"
        case "other run":
            return YES if right.run in (RunAccess.ANY, RunAccess.OWN) else "403"
        case "ended run":
            return YES if right.run is not RunAccess.NO and right.after_end else "403"
        case "agent":
            return YES if right.agent else "403"
        case "other agent":
            return YES if right.agent and right.run is not RunAccess.BODY else "403"
        case _:
            return YES if right.webhook else "403"


def table_says() -> Iterator[tuple[str, str, str, str]]:
    """Method, path, token and outcome. A method that a path does not take is 405 for every token that stands."""
    for path, rights in routes().items():
        if path in NOT_WALKED:
            continue
        for method in METHODS:
            right = rights.get(method)
            for token in TOKENS:
                yield method, path, token, expected(right, token) if right else _by_another_route(method, path, token)


def _by_another_route(method: str, path: str, token: str) -> str:
    """`PATCH /api/v1/experiments/search` is `PATCH /api/v1/experiments/{experiment}` of one called `search`, which is not there."""
    right = next((rights[method] for other, rights in routes().items() if method in rights and _fits(other, path)), None)
    if right is None:
        return "401" if token in ("none", "revoked") else "405"
    if token == "run" and right.run is RunAccess.PATH:
        return "403"
    return YES if token == "other run" and right.run is RunAccess.BODY else expected(right, token)


def _fits(template: str, path: str) -> bool:
    pattern = re.sub(r"\\\{[^}]*:path\\\}", ".*", re.escape(template))
    return re.fullmatch(re.sub(r"\\\{[^}]*\\\}", "[^/]+", pattern), path) is not None


def recorded() -> str:
    lines = ["\t".join(("method", "path", *TOKENS))]
    said: dict[tuple[str, str], list[str]] = {}
    for method, path, _, outcome in table_says():
        said.setdefault((method, path), []).append(outcome)
    return "\n".join([*lines, *("\t".join((*key, *outcomes)) for key, outcomes in said.items())]) + "\n"


def page() -> str:
    rows = []
    for name, right in {**rights_table(), **BEFORE_ROUTES}.items():
        method, _, path = name.partition(" ")
        shown = f"`{path}`" if path.startswith("/") else path
        cells = ["✓" if expected(right, token) == YES else "" for token in TOKENS[:-1]]
        rows.append(f"| {method} | {shown} | {' | '.join(cells)} |")
    head = f"| method | path | {' | '.join(TOKENS[:-1])} |\n|---|---|{'---|' * len(TOKENS[:-1])}"
    return _PAGE.format(table="\n".join([head, *rows]))


_PAGE = """# What each token may do

Every call to the server needs a token, and every route names the tokens that it accepts, in one table
(`onward/api/access/rights/rights_of_routes.py`). A route without a row there keeps the server from starting. This page is made
from that table by `scripts/rights`; a test asks the real server for every route, with every kind of token and every method, and compares.

| token | made by | may |
|---|---|---|
| read, write, admin | `onward token create --rights …`, a login | what the columns say, on all runs |
| run | `onward submit`, `onward token create --scope run --run RUN` | read its own run and add to it, but delete nothing |
| agent | `onward token create --scope agent --cluster NAME` | send records of the runs of its cluster, and hints |
| webhook | `onward token create --scope webhook`, `onward epilog install` | hint that a job has ended |

- **run** and **other run** are the token of the run that a call concerns, and that of another one. Where a call names a run, a
  model or an experiment in its body, the route checks each of them: a run's token may name its run, its run's experiment and the
  models that its run made. Searches and "create" calls answer a run's token with its own run alone, whatever they were asked for.
- **ended run**: a run's token ends with its run (finished, failed or cancelled). For one hour the run's last job may still send what is
  left of its folder. When the run is resumed, the token is valid again; `onward resume` also gets the jobs a new one. A run that was
  archived while it runs keeps its token for 30 days; one that was removed has none.
- **agent** and **other agent**: of the run's cluster, and of another one.
- No token, or one that is unknown, revoked or expired: 401. A token that may not do this: 403. A path or method that is not a route:
  404 or 405, for every token that is valid. Nothing is inferred from how a path looks.
- A request that lasts (a live stream, a followed log, a long upload) is checked again every three seconds and ends with its token.
- A signed URL of a result gives access to that one result. A signed hint is valid for `POST /webhooks/hints`, once.

{table}
"""


# ── as the server answers ─────────────────────────────────────────────────────


class Walk:
    """A server with a run, another run and one that has ended, and a token of each kind."""

    def __init__(self, folder: Path, opened: OpenTracker) -> None:
        (folder / "settings.toml").write_text("[server]\nrequests = 0\n")
        sandbox = Sandbox(folder / "desk", {"ONWARD_SETTINGS": str(folder / "settings.toml")})
        self._now, self._tokens = sandbox.clock.now(), opened.tokens
        at = tracker_location({"HOME": str(folder)}, str(folder / "tracker.db"))
        self.server: ApiServer = make_server(opened.tracker, opened.tokens, sandbox.context, at, hosts=HostRules(), tend=False)
        self.admin = self._secret(Scope.USER, rights=Rights.ADMIN)
        self.runs = {name: self._run(name) for name in ("mine", "other", "ended")}
        self.tokens: dict[str, str | None] = {
            "none": None,
            "read": self._secret(Scope.USER, rights=Rights.READ),
            "write": self._secret(Scope.USER, rights=Rights.WRITE),
            "admin": self.admin,
            "run": self._secret(Scope.RUN, run=self.runs["mine"]["run"]),
            "other run": self._secret(Scope.RUN, run=self.runs["other"]["run"]),
            "ended run": self._secret(Scope.RUN, run=self.runs["ended"]["run"]),
            "agent": self._secret(Scope.AGENT, cluster=_CLUSTER),
            "other agent": self._secret(Scope.AGENT, cluster="elsewhere"),
            "webhook": self._secret(Scope.WEBHOOK),
            "revoked": self._secret(Scope.USER, rights=Rights.ADMIN),
        }
        revoked = self.tokens["revoked"]
        assert revoked is not None
        opened.tokens.revoke(revoked.split("_")[1], now=self._now)
        opened.tracker.runs.update(self.runs["ended"]["run"], state="finished", ended=self._now)
        self.server.stopping()  # live streams end after their first event

    def _secret(self, scope: Scope, **others: Any) -> str:
        return self._tokens.create(scope, now=self._now, **others)[1].text

    def _run(self, name: str) -> dict[str, str]:
        def made(path: str, body: Any) -> Any:
            status, answer = asyncio.run(self.ask("POST", path, self.admin, json.dumps(body).encode()))
            assert status in (200, 201), answer
            return json.loads(answer)

        info = self.server.services.tracker.runs.create(NewRun(experiment=name, name=name, source="seed", cluster=_CLUSTER))
        run, experiment = info.run_id, str(info.experiment)
        model = made(f"{_MLFLOW}/logged-models", {"experiment_id": experiment, "source_run_id": run})["model"]["info"]["model_id"]
        return {"run": run, "experiment": experiment, "model": model, "name": name}

    def outcomes(self) -> list[tuple[str, str, str, str]]:
        return asyncio.run(self._outcomes())

    async def _outcomes(self) -> list[tuple[str, str, str, str]]:
        found = []
        for path in routes():
            if path in NOT_WALKED:
                continue
            for method in METHODS:
                for token, secret in self.tokens.items():
                    named = self.runs["ended" if token == "ended run" else "mine"]
                    target, body = request(method, path, named)
                    status, _ = await self.ask(method, target, secret, body)
                    found.append((method, path, token, str(status) if status in (401, 403, 405) else YES))
        return found

    async def ask(self, method: str, target: str, token: str | None, body: bytes) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        headers = [(b"host", b"localhost:8765"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        scope: MutableMapping[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": headers,
            "server": ("127.0.0.1", 8765),
            "client": ("127.0.0.1", 50000),
        }
        status, answer, sent = 0, b"", False

        async def receive() -> MutableMapping[str, Any]:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status, answer
            status = message.get("status", status)
            answer += message.get("body", b"")

        await self.server.gate(scope, receive, send)
        return status, answer


def request(method: str, path: str, named: dict[str, str]) -> tuple[str, bytes]:
    """A call that concerns these things. Where a call could undo something that the walk needs, it names nothing that is there."""
    about = _ABOUT.get(f"{method} {path}")
    target, body = about(named) if about else (path, {})
    target = target.replace("{run_id}", named["run"]).replace("{model_id}", named["model"])
    return re.sub(r"\{[^}]*\}", "1", target), json.dumps(body).encode() if method in ("POST", "PUT", "PATCH") else b""


def _about(path: str, *keys: str, **more: Any) -> Callable[[dict[str, str]], tuple[str, Any]]:
    """In the body, or for a GET in the query."""
    return lambda named: (path, {**{_FIELDS[key]: named[key] for key in keys}, **more})


_FIELDS = {"run": "run_id", "experiment": "experiment_id", "name": "experiment_name", "model": "model_id"}
_POINT = {"key": "loss", "value": 1.0, "timestamp": 1_790_000_000_000, "step": 0}
_FILE = "{}/{}/artifacts/a.txt"
_RECORD = {"n": 1, "t": 1_790_000_000.0, "s": 1, "m": {"loss": 1.0}}
_ABOUT: dict[str, Callable[[dict[str, str]], tuple[str, Any]]] = {
    "DELETE /api/v1/tokens/{id}": lambda n: ("/api/v1/tokens/none", None),
    f"DELETE {_MLFLOW}/logged-models/{{model_id}}": lambda n: (f"{_MLFLOW}/logged-models/none", None),
    "POST /api/v1/records": lambda n: ("/api/v1/records", {"run": n["run"], "leg": 1, "writer": "train-1", "records": [_RECORD]}),
    f"POST {_MLFLOW}/experiments/create": lambda n: (f"{_MLFLOW}/experiments/create", {"name": n["name"]}),
    f"GET {_MLFLOW}/experiments/get": lambda n: (f"{_MLFLOW}/experiments/get?experiment_id={n['experiment']}", None),
    f"GET {_MLFLOW}/experiments/get-by-name": lambda n: (f"{_MLFLOW}/experiments/get-by-name?experiment_name={n['name']}", None),
    f"GET {_MLFLOW}/runs/get": lambda n: (f"{_MLFLOW}/runs/get?run_id={n['run']}", None),
    f"POST {_MLFLOW}/runs/update": _about(f"{_MLFLOW}/runs/update", "run"),
    f"POST {_MLFLOW}/runs/set-tag": _about(f"{_MLFLOW}/runs/set-tag", "run", key="a", value="b"),
    f"POST {_MLFLOW}/runs/log-metric": _about(f"{_MLFLOW}/runs/log-metric", "run", **_POINT),
    f"POST {_MLFLOW}/runs/log-parameter": _about(f"{_MLFLOW}/runs/log-parameter", "run", key="a", value="b"),
    f"POST {_MLFLOW}/runs/log-batch": _about(f"{_MLFLOW}/runs/log-batch", "run", metrics=[_POINT]),
    f"POST {_MLFLOW}/runs/log-inputs": _about(f"{_MLFLOW}/runs/log-inputs", "run"),
    f"POST {_MLFLOW}/runs/outputs": _about(f"{_MLFLOW}/runs/outputs", "run"),
    f"POST {_MLFLOW}/runs/log-model": _about(f"{_MLFLOW}/runs/log-model", "run", model_json="{}"),
    f"GET {_MLFLOW}/metrics/get-history": lambda n: (f"{_MLFLOW}/metrics/get-history?run_id={n['run']}&metric_key=loss", None),
    f"POST {_MLFLOW}/logged-models": lambda n: (
        f"{_MLFLOW}/logged-models",
        {"experiment_id": n["experiment"], "source_run_id": n["run"]},
    ),
    f"GET {_MLFLOW}/artifacts/list": lambda n: (f"{_MLFLOW}/artifacts/list?run_id={n['run']}", None),
    f"GET {_FILES}": lambda n: (f"{_FILES}?path={n['experiment']}/{n['run']}/artifacts", None),
    f"GET {_FILES}/{{path:path}}": lambda n: (f"{_FILES}/{_FILE.format(n['experiment'], n['run'])}", None),
    f"PUT {_FILES}/{{path:path}}": lambda n: (f"{_FILES}/{_FILE.format(n['experiment'], n['run'])}", {}),
}


if __name__ == "__main__":
    PAGE.write_text(page())
    RECORDED.write_text(recorded())
