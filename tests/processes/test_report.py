"""A report is one page that needs nothing else, tells the same from a folder and from the server, and shows names as they are."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from onward.cli.runs.report_from_server import from_server
from onward.client import Client
from onward.errors import StorageError
from onward.model.run import LegEnd
from onward.model.spec import Limits
from onward.operations.reports.run_page import run_page
from onward.operations.reports.subjects import ReportCurve, ReportSubject, chosen_metrics, subjects_from_folders
from onward.operations.reports.svg_charts import ChartScale, chart, line_style, short_number
from onward.rundir.layout import RunDir
from tests.sandbox import Sandbox
from tests.servers import Running

HOSTILE = "<script>alert(1)</script>\u202e\"'&"


def curve(*values: float | None, exact: bool = True) -> ReportCurve:
    return ReportCurve(steps=list(range(len(values))), means=values, lows=values, highs=values, points=len(values), exact=exact)


def subject(**others: object) -> ReportSubject:
    usual = {"id": "abcdefgh", "name": "digits", "experiment": "night", "state": "finished", "why": "done", "created": 1.7e9}
    empty: dict[str, object] = {"params": {}, "last": {}, "curves": {}, "timeline": None, "legs": (), "facts": ()}
    return ReportSubject(**{**usual, **empty, **others})  # type: ignore[arg-type]


def drawings(text: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def played(sandbox: Sandbox) -> RunDir:
    run = sandbox.play(params={"lr": 0.1, "note": HOSTILE}, limits=Limits(max_restarts=0)).begin(1).publish(1, 40)
    run.log(1, *({"t": run.now() + n, "s": n, "m": {"loss": 1.0 / (n + 1), "system/x": 1.0}} for n in range(50)))
    run.later(100).end(1, LegEnd.TIME_LIMIT, reason="stopped before the time limit")
    run.later(600).begin(2).later(50).end(2, LegEnd.DONE, reason="the training finished")
    return run.dir


def test_a_run_folder_alone_gives_curves_timeline_legs_and_environment(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    [answer] = subjects_from_folders([played(sandbox)], [], sandbox.clock)
    assert (answer.name, answer.state, list(answer.curves), answer.curves["loss"].points) == ("digits", "finished", ["loss"], 50)
    assert answer.last["loss"] == (0.02, 49)
    assert answer.timeline is not None and answer.timeline.checkpoints == 1
    assert [(leg.number, leg.end, leg.nodes) for leg in answer.legs] == [(1, "time_limit", "node1"), (2, "done", "node1")]
    assert dict(answer.facts)["folder"].endswith("_A_digits")
    text = run_page([answer], title="my report", now=1.7e9)
    assert "<script" not in text and "http" not in re.sub(r"http-equiv", "", text)
    assert "&lt;script&gt;" in text  # the param's own words
    assert len(drawings(text)) == 4  # key of the run, timeline, chart, key beside the chart
    assert "stopped before the time limit" in text and "leg 2 waited in the queue" in text


def test_a_folder_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    dir = played(sandbox)
    dir.spec.write_text("{")
    with pytest.raises(StorageError, match="cannot be read as a run"):
        subjects_from_folders([dir], [], sandbox.clock)


def test_metrics_that_people_look_at_come_first_or_those_asked_for_alone() -> None:
    keys = ["a/b/loss", "zeta", "loss", "system/cpu", "alpha"]
    assert chosen_metrics(keys, []) == ["loss", "a/b/loss", "alpha", "zeta"]
    assert chosen_metrics(keys, ["zeta", "none", "system/cpu"]) == ["zeta", "system/cpu"]


def test_params_that_differ_come_first_and_are_marked() -> None:
    one = subject(params={"a": "1", "seed": "1"})
    two = subject(id="b", params={"a": "1", "seed": "2", "new": HOSTILE})
    text = run_page([one, two], title=HOSTILE, now=1.7e9)
    rows = re.findall(r"<tr([^>]*)><th scope=row><bdi>(\w+)</bdi></th>", text)
    assert rows == [(" class=differs", "new"), (" class=differs", "seed"), ("", "a")]
    assert "digits abcdefgh" in text and "digits b" in text  # two of one name
    assert "<script" not in text


def test_a_line_breaks_where_nothing_is_finite_and_a_lone_value_is_a_dot() -> None:
    [drawn] = drawings(chart("x", [(0, "a", curve(1.0, 2.0, None, 3.0))]))
    assert [element.tag for element in drawn if element.get("class", "").endswith("c0")] == ["polyline", "circle"]
    assert chart("x", [(0, "a", curve(None, None))]) == ""


def test_buckets_have_a_band_from_lowest_to_highest() -> None:
    wide = ReportCurve(steps=[0, 1], means=[1.0, 1.0], lows=[0.0, 0.0], highs=[9.0, 2.0], points=2000, exact=False)
    [drawn] = drawings(chart("x", [(0, HOSTILE, wide)]))
    [band] = [element for element in drawn if element.tag == "polygon"]
    ys = [float(pair.split(",")[1]) for pair in band.get("points", "").split()]
    assert (min(ys), max(ys)) == (8.0, 216.0)  # no spike is cut


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-5.0, 3.0), (2.0, 2.0), (0.0, 0.0), (1e-9, 2e-9), (0.0, 1e12)])
def test_an_axis_has_a_few_round_numbers_inside_it(low: float, high: float) -> None:
    scale = ChartScale(low, high, 0, 100)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 8
    assert all(-1e-6 <= scale(tick) <= 100 + 1e-6 for tick in ticks)


def test_values_that_span_thousands_have_a_log_axis() -> None:
    drawn = chart("loss", [(0, "a", curve(1000.0, 1.0, 0.01))])
    assert "log axis" in drawn
    assert "log axis" not in chart("loss", [(0, "a", curve(1000.0, 0.0))])
    assert all(math.isfinite(tick) for tick in ChartScale(0.01, 1000, 0, 1, log=True).ticks())


def test_numbers_are_short_and_runs_look_different() -> None:
    assert [short_number(value) for value in (0, 0.1, 1234.5, 1e-7, 2.5e9, -3, math.nan, -math.inf)] == [
        *("0", "0.1", "1,234", "1e-7", "2.5e9", "-3", "NaN", "−∞")
    ]
    assert len({line_style(number) for number in range(32)}) == 32


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Running:
    return Running(tmp_path_factory.mktemp("up"), "--demo-data")


def test_the_verb_writes_a_page_of_runs_on_the_server_and_says_what_is_wrong(server: Running, tmp_path: Path) -> None:
    with server:
        token = server.onward("token", "create", "--rights", "read").stdout.split()[-1]
        client = Client(server.url, token, frame="dicts")
        runs = [row["id"] for row in client.runs("experiment = 'demo: digits'", limit=2)]
        answer = from_server(client, runs[0], ["loss"])
        assert list(answer.curves) == ["loss"] and answer.params["lr"]
        done = server.onward("report", *runs, "-o", str(tmp_path / "r.html"), "--title", "Rates")
        assert done.returncode == 0, done.stderr
        text = (tmp_path / "r.html").read_text()
        assert "<h1><bdi>Rates</bdi></h1>" in text and "class=differs" in text
        assert text.count("<polyline") >= 2 and "<script" not in text
        assert server.onward("report", runs[0], "-o", "-", "-m", "loss").stdout.startswith("<!doctype html>")
        missing = server.onward("report", "nosuchrun", "-o", str(tmp_path / "x.html"))
        assert missing.returncode == 3 and "nosuchrun" in missing.stderr
        assert not (tmp_path / "x.html").exists()
        nowhere = server.onward("report", runs[0], "-o", str(tmp_path / "no" / "r.html"))
        assert nowhere.returncode == 1 and "cannot be written" in nowhere.stderr
    alone = server.onward("report", "nosuchrun", "-o", str(tmp_path / "x.html"))
    assert alone.returncode == 3 and "nosuchrun" in alone.stderr
