"""The tracker's tables: runs, metrics, files, what was taken in, alerts, the server itself.

Times are unix seconds (double); in chunks, microseconds (integer). A run is `runs.id` inside, `runs.run_id` outside.

experiments ─┬─ runs ─┬─ standings, memberships, legs, params (by leg), tags, notes, events, artifacts, inputs, outputs
             │        ├─ series ── chunks          a metric of a run: last and best values; its points, packed
             │        ├─ tail_keys ── tails        the newest records of thousands of metrics, before they are packed
             │        └─ writers, positions        which records were taken; how far which file was read
             └─ models ── model_params, model_tags, model_metrics
tokens, views, alert_rules, alert_channels, notices, hints, settings, store (the counter that numbers every commit)

Not here: the gateway's tables (tracker/requests), and the steps between versions (tracker/migrations).
"""

from onward.tracker.schema.alert_tables import alert_channels, alert_rules, notices
from onward.tracker.schema.base import Id, metadata
from onward.tracker.schema.file_tables import artifacts, inputs, model_metrics, model_params, model_tags, models, outputs
from onward.tracker.schema.ingest_tables import event_series, events, hints, owners, positions, quarantine, writers
from onward.tracker.schema.metric_tables import chunks, series, tail_keys, tails
from onward.tracker.schema.run_tables import RUNNING, experiment_tags, experiments, legs, memberships, notes, params, runs, standings, tags
from onward.tracker.schema.server_tables import settings, store, tokens, views

# fmt: off
__all__ = [
    "RUNNING", "Id", "alert_channels", "alert_rules", "artifacts", "chunks", "event_series", "events", "experiment_tags", "experiments",
    "hints", "inputs", "legs", "memberships", "metadata", "model_metrics", "model_params", "model_tags", "models", "notes", "notices",
    "outputs", "owners", "params", "positions", "quarantine", "runs", "series", "settings", "standings", "store", "tags", "tail_keys",
    "tails", "tokens", "views", "writers",
]
# fmt: on
