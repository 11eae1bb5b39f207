"""The page of sbatch's and qsub's options says what the code does."""

from __future__ import annotations

from tests import scheduler_options


def test_the_page_of_scheduler_options_is_current() -> None:
    assert scheduler_options.PAGE.read_text() == scheduler_options.page(), "python -m tests.scheduler_options writes it"
