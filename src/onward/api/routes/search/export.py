"""Export: tables of runs, and all points of one, as CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from onward.api.dependencies import Svc
from onward.api.routes.path_params import RunId, experiment_of, run_of
from onward.api.schemas.base import number, run_record
from onward.api.services import Services
from onward.errors import InvalidInput
from onward.tracker.runs.registry import RunQuery

router = APIRouter(prefix="/api/v1", tags=["export"])

Format = Annotated[Literal["csv", "json", "parquet"], Query(description="parquet needs the server's pyarrow.")]
_PAGE = 1000
_AT_ONCE = 1 << 16  # rows of a Parquet file that are in memory
_ANY: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {}, "application/json": {}, "application/vnd.apache.parquet": {}}, "description": "A file."}
}
_POINTS = ("metric", "step", "time", "value", "leg", "superseded")


@router.get("/export/runs", summary="Export a table of runs", response_class=StreamingResponse, responses=_ANY)
def runs(
    svc: Svc,
    filter: Annotated[str, Query(description="As in the list of runs.", max_length=20_000)] = "",
    experiment: Annotated[str | None, Query(description="Only of this one.", max_length=500)] = None,
    format: Format = "csv",
) -> Response:
    """One row per run, one column per param, tag and metric (its last value). All that match."""
    if "\x00" in filter:
        raise InvalidInput("a filter must not contain NUL characters")
    rows = list(_run_rows(svc, filter, [experiment_of(svc, experiment).id] if experiment is not None else None))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return _file("runs", columns, ([row.get(column) for column in columns] for row in rows), format)


@router.get("/runs/{run_id}/export", summary="Export a run's points", response_class=StreamingResponse, responses=_ANY)
def points(
    svc: Svc,
    run_id: RunId,
    superseded: Annotated[bool, Query(description="Include superseded points.")] = False,
    format: Format = "csv",
) -> Response:
    """All points of all metrics, by metric, step and time."""
    run = run_of(svc, run_id).run_id

    def rows() -> Iterator[list[Any]]:
        for key in svc.tracker.series.metrics(run):
            for p in svc.tracker.series.points(run, key, superseded=superseded):
                yield [key, p.step, p.time, number(p.value) if format != "parquet" else p.value, p.leg, p.superseded]

    return _file(f"run-{run}", list(_POINTS), rows(), format)


def _run_rows(svc: Services, filter: str, experiments: list[int] | None) -> Iterator[dict[str, Any]]:
    offset: int | None = 0
    while offset is not None:
        page = svc.tracker.runs.search(RunQuery(filter=filter, experiments=experiments, limit=_PAGE, offset=offset, order=("created asc",)))
        for view in page.runs:
            record = run_record(view)
            plain = {key: value for key, value in record.items() if key not in ("params", "tags", "metrics")}
            yield {
                **plain,
                **{f"params.{key}": value for key, value in record["params"].items()},
                **{f"tags.{key}": value for key, value in record["tags"].items()},
                **{f"metrics.{key}": value["value"] for key, value in record["metrics"].items()},
            }
        offset = page.next


def _file(name: str, columns: list[str], rows: Iterable[list[Any]], format: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}.{format}"'}
    if format == "parquet":
        return Response(_parquet(columns, rows), media_type="application/vnd.apache.parquet", headers=headers)
    if format == "json":
        return StreamingResponse(_json(columns, rows), media_type="application/json", headers=headers)
    return StreamingResponse(_csv(columns, rows), media_type="text/csv; charset=utf-8", headers=headers)


def _csv(columns: list[str], rows: Iterable[list[Any]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(map(_cell, columns))
    for index, row in enumerate(rows):
        writer.writerow(map(_cell, row))
        if index % 1000 == 999:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets a quote before it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") and value != "-Infinity":
        return f"'{value}"
    return value


def _json(columns: list[str], rows: Iterable[list[Any]]) -> Iterator[str]:
    yield '{"columns":' + json.dumps(columns) + ',"rows":['
    for index, row in enumerate(rows):
        yield ("," if index else "") + json.dumps(row)
    yield "]}"


def _parquet(columns: list[str], rows: Iterable[list[Any]]) -> bytes:
    """Points some thousands at a time, since their kinds are known. Of runs, a column's kind shows only when all are there."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidInput(
            "this server has no pyarrow, so it writes no Parquet", hint="pip install 'onward[parquet]' there, or use csv"
        ) from error
    sink = io.BytesIO()
    left = iter(rows)
    at_once = _AT_ONCE if tuple(columns) == _POINTS else None
    first = _table(pyarrow, columns, list(itertools.islice(left, at_once)))
    with parquet.ParquetWriter(sink, first.schema) as writer:
        writer.write_table(first)
        while more := list(itertools.islice(left, at_once)):
            writer.write_table(_table(pyarrow, columns, more).cast(first.schema))
    return sink.getvalue()


def _table(pyarrow: Any, columns: list[str], rows: list[list[Any]]) -> Any:
    sides = {column: [row[i] for row in rows] for i, column in enumerate(columns)}
    return pyarrow.table({key: _side(pyarrow, key, side) for key, side in sides.items()})


def _side(pyarrow: Any, key: str, side: list[Any]) -> Any:
    if key.startswith("metrics."):
        side = [None if value is None else float(value) for value in side]  # NaN and the infinities, by their words
    try:
        return pyarrow.array(side)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # of mixed kinds: texts hold them all
        return pyarrow.array([None if value is None else str(value) for value in side])
