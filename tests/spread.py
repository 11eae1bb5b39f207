"""A pytest plugin: tests that take the same part of a bed are spread among the others. Side by side, all workers would wait for it."""

from __future__ import annotations

import os
from collections import Counter

import pytest


@pytest.hookimpl(trylast=True)  # after -m has chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    taken = {item: [part for mark in item.iter_markers("takes") for part in mark.args] for item in items}
    wanted = Counter(part for parts in taken.values() for part in parts)
    kinds = {item: max(parts, key=lambda part: (wanted[part], part), default="") for item, parts in taken.items()}
    sizes, seen = Counter(kinds.values()), Counter[str]()
    places: dict[pytest.Item, float] = {}
    for item, kind in kinds.items():
        places[item] = seen[kind] / sizes[kind]
        seen[kind] += 1
    items.sort(key=places.__getitem__)
