"""What every test may lean on: parts of a bed taken for a test alone, and marks that follow from the fixtures a test asks for."""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import seeds

pytest_plugins = ["tests.first_failures", "tests.spread"]

_LOCKS = Path(tempfile.gettempdir()) / "onward-tests"
_GRIDENGINE = {"gridengine_bed", "ge_alice"}


def pytest_configure() -> None:
    """What a shell puts in the background, or `nohup` starts, ignores some signals. Children inherit that: so would the runs under test."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    seeds.of_the_run()
    for name in [name for name in os.environ if name.startswith("OPENBLAS_")]:
        del os.environ[name]  # jobs do not get them, and weights trained with other kernels differ in their last bits


def pytest_report_header() -> str:
    return f"random seed: {seeds.of_the_run()} ({seeds.VARIABLE} sets it)"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The same for every try of this test within one run of the suite; another in the next run."""
    return seeds.of_a_test(request.node.nodeid)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _GRIDENGINE & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.gridengine)


@pytest.fixture(autouse=True)
def _taken(request: pytest.FixtureRequest) -> Iterator[None]:
    """`@pytest.mark.takes("nodes")`: no other test that takes the same part runs meanwhile, in whatever process."""
    parts = sorted({part for mark in request.node.iter_markers("takes") for part in mark.args})
    with ExitStack() as held:
        for part in parts:
            _LOCKS.mkdir(exist_ok=True)
            fcntl.flock(held.enter_context((_LOCKS / part).open("w")), fcntl.LOCK_EX)
        yield
