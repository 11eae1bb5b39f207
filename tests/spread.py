"""A pytest plugin: tests that take a part of a bed are spread among the others. Side by side, all workers would wait for one part."""

from __future__ import annotations

import os
from collections import Counter

import pytest


@pytest.hookimpl(trylast=True)  # after -m has chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    kinds = [item.get_closest_marker("takes") is not None for item in items]
    sizes, seen = Counter(kinds), Counter[bool]()
    places: dict[pytest.Item, float] = {}
    for item, kind in zip(items, kinds, strict=True):
        places[item] = seen[kind] / sizes[kind]
        seen[kind] += 1
    items.sort(key=places.__getitem__)
