"""Hosts as Slurm writes them."""

from __future__ import annotations

import pytest

from onward.errors import InvalidInput
from onward.schedulers.hostlist import expand_hosts


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (None, []),
        ("", []),
        ("g1", ["g1"]),
        ("g1,g2.site", ["g1", "g2.site"]),
        ("c[1-2]", ["c1", "c2"]),
        ("node[08-11,20],login", ["node08", "node09", "node10", "node11", "node20", "login"]),
        ("r[1-2]n[01,03]-x", ["r1n01-x", "r1n03-x", "r2n01-x", "r2n03-x"]),
    ],
)
def test_a_list_becomes_names(written: str | None, names: list[str]) -> None:
    assert expand_hosts(written) == names


@pytest.mark.parametrize("written", ["n[1-", "n[a-b]", "n[]", ",a", "a,", "n]1[", "n[[1]]", "n[1-99999999]", "n[1-9999]m[1-9999]"])
def test_what_is_no_list_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match="expected names such as"):
        expand_hosts(written)
