"""The older tracker's calls and job states, as an extension of the server: the entry point `seed-tracker` of `onward.server_extensions`."""

from __future__ import annotations

from onward.api.access.rights.access_rules import HINT, READ_RUN, WRITE_OWN, WRITE_RUN
from onward.contrib.seed_tracker.job_states import follow_jobs as tend
from onward.contrib.seed_tracker.routes import router as router

__all__ = ["rights", "router", "tend"]

rights = {
    "POST /experiments/{experiment:path}/runs": WRITE_OWN,
    "GET /runs/{run_id}": READ_RUN,
    "PATCH /runs/{run_id}": WRITE_RUN,
    "POST /runs/{run_id}/metrics": WRITE_RUN,
    "POST /runs/{run_id}/metrics/batch": WRITE_RUN,
    "POST /runs/{run_id}/artifacts": WRITE_RUN,
    "POST /webhooks/slurm": HINT,
}
