"""The screen's data from the tracker's server: its native API, with the user's token."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from onward.clock import Clock
from onward.errors import NotAllowed, NotFound, OnwardError
from onward.model.analysis.timeline import Timeline
from onward.model.cluster import ClusterSnapshot
from onward.model.plain_data import value_from_json
from onward.operations.tracker_access.api_client import ApiCalls
from onward.tracker.series.stitch import SYSTEM_PREFIX
from onward.tui.drawing.text import many
from onward.tui.sources.interface import (
    ChartSeries,
    GpuReading,
    ListedAlert,
    ListedAlerts,
    ListedRun,
    ListedRuns,
    LogWindow,
    ShownCluster,
    ShownRun,
    Stream,
)
from onward.tui.sources.log_lines import lines_of
from onward.tui.sources.run_facts import facts_of

_PAGE = 200
_KEYS = 2000
_JOBS = 2000
_HISTORY = 120
_NOTICES = 200
_RUNS = "/api/v1/runs"


class ServerSource:
    """`close`: what is to be done when the screen ends, such as giving a token back."""

    reading = False  # the server did that

    def __init__(self, api: ApiCalls, clock: Clock, *, close: Callable[[], None] = lambda: None) -> None:
        self._api = api
        self._clock = clock
        self._close = close

    @property
    def words(self) -> str:
        return self._api.url.partition("://")[2]

    # ── runs ──────────────────────────────────────────────────────────────────

    def runs(self, filter: str) -> ListedRuns:
        asked = {"limit": _PAGE, "metrics": False, "params": False, "count": True}
        answer = self._api.get(_RUNS, {**asked, **({"filter": filter} if filter.strip() else {})})
        rows = tuple(_row(one) for one in answer["runs"])
        total = answer.get("total") or len(rows)
        notes = [f"the newest {len(rows)} of {total}"] if total > len(rows) else []
        return ListedRuns(
            rows=rows,
            total=total if total > len(rows) else None,
            note="; ".join([*notes, *([answer["note"]] if answer.get("note") else [])]),
        )

    def detail(self, run: str) -> ShownRun:
        path = f"{_RUNS}/{quote(run, safe='')}"
        answer = self._api.get(f"{path}/overview")
        now = self._clock.now()
        pace = {**answer["pace"], "total": answer["pace"].get("total_steps")}
        shown = {**answer, "pace": pace, "params": answer["run"].get("params"), "cluster": answer["run"].get("cluster")}
        return ShownRun(
            row=_row(answer["run"]),
            evidence=tuple(map(str, answer["evidence"][-20:])),
            facts=facts_of(shown, now=now),
            timeline=value_from_json(Timeline, self._api.get(f"{path}/timeline")),
            gpus=_gpus(self._api.get(f"{path}/system", {"buckets": _HISTORY})),
        )

    def metrics(self, run: str) -> tuple[str, ...]:
        answer = self._api.post("/api/v1/metrics/search", {"runs": [run], "limit": _KEYS})
        return tuple(sorted((str(one["key"]) for one in answer["keys"]), key=lambda key: (key.startswith(SYSTEM_PREFIX), key)))

    def series(self, runs: Sequence[str], keys: Sequence[str], *, points: int) -> tuple[ChartSeries, ...]:
        if not runs or not keys:
            return ()
        asked = {"runs": list(runs), "metrics": list(keys), "buckets": points, "times": True}
        return tuple(_series(one) for one in self._api.post("/api/v1/series/search", asked)["series"])

    # ── logs ──────────────────────────────────────────────────────────────────

    def log(self, run: str, stream: Stream, *, leg: int | None, around: int | None) -> LogWindow | None:
        path = f"{_RUNS}/{quote(run, safe='')}/logs"
        sizes = {one["leg"]: one["bytes"] for one in self._api.get(path)["logs"] if one["stream"] == stream}
        chosen = leg if leg in sizes else max(sizes, default=None)
        if chosen is None:
            return None

        def read(offset: int, limit: int) -> bytes:
            return self._api.raw(f"{path}/{chosen}/{stream}", {"offset": offset, "limit": limit}) if limit else b""

        lines, end = lines_of(read, sizes[chosen], around)
        return LogWindow(leg=chosen, stream=stream, lines=lines, size=sizes[chosen], end=end, legs=tuple(sorted(sizes)))

    def search(self, run: str, log: LogWindow, text: str, *, after: int, back: bool) -> int | None:
        path = f"{_RUNS}/{quote(run, safe='')}/logs/{log.leg}/{log.stream}/search"
        answer = self._api.get(path, {"text": text, "offset": after, "back": back})
        return int(answer["matches"][0]["line_offset"]) if answer["matches"] else None

    # ── clusters, and what may be asked ───────────────────────────────────────

    def picture(self, cluster: str | None) -> ShownCluster:
        known = self._api.get("/api/v1/clusters")["clusters"]
        names = tuple(str(one["name"]) for one in known)
        auto = next((str(one["name"]) for one in known if one["auto"]), names[0] if names else "auto")
        chosen = cluster if cluster in names else auto
        try:
            answer = self._api.get(f"/api/v1/clusters/{quote(str(chosen), safe='')}", {"limit": _JOBS})
        except OnwardError as error:
            return ShownCluster(name=str(chosen), trouble=error.message, others=names)
        snapshot = value_from_json(ClusterSnapshot, answer)
        return ShownCluster(name=answer["name"], snapshot=snapshot, age=answer["age"], trouble=answer["trouble"], others=names)

    def alerts(self) -> ListedAlerts:
        try:
            answer = self._api.get("/api/v1/alerts/history", {"limit": _NOTICES})["notices"]
            rules = self._api.get("/api/v1/alerts/rules")["rules"]
        except (NotAllowed, NotFound) as error:
            return ListedAlerts(note=error.message)
        watched = sum(1 for rule in rules if rule["enabled"])
        note = f"{many(watched, 'rule')}, no alerts so far" if watched else "no rules: add them on the web page"
        return ListedAlerts(notices=_notices(answer), note=note)

    def stop(self, run: str) -> str:
        answer = self._api.post(f"{_RUNS}/{quote(run, safe='')}/stop", {})
        if answer["state"] in ("finished", "failed", "cancelled"):
            return f"{answer['name']} is {answer['state']}: {answer['why']}"
        return f"{answer['name']}: the training is asked to save and stop"

    def link(self, run: str) -> str | None:
        return f"{self._api.url}/runs/{quote(run, safe='')}"

    def close(self) -> None:
        self._close()


def _row(answer: Mapping[str, Any]) -> ListedRun:
    legs, saved, progress = answer.get("legs"), answer.get("checkpoint"), answer["progress"]
    return ListedRun(
        id=answer["id"],
        name=answer["name"],
        state=answer["state"],
        why=answer["why"],
        next=answer["next"],
        experiment=answer["experiment_name"],
        cluster=answer["cluster"] or "",
        user=answer["user"],
        created=answer["created"],
        step=progress["step"],
        total=progress["total_steps"],
        fraction=progress["fraction"],
        legs=legs["now"] if isinstance(legs, dict) else answer.get("leg", 0),
        saved_at=saved["at"] if saved else None,
        gpu_use=answer["gpu_use"],
        waited=answer["queue_wait_s"],
    )


def _series(answer: Mapping[str, Any]) -> ChartSeries:
    exact = answer.get("values")
    lows = tuple(map(_float, exact if exact is not None else answer["lows"]))
    return ChartSeries(
        run=answer["run"],
        key=answer["metric"],
        steps=tuple(map(float, answer["steps"])),
        times=tuple(map(float, answer.get("times") or ())),
        lows=lows,
        highs=lows if exact is not None else tuple(map(_float, answer["highs"])),
        points=answer["points"],
        began=answer["began"],
        legs=tuple(first for _, first in answer["legs"][1:]),
    )


def _float(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _notices(answer: Sequence[Mapping[str, Any]]) -> tuple[ListedAlert, ...]:
    """One for all channels that it went to: sent, if any of them took it."""
    found: dict[tuple[Any, ...], ListedAlert] = {}
    for one in answer:
        key = (one["rule"], one["run_id"], one["title"], one["at"])
        before = found.get(key)
        sent = one["sent"] is not None or (before is not None and before.sent)
        error = "" if sent else one["error"]
        found[key] = ListedAlert(
            at=one["at"], level=one["level"], title=one["title"], text=one["text"], run=one["run_id"], sent=sent, error=error
        )
    return tuple(found.values())


def _gpus(answer: Mapping[str, Any]) -> tuple[GpuReading, ...]:
    found = []
    for node in answer["nodes"]:
        for gpu in node["gpus"]:
            figures = {one["name"]: one["means"] for one in gpu["figures"]}
            last = {name: next((value for value in reversed(means) if value is not None), None) for name, means in figures.items()}
            found.append(
                GpuReading(
                    node=node["node"],
                    uuid=gpu["uuid"],
                    percent=last.get("percent"),
                    mem_used=last.get("mem_used_mib"),
                    mem_total=last.get("mem_total_mib"),
                    power=last.get("power_w"),
                    temperature=last.get("temperature_c"),
                    history=tuple(figures.get("percent", ())),
                )
            )
    return tuple(found)
