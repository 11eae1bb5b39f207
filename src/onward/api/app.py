"""The server put together: gate → hot door → routes. Nothing is reachable but through the gate."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from onward import __version__
from onward.api import chores
from onward.api.background import Background
from onward.api.book import TokenBook
from onward.api.credentials import cookie_of
from onward.api.deps import admitted
from onward.api.described import describe
from onward.api.door import Door
from onward.api.gate import Gate
from onward.api.hosts import HostRules
from onward.api.invalid import wrongs
from onward.api.limits import BURST, Rate, Streams
from onward.api.links import Links
from onward.api.live import Live
from onward.api.login import Login
from onward.api.mlflow import router as mlflow
from onward.api.page import Page
from onward.api.problems import Problem, problem_of
from onward.api.rights.routes import Routes
from onward.api.routes import (
    acts,
    aggregates,
    alert_channels,
    alerts,
    artifacts,
    bests,
    checkpoints,
    clusters,
    code_diff,
    docs,
    drafts,
    experiments,
    export,
    filter_words,
    health,
    hints,
    live,
    log_search,
    logs,
    metric_keys,
    notes,
    overview,
    params,
    params_files,
    pipelines,
    records,
    requests,
    run_groups,
    runs,
    seed,
    series,
    sparklines,
    start,
    system,
    timeline,
    tokens,
    views,
)
from onward.api.services import Services
from onward.api.shapes import DEEPEST
from onward.api.signed import Signatures
from onward.api.trouble import folders
from onward.errors import OnwardError, StorageFull
from onward.operations.tracking import Place
from onward.operations.wiring import Desk
from onward.tracker.pushed_files import PushedFiles
from onward.tracker.store import Tracker
from onward.tracker.token_store import TokenStore

_ABOUT = """Runs, their metrics, files and logs. Every call needs a token: `Authorization: Bearer …`, `X-API-Key: …`,
Basic with the token as password, an address that begins with `/t/<token>/`, or the login cookie. Errors are RFC 9457 problems."""

_ROUTES = (
    *(health, docs, experiments, runs, run_groups, acts, drafts, series, aggregates, metric_keys, params, notes, artifacts),
    *(logs, checkpoints, code_diff, live, records, export, tokens, seed, hints, clusters),
    *(overview, timeline, log_search, sparklines, system, views, filter_words, params_files, start),
    *(alerts, alert_channels, bests, requests, pipelines, folders),
)


@dataclass(kw_only=True)
class Server:
    gate: Gate
    services: Services
    background: Background
    api: FastAPI

    def stopping(self) -> None:
        self.services.stopping = True
        self.services.live.close()


def make_server(
    tracker: Tracker,
    store: TokenStore,
    desk: Desk,
    place: Place,
    *,
    hosts: HostRules,
    root: str = "",
    secure: bool = False,
    tend: bool = True,
    url: str = "",
) -> Server:
    allowed = desk.settings.server
    services = Services(
        tracker=tracker,
        tokens=store,
        book=TokenBook(store, desk.clock),
        live=Live(),
        desk=desk,
        clock=desk.clock,
        files=place.files,
        pushed=PushedFiles(place.files),
        streams=Streams(allowed.streams),
        secrets=place.note.with_suffix(".secrets"),
        requests_at=place.requests,
        url=url,
    )
    api = make_api(services)
    login = Login(store, desk.clock, cookie=cookie_of(tracker.key()), secure=secure, failures=allowed.logins)
    gate = Gate(
        Page(api),
        routes=Routes(api),
        book=services.book,
        hosts=hosts,
        login=login,
        hot=Door(services),
        root=root,
        signed=Signatures(tracker, store, desk.clock),
        links=Links(services.requests, desk.clock.now),
        rate=Rate(allowed.requests, room=allowed.requests * BURST, clock=desk.clock),
    )
    services.counts = lambda: dict(gate.answered)
    background = Background(chores.all_of(services, tend=tend))
    services.hinted = lambda: background.hurry("tend")
    return Server(gate=gate, services=services, background=background, api=api)


def make_api(services: Services) -> FastAPI:
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
    api.state.services = services
    for router in (*(room.router for room in _ROUTES), mlflow):
        api.include_router(router)
    describe(api)
    api.add_exception_handler(OnwardError, _known)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _http)
    api.add_exception_handler(RecursionError, _too_deep)
    api.add_exception_handler(Exception, _fault)
    return api


def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, OnwardError)
    if isinstance(error, StorageFull):  # a file's, too: told once a minute
        request.app.state.services.tracker.trouble.met(error, refused=0)
    return _answer(request, problem_of(error))


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = wrongs(error.errors(), error.body)
    said = "; ".join(f"{one['at']}: {one['problem']}" for one in found[:3])
    return _answer(request, Problem(status=400, detail=f"the request is not as it should be: {said}", errors=found[:20]))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = "there is nothing at this address" if error.status_code == 404 else error.detail
    return _answer(request, Problem(status=error.status_code, detail=words, headers=dict(error.headers or {})))


def _too_deep(request: Request, _error: Exception) -> Response:
    """What no shape has bounded."""
    return _answer(request, Problem(status=400, detail="the request is nested too deeply", hint=f"{DEEPEST} levels are allowed"))


def _fault(request: Request, _error: Exception) -> Response:
    return _answer(request, Problem(status=500, detail="this is a fault of Onward's", hint="the server's log says more"))


def _answer(request: Request, problem: Problem) -> Response:
    root = request.scope.get("root_path", "")
    body, headers = problem.answer(request.scope["path"].removeprefix(root))
    return Response(body, status_code=problem.status, headers=headers)
