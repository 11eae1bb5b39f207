"""The pages on frameworks: each script is cut by the time limits of its legs and must go on with what it saved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_coming_from import DOCS, legs, needs, run_page

pytestmark = pytest.mark.slow

SCRIPTS = [  # page, what it needs, and of each run its name and how it ends; 90: Keras makes 3 batches of 80 rows
    ("any-program.md", (), {"simulate": 300}),
    ("pytorch.md", ("torch",), {"own": 30, "two-lines": 600, "background": 600}),
    ("lightning.md", ("lightning",), {"lightning": 300}),
    ("keras.md", ("keras", "torch"), {"keras": "30 iterations 90"}),
    ("hugging-face.md", ("transformers", "accelerate"), {"trainer": 300, "accelerate": 300}),
    ("jax.md", ("jax", "orbax"), {"jax": 300}),
    ("xgboost.md", ("xgboost", "lightgbm"), {"boost": 300, "light": 300}),
]

# A file whose format does not say that it is whole counts two seconds after it was written. A kill may come before that: one save is lost.
UNPROVEN = {"any-program.md": 20}


@pytest.mark.parametrize(("page", "packages", "runs"), SCRIPTS, ids=[page for page, *_ in SCRIPTS])
def test_each_script_of_a_frameworks_page_goes_on_in_every_leg(
    tmp_path: Path, page: str, packages: tuple[str, ...], runs: dict[str, int | str]
) -> None:
    for package in packages:
        needs(package)
    said = run_page(page, tmp_path)
    for name, last in runs.items():
        log = said[f"onward logs {name}"]
        resumed = [int(found) for found in re.findall(r"^resumed at (\d+)", log, re.MULTILINE)]
        assert legs(tmp_path, name) >= 2 and resumed, log
        assert resumed == sorted(set(resumed)), "each leg begins later than the one before"
        assert f"trained {last}\n" in log
        for before, first in zip(re.split(r"^resumed at ", log, flags=re.MULTILINE), resumed, strict=False):
            saved = [int(found) for found in re.findall(r"^saved (\d+)", before, re.MULTILINE)]
            assert first >= max(saved, default=0) - UNPROVEN.get(page, 0), "nothing that was saved is lost"


def test_every_page_on_a_framework_is_in_the_table() -> None:
    table = (DOCS / "frameworks.md").read_text()
    pages = [page for page, *_ in SCRIPTS] + ["coming-from-hugging-face.md", "deepspeed.md"]
    assert [page for page in pages if f"]({page}" not in table] == []
