"""Which files a run has: those that we keep, and those that it only told of. The bytes are `artifact_files`'s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from onward.errors import InvalidInput
from onward.tracker.db.writer import Batch
from onward.tracker.ingest.receive import run_row
from onward.tracker.runs.legs import upsert
from onward.tracker.schema import artifacts

if TYPE_CHECKING:
    from onward.tracker.store import Tracker


@dataclass(frozen=True, kw_only=True)
class ArtifactRecord:
    path: str
    kind: str
    bytes: int | None
    sha256: str | None
    stored: bool  # we have the bytes
    created: float


def put_artifact(tracker: Tracker, run: str, artifact: ArtifactRecord) -> None:
    """Remember it; one of the same path is replaced."""
    if not artifact.path or len(artifact.path) > 1000 or "\x00" in artifact.path:
        raise InvalidInput("an artifact's path must have 1 to 1000 characters, without NUL")

    def job(batch: Batch) -> None:
        row = {"run": run_row(batch, run)["id"], **vars(artifact)}
        upsert(batch, artifacts, [row], keys=("run", "path"), change=("kind", "bytes", "sha256", "stored", "created"))

    tracker.write(job)


def artifacts_of(tracker: Tracker, run: str) -> list[ArtifactRecord]:
    inner = tracker.runs.get(run).inner
    with tracker.reading() as connection:
        rows = connection.execute(select(artifacts).where(artifacts.c.run == inner).order_by(artifacts.c.path)).mappings()
        return [ArtifactRecord(**{key: value for key, value in row.items() if key != "run"}) for row in rows]


def forget_artifact(tracker: Tracker, run: str, path: str) -> None:
    def job(batch: Batch) -> None:
        row = run_row(batch, run)
        batch.connection.execute(artifacts.delete().where(artifacts.c.run == row["id"], artifacts.c.path == path))

    tracker.write(job)
