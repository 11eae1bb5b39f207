"""Records: what a spool's lines say, read once and checked. Pure.

    {"n": 7, "t": 1.7e9, "s": 100, "m": {"loss": 0.5}}                        metrics of a step
    {"n": 7, "t": 1.7e9, "s": 100, "k": "…", "v": "…"}                        the same, of many, packed: see `sdk/packed_metrics.py`
    {"n": 0, "t": 1.7e9, "kind": "init", "total": 1000, "params": {…}}        a process begins
    {"n": 9, "t": 1.7e9, "kind": "system", "m": {"cpu_percent": 7}}           figures of the machine; their step is the second
    {"n": 8, "t": 1.7e9, "kind": "params" | "tags", "params" | "tags": {…}}   set later
    {"n": 8, "t": 1.7e9, "kind": "untag" | "model" | …}                       what a relay was told: see `relayed`
    {"n": 8, "t": 1.7e9, "kind": "finish"}                                    the training says that it is complete
    {"n": 8, "t": 1.7e9, "kind": "end" | "name"}                              of a run by hand: see `by_hand`

Kinds that are not known are passed over: a newer training may write them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onward.model.storable_text import LONGEST_KEY, clean, is_plain
from onward.sdk.packed_metrics import unpacked
from onward.tracker.ingest.relay_records import KINDS, is_number
from onward.tracker.series.chunks import Columns
from onward.tracker.series.stitch import SYSTEM_PREFIX

_MOST_STEP = (1 << 63) - 1
_LONGEST_METRIC = LONGEST_KEY - len(SYSTEM_PREFIX)
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(slots=True)
class SpoolRecord:
    n: int | None
    t: float
    step: int = 0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    params: Mapping[str, Any] | None = None
    tags: Mapping[str, Any] | None = None
    total: int | None = None
    unmanaged: Mapping[str, Any] | None = None  # what a run by hand says of itself, as it came: see `by_hand`
    relayed: Mapping[str, Any] | None = None  # other things that a relay was told, as they came

    @property
    def gpu_use(self) -> float | None:
        """The mean over the GPUs of a sample, 0 to 1."""
        if self.prefix != SYSTEM_PREFIX:
            return None
        uses = [float(value) for key, value in self.metrics.items() if "gpu/" in key and key.endswith("/percent")]
        return sum(uses) / len(uses) / 100 if uses and math.isfinite(sum(uses)) else None

    def add_to(self, columns: dict[str, Columns]) -> None:
        at = round(self.t * 1e6)
        for key, value in self.metrics.items():
            name = key if key.startswith(self.prefix) else self.prefix + key
            held = columns.get(name)
            if held is None:
                held = columns[name] = Columns([], [], [])
            held.steps.append(self.step)  # type: ignore[attr-defined]
            held.times.append(at)  # type: ignore[attr-defined]
            held.values.append(float(value))  # type: ignore[attr-defined]


@dataclass(slots=True)
class ParsedRecords:
    records: list[SpoolRecord] = field(default_factory=list)
    refused: int = 0
    why: str = ""

    def refuse(self, why: str) -> None:
        self.refused += 1
        self.why = self.why or why


def read_lines(lines: Sequence[bytes]) -> ParsedRecords:
    """Whole lines of a spool. All are decoded in one go; one by one only where one is broken."""
    kept = [line for line in lines if line]
    try:
        return read_records(json.loads(b"[%s]" % b",".join(kept)))
    except (ValueError, RecursionError):
        pass
    reading = ParsedRecords()
    for line in kept:
        try:
            _take(reading, json.loads(line))
        except (ValueError, RecursionError) as error:
            reading.refuse(f"{line[:80]!r} is not valid JSON: {error}")
    return reading


def read_records(records: Iterable[Any]) -> ParsedRecords:
    reading = ParsedRecords()
    for record in records:
        _take(reading, record)
    return reading


def _take(reading: ParsedRecords, data: Any) -> None:
    try:
        data = unpacked(data)
        record = _record(data)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        reading.refuse(f"{str(data)[:80]} is not a record: {error!r}")
        return
    if record is None:
        return
    reading.records.append(record)
    metrics = data.get("m")
    if isinstance(metrics, dict) and len(record.metrics) < len(metrics):
        reading.refuse(f"{str(data)[:80]} has values that are not numbers, or invalid names")


def _record(data: Mapping[str, Any]) -> SpoolRecord | None:
    n, t = data.get("n"), float(data["t"])
    if not 0 <= t < 1e11:
        raise ValueError("its time is not a unix time")
    if n is not None and (type(n) is not int or not 0 <= n <= _MOST_STEP):
        raise ValueError("its number is invalid")
    match data.get("kind"):
        case None:
            step = int(data["s"])
            if not -_MOST_STEP - 1 <= step <= _MOST_STEP:
                raise ValueError("its step does not fit into 64 bits")
            return SpoolRecord(n, t, step=step, metrics=_metrics(data["m"]))
        case "system":
            return SpoolRecord(n, t, step=int(t), metrics=_metrics(data["m"]), prefix=SYSTEM_PREFIX)
        case "init":
            total = data.get("total")
            return SpoolRecord(
                n,
                t,
                params=_words(data.get("params")),
                total=total if type(total) is int and 0 < total <= _MOST_STEP else None,
                unmanaged=data,
            )
        case "params":
            return SpoolRecord(n, t, params=_words(data["params"]))
        case "tags":
            return SpoolRecord(n, t, tags=_words(data["tags"]))
        case "finish" | "end" | "name":
            return SpoolRecord(n, t, unmanaged=data)
        case kind if kind in KINDS:
            return SpoolRecord(n, t, relayed=data)
        case _:
            return SpoolRecord(n, t)


def _metrics(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The usual case is that all of them are fine."""
    if all(type(v) is float or is_number(v) for v in values.values()) and all(
        0 < len(k) <= _LONGEST_METRIC and is_plain(k) for k in values
    ):
        return values
    kept = {clean(k): v if is_number(v) or isinstance(v, bool) else _WORDS.get(str(v)) for k, v in values.items()}
    return {k: float(v) for k, v in kept.items() if v is not None and 0 < len(k) <= _LONGEST_METRIC}


def _words(values: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {clean(str(k))[:LONGEST_KEY]: v for k, v in (values or {}).items() if k}
