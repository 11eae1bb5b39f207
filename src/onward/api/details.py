"""A run with everything that is known of it, as the routes that show or change one answer it."""

from __future__ import annotations

from typing import Any

from onward.api.rows import standing_record
from onward.api.services import Services
from onward.api.shapes import finite


def details_of(svc: Services, run_id: str) -> dict[str, Any]:
    view = svc.tracker.runs.view(run_id)
    legs = [{key: value for key, value in leg.items() if key != "run"} for leg in svc.tracker.runs.legs(run_id)]
    whole: dict[str, Any] = finite({**standing_record(view, svc.clock.now()), "legs": legs, "details": view.info.details})
    return whole
