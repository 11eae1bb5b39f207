"""Every page with something on it: where it is, and what is there once it is shown. For pictures, and for a look at all with axe."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from onward.model.cluster import ClusterSnapshot
from onward.operations.clusters.snapshot_cache import CachedSnapshot, snapshot_record
from tests.servers import Running
from tests.unit.test_cluster_page import LAB, recorded
from tests.web.asked import DONE, FAILED, ask
from tests.web.measured import GOING, SWEEP, measure
from tests.web.story import AT_WORK, DEAD, tell

_CLUSTERS = {"clusters": [{"name": "lab", "scheduler": "slurm", "host": "login.example", "auto": True}]}


@dataclass(frozen=True)
class Stop:
    path: str
    shown: str  # what is there once the page is


STOPS = {
    "runs": Stop("/", ".table-row .cell a, .card a"),
    "runs-in-groups": Stop("/?group=experiment&open=%3Ddemo:%20digits", ".table-row .cell a, .card a"),
    "runs-of-a-pipeline": Stop(f"/?open=@{SWEEP},@{GOING}", ".within"),
    "new-run": Stop("/new", ".new-form"),
    "run": Stop(f"/runs/{AT_WORK}", ".timeline svg"),
    "run-that-died": Stop(f"/runs/{DEAD}", ".timeline svg"),
    "run-charts": Stop(f"/runs/{AT_WORK}/charts", ".chart-count"),
    "run-logs": Stop(f"/runs/{AT_WORK}/logs", ".log-line"),
    "run-system": Stop(f"/runs/{AT_WORK}/system", "main .system, main .empty"),
    "run-checkpoints": Stop(f"/runs/{AT_WORK}/checkpoints", "main .ledger, main .empty"),
    "run-files": Stop(f"/runs/{AT_WORK}/files", "main .files, main .empty"),
    "compare": Stop("/compare?filter=tags.demo%20%3D%20%27yes%27", ".chart-count"),
    "compare-groups": Stop("/compare?filter=tags.demo%20%3D%20%27yes%27&group=params.batch_size", ".chart-count"),
    "compare-params": Stop("/compare?filter=tags.demo%20%3D%20%27yes%27&tab=params", "main table"),
    "compare-metrics": Stop("/compare?filter=tags.demo%20%3D%20%27yes%27&tab=metrics", "main table"),
    "compare-parallel": Stop("/compare?filter=tags.demo%20%3D%20%27yes%27&tab=parallel", "main svg path, main canvas"),
    "compare-scatter": Stop("/compare?filter=tags.demo%20%3D%20%27yes%27&tab=scatter", "main svg circle, main canvas"),
    "experiments": Stop("/experiments", "main :is(table, .empty, .card)"),
    "pipelines": Stop("/pipelines", "main table"),
    "pipeline": Stop(f"/pipelines/{GOING}", "main .scores"),
    "pipeline-that-failed": Stop(f"/pipelines/{SWEEP}?stages=train", "main .scores"),
    "requests": Stop("/requests", "main table"),
    "request": Stop(f"/requests/{DONE}", "main table"),
    "request-that-failed": Stop(f"/requests/{FAILED}", ".request-log"),
    "cluster": Stop("/cluster", "main h2"),
    "alerts": Stop("/alerts", "main :is(table, .empty, .card, section)"),
    "tokens": Stop("/tokens", "main :is(table, .empty, .card)"),
}


@contextmanager
def demo_server(folder: Path) -> Iterator[Running]:
    """A server with demo data and both stories; it repairs nothing, for their jobs are only told of."""
    code = folder / "digits"
    code.mkdir(parents=True)
    (code / "train.py").write_text("print('trained')\n")
    tell(folder / "runs", time.time())
    ask(folder, time.time())
    measure(folder / "runs", time.time())
    settings = f'[server]\ncode = ["{code}"]\nrequests = 1000\n'
    with Running(folder, "--demo-data", "--no-tend", settings=settings) as server:
        token = server.token("--rights", "admin")
        until = time.monotonic() + 60
        while server.ask("GET", f"/api/v1/runs/{DEAD}/overview", token=token)[0] != 200 and time.monotonic() < until:
            time.sleep(0.2)
        _alert(server, token)
        yield server


def _alert(server: Running, token: str) -> None:
    """Somebody wants to be told; no rule finds anything here, so nothing is sent."""
    mail = {"kind": "email", "name": "the lab", "host": "mail.example", "sender": "onward@mail.example", "to": ["ada@mail.example"]}
    channel = server.json("POST", "/api/v1/alerts/channels", token, mail)["channel"]["id"]
    for name, kind, filter in (("died", "failed", "experiment = 'vision'"), ("diverges", "metric", "metrics.'train/loss' > 1000")):
        server.json("POST", "/api/v1/alerts/rules", token, {"name": name, "kind": kind, "filter": filter, "channels": [channel]})


def with_a_cluster(context: BrowserContext) -> None:
    """The cluster's page shows a recorded Slurm."""
    told = snapshot_record(CachedSnapshot(cluster=LAB, snapshot=_ranked(recorded()), age=3.0))
    context.route("**/api/v1/clusters", lambda route: route.fulfill(json=_CLUSTERS))
    context.route(re.compile(r"/api/v1/clusters/lab"), lambda route: route.fulfill(json=told))


def _ranked(taken: ClusterSnapshot) -> ClusterSnapshot:
    """With priorities, which the recorded site did not have."""
    known = {"2220": (20_523.0, "fair share 20000, age 500, size 23"), "2221": (10_110.0, "fair share 10000, age 110")}
    told = {job.id: known.get(job.id, (None, "")) for job in taken.jobs}
    return replace(taken, jobs=tuple(replace(job, priority=told[job.id][0], factors=told[job.id][1]) for job in taken.jobs))


def go(page: Page, stop: Stop) -> None:
    page.goto(stop.path)
    page.wait_for_selector(stop.shown)
