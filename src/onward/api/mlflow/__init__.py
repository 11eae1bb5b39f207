"""MLflow's REST API, for clients that already speak it.

Routes are added to `router`; the gate and the error shape are the server's. Under these paths (`problems.MLFLOW`) every refusal, the
gate's too, has MLflow's shape: `{"error_code": …, "message": …}`. Each route limits a run's token to its run with
`caller.must_write(run_id)`, since the address does not name the run.

Not here: the relay's MLflow calls (supervisor/relay), import of MLflow stores (operations/imports).
"""

from __future__ import annotations

from fastapi import APIRouter

from onward.api.mlflow import artifacts, experiments, metrics, models, runs, server_info

router = APIRouter()
for part in (experiments, runs, metrics, models, artifacts, server_info):
    router.include_router(part.router)
