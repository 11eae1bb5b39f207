"""The tables. Times are unix seconds (double); in chunks, microseconds (integer). A run is `runs.id` inside, `runs.run_id` outside.

experiments ─┬─ runs ─┬─ standings, legs, params (by leg), tags, notes, events, artifacts, inputs, outputs
             │        ├─ series ── chunks          a metric of a run: last and best values; its points, packed
             │        ├─ tail_keys ── tails        the newest records of thousands of metrics, before they are packed
             │        └─ writers, positions        which records were taken; how far which file was read
             └─ models ── model_params, model_tags, model_metrics
tokens, views, alert_rules, alert_channels, notices, hints, settings, store (the counter that numbers every commit)
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    literal,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by themselves only in an INTEGER

store = Table(
    "store",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", BigInteger, nullable=False),  # one more with every commit that changes anything
)

settings = Table("settings", metadata, Column("key", String(250), primary_key=True), Column("value", Text, nullable=False))

experiments = Table(
    "experiments",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", String(500), nullable=False, unique=True),
    Column("artifact_location", Text, nullable=False, server_default=""),
    Column("archived", Double),  # when, or null
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
)

experiment_tags = Table(
    "experiment_tags",
    metadata,
    Column("experiment", ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("value", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run_id", String(64), nullable=False, unique=True),  # eight letters, or 32 hex digits
    Column("hex_id", String(32), nullable=False, unique=True),  # always 32 hex digits
    Column("experiment", ForeignKey("experiments.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False, server_default=""),
    Column("user", String(250), nullable=False, server_default=""),
    Column("source", String(16), nullable=False),  # onward, by-hand, mlflow, seed, tensorboard, import
    Column("identity", String(500), unique=True),  # what a repeated start is recognised by; null where it cannot repeat
    Column("folder", Text),
    Column("cluster", String(250)),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Column("updated", Double, nullable=False),  # when anything of it last changed
    Column("archived", Double),
    Column("total_steps", BigInteger),
    Column("last_step", BigInteger),
    Column("leg", Integer, nullable=False, server_default="0"),  # the one that runs, or ran last
    Column("details", Text, nullable=False, server_default="{}"),  # spec and closing words, as JSON
    Column("version", BigInteger, nullable=False),  # the commit that changed it last
)
Index("ix_runs_version", runs.c.version)
Index("ix_runs_created", runs.c.created)
RUNNING = literal("running", literal_execute=True)  # in the statement itself, as the index has it
Index("ix_runs_running", runs.c.source, sqlite_where=text("state = 'running'"), postgresql_where=text("state = 'running'"))
Index("ix_runs_folder", runs.c.folder)

standings = Table(  # what a list says of a run in one line: apart from `runs`, whose rows change with every point
    "standings",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("why", Text, nullable=False, server_default=""),
    Column("next", Text, nullable=False, server_default=""),
    Column("legs_done", Integer, nullable=False, server_default="0"),
    Column("legs_max", Integer),
    Column("saved_step", BigInteger),
    Column("saved_at", Double),
    Column("queued_at", Double),
    Column("begun_at", Double),
    Column("gpu_use", Double),  # 0 to 1
    Column("gpu_at", Double),  # of the sample that it was last reckoned with
)

legs = Table(
    "legs",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("leg", Integer, primary_key=True),
    Column("job", String(250)),
    Column("cluster", String(250)),
    Column("state", String(16), nullable=False, server_default="running"),
    Column("end", String(16)),
    Column("reason", Text, nullable=False, server_default=""),
    Column("submitted", Double),
    Column("started", Double),
    Column("ended", Double),
    Column("resumed_step", BigInteger),  # the step of the checkpoint it went on from; null: not told
    Column("last_step", BigInteger),
    Column("details", Text, nullable=False, server_default="{}"),  # nodes, gpus, warnings, as JSON
)
Index("ix_legs_job", legs.c.job)

params = Table(
    "params",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("leg", Integer, primary_key=True),
    Column("value", Text, nullable=False),
    Column("number", Double),  # the value, where it is a number
    Column("current", Boolean, nullable=False),  # of the newest leg that has it
)
Index("ix_params_key_run", params.c.key, params.c.run)

tags = Table(
    "tags",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("value", Text, nullable=False),
)
Index("ix_tags_key_run", tags.c.key, tags.c.run)

notes = Table(
    "notes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("author", String(250), nullable=False, server_default=""),
    Column("text", Text, nullable=False),
    Column("level", String(20)),  # of a training's alert: INFO, WARN, ERROR
)

events = Table(  # journal lines that were pushed: of a run whose folder nobody here can read
    "events",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("file", String(250), primary_key=True),
    Column("offset", BigInteger, primary_key=True),
    Column("line", Text, nullable=False),
)

# ── points ────────────────────────────────────────────────────────────────────

series = Table(
    "series",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("key", String(250), nullable=False),
    Column("points", BigInteger, nullable=False),  # all, superseded ones too
    Column("leg", Integer, nullable=False),  # the newest that has points here
    Column("leg_first", BigInteger, nullable=False),  # the lowest step of that leg
    Column("top_step", BigInteger, nullable=False),  # the highest (step, time) of all points
    Column("top_time", BigInteger, nullable=False),
    Column("last_step", BigInteger),  # of the points that show: the highest (step, time, value)
    Column("last_time", BigInteger),
    Column("last_value", Double),  # null for NaN
    Column("min_value", Double),  # the lowest and highest finite ones that show
    Column("min_step", BigInteger),
    Column("max_value", Double),
    Column("max_step", BigInteger),
    Column("loose", Integer, nullable=False),  # chunks that are not full
    Column("version", BigInteger, nullable=False),
    UniqueConstraint("run", "key"),
)
Index("ix_series_loose", series.c.loose, postgresql_where=text("loose > 1"), sqlite_where=text("loose > 1"))
Index("ix_series_key_last", series.c.key, series.c.last_value, series.c.run)  # answers metrics.loss < 0.5 by itself

chunks = Table(
    "chunks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("series", ForeignKey("series.id", ondelete="CASCADE"), nullable=False),
    Column("leg", Integer, nullable=False),
    Column("points", Integer, nullable=False),
    Column("full", Boolean, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("first_time", BigInteger, nullable=False),  # of the first in the order of (step, time)
    Column("last_step", BigInteger, nullable=False),
    Column("last_time", BigInteger, nullable=False),
    Column("last_value", Double),  # null for NaN
    Column("bad", Integer, nullable=False),  # NaN and ±Inf among them
    Column("min_value", Double),
    Column("min_step", BigInteger),
    Column("max_value", Double),
    Column("max_step", BigInteger),
    Column("summary", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
Index("ix_chunks_series_leg_first", chunks.c.series, chunks.c.leg, chunks.c.first_step)

tail_keys = Table(  # metrics of wide records, in their order
    "tail_keys",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("names", Text, nullable=False),  # as JSON
    UniqueConstraint("run", "digest"),
)

tails = Table(  # wide records that are not yet in chunks: see `wide.tails`
    "tails",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("leg", Integer, nullable=False),
    Column("keys", ForeignKey("tail_keys.id", ondelete="CASCADE"), nullable=False),
    Column("records", Integer, nullable=False),
    Column("points", Integer, nullable=False),
    Column("at", Double, nullable=False),  # when it was stored
    Column("data", LargeBinary, nullable=False),  # steps, times, values record by record
)

writers = Table(
    "writers",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("leg", Integer, primary_key=True),
    Column("writer", String(250), primary_key=True),
    Column("life", Double, primary_key=True),  # when its record 0 was written: a process number may come twice
    Column("seen", Text, nullable=False),  # sequence numbers taken, as ranges: 0-999,1001-1005
)

positions = Table(
    "positions",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("file", String(500), primary_key=True),  # spool/leg-0001.train-17.jsonl
    Column("offset", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),  # when it was last looked at
    Column("head", String(80), nullable=False, server_default=""),  # length and digest of its beginning
    Column("life", Double),
)

event_series = Table(  # metrics that only TensorBoard's files have: one that others log too is theirs
    "event_series",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("points", BigInteger, nullable=False),  # that the series had when its files were last read
)

# ── files, models, datasets ───────────────────────────────────────────────────

artifacts = Table(
    "artifacts",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("path", String(1000), primary_key=True),
    Column("kind", String(64), nullable=False, server_default=""),
    Column("bytes", BigInteger),
    Column("sha256", String(64)),
    Column("stored", Boolean, nullable=False, server_default=text("false")),  # we have the bytes; else only told of
    Column("created", Double, nullable=False),
)

models = Table(
    "models",
    metadata,
    Column("id", String(64), primary_key=True),  # m-…
    Column("experiment", ForeignKey("experiments.id"), nullable=False, index=True),
    Column("run", ForeignKey("runs.id", ondelete="SET NULL"), index=True),
    Column("name", String(500), nullable=False),
    Column("kind", String(250), nullable=False, server_default=""),
    Column("status", String(64), nullable=False),
    Column("status_message", Text, nullable=False, server_default=""),
    Column("artifact_location", Text, nullable=False, server_default=""),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    Column("archived", Double),
)

model_params = Table(
    "model_params",
    metadata,
    Column("model", ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("value", Text, nullable=False),
)

model_tags = Table(
    "model_tags",
    metadata,
    Column("model", ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(250), primary_key=True),
    Column("value", Text, nullable=False),
)

model_metrics = Table(
    "model_metrics",
    metadata,
    Column("id", Id, primary_key=True),
    Column("model", ForeignKey("models.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("key", String(250), nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("value", Double),  # null for NaN
    Column("run", ForeignKey("runs.id", ondelete="CASCADE")),
    Column("dataset", String(250)),
    Column("dataset_digest", String(250)),
)

inputs = Table(
    "inputs",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", String(16), primary_key=True),  # dataset, model
    Column("name", String(500), primary_key=True),
    Column("digest", String(250), primary_key=True),
    Column("source_type", String(250), nullable=False, server_default=""),
    Column("source", Text, nullable=False, server_default=""),
    Column("schema", Text),
    Column("profile", Text),
    Column("tags", Text, nullable=False, server_default="{}"),
)

outputs = Table(
    "outputs",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("model", String(64), primary_key=True),
    Column("step", BigInteger, nullable=False, server_default="0"),
)

# ── access ────────────────────────────────────────────────────────────────────

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("scope", String(16), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("name", String(250), nullable=False, server_default=""),
    Column("rights", String(16), nullable=False, server_default="write"),
    Column("run", String(64)),
    Column("cluster", String(250)),
    Column("created", Double, nullable=False),
    Column("expires", Double),
    Column("revoked", Double),
    Column("last_used", Double),
    Column("parent", String(32)),  # of a session: the token that it was made from
)

views = Table(  # named ones of the pages: a page, and what its address says after it
    "views",
    metadata,
    Column("id", Id, primary_key=True),
    Column("owner", String(250), nullable=False),
    Column("page", String(64), nullable=False),
    Column("name", String(250), nullable=False),
    Column("query", Text, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    UniqueConstraint("owner", "page", "name"),
)

hints = Table(  # ids of scheduler events that were taken, so that none is taken twice
    "hints",
    metadata,
    Column("id", String(250), primary_key=True),
    Column("at", Double, nullable=False, index=True),
    Column("cluster", String(250), nullable=False, server_default=""),
    Column("job", String(250), nullable=False, server_default=""),
    Column("text", Text, nullable=False, server_default=""),
    Column("taken", SmallInteger, nullable=False, server_default="0"),
)

# ── alerts ────────────────────────────────────────────────────────────────────

alert_rules = Table(
    "alert_rules",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(250), nullable=False, unique=True),
    Column("kind", String(32), nullable=False),
    Column("filter", Text, nullable=False),
    Column("after", Double),
    Column("channels", Text, nullable=False),  # their ids, as JSON
    Column("lines", Boolean, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("since", Double, nullable=False),
)

alert_channels = Table(  # without their secrets, which lie in a file of the server's own
    "alert_channels",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(250), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("target", Text, nullable=False),  # where to, as JSON
    Column("quiet", Text),  # quiet hours, as JSON
    Column("enabled", Boolean, nullable=False),
    Column("created", Double, nullable=False),
)

notices = Table(  # what was told, and what still waits to be: a row a channel
    "notices",
    metadata,
    Column("id", Id, primary_key=True),
    Column("rule", String(32), nullable=False),
    Column("rule_name", String(250), nullable=False),
    Column("channel", String(32), nullable=False),
    Column("channel_name", String(250), nullable=False),
    Column("key", String(500), nullable=False),
    Column("group", String(500), nullable=False),
    Column("run_id", String(64)),
    Column("level", String(16), nullable=False),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("due", Double),  # when it is tried next; null: it was sent, or given up
    Column("bundle", String(64)),  # those that were once tried in one message stay together
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("sent", Double),
    Column("error", Text, nullable=False, server_default=""),  # of the last try
    UniqueConstraint("rule", "channel", "key"),
)
Index("ix_notices_due", notices.c.due)

owners = Table(  # who owned a run's folder when it was first seen
    "owners",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("uid", BigInteger, nullable=False),
)

quarantine = Table(  # folders under the roots that cannot be read as runs
    "quarantine",
    metadata,
    Column("folder", String(1000), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("since", Double, nullable=False),
)
