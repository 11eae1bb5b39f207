"""MLflow's REST API, for clients that speak it already. Routes are added to `router`; the gate and the errors' shape are the server's.

Under these paths (`problems.MLFLOW`) every refusal, the gate's too, has MLflow's shape: `{"error_code": …, "message": …}`. A run's
token is held to its run by `caller.must_write(run_id)` in each route, since the address does not name it.
"""

from __future__ import annotations

from fastapi import APIRouter

from onward.api.mlflow import artifacts, experiments, metrics, models, runs, server_info

router = APIRouter()
for part in (experiments, runs, metrics, models, artifacts, server_info):
    router.include_router(part.router)
