"""A sender before it has spoken to any broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from onward.errors import HostUnreachable, InvalidInput
from onward.sender import Sender


@pytest.fixture
def sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sender:
    monkeypatch.setenv("ONWARD_SETTINGS", str(tmp_path / "settings.toml"))
    (tmp_path / "settings.toml").write_text("")
    return Sender("amqp://127.0.0.1:9/lab", user="scribe", password="very-secret")


@pytest.mark.parametrize("id", ["", "a b", "a/b", "ä", "x" * 129, "a\n"])
def test_an_id_that_fits_into_no_address_is_refused_before_anything_is_sent(sender: Sender, id: str) -> None:
    for act in (sender.sent, lambda id: sender.request("count", id=id)):
        with pytest.raises(InvalidInput, match="is not a valid request id"):
            act(id)


def test_a_broker_that_is_away_is_told_of_without_the_password_also_where_a_loop_runs(sender: Sender) -> None:
    async def in_a_notebook() -> None:
        sender.request("count")

    for ask in (lambda: sender.request("count"), lambda: sender.sent("r1").wait(), lambda: asyncio.run(in_a_notebook())):
        with pytest.raises(HostUnreachable, match="cannot be reached") as refusal:
            ask()
        assert "very-secret" not in f"{refusal.value} {sender!r}"
