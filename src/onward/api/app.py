"""The server put together: gate → hot door → routes. Nothing is reachable but through the gate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from onward import __version__
from onward.api.access.allowed_hosts import HostRules
from onward.api.access.credentials import cookie_of
from onward.api.access.gate import AccessGate, App, Receive, Scope, Send
from onward.api.access.login import LoginPage
from onward.api.access.rate_limits import BURST, RateLimit, StreamLimit
from onward.api.access.result_links import ResultLinks
from onward.api.access.rights.route_lookup import Routes
from onward.api.access.signed_hints import SignedHints
from onward.api.access.token_cache import TokenCache
from onward.api.background import chores
from onward.api.background.chore_threads import Background
from onward.api.background.live_events import LiveEvents
from onward.api.dependencies import admitted
from onward.api.extensions import rights_table, server_extensions
from onward.api.ingest.fast_path import FastPath
from onward.api.mlflow import router as mlflow
from onward.api.openapi import complete_openapi
from onward.api.routes import alert_channels, alert_rules, pipelines, requests
from onward.api.routes.files import artifacts, log_search, logs, written
from onward.api.routes.ingest import records, scheduler_hints
from onward.api.routes.metrics import aggregates, metric_keys, series, sparklines
from onward.api.routes.runs import (
    actions,
    checkpoints,
    code_diff,
    crud,
    drafts,
    expected_start,
    experiments,
    machine_usage,
    notes,
    overview,
    param_diff,
    params_form,
    timeline,
)
from onward.api.routes.search import best_runs, export, filter_completion, run_groups, saved_views
from onward.api.routes.server import clusters, docs_page, health, live_stream, tokens, unreadable_folders
from onward.api.schemas.base import DEEPEST
from onward.api.services import Services
from onward.api.transport.problems import Problem, problem_of
from onward.api.transport.validation_errors import validation_problems
from onward.api.web_app import WebApp
from onward.errors import OnwardError, StorageFull
from onward.operations.context import OperationsContext
from onward.operations.tracker_access.location import TrackerLocation
from onward.operations.tracker_access.owner_logins import OwnerLogins
from onward.tracker.access.token_store import TokenStore
from onward.tracker.ingest.pushed_files import PushedFiles
from onward.tracker.store import Tracker

_ABOUT = """Runs, their metrics, files and logs. Every call needs a token: `Authorization: Bearer …`, `X-API-Key: …`,
Basic with the token as password, an address that begins with `/t/<token>/`, or the login cookie. Errors are RFC 9457 problems."""

_ROUTES = (
    *(health, docs_page, experiments, crud, run_groups, actions, drafts, series, aggregates, metric_keys, param_diff, notes, artifacts),
    *(logs, checkpoints, code_diff, live_stream, records, export, tokens, scheduler_hints, clusters),
    *(overview, timeline, log_search, sparklines, machine_usage, saved_views, filter_completion, params_form, expected_start),
    *(alert_rules, alert_channels, best_runs, requests, pipelines, unreadable_folders, written),
)


@dataclass(kw_only=True)
class ApiServer:
    gate: AccessGate
    services: Services
    background: Background
    api: FastAPI

    def stopping(self) -> None:
        self.services.stopping = True
        self.services.live.close()


def make_server(
    tracker: Tracker,
    store: TokenStore,
    context: OperationsContext,
    location: TrackerLocation,
    *,
    hosts: HostRules,
    root: str = "",
    secure: bool = False,
    tend: bool = True,
    url: str = "",
    owners: OwnerLogins | None = None,
) -> ApiServer:
    allowed = context.settings.server
    services = Services(
        tracker=tracker,
        tokens=store,
        book=TokenCache(store, context.clock),
        live=LiveEvents(),
        context=context,
        clock=context.clock,
        files=location.files,
        pushed=PushedFiles(location.files),
        streams=StreamLimit(allowed.streams),
        secrets=location.note.with_suffix(".secrets"),
        requests_at=location.requests,
        url=url,
        owners=owners,
    )
    api, routes = _shared()
    login = LoginPage(store, context.clock, cookie=cookie_of(tracker.key()), secure=secure, failures=allowed.logins, owners=owners)
    gate = AccessGate(
        WebApp(_with_services(api, services)),
        routes=routes,
        book=services.book,
        hosts=hosts,
        login=login,
        hot=FastPath(services),
        root=root,
        signed=SignedHints(tracker, store, context.clock),
        links=ResultLinks(services.requests, context.clock.now),
        rate=RateLimit(allowed.requests, room=allowed.requests * BURST, clock=context.clock),
    )
    services.counts = lambda: dict(gate.answered)
    background = Background(chores.server_chores(services, tend=tend))
    services.hinted = lambda: background.hurry("tend")
    return ApiServer(gate=gate, services=services, background=background, api=api)


@cache
def _shared() -> tuple[FastAPI, Routes]:
    """The routes hold nothing of a server, and take a while to build: every server of this process shares them."""
    api = make_api()
    return api, Routes(api, rights_table())


def _with_services(api: FastAPI, services: Services) -> App:
    """The routes, with the services of one server in the state of each request."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["services"] = services
        await api(scope, receive, send)

    return serve


def make_api() -> FastAPI:
    api = FastAPI(
        title="Onward",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
        dependencies=[Depends(admitted)],
    )
    for router in (*(room.router for room in _ROUTES), mlflow, *(one.router for one in server_extensions())):
        api.include_router(router)
    complete_openapi(api)
    api.add_exception_handler(OnwardError, _known)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _http)
    api.add_exception_handler(RecursionError, _too_deep)
    api.add_exception_handler(Exception, _fault)
    return api


def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, OnwardError)
    if isinstance(error, StorageFull):  # a file's, too: told once a minute
        request.state.services.tracker.trouble.met(error, refused=0)
    return _answer(request, problem_of(error))


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = validation_problems(error.errors(), error.body)
    said = "; ".join(f"{one['at']}: {one['problem']}" for one in found[:3])
    return _answer(request, Problem(status=400, detail=f"invalid request: {said}", errors=found[:20]))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = "there is nothing at this address" if error.status_code == 404 else error.detail
    return _answer(request, Problem(status=error.status_code, detail=words, headers=dict(error.headers or {})))


def _too_deep(request: Request, _error: Exception) -> Response:
    """What no shape has bounded."""
    return _answer(request, Problem(status=400, detail="the request is nested too deeply", hint=f"{DEEPEST} levels are allowed"))


def _fault(request: Request, _error: Exception) -> Response:
    return _answer(request, Problem(status=500, detail="internal error", hint="see the server's log"))


def _answer(request: Request, problem: Problem) -> Response:
    root = request.scope.get("root_path", "")
    body, headers = problem.answer(request.scope["path"].removeprefix(root))
    return Response(body, status_code=problem.status, headers=headers)
