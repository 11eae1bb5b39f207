"""Tables of experiments and runs: legs, params, tags, notes."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, Integer, String, Table, Text, literal, text

from onward.tracker.schema.base import Id, metadata

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
    Column("leg", Integer, nullable=False, server_default="0"),  # the current or last leg
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
    Column("trains", Boolean),  # whether its newest leg is at work
    Column("gpu_use", Double),  # 0 to 1
    Column("gpu_at", Double),  # of the sample that it was last reckoned with
)

memberships = Table(  # runs that a pipeline queued: apart from `runs`, as few runs are
    "memberships",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("pipeline", String(600), nullable=False),  # its folder
)
Index("ix_memberships_pipeline_run", memberships.c.pipeline, memberships.c.run)

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
