"""Asked and used, idle GPUs, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.model import events as ev
from onward.model.analysis.usage import MeasuredUse, ResourceComparison, compare_usage, idle_bands
from onward.model.run import LegEnd, Run
from onward.model.spec import Resources
from onward.tracker.ingest.spool_records import read_records
from onward.tracker.runs.rows import Metric
from onward.tracker.series.machine_samples import machines
from tests.databases import tracker_in
from tests.histories import History
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def run_with(*, end: LegEnd | None = None, ran: float = 3600, **asked: Any) -> Run:
    return History(resources=Resources(**asked)).leg(end, ran=ran).run


def one(run: Run, used: MeasuredUse, what: str) -> ResourceComparison:
    return next(found for found in compare_usage(run, used) if found.what == what)


# ── idle ──────────────────────────────────────────────────────────────────────


def test_a_gpu_is_idle_where_it_does_nothing_for_long_enough() -> None:
    times = [float(t) for t in range(0, 1200, 100)]
    uses: list[float | None] = [90, 0, 1, 2, 0, 80, 0, 0, 90, None, 0, 0]
    assert [(band.start, band.end) for band in idle_bands(times, uses)] == [(100, 400)]
    assert [(band.start, band.end) for band in idle_bands(times, uses, least=100)] == [(100, 400), (600, 700), (1000, 1100)]
    assert idle_bands([], []) == []


# ── asked and used ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asked", "peak", "flag"),
    [(65536, 9000, "--mem 11G"), (65536, 40000, ""), (32768, 32000, "--mem 40G"), (1024, 300, ""), (4096, 700, "--mem 1G")],
)
def test_memory_is_advised_where_it_is_far_off_or_near_the_limit(asked: int, peak: int, flag: str) -> None:
    assert one(run_with(mem=asked), MeasuredUse(mem_peak=peak), "memory").flag == flag


def test_the_memory_of_the_job_counts_where_it_was_raised() -> None:
    run = History(resources=Resources(mem=1024)).leg(None, mem=4096).run
    assert one(run, MeasuredUse(mem_peak=1000), "memory").asked == "4G"


def test_cpus_that_had_nothing_to_do_are_told() -> None:
    few = one(run_with(cpus_per_task=16), MeasuredUse(cpus=2.4), "cpus")
    assert (few.flag, few.used) == ("--cpus-per-task 3", "2.4")
    assert few.share == pytest.approx(0.15)
    assert one(run_with(cpus_per_task=4), MeasuredUse(cpus=3.9), "cpus").flag == ""
    assert one(run_with(cpus_per_task=4, ntasks=2), MeasuredUse(cpus=1.0), "cpus").flag == "--cpus-per-task 1"


def test_gpus_that_were_idle_are_given_back_with_their_kind() -> None:
    some = one(run_with(gpus="a100:4"), MeasuredUse(gpus={"a": 90, "b": 80, "c": 0, "d": 1}), "gpus")
    assert (some.flag, some.words) == ("--gpus a100:2", "2 of 4 were idle")
    assert one(run_with(gpus="2"), MeasuredUse(gpus={"a": 90, "b": 0}), "gpus").flag == "--gpus 1"
    none = one(run_with(gpus="1"), MeasuredUse(gpus={"a": 0}), "gpus")
    assert (none.flag, none.used) == ("", "0%")  # an idle GPU is written as 0 %
    assert "on the CPU" in none.words
    assert "for data" in one(run_with(gpus="1"), MeasuredUse(gpus={"a": 20}), "gpus").words


def test_time_is_compared_only_where_one_leg_was_enough() -> None:
    assert one(run_with(end=LegEnd.DONE, time=86400), MeasuredUse(), "time").flag == "--time 01:20:00"
    assert one(run_with(end=LegEnd.DONE, time=4000), MeasuredUse(), "time").flag == ""
    assert compare_usage(run_with(end=LegEnd.TIME_LIMIT, time=86400), MeasuredUse()) == []
    assert compare_usage(run_with(), MeasuredUse(mem_peak=5, cpus=1.0)) == []


# ── samples ───────────────────────────────────────────────────────────────────


def test_series_are_sorted_by_node_and_gpu() -> None:
    keys = ("cpu_percent", "gpu/GPU-1/percent", "gpu/GPU-1/power_w", "node/n2/cpu_percent", "node/n2/gpu/GPU-9/percent", "node/odd")
    own, other = machines(
        Metric(key=f"system/{key}", value=1, step=1, time=1, low=1, low_step=1, high=1, high_step=1, points=1) for key in keys
    )
    assert (own.node, list(own.figures), {u: list(f) for u, f in own.gpus.items()}) == (
        "",
        ["cpu_percent", "node/odd"],
        {"GPU-1": ["percent", "power_w"]},
    )
    assert (other.node, list(other.figures), list(other.gpus)) == ("n2", ["cpu_percent"], ["GPU-9"])


def test_the_gpus_of_every_node_count_for_how_busy_a_run_is() -> None:
    figures = {"node/n2/gpu/GPU-9/percent": 80, "system/node/n2/gpu/GPU-8/percent": 40, "system/node/n2/cpu_percent": 700}
    [record] = read_records([{"n": 0, "t": 1e9, "kind": "system", "m": figures}]).records
    assert record.gpu_use == pytest.approx(0.6)


def test_of_a_run_on_several_nodes_all_are_shown_and_those_of_the_last_leg_compared(harness: Harness) -> None:
    run = harness.sandbox.play(resources=Resources(gpus="3", nodes=2)).begin(1)
    run.write(ev.Claimed(leg=1, at=run.now(), job=run.job(1), hosts=["n1", "n2"], deadline=None, gpus=["GPU-1"]))
    for writer, node, uuid in (("system", "n1", "GPU-1"), ("system-n1", "n2", "GPU-2"), ("system-n2", "n0", "GPU-0")):
        figures = {f"system/node/{node}/rss_mib": 100.0, f"system/node/{node}/gpu/{uuid}/percent": 90.0 if node == "n1" else 0.0}
        line = json.dumps({"n": 0, "t": run.now(), "kind": "system", "m": figures})
        (run.dir.spool / f"leg-0001.{writer}.jsonl").write_text(line + "\n")
    assert harness.server.services.tracker.files.look(harness.sandbox.context.roots).problems == []
    answer = good(harness.client.get(f"/api/v1/runs/{run.spec.id}/system"))
    shown = [
        (node["node"], [figure["name"] for figure in node["figures"]], [gpu["uuid"] for gpu in node["gpus"]]) for node in answer["nodes"]
    ]
    assert shown == [("n0", ["rss_mib"], ["GPU-0"]), ("n1", ["rss_mib"], ["GPU-1"]), ("n2", ["rss_mib"], ["GPU-2"])]
    (gpus,) = (one for one in answer["compared"] if one["what"] == "gpus")
    assert (gpus["asked"], gpus["words"]) == ("2", "1 of 2 were idle"), "n0 is none of the last leg's nodes"


def test_the_system_page_has_nodes_gpus_idle_stretches_and_advice(harness: Harness) -> None:
    asked = Resources(mem=65536, cpus_per_task=16, gpus="2")
    run = harness.sandbox.play(resources=asked).begin(1)
    start = int(run.now())
    lines = []
    for n in range(100):
        busy = 0 if n >= 50 else 90
        figures = {"cpu_percent": 200.0, "rss_mib": 2000.0, "gpu/GPU-a/percent": busy, "gpu/GPU-a/power_w": 300.0, "gpu/GPU-b/percent": 0.0}
        lines.append(json.dumps({"n": n, "t": start + 10 * n, "kind": "system", "m": figures}))
    (run.dir.spool / "leg-0001.system.jsonl").write_text("\n".join(lines) + "\n")
    run.write(ev.Ended(leg=1, at=run.now() + 1000, end=LegEnd.TIME_LIMIT, reason="", peak_mem=3000))
    assert harness.server.services.tracker.files.look(harness.sandbox.context.roots).problems == []
    answer = good(harness.client.get(f"/api/v1/runs/{run.spec.id}/system?buckets=50"))
    (node,) = answer["nodes"]
    assert node["node"] == "node1"
    cpu = next(figure for figure in node["figures"] if figure["name"] == "cpu_percent")
    assert (cpu["unit"], len(cpu["times"]), cpu["times"][0], cpu["means"][0]) == ("%", 50, start, 200.0)
    first, second = node["gpus"]
    assert (first["uuid"], first["mean"], first["idle_s"]) == ("GPU-a", 45.0, 490.0)
    assert first["idle"] == [{"start": start + 500, "end": start + 990}]
    assert second["mean"] == 0.0
    assert answer["advice"] == "--mem 4G --cpus-per-task 3 --gpus 1"
    assert [(leg["leg"], leg["nodes"], leg["start"] <= start) for leg in answer["legs"]] == [(1, ["node1"], True)]
    later = good(harness.client.get(f"/api/v1/runs/{run.spec.id}/system?first={start + 500}"))
    assert later["nodes"][0]["figures"][0]["times"][0] == start + 500


def test_a_run_without_samples_has_an_empty_system_page(harness: Harness) -> None:
    assert good(harness.client.get(f"/api/v1/runs/{harness.run()}/system"))["nodes"] == []
