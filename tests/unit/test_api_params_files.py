"""Params files for a form: text and data say the same, and everything that is wrong is told with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.operations.tracking import open_tracker, place_of
from onward.pipelines.yaml_lines import load_yaml, to_yaml
from tests.unit.test_api_routes import Scene, good

FILE = """name: digits
experiment: digits
cluster: local
train:
  command: python train.py
  resources: {time: "01:00:00", mem: 2G}
"""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with open_tracker(place_of({"HOME": str(tmp_path)}, str(tmp_path / "tracker.db"))) as opened:
        yield Scene(tmp_path, opened)


def check(scene: Scene, **asked: Any) -> Any:
    return good(scene.client.post("/api/v1/params-files/check", asked))


def test_a_file_that_is_right_comes_back_as_data_and_the_data_as_a_file(scene: Scene) -> None:
    told = check(scene, file=FILE)
    assert (told["valid"], told["problems"], told["file"]) == (True, [], FILE)
    assert told["data"]["train"]["resources"] == {"time": "01:00:00", "mem": "2G"}
    back = check(scene, data=told["data"])
    assert (back["valid"], back["data"]) == (True, told["data"])
    assert check(scene, file=back["file"])["data"] == told["data"]


def test_everything_that_is_wrong_is_told_with_line_and_key(scene: Scene) -> None:
    wrong = FILE.replace("mem: 2G", "mem: much, tiem: 3").replace("cluster: local", "claster: local")
    told = check(scene, file=wrong)
    assert not told["valid"]
    assert [(one["line"], one["at"]) for one in told["problems"]] == [
        (3, "claster"),
        (6, "train.resources.mem"),
        (6, "train.resources.tiem"),
    ]
    assert "did you mean time" in told["problems"][2]["problem"]
    by_data = check(scene, data=told["data"])
    assert {(one["line"], one["at"]) for one in by_data["problems"]} == {(None, one["at"]) for one in told["problems"]}


@pytest.mark.parametrize("text", ["", "name: [", "- a", "just words", "a: *b", "\tname: x", "name: \x01"])
def test_half_a_file_is_no_error_but_a_problem(scene: Scene, text: str) -> None:
    told = check(scene, file=text)
    assert not told["valid"]
    assert told["problems"]
    assert told["file"] == text


def test_a_check_is_of_one_thing_that_is_no_maze(scene: Scene) -> None:
    assert scene.client.post("/api/v1/params-files/check", {}).status == 400
    assert scene.client.post("/api/v1/params-files/check", {"file": "", "data": {}}).status == 400
    maze: Any = 1
    for _ in range(100):
        maze = {"a": maze}
    assert "nested" in good(scene.client.post("/api/v1/params-files/check", {"data": maze}), 400)["detail"]


def test_the_schema_and_the_folders_for_code_are_told(tmp_path: Path) -> None:
    with open_tracker(place_of({"HOME": str(tmp_path)}, str(tmp_path / "tracker.db"))) as opened:
        scene = Scene(tmp_path, opened)
        assert "train" in good(scene.client.get("/api/v1/params-schema"))["properties"]
        assert good(scene.client.get("/api/v1/code-folders")) == {"folders": []}


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=12)
odd = st.sampled_from(["1e-3", "24:00:00", "no", "on", "007", "2026-11-15", "~", "null", "true", "0x10", "1_000", "", ".5", "=", "<<", "-"])
leaves = st.one_of(words, odd, st.integers(-(10**9), 10**9), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False))


@given(
    st.dictionaries(
        words.filter(bool) | odd.filter(bool), st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=6), min_size=1
    )
)
def test_what_is_written_is_read_back_the_same(data: dict[str, Any]) -> None:
    assert load_yaml(to_yaml(data), "file").data == data
