"""A run with everything that is known of it, as the routes that show or change one answer it."""

from __future__ import annotations

from typing import Any

from onward.api.schemas.base import finite
from onward.api.schemas.runs import summary_record
from onward.api.services import Services


def run_details(svc: Services, run_id: str) -> dict[str, Any]:
    view = svc.tracker.runs.view(run_id)
    legs = [{key: value for key, value in leg.items() if key != "run"} for leg in svc.tracker.runs.legs(run_id)]
    whole: dict[str, Any] = finite({**summary_record(view, svc.clock.now()), "legs": legs, "details": view.info.details})
    return whole
