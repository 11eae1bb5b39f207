"""Params files for a form: data as text that says the same, and the schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.inputs.yaml_lines import load_yaml, to_yaml
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def test_data_is_written_as_a_file_that_says_the_same(harness: Harness) -> None:
    data = {
        "name": "digits",
        "train": {"command": "python train.py", "resources": {"time": "01:00:00", "mem": "2G"}, "params": {"lr": 1e-3}},
    }
    text = good(harness.client.post("/api/v1/drafts/text", {"data": data}))["file"]
    assert text.startswith("name: digits\ntrain:\n")
    assert load_yaml(text, "file").data == data


def test_what_is_a_maze_is_no_params_file(harness: Harness) -> None:
    maze: Any = 1
    for _ in range(100):
        maze = {"a": maze}
    assert "nested" in good(harness.client.post("/api/v1/drafts/text", {"data": maze}), 400)["detail"]


def test_the_schema_of_a_params_file_is_told(harness: Harness) -> None:
    assert "train" in good(harness.client.get("/api/v1/params-schema"))["properties"]


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
