"""What a tracker promises, on whatever database. Each database's test file inherits this class and says where the store is."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onward.errors import Conflict, InvalidInput, NotFound, StorageUnavailable
from onward.model.identity import hex_id
from onward.model.metric import Point
from onward.model.run import LegEnd
from onward.model.spec import PipelineMembership
from onward.tracker.db.writer import Batch
from onward.tracker.ingest.journals_to_rows import write_run
from onward.tracker.runs.memberships import write_membership
from onward.tracker.runs.registry import NewRun, RunQuery
from onward.tracker.store import Tracker
from tests.histories import History

NOW = 1_700_000_000.0


def points(key: str, steps: range | list[int], *, at: float = NOW, of: Any = float) -> list[Point]:
    return [(key, step, at + step, of(step)) for step in steps]


def record(n: int, step: int, **metrics: float) -> dict[str, Any]:
    return {"n": n, "t": NOW + n, "s": step, "m": metrics}


@pytest.fixture
def tracker(address: str | Path) -> Iterator[Tracker]:
    with Tracker.open(address) as opened:
        yield opened


@pytest.fixture
def run(tracker: Tracker) -> str:
    return tracker.runs.create(NewRun(name="first", run_id="abcdefgh", source="onward")).run_id


def values(tracker: Tracker, run: str, key: str, **asked: Any) -> list[tuple[int, float]]:
    return [(p.step, p.value) for p in tracker.series.points(run, key, **asked)]


class TrackerContract:
    # ── experiments and runs ──────────────────────────────────────────────────

    def test_a_new_store_has_the_default_experiment(self, tracker: Tracker) -> None:
        assert [(e.id, e.name) for e in tracker.experiments.all()] == [(0, "Default")]

    def test_an_experiment_is_made_once_however_often_it_is_asked_for(self, tracker: Tracker) -> None:
        with ThreadPoolExecutor(8) as pool:
            made = {e.id for e in pool.map(lambda _: tracker.experiments.ensure("digits"), range(16))}
        assert len(made) == 1
        assert tracker.experiments.by_name("digits").id in made
        with pytest.raises(Conflict, match="digits"):
            tracker.experiments.create("digits")
        with pytest.raises(InvalidInput):
            tracker.experiments.create("  ")

    def test_an_experiment_can_be_renamed_tagged_archived_and_brought_back(self, tracker: Tracker) -> None:
        made = tracker.experiments.create("a", tags={"team": "x"})
        mine = tracker.runs.create(NewRun(experiment=made.id)).run_id
        older = tracker.runs.create(NewRun(experiment=made.id)).run_id
        tracker.runs.archive(older)
        changed = tracker.experiments.update(made.id, name="b", archived=True, tags={"n": 1})
        assert (changed.name, changed.tags) == ("b", {"team": "x", "n": "1"})
        assert tracker.runs.get(mine).archived
        assert tracker.experiments.all(archived=True)[0].id == made.id
        tracker.experiments.update(made.id, archived=False)
        assert tracker.runs.get(mine).archived is None
        assert tracker.runs.get(older).archived  # it was archived before
        tracker.experiments.delete_tag(made.id, "n")
        with pytest.raises(NotFound):
            tracker.experiments.delete_tag(made.id, "n")
        with pytest.raises(NotFound):
            tracker.experiments.get(999)

    def test_a_run_of_ours_is_found_by_eight_letters_and_by_32_hex_digits(self, tracker: Tracker, run: str) -> None:
        info = tracker.runs.get(run)
        assert info.hex_id == hex_id("abcdefgh") != info.run_id
        assert tracker.runs.get(info.hex_id) == info
        assert tracker.runs.find("abc").run_id == run
        foreign = tracker.runs.create(NewRun())
        assert foreign.run_id == foreign.hex_id
        with pytest.raises(NotFound, match="nobody"):
            tracker.runs.get("nobody")
        tracker.runs.create(NewRun(run_id="abcdefgz"))
        with pytest.raises(Conflict, match="several"):
            tracker.runs.find("abc")

    def test_a_start_that_repeats_finds_its_run_again(self, tracker: Tracker) -> None:
        new = NewRun(identity="slurm:77", source="seed", params={"seed": 1})
        with ThreadPoolExecutor(8) as pool:
            made = {info.run_id for info in pool.map(lambda _: tracker.runs.create(new), range(16))}
        assert len(made) == 1

    def test_a_run_of_an_experiment_that_is_not_there_is_refused(self, tracker: Tracker) -> None:
        with pytest.raises(NotFound, match="experiment number 7"):
            tracker.runs.create(NewRun(experiment=7))
        assert tracker.runs.search(RunQuery()).runs == []

    def test_what_is_changed_is_changed_and_nothing_else(self, tracker: Tracker, run: str) -> None:
        before = tracker.runs.get(run)
        after = tracker.runs.update(run, state="finished", ended=NOW, details={"cause": "done"})
        assert (after.state, after.ended, after.details, after.name) == ("finished", NOW, {"cause": "done"}, before.name)
        assert after.version > before.version
        assert tracker.runs.update(run, state="running", ended=None).ended is None
        with pytest.raises(InvalidInput, match="is not a run state"):
            tracker.runs.update(run, state="sleeping")
        with pytest.raises(InvalidInput, match="colour"):
            tracker.runs.update(run, colour="red")

    def test_a_deleted_run_takes_its_points_along(self, tracker: Tracker, run: str) -> None:
        tracker.ingest.points(run, points("loss", range(10)))
        tracker.runs.delete(run)
        with pytest.raises(NotFound):
            tracker.series.points(run, "loss")
        with pytest.raises(NotFound):
            tracker.ingest.points(run, points("loss", range(10)))

    def test_params_are_kept_by_leg_and_the_newest_counts(self, tracker: Tracker, run: str) -> None:
        tracker.runs.set_params(run, {"lr": 0.1, "name": "a"}, leg=1)
        tracker.runs.set_params(run, {"lr": 0.01}, leg=2)
        tracker.runs.set_params(run, {"lr": 0.5}, leg=1)
        assert tracker.runs.view(run).params == {"lr": "0.01", "name": "a"}
        assert tracker.runs.param_history(run) == {"lr": {1: "0.5", 2: "0.01"}, "name": {1: "a"}}

    def test_tags_and_notes_come_and_go(self, tracker: Tracker, run: str) -> None:
        tracker.runs.set_tags(run, {"team": "x", "n": 1})
        tracker.runs.set_tags(run, {"team": "y"})
        assert tracker.runs.view(run).tags == {"team": "y", "n": "1"}
        tracker.runs.delete_tag(run, "n")
        with pytest.raises(NotFound):
            tracker.runs.delete_tag(run, "n")
        note = tracker.runs.add_note(run, "looks odd", author="ann")
        assert [(n["text"], n["author"]) for n in tracker.runs.notes(run)] == [("looks odd", "ann")]
        tracker.runs.delete_note(run, note)
        with pytest.raises(NotFound):
            tracker.runs.delete_note(run, note)

    def test_what_a_list_says_of_a_run_is_written_with_its_journals_and_samples(self, tracker: Tracker) -> None:
        records = History().submitted(1).leg(LegEnd.TIME_LIMIT, steps=[5])
        tracker.write(lambda batch: write_run(batch, records.run, None))
        name = records.spec.id
        sample = {"n": 0, "t": NOW, "kind": "system", "m": {"gpu/a/percent": 50.0}}
        tracker.ingest.records(name, 1, "system", [sample])
        (view,) = tracker.runs.search(RunQuery(standings=True)).runs
        held = view.standing
        assert held is not None
        assert (held.legs_done, held.saved_step, held.gpu_use) == (1, 5, 0.5)
        assert tracker.standings.say_why({name: "leg 2 is queued: Priority", "nobody": "x"}) == 1
        assert tracker.standings.say_why({name: "leg 2 is queued: Priority"}) == 0
        after = tracker.runs.view(name).standing
        assert after is not None
        assert (after.why, after.gpu_use) == ("leg 2 is queued: Priority", 0.5)
        assert tracker.runs.search(RunQuery()).runs[0].standing is None  # not asked for
        tracker.runs.delete(name)

    def test_runs_are_filtered_and_ordered_by_what_a_list_says_of_them(self, tracker: Tracker) -> None:
        for n, (use, total) in enumerate([(0.9, 100), (0.1, 20)]):
            records = History().submitted(1).leg(LegEnd.TIME_LIMIT, steps=[5])
            records.spec = replace(records.spec, id=f"run{n}")
            tracker.write(partial(write_run, run=records.run, folder=None))
            sample = {"n": 0, "t": NOW, "kind": "system", "m": {"gpu/a/percent": 100 * use}}
            tracker.ingest.records(f"run{n}", 1, "system", [sample])
            tracker.ingest.records(f"run{n}", 1, "train", [{"n": 0, "t": NOW, "kind": "init", "total": total}, record(1, 9, loss=1.0)])
        tracker.runs.create(NewRun(run_id="bare"))

        def found(filter: str = "", *order: str) -> list[str]:
            return [view.info.run_id for view in tracker.runs.search(RunQuery(filter=filter, order=order)).runs]

        assert found("gpu_use > 0.5") == ["run0"]
        assert found("progress = 0.5") == ["run1"]
        assert found("", "gpu_use asc") == ["run1", "run0", "bare"]
        assert found("", "progress asc") == ["run0", "run1", "bare"]
        assert found("checkpoint is null") == ["bare"]
        assert sorted(found("queue_wait < 10 and why like 'no job%'")) == ["run0", "run1"]
        assert found("", "queue_wait desc")[-1] == "bare"

    def test_a_view_is_its_owners_and_replaced_by_its_name(self, tracker: Tracker) -> None:
        made = tracker.views.save("ada", page="runs", name="a", query="x=1", shared=False)
        again = tracker.views.save("ada", page="runs", name="a", query="x=2", shared=True)
        assert (again.id, again.query, again.shared) == (made.id, "x=2", True)
        assert [view.id for view in tracker.views.of("bob", page="runs")] == [made.id]
        tracker.views.save("ada", page="runs", name="a", query="x=2", shared=False)
        assert tracker.views.of("bob") == []
        with pytest.raises(NotFound, match="no view number"):
            tracker.views.delete("bob", made.id)
        tracker.views.delete("ada", made.id)
        assert tracker.views.of("ada") == []

    def test_words_are_found_in_name_id_experiment_user_and_tags_whatever_their_case(self, tracker: Tracker, run: str) -> None:
        tracker.runs.create(NewRun(name="ViT large", run_id="zzz", experiment="ImageNet", user="ada", tags={"team": "Blue_1"}))
        for text, found in (
            *(("vit", ["zzz"]), ("VIT imagenet ada", ["zzz"]), ("blue_1", ["zzz"]), ("blueX1", []), ("team", ["zzz"])),
            *(("%", []), ("abcdefgh", [run]), ("vit first", []), ("  ", ["zzz", run])),
        ):
            assert [view.info.run_id for view in tracker.runs.search(RunQuery(text=text)).runs] == found, text
        with pytest.raises(InvalidInput):
            tracker.runs.search(RunQuery(text="a\x00"))

    def test_a_run_is_found_by_the_job_of_any_of_its_legs(self, tracker: Tracker, run: str) -> None:
        tracker.runs.set_leg(run, 1, job="77", cluster="slurm", state="finished")
        tracker.runs.set_leg(run, 2, job="78", cluster="slurm", details={"nodes": ["n1"]})
        assert [r.run_id for r in tracker.runs.by_job("77")] == [run]
        assert [r.run_id for r in tracker.runs.by_job("78", cluster="slurm")] == [run]
        assert tracker.runs.by_job("78", cluster="other") == []
        assert [(leg["leg"], leg["state"], leg["details"]) for leg in tracker.runs.legs(run)] == [
            (1, "finished", {}),
            (2, "running", {"nodes": ["n1"]}),
        ]
        assert tracker.runs.get(run).leg == 2
        with pytest.raises(InvalidInput):
            tracker.runs.set_leg(run, 0)

    # ── points ────────────────────────────────────────────────────────────────

    def test_points_come_out_as_they_went_in_nan_and_infinities_too(self, tracker: Tracker, run: str) -> None:
        entries = [("loss", 0, NOW, math.nan), ("loss", 1, NOW + 0.001, math.inf), ("loss", 2, NOW + 1, -math.inf), ("acc", 5, NOW, 0.25)]
        assert tracker.ingest.points(run, entries).points == 4
        found = tracker.series.points(run, "loss")
        assert [str(p.value) for p in found] == ["nan", "inf", "-inf"]
        assert [p.time for p in found] == [NOW, NOW + 0.001, NOW + 1]
        assert values(tracker, run, "acc") == [(5, 0.25)]
        chart = tracker.series.chart(run, "loss")
        assert (chart.lows, chart.bads, chart.points) == ([None] * 3, [1, 1, 1], 3)

    @pytest.mark.parametrize("key", ["", "x" * 251, "a\x00b"])
    def test_a_name_that_cannot_be_kept_is_refused(self, tracker: Tracker, run: str, key: str) -> None:
        with pytest.raises(InvalidInput, match="not a valid name for a metric"):
            tracker.ingest.points(run, [(key, 0, NOW, 1.0)])

    def test_a_step_beyond_64_bits_is_refused_and_the_greatest_is_not(self, tracker: Tracker, run: str) -> None:
        with pytest.raises(InvalidInput, match="64 bits"):
            tracker.ingest.points(run, [("loss", 2**63, NOW, 1.0)])
        with pytest.raises(InvalidInput):
            tracker.ingest.points(run, [("loss", 0, math.inf, 1.0)])
        tracker.ingest.points(run, [("loss", 2**63 - 1, NOW, 1.0), ("loss", -(2**63), NOW, 2.0)])
        assert values(tracker, run, "loss") == [(-(2**63), 2.0), (2**63 - 1, 1.0)]
        tracker.upkeep.tidy(resting=0)
        assert tracker.series.chart(run, "loss").points == 2

    def test_points_for_a_run_that_is_not_there_are_refused_without_harm_to_others(self, tracker: Tracker, run: str) -> None:
        good, bad = tracker.ingest.submit(run, points("loss", [1])), tracker.ingest.submit("nobody", points("loss", [1]))
        assert good.result().points == 1
        with pytest.raises(NotFound, match="nobody"):
            bad.result()

    def test_the_last_value_is_that_of_the_highest_step_then_time_then_value(self, tracker: Tracker, run: str) -> None:
        tracker.ingest.points(run, [("loss", 7, NOW, 1.0), ("loss", 3, NOW + 9, 2.0)])
        assert tracker.series.metrics(run)["loss"].value == 1.0
        tracker.ingest.points(run, [("loss", 7, NOW + 1, 0.5)])
        assert tracker.series.metrics(run)["loss"].value == 0.5
        tracker.ingest.points(run, [("loss", 7, NOW + 1, 0.7)])
        tracker.ingest.points(run, [("loss", 7, NOW + 1, 0.6)])
        found = tracker.series.metrics(run)["loss"]
        assert (found.value, found.step, found.low, found.low_step, found.high, found.high_step, found.points) == (
            0.7,
            7,
            0.5,
            7,
            2.0,
            3,
            5,
        )
        tracker.ingest.points(run, [("loss", 8, NOW, math.nan)])
        assert math.isnan(tracker.series.metrics(run)["loss"].value)
        assert tracker.runs.view(run).metrics["loss"].low == 0.5
        assert tracker.runs.get(run).last_step == 8

    # ── once ──────────────────────────────────────────────────────────────────

    def test_a_point_that_is_sent_again_is_stored_once(self, tracker: Tracker, run: str) -> None:
        entries = [*points("loss", range(100)), ("loss", 50, NOW, math.nan)]
        tracker.ingest.points(run, entries)
        again = tracker.ingest.points(run, entries)
        assert (again.points, again.repeated) == (0, 101)
        tracker.upkeep.tidy(resting=0)
        assert tracker.ingest.points(run, entries[20:30]).repeated == 10
        assert tracker.ingest.points(run, [("loss", 20, NOW + 20, 20.5), entries[21], entries[21], ("loss", 200, NOW, 1.0)]).points == 2
        assert len(tracker.series.points(run, "loss")) == 103
        assert tracker.series.metrics(run)["loss"].points == 103

    def test_values_without_steps_are_told_apart_by_time(self, tracker: Tracker, run: str) -> None:
        for n in range(20):
            tracker.ingest.points(run, [("loss", 0, NOW + n / 1000, 1.0)])
            tracker.ingest.points(run, [("loss", 0, NOW + n / 1000, 1.0)])
            tracker.ingest.points(run, [("loss", 0, NOW + n / 1000, 2.0)])
        assert tracker.series.metrics(run)["loss"].points == 40

    def test_numbered_records_are_taken_once_in_whatever_order_they_come(self, tracker: Tracker, run: str) -> None:
        entries = [record(n, n, loss=float(n)) for n in range(50)]
        assert tracker.ingest.records(run, 1, "train-7", entries[30:]).points == 20
        assert tracker.ingest.records(run, 1, "train-7", entries).points == 30
        assert tracker.ingest.records(run, 1, "train-7", entries[::-1]).repeated == 50
        assert values(tracker, run, "loss") == [(n, float(n)) for n in range(50)]
        assert tracker.ingest.records(run, 1, "train-8", entries[:1]).points == 1  # another writer's
        assert tracker.ingest.records(run, 2, "train-7", entries[49:]).points == 1  # another leg's

    def test_a_process_number_that_comes_twice_in_a_leg_is_another_writer(self, tracker: Tracker, run: str) -> None:
        first = [{**record(n, n, loss=1.0), "t": NOW + n} for n in range(3)]
        second = [{**record(n, 10 + n, loss=2.0), "t": NOW + 100 + n} for n in range(3)]
        for one in (first, second, first, second):
            tracker.ingest.records(run, 1, "train-7", one)
        assert values(tracker, run, "loss") == [(0, 1.0), (1, 1.0), (2, 1.0), (10, 2.0), (11, 2.0), (12, 2.0)]

    def test_what_is_no_record_is_passed_over_and_counted(self, tracker: Tracker, run: str) -> None:
        odd: list[Any] = [
            7,
            {},
            {"n": 1},
            {"n": 2, "t": "x"},
            {"n": 3, "t": NOW, "s": 2**63, "m": {}},
            {"n": -1, "t": NOW, "s": 1, "m": {}},
        ]
        taken = tracker.ingest.records(run, 1, "train-7", [*odd, record(4, 4, loss=1.0), {"n": 5, "t": NOW, "kind": "from the future"}])
        assert (taken.points, taken.refused) == (1, len(odd))
        assert "not a record" in taken.why

    def test_records_carry_params_tags_and_figures_of_the_machine(self, tracker: Tracker, run: str) -> None:
        entries: list[dict[str, Any]] = [
            {"n": 0, "t": NOW, "kind": "init", "total": 1000, "params": {"lr": 0.1}},
            {"n": 1, "t": NOW + 1, "kind": "tags", "tags": {"team": "x"}},
            {"n": 2, "t": NOW + 2, "kind": "system", "m": {"cpu": 50}},
        ]
        tracker.ingest.records(run, 1, "train-7", entries)
        view = tracker.runs.view(run)
        assert (view.params, view.tags, view.info.total_steps, view.info.last_step) == ({"lr": "0.1"}, {"team": "x"}, 1000, None)
        assert values(tracker, run, "system/cpu") == [(int(NOW) + 2, 50.0)]

    def test_many_callers_at_once_lose_and_double_nothing(self, tracker: Tracker, run: str) -> None:
        def send(caller: int) -> None:
            for n in range(20):
                tracker.ingest.points(run, [("shared", n, NOW + caller, float(caller)), (f"own/{caller}", n, NOW, float(n))])

        threads = [threading.Thread(target=send, args=(caller,)) for caller in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = tracker.series.metrics(run)
        assert found["shared"].points == 160
        assert [found[f"own/{caller}"].points for caller in range(8)] == [20] * 8

    # ── stitching ─────────────────────────────────────────────────────────────

    def test_a_leg_that_resumed_supersedes_what_lies_beyond(self, tracker: Tracker, run: str) -> None:
        tracker.ingest.records(run, 1, "t", [record(n, n, loss=1.0) for n in range(10)])
        tracker.runs.set_leg(run, 2, resumed_step=6)
        assert values(tracker, run, "loss") == [(n, 1.0) for n in range(7)]
        assert tracker.series.metrics(run)["loss"].step == 6
        tracker.ingest.records(run, 2, "t", [record(n, 7 + n, loss=2.0) for n in range(5)])
        assert values(tracker, run, "loss") == [(n, 1.0 if n <= 6 else 2.0) for n in range(12)]
        everything = tracker.series.points(run, "loss", superseded=True)
        assert [(p.step, p.leg) for p in everything if p.superseded] == [(7, 1), (8, 1), (9, 1)]
        assert len(everything) == 15
        chart = tracker.series.chart(run, "loss")
        assert (chart.points, chart.superseded, chart.steps) == (12, 3, list(range(12)))
        assert tracker.series.metrics(run)["loss"].high == 2.0

    def test_what_a_superseded_leg_delivers_late_stays_hidden(self, tracker: Tracker, run: str) -> None:
        tracker.runs.set_leg(run, 2, resumed_step=6)
        tracker.ingest.records(run, 1, "t", [record(n, n, loss=9.0 if n > 6 else 1.0) for n in range(10)])
        found = tracker.series.metrics(run)["loss"]
        assert (found.step, found.high, found.points) == (6, 1.0, 10)
        tracker.ingest.records(run, 2, "t", [record(0, 7, loss=2.0)])
        tracker.ingest.records(run, 1, "u", [record(0, 8, loss=9.0)])
        assert tracker.series.metrics(run)["loss"].high == 2.0
        tracker.upkeep.tidy(resting=0)
        assert [v for _, v in values(tracker, run, "loss")] == [1.0] * 7 + [2.0]

    def test_a_leg_that_did_not_say_where_it_resumed_is_taken_at_its_first_step(self, tracker: Tracker, run: str) -> None:
        tracker.ingest.points(run, points("loss", range(10), of=lambda s: 1.0), leg=1)
        tracker.ingest.points(run, points("once", [0], of=lambda s: 1.0), leg=1)
        tracker.ingest.points(run, points("loss", range(5, 8), of=lambda s: 2.0, at=NOW + 99), leg=2)
        assert [v for _, v in values(tracker, run, "loss")] == [1.0] * 5 + [2.0] * 3
        assert values(tracker, run, "once") == [(0, 1.0)]
        tracker.ingest.points(run, points("loss", [3], of=lambda s: 2.0, at=NOW + 99), leg=2)
        assert [v for _, v in values(tracker, run, "loss")] == [1.0] * 3 + [2.0] * 4
        assert tracker.series.metrics(run)["loss"].value == 2.0

    def test_a_leg_that_began_anew_hides_all_before_it_but_not_the_machine(self, tracker: Tracker, run: str) -> None:
        system = [{"n": n, "t": NOW + n, "kind": "system", "m": {"cpu": 1}} for n in range(5)]
        tracker.ingest.records(run, 1, "s", system)
        tracker.ingest.records(run, 1, "t", [record(n, n, loss=1.0) for n in range(10)])
        tracker.ingest.records(run, 2, "t", [record(0, 0, loss=2.0)])
        tracker.runs.set_leg(run, 2, resumed_step=-1)
        tracker.ingest.records(run, 2, "s", [{"n": 0, "t": NOW + 2, "kind": "system", "m": {"cpu": 2}}])
        assert values(tracker, run, "loss") == [(0, 2.0)]
        assert len(values(tracker, run, "system/cpu")) == 6

    # ── charts ────────────────────────────────────────────────────────────────

    def test_a_chart_keeps_every_spike_and_tells_how_many_points_there_are(self, tracker: Tracker, run: str) -> None:
        entries = [("loss", n, NOW + n, 1000.0 if n == 7777 else -5.0 if n == 123 else math.nan if n == 9 else 1.0) for n in range(20_000)]
        for i in range(0, len(entries), 1000):
            tracker.ingest.points(run, entries[i : i + 1000])
        for _ in range(2):
            chart = tracker.series.chart(run, "loss", buckets=100)
            assert (len(chart.steps) <= 100, chart.exact, chart.points, sum(chart.bads)) == (True, False, 20_000, 1)
            assert (max(v for v in chart.highs if v is not None), min(v for v in chart.lows if v is not None)) == (1000.0, -5.0)
            assert chart.steps == sorted(chart.steps)
            tracker.upkeep.tidy(resting=0)
        near = tracker.series.chart(run, "loss", buckets=100, first=7770, last=7790)
        assert (near.steps, near.exact, near.points) == (list(range(7770, 7791)), True, 21)
        assert near.highs[7] == 1000.0
        wide = tracker.series.chart(run, "loss", buckets=100, first=5000, last=15_000)
        assert (wide.points, min(wide.steps) >= 5000, max(wide.steps) <= 15_000) == (10_001, True, True)
        assert len(tracker.series.points(run, "loss", first=7, last=10)) == 4

    def test_a_chart_tells_its_legs_and_all_points_and_each_run_may_have_a_range_of_its_own(self, tracker: Tracker) -> None:
        runs = [tracker.runs.create(NewRun(experiment="legs", started=50.0)).run_id for _ in range(2)]
        for run in runs:
            tracker.ingest.points(run, [("loss", step, 100.0 + step, 1.0) for step in range(10)])
        tracker.runs.set_leg(runs[1], 2, resumed_step=5)
        tracker.ingest.points(runs[1], [("loss", step, 200.0 + step, 2.0) for step in range(6, 12)], leg=2)
        whole = tracker.series.charts(runs, ["loss"])
        assert [(c.legs, c.total, c.points, c.began) for c in whole] == [([(1, 0)], 10, 10, 50.0), ([(1, 0), (2, 6)], 16, 12, 50.0)]
        parts = tracker.series.charts(runs, ["loss"], first=2, last=3, spans={runs[1]: (10, None)})
        assert [c.steps for c in parts] == [[2, 3], [10, 11]]
        assert [c.total for c in parts] == [10, 16]

    def test_charts_of_many_runs_come_together(self, tracker: Tracker) -> None:
        runs = [tracker.runs.create(NewRun(name=str(n))).run_id for n in range(3)]
        for n, id in enumerate(runs):
            tracker.ingest.points(id, points("loss", range(n + 1)) + points("acc", [n]))
        charts = tracker.series.charts(runs[::-1], ["loss", "acc", "nothing"])
        assert [(c.run, c.key, c.points) for c in charts] == [
            (id, key, count) for n, id in reversed(list(enumerate(runs))) for key, count in (("loss", n + 1), ("acc", 1))
        ]
        with pytest.raises(NotFound, match="nothing"):
            tracker.series.chart(runs[0], "nothing")
        with pytest.raises(NotFound, match="nobody"):
            tracker.series.charts(["nobody"], ["loss"])
        with pytest.raises(InvalidInput, match="buckets"):
            tracker.series.chart(runs[0], "loss", buckets=0)

    def test_compaction_changes_nothing_that_is_read(self, tracker: Tracker, run: str) -> None:
        for n in range(300):
            tracker.ingest.points(
                run,
                [("loss", n * 7 % 300, NOW + n, float(n)), ("rare", n, NOW, 1.0)]
                if n % 50 == 0
                else [("loss", n * 7 % 300, NOW + n, float(n))],
            )
        before = (tracker.series.points(run, "loss"), tracker.series.metrics(run), tracker.series.chart(run, "loss", buckets=20).points)
        assert tracker.upkeep.tidy() > 0
        assert tracker.upkeep.tidy(resting=0) > 0
        assert tracker.upkeep.tidy(resting=0) == 0
        assert (
            tracker.series.points(run, "loss"),
            tracker.series.metrics(run),
            tracker.series.chart(run, "loss", buckets=20).points,
        ) == before

    def test_upkeep_of_a_store_at_rest_commits_nothing(self, tracker: Tracker, run: str) -> None:
        before = tracker.version()
        tracker.upkeep.tidy()
        tracker.upkeep.shrink()
        assert tracker.version() == before

    # ── searching ─────────────────────────────────────────────────────────────

    @pytest.fixture
    def many(self, tracker: Tracker) -> Tracker:
        for n in range(6):
            new = NewRun(
                name=f"run-{n}", params={"lr": 0.1 * n, "opt": "adam" if n % 2 else "SGD"}, tags={"a b": str(n)} if n else {}, user="ann"
            )
            run = tracker.runs.create(new).run_id
            if n:
                tracker.ingest.points(run, [("loss", 1, NOW, math.nan if n == 5 else float(n)), ("val/acc", 1, NOW, 1 - n / 10)])
            tracker.ingest.points(run, [("best", 1, NOW, float(n)), ("best", 2, NOW, 100.0)])
            tracker.runs.update(run, state="failed" if n == 3 else "finished", started=NOW + n * 86400, ended=NOW + n * 86400 + 60 * n)
        return tracker

    @pytest.fixture
    def piped(self, many: Tracker) -> Tracker:
        """Runs 1 to 3 are of one pipeline, run 5 is of another, of the same name elsewhere."""
        for n, root in ((1, "/a"), (2, "/a"), (3, "/a"), (5, "/b")):
            inner = many.runs.search(RunQuery(filter=f"name = 'run-{n}'")).runs[0].info.inner
            member = PipelineMembership(pipeline=f"{root}/runs/2026-11-15_A_digits", stage="train")
            many.write(partial(write_membership, run=inner, member=member))
        return many

    def test_one_run_stands_for_all_of_its_pipeline_that_are_asked_for(self, piped: Tracker) -> None:
        def lines(**asked: Any) -> tuple[str, int | None, list[dict[str, int]]]:
            page = piped.runs.search(RunQuery(fold=True, count=True, standings=True, **asked))
            return "".join(view.info.name[-1] for view in page.runs), page.total, [one.states for one in page.folded.values()]

        assert lines() == ("5430", 4, [{"finished": 2, "failed": 1}, {"finished": 1}])
        assert lines(order=["name"]) == ("0345", 4, [{"finished": 2, "failed": 1}, {"finished": 1}])
        assert lines(order=["metrics.loss desc"])[0] == "4350"
        assert lines(filter="state = finished") == ("5420", 4, [{"finished": 2}, {"finished": 1}])
        assert lines(limit=2)[0] + lines(limit=2, offset=2)[0] == "5430"
        piped.runs.archive(piped.runs.search(RunQuery(filter="name = 'run-3'")).runs[0].info.run_id)
        assert lines() == ("5420", 4, [{"finished": 2}, {"finished": 1}])
        assert lines(archived=True) == ("3", 1, [{"failed": 1}])

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("pipeline = '2026-11-15_A_digits'", "1235"),
            ("pipeline = '/a/runs/2026-11-15_A_digits'", "123"),
            ("pipeline like '%digits' and state = failed", "3"),
            ("pipeline != '/a/runs/2026-11-15_A_digits'", "5"),
            ("pipeline in ('2026-11-15_A_other', '2026-11-15_A_digits') and not pipeline like '/a/%'", "5"),
            ("pipeline is null", "04"),
            ("pipeline is not null", "1235"),
        ],
    )
    def test_runs_are_found_by_their_pipeline(self, piped: Tracker, text: str, found: str) -> None:
        assert "".join(view.info.name[-1] for view in piped.runs.search(RunQuery(filter=text, order=["name"])).runs) == found

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", "012345"),
            ("metrics.loss < 3", "12"),
            ("metrics.loss >= 3 and metrics.`val/acc` < 0.65", "4"),
            ("metrics.val/acc <= 0.7", "345"),
            ("min(metrics.best) <= 1", "01"),
            ("max(metrics.best) = 100", "012345"),
            ("metrics.loss is null", "0"),
            ("metrics.loss is not null", "12345"),
            ("params.lr > 0.25", "345"),
            ("params.lr = 0.2", "2"),
            ("params.lr = '0.2'", "2"),
            ("params.lr in (0.1, 0.2)", "12"),
            ("params.opt = 'adam'", "135"),
            ("params.opt != 'adam'", "024"),
            ("params.opt like 's%'", ""),
            ("params.opt ilike 's%'", "024"),
            ("not params.opt ilike 's%'", "135"),
            ("tags.`a b` = '3'", "3"),
            ("tags.\"a b\" in ('3', '4')", "34"),
            ("tags.`a b` not in ('3', '4')", "125"),  # a comparison needs a value
            ("not tags.`a b` in ('3', '4')", "0125"),  # `not` turns the answer around
            ("tags.`a b` != '3'", "1245"),
            ("not (tags.`a b` = '3')", "01245"),
            ("tags.`a b` not like '3%'", "1245"),
            ("not tags.`a b` like '3%'", "01245"),
            ("not tags.`a b` != '3'", "03"),
            ("tags.`a b` is null or tags.`a b` != '3'", "01245"),
            ("not not tags.`a b` = '3'", "3"),
            ("metrics.loss != 3", "1245"),  # NaN is a value, other than any number
            ("not metrics.loss = 3", "01245"),
            ("not metrics.loss < 3", "0345"),
            ("metrics.loss not in (1, 2)", "345"),
            ("metrics.loss = nan", "5"),
            ("metrics.loss is nan", "5"),
            ("metrics.loss is not nan", "1234"),
            ("metrics.loss != NaN", "1234"),
            ("metrics.loss in (1, nan)", "15"),
            ("metrics.loss not in (1, nan)", "234"),
            ("metrics.loss < nan", ""),
            ("metrics.loss < inf and metrics.loss > -inf", "1234"),
            ("metrics.loss = -Infinity", ""),
            ("min(metrics.loss) is nan", "5"),
            ("params.opt != 0.1", "012345"),  # a text is other than any number
            ("params.nothing != 0.1", ""),
            ("cluster != 'slurm'", ""),
            ("not cluster = 'slurm'", "012345"),
            ("not (cluster = 'slurm' or ended < 5)", "012345"),
            ("cluster not in ('slurm') or cluster not like 's%'", ""),
            ("id not in ('x', 'y') and id != 'z'", "012345"),
            ("state = failed or name = 'run-1'", "13"),
            ("not (state = finished)", "3"),
            ("attributes.status = 'FAILED'", "3"),
            ("attributes.run_name LIKE 'run-%' AND attributes.start_time > 1700172800000", "345"),
            ("started >= '2023-11-17T22:13:20' and duration < 200", "3"),
            ("started < '7d'", "012345"),
            ("user = 'ann' and user_id != 'bob' and experiment = 'Default'", "012345"),
            ("name in ('run-1', 'run-4')", "14"),
        ],
    )
    def test_a_filter_finds(self, many: Tracker, text: str, found: str) -> None:
        page = many.runs.search(RunQuery(filter=text, order=["name"], count=True))
        assert "".join(view.info.name[-1] for view in page.runs) == found
        assert page.total == len(found)

    @pytest.mark.parametrize(
        ("order", "found"),
        [
            (["metrics.loss"], "123450"),
            (["metrics.loss DESC"], "432150"),
            (["params.lr desc"], "543210"),
            (["params.opt", "name desc"], "420531"),
            (["tags.`a b` desc"], "543210"),
            (["attributes.start_time ASC"], "012345"),
            (["state", "name"], "301245"),
            (["state, params.opt desc, name desc"], "351420"),
            (["params.opt", "metrics.loss desc"], "420315"),
            (["metrics.best, tags.`a b` desc"], "543210"),
            ([], "543210"),
        ],
    )
    def test_runs_come_in_the_order_asked_for_and_what_lacks_the_value_last(self, many: Tracker, order: list[str], found: str) -> None:
        assert "".join(view.info.name[-1] for view in many.runs.search(RunQuery(order=order)).runs) == found

    def test_pages_follow_each_other(self, many: Tracker) -> None:
        first = many.runs.search(RunQuery(order=["name"], limit=4))
        assert first.next is not None
        second = many.runs.search(RunQuery(order=["name"], limit=4, offset=first.next))
        assert [v.info.name[-1] for v in first.runs + second.runs] == list("012345")
        assert second.next is None
        assert first.runs[1].params["lr"] == "0.1"
        with pytest.raises(InvalidInput):
            many.runs.search(RunQuery(limit=0))

    def test_archived_runs_are_found_only_where_asked_for(self, many: Tracker) -> None:
        many.runs.archive(many.runs.search(RunQuery(filter="name = 'run-2'")).runs[0].info.run_id)
        assert len(many.runs.search(RunQuery()).runs) == 5
        assert [v.info.name for v in many.runs.search(RunQuery(archived=True)).runs] == ["run-2"]
        assert len(many.runs.search(RunQuery(archived=None)).runs) == 6
        assert many.runs.search(RunQuery(experiments=[7])).runs == []

    # ── what no database takes ────────────────────────────────────────────────

    @pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
    def test_a_text_that_cannot_be_kept_is_refused_and_harms_nobody(self, tracker: Tracker, run: str, text: str) -> None:
        refused: list[Callable[[], object]] = [
            lambda: tracker.runs.set_params(run, {text: 1}),
            lambda: tracker.runs.set_tags(run, {text: 1}),
            lambda: tracker.runs.add_note(run, text),
            lambda: tracker.runs.update(run, name=text),
            lambda: tracker.runs.create(NewRun(name=text)),
            lambda: tracker.experiments.create(text),
            lambda: tracker.ingest.points(run, [(text, 1, NOW, 1.0)]),
            lambda: tracker.runs.search(RunQuery(filter=f"name = '{text}'")),
        ]
        for act in refused:
            with pytest.raises(InvalidInput):
                act()
        looked_up: list[Callable[[], object]] = [
            lambda: tracker.runs.get(text),
            lambda: tracker.runs.find(text),
            lambda: tracker.experiments.by_name(text),
            lambda: tracker.series.chart(run, text),
            lambda: tracker.ingest.points(text, [("loss", 1, NOW, 1.0)]),
        ]
        for act in looked_up:
            with pytest.raises((InvalidInput, NotFound)):
                act()
        assert tracker.ingest.points(run, points("loss", [1])).points == 1

    def test_odd_texts_in_records_do_not_keep_the_rest_from_being_taken(self, tracker: Tracker, run: str) -> None:
        entries: list[dict[str, Any]] = [
            {"n": 0, "t": NOW, "kind": "init", "params": {"a\x00b": "c\ud800d", "x" * 300: {"y": "\x00"}}},
            {"n": 1, "t": NOW, "s": 1, "m": {"lo\x00ss": 1.0, "\ud800": 2.0, "x" * 300: 1.0, "loss": 3.0, "word": "no", "no": None}},
        ]
        assert tracker.ingest.records(run, 1, "train-7", entries).points == 3
        assert values(tracker, run, "loss") == [(1, 3.0)]

    def test_a_number_beyond_64_bits_is_refused(self, tracker: Tracker, run: str) -> None:
        with pytest.raises(InvalidInput):
            tracker.runs.update(run, total_steps=2**70)
        with pytest.raises((InvalidInput, NotFound)):
            tracker.experiments.get(2**70)
        with pytest.raises((InvalidInput, NotFound)):
            tracker.runs.create(NewRun(experiment=2**70))

    # ── changes, jobs, ends ───────────────────────────────────────────────────

    def test_a_stream_sees_every_run_that_changed(self, tracker: Tracker, run: str) -> None:
        seen = tracker.version()
        tracker.ingest.points(run, points("loss", [1]))
        assert tracker.wait_beyond(seen, 10) > seen
        assert [r.run_id for r in tracker.runs.changes(seen)] == [run]
        assert tracker.runs.changes(tracker.version()) == []

    def test_a_job_that_is_refused_is_undone_alone(self, tracker: Tracker, run: str) -> None:
        from sqlalchemy import text

        def bad(batch: Batch) -> None:
            batch.connection.execute(text("DELETE FROM runs"))
            raise Conflict("no")

        def worse(batch: Batch) -> None:
            batch.connection.execute(text("DELETE FROM runs"))
            raise RuntimeError("broken")

        futures: list[Any] = [
            tracker.submit(bad),
            tracker.ingest.submit(run, points("loss", [1])),
            tracker.submit(worse),
            tracker.submit(lambda batch: 7),
        ]
        with pytest.raises(Conflict):
            futures[0].result()
        with pytest.raises(RuntimeError):
            futures[2].result()
        assert futures[3].result() == 7
        assert tracker.runs.get(run).run_id == run
        assert tracker.series.metrics(run)["loss"].points == 1

    def test_a_closed_tracker_says_that_it_is_closed(self, address: str | Path) -> None:
        tracker = Tracker.open(address)
        tracker.close()
        with pytest.raises(StorageUnavailable, match="stopping"):
            tracker.runs.create(NewRun())

    def test_what_was_acknowledged_is_there_after_a_reopening(self, address: str | Path) -> None:
        with Tracker.open(address) as tracker:
            run = tracker.runs.create(NewRun()).run_id
            tracker.ingest.points(run, points("loss", range(5)))
        with Tracker.open(address) as tracker:
            assert len(values(tracker, run, "loss")) == 5

    def test_what_a_relay_was_told_is_taken_once(self, tracker: Tracker, run: str) -> None:
        model = f"m-{'a' * 32}"
        entries: list[dict[str, Any]] = [
            {"kind": "relay"},
            {"kind": "model", "model": {"id": model, "name": "net\x00", "params": {"p": 1}, "tags": {"a": "b", "c": "d"}}},
            {"kind": "model", "model": {"id": model, "status": "READY", "untag": ["a"]}},
            {"kind": "model-metrics", "metrics": [{"model": model, "key": "acc", "value": float("inf"), "step": 1, "time": 1.7e9}]},
            {"kind": "inputs", "datasets": [{"name": "d", "digest": "1"}] * 2, "models": [model, model]},
            {"kind": "outputs", "models": [[model, 1], [model, 3]]},
            {"kind": "artifact", "path": "a.png", "bytes": 7, "stored": True},
            {"kind": "tags", "tags": {"x": "1"}},
            {"kind": "untag", "tags": ["x"]},
            {"kind": "alert", "title": "low", "text": "\ud800", "level": "WARN"},
        ]
        records = [{"n": n, "t": 1.7e9 + n, **record} for n, record in enumerate(entries)]
        for _ in range(2):
            assert tracker.ingest.records(run, 1, "train-relay", records).refused == 0
        found, inner = tracker.models.get(model), tracker.runs.get(run).inner
        assert (found.status, found.tags, len(found.metrics)) == ("READY", {"c": "d"}, 1)
        assert tracker.models.outputs([inner]) == {inner: [(model, 3)]}
        assert [dataset.name for dataset in tracker.models.inputs([inner])[inner][0]] == ["d"]
        assert len(tracker.runs.notes(run)) == 1 and tracker.runs.view(run).tags == {}
