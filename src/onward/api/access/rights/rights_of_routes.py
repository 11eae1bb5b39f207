"""The table of rights: every route of ours, by method and path template. What is in no table does not start and is not served.

A new route needs a row here, else the server refuses to start and `tests/unit/test_api_rights.py` fails. Extensions bring the rows of
their routes (`api/extensions.py`). `scripts/rights` writes `docs/reference/rights.md` and the recorded matrix from all of them.
"""

from __future__ import annotations

from typing import Final

from onward.api.access.rights.access_rules import (
    ABOUT,
    ADMIN,
    HEALTH,
    HINT,
    PUBLIC,
    READ,
    READ_NAMED,
    READ_OWN,
    READ_RUN,
    RESULT,
    SEND_NAMED,
    SEND_RUN,
    WRITE,
    WRITE_NAMED,
    WRITE_OWN,
    WRITE_RUN,
    Right,
)

_RUN = "/api/v1/runs/{run_id}"
_MLFLOW = "/api/2.0/mlflow"
_MODEL = f"{_MLFLOW}/logged-models/{{model_id}}"
_FILES = "/api/2.0/mlflow-artifacts/artifacts"

VIEW: Final = "GET the page"  # any address that a browser asks for as HTML
ASSET: Final = "GET /assets/{name}"
LOGIN: Final = "/login"  # whatever the method

# Not FastAPI's: answered by the gate and by what stands before the routes.
BEFORE_ROUTES: Final[dict[str, Right]] = {
    f"GET {LOGIN}": PUBLIC,
    f"POST {LOGIN}": PUBLIC,
    VIEW: READ,
    ASSET: READ,
    ASSET.replace("GET", "HEAD"): READ,
}

TABLE: Final[dict[str, Right]] = {
    # the server
    "GET /healthz": HEALTH,
    "GET /readyz": HEALTH,
    "GET /metrics": READ,
    "GET /": READ,
    "GET /docs": READ,
    "GET /api/openapi.json": READ,
    "HEAD /api/openapi.json": READ,
    "GET /api/v1/live": READ,
    "GET /api/v1/trouble/folders": READ,
    # experiments
    "GET /api/v1/experiments": READ,
    "POST /api/v1/experiments": WRITE,
    "GET /api/v1/experiments/{experiment}": READ,
    "PATCH /api/v1/experiments/{experiment}": WRITE,
    # runs
    "GET /api/v1/runs": READ,
    "POST /api/v1/runs/search": READ,
    "POST /api/v1/runs": WRITE,
    f"GET {_RUN}": READ_RUN,
    f"PATCH {_RUN}": WRITE,
    f"POST {_RUN}/params": WRITE_RUN,
    f"GET {_RUN}/params": READ_RUN,
    f"POST {_RUN}/tags": WRITE_RUN,
    f"DELETE {_RUN}/tags/{{key:path}}": WRITE,
    f"GET {_RUN}/notes": READ_RUN,
    f"POST {_RUN}/notes": WRITE,
    f"DELETE {_RUN}/notes/{{note}}": WRITE,
    f"GET {_RUN}/checkpoints": READ_RUN,
    f"GET {_RUN}/code-diff": READ_RUN,
    f"GET {_RUN}/overview": READ_RUN,
    f"GET {_RUN}/timeline": READ_RUN,
    f"GET {_RUN}/system": READ_RUN,
    f"GET {_RUN}/start": READ_RUN,
    f"GET {_RUN}/export": READ_RUN,
    "GET /api/v1/export/runs": READ,
    "GET /api/v1/run-groups": READ,
    "GET /api/v1/params/diff": READ,
    "GET /api/v1/bests": READ,
    # what starts and ends jobs
    f"POST {_RUN}/clone": WRITE,
    f"POST {_RUN}/cancel": WRITE,
    f"POST {_RUN}/stop": WRITE,
    f"POST {_RUN}/resume": WRITE,
    "GET /api/v1/drafts/folders": READ,
    "POST /api/v1/drafts/search": READ,
    "POST /api/v1/drafts/text": WRITE,
    "GET /api/v1/params-schema": READ,
    # metrics
    f"GET {_RUN}/metrics": READ_RUN,
    f"POST {_RUN}/metrics": WRITE_RUN,
    f"POST {_RUN}/metrics/batch": WRITE_RUN,
    f"GET {_RUN}/points": READ_RUN,
    "GET /api/v1/series": READ,
    "POST /api/v1/series/search": READ,
    "POST /api/v1/series/aggregates/search": READ,
    "POST /api/v1/metrics/search": READ,
    "GET /api/v1/sparklines": READ,
    # files and logs
    f"GET {_RUN}/artifacts": READ_RUN,
    f"PUT {_RUN}/artifacts/{{path:path}}": WRITE_RUN,
    f"GET {_RUN}/artifacts/{{path:path}}": READ_RUN,
    f"DELETE {_RUN}/artifacts/{{path:path}}": WRITE,
    f"GET {_RUN}/written": READ_RUN,
    f"GET {_RUN}/written/{{path:path}}": READ_RUN,
    f"GET {_RUN}/logs": READ_RUN,
    f"GET {_RUN}/logs/{{leg}}/{{stream}}": READ_RUN,
    f"GET {_RUN}/logs/{{leg}}/{{stream}}/follow": READ_RUN,
    f"GET {_RUN}/logs/{{leg}}/{{stream}}/file": READ_RUN,
    f"GET {_RUN}/logs/{{leg}}/{{stream}}/lines": READ_RUN,
    f"GET {_RUN}/logs/{{leg}}/{{stream}}/search": READ_RUN,
    # what jobs send
    f"PUT {_RUN}/spec": WRITE,
    f"POST {_RUN}/tokens": WRITE,
    f"POST {_RUN}/pieces": SEND_RUN,
    f"POST {_RUN}/packed-pieces": SEND_RUN,
    "POST /api/v1/records": SEND_NAMED,
    # tokens, views, clusters, alerts
    "GET /api/v1/tokens": ADMIN,
    "POST /api/v1/tokens": ADMIN,
    "DELETE /api/v1/tokens/{id}": ADMIN,
    "GET /api/v1/views": READ,
    "GET /api/v1/views/{view}": READ,
    "PUT /api/v1/views": WRITE,
    "DELETE /api/v1/views/{view}": WRITE,
    "GET /api/v1/filter-words": READ,
    "GET /api/v1/clusters": READ,
    "GET /api/v1/clusters/{name}": READ,
    "GET /api/v1/alerts/rules": READ,
    "POST /api/v1/alerts/rules": WRITE,
    "PUT /api/v1/alerts/rules/{rule}": WRITE,
    "DELETE /api/v1/alerts/rules/{rule}": WRITE,
    "GET /api/v1/alerts/history": READ,
    "GET /api/v1/alerts/channels": READ,
    "POST /api/v1/alerts/channels": ADMIN,
    "PUT /api/v1/alerts/channels/{channel}": ADMIN,
    "DELETE /api/v1/alerts/channels/{channel}": ADMIN,
    "POST /api/v1/alerts/channels/{channel}/test": ADMIN,
    # requests and pipelines
    "GET /api/v1/requests": READ,
    "GET /api/v1/requests/{id}": READ,
    "POST /api/v1/requests/{id}/cancel": WRITE,
    "GET /api/v1/requests/{id}/results/{name:path}": RESULT,
    "GET /api/v1/pipelines": READ,
    "GET /api/v1/pipelines/{name}": READ,
    "POST /api/v1/pipelines/{name}/cancel": WRITE,
    "POST /api/v1/pipelines/{name}/rerun": WRITE,
    # what schedulers say
    "POST /webhooks/hints": HINT,
    # MLflow: a run's token adds to its run and takes nothing away
    f"POST {_MLFLOW}/experiments/create": WRITE_NAMED,  # with a run's token: only to be told that its own is there
    f"GET {_MLFLOW}/experiments/get": READ_NAMED,
    f"GET {_MLFLOW}/experiments/get-by-name": READ_NAMED,
    f"POST {_MLFLOW}/experiments/update": WRITE,
    f"POST {_MLFLOW}/experiments/delete": WRITE,
    f"POST {_MLFLOW}/experiments/restore": WRITE,
    f"POST {_MLFLOW}/experiments/set-experiment-tag": WRITE,
    f"POST {_MLFLOW}/experiments/delete-experiment-tag": WRITE,
    f"POST {_MLFLOW}/experiments/search": READ_OWN,
    f"GET {_MLFLOW}/experiments/search": READ_OWN,
    f"POST {_MLFLOW}/runs/create": WRITE_OWN,
    f"GET {_MLFLOW}/runs/get": READ_NAMED,
    f"POST {_MLFLOW}/runs/update": WRITE_NAMED,
    f"POST {_MLFLOW}/runs/delete": WRITE,
    f"POST {_MLFLOW}/runs/restore": WRITE,
    f"POST {_MLFLOW}/runs/set-tag": WRITE_NAMED,
    f"POST {_MLFLOW}/runs/delete-tag": WRITE,
    f"POST {_MLFLOW}/runs/search": READ_OWN,
    f"POST {_MLFLOW}/runs/log-metric": WRITE_NAMED,
    f"POST {_MLFLOW}/runs/log-parameter": WRITE_NAMED,
    f"POST {_MLFLOW}/runs/log-batch": WRITE_NAMED,
    f"POST {_MLFLOW}/runs/log-inputs": WRITE_NAMED,
    f"POST {_MLFLOW}/runs/outputs": WRITE_NAMED,
    f"POST {_MLFLOW}/runs/log-model": WRITE_NAMED,
    f"GET {_MLFLOW}/metrics/get-history": READ_NAMED,
    f"POST {_MLFLOW}/logged-models": WRITE_NAMED,
    f"POST {_MLFLOW}/logged-models/search": READ_OWN,
    f"GET {_MODEL}": READ_NAMED,
    f"PATCH {_MODEL}": WRITE_NAMED,
    f"DELETE {_MODEL}": WRITE,
    f"PATCH {_MODEL}/tags": WRITE_NAMED,
    f"DELETE {_MODEL}/tags/{{tag_key:path}}": WRITE,
    f"POST {_MODEL}/params": WRITE_NAMED,
    f"GET {_MODEL}/artifacts/directories": READ_NAMED,
    f"PUT {_FILES}/{{path:path}}": WRITE_NAMED,
    f"GET {_FILES}": READ_NAMED,
    f"GET {_FILES}/{{path:path}}": READ_NAMED,
    f"DELETE {_FILES}/{{path:path}}": WRITE,
    f"GET {_MLFLOW}/artifacts/list": READ_NAMED,
    "GET /api/3.0/mlflow/server-info": ABOUT,
    "GET /version": ABOUT,
}
