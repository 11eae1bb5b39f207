"""What MLflow's clients ask a server about itself. What we do not have (traces, the registry, GraphQL) is answered 404, cleanly."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

router = APIRouter(tags=["MLflow: about"])
_SPOKEN = "3.17.2"  # the version of MLflow's API that this follows


@router.get("/api/3.0/mlflow/server-info")
def server_info() -> dict[str, Any]:
    """Which kind of store this is; clients choose their calls by it."""
    return {"store_type": "SqlStore", "workspaces_enabled": False}


@router.get("/version", response_model=None)
def version() -> str:
    """The version of MLflow whose API this follows."""
    return _SPOKEN
