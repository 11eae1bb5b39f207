"""What MLflow's clients ask a server about itself. What we do not have (traces, the registry, GraphQL) is answered 404, cleanly."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

router = APIRouter(tags=["MLflow: about"])
_SPOKEN = "3.17.2"  # the version of MLflow's API that this follows
_LACKING = {
    **dict.fromkeys(("registered-models", "model-versions"), "model registry"),
    "traces": "traces",
    "datasets": "evaluation datasets",
    "webhooks": "webhooks of the registry",
    "workspaces": "workspaces",
}
ENDPOINT_NOT_FOUND = "ENDPOINT_NOT_FOUND"  # MLflow's word: its clients fall back, or say that the server cannot do this


def lacking(path: str) -> str:
    """What a call that is not here would be for."""
    found = next((words for part, words in _LACKING.items() if part in path), "")
    return f"this server does not support MLflow's {found}; runs, metrics, artifacts and logged models work" if found else ""


@router.get("/api/3.0/mlflow/server-info")
def server_info() -> dict[str, Any]:
    """Which kind of store this is; clients choose their calls accordingly."""
    return {"store_type": "SqlStore", "workspaces_enabled": False}


@router.get("/version", response_model=None)
def version() -> str:
    """The version of MLflow whose API this follows."""
    return _SPOKEN
