"""Why a leg was asked to stop, as journals have it."""

from __future__ import annotations

import json

import pytest

from onward.model.events import AskedToStop, parse_event
from onward.model.stop_reason import StopReason, stop_reason_text

STORED = ("deadline", "warning", "request", "signal", "deleted", "given_up", "folder_gone", "storage")


def test_the_stored_words_are_those_of_every_earlier_version() -> None:
    assert tuple(StopReason) == STORED


@pytest.mark.parametrize("word", STORED)
def test_a_reason_is_written_as_its_word_and_read_again(word: str) -> None:
    line = AskedToStop(leg=1, at=5.0, why=StopReason(word)).line()
    assert json.loads(line)["why"] == word
    event = parse_event(line)
    assert isinstance(event, AskedToStop) and event.reason is StopReason(word)


def test_a_reason_of_a_newer_version_is_none_that_we_know() -> None:
    event = parse_event('{"kind":"askedtostop","leg":1,"at":5.0,"why":"moon"}')
    assert isinstance(event, AskedToStop) and event.reason is None and event.why == "moon"


def test_every_reason_has_words_of_its_own() -> None:
    assert len({stop_reason_text(reason) for reason in StopReason}) == len(STORED)
