"""The live stream: nothing is missed by one who comes back, and nobody waits for a listener."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from onward.api.background.live_events import LiveEvents


async def take(stream: AsyncIterator[str], count: int) -> list[dict[str, Any]]:
    found = []
    async for text in stream:
        fields = dict(line.split(": ", 1) for line in text.strip().split("\n"))
        found.append({"id": fields.get("id"), **json.loads(fields["data"])})
        if len(found) == count:
            return found
    return found


def events(found: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(one["event"], one.get("status")) for one in found]


def test_a_listener_hears_what_happens_after_it_came() -> None:
    async def harness() -> None:
        live = LiveEvents()
        live.status_changed("k1", "running")
        stream = live.listen(None)
        assert events(await take(stream, 1)) == [("hello", None)]
        live.status_changed("k1", "finished")
        [answer] = await take(stream, 1)
        assert answer["event"] == "run_status_changed"
        assert (answer["run_id"], answer["status"]) == ("k1", "finished")

    asyncio.run(harness())


def test_who_comes_back_hears_what_was_missed() -> None:
    async def harness() -> None:
        live = LiveEvents()
        live.status_changed("k1", "submitted")
        cursor = live.cursor
        live.status_changed("k1", "running")
        live.status_changed("k1", "finished")
        found = await take(live.listen(cursor), 3)
        assert events(found) == [("hello", None), ("run_status_changed", "running"), ("run_status_changed", "finished")]
        assert found[-1]["id"] == live.cursor

    asyncio.run(harness())


def test_a_cursor_of_another_server_or_of_long_ago_begins_anew() -> None:
    async def harness() -> None:
        live = LiveEvents()
        first = live.cursor
        for _ in range(10_002):
            live.tell("run_changed", "k1")
        for cursor in ("deadbeef-3", "nonsense", "-", first, f"{first}9999999"):
            assert events(await take(live.listen(cursor), 1)) == [("reset", None)]

    asyncio.run(harness())


def test_a_listener_hears_only_what_it_asked_for() -> None:
    async def harness() -> None:
        live = LiveEvents()
        cursor = live.cursor
        live.status_changed("k1", "running")
        live.status_changed("k2", "running")
        live.tell("run_changed", "k2")
        live.status_changed("k2", "finished")
        found = await take(live.listen(cursor, runs={"k2"}, events={"run_status_changed"}), 3)
        assert events(found)[1:] == [("run_status_changed", "running"), ("run_status_changed", "finished")]

    asyncio.run(harness())


def test_closing_lets_all_listeners_go() -> None:
    async def harness() -> None:
        live = LiveEvents()

        async def all_of_it() -> int:
            return len([text async for text in live.listen(None)])

        listening = [asyncio.create_task(all_of_it()) for _ in range(3)]
        while live.listeners < 3:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(live.close)
        assert await asyncio.wait_for(asyncio.gather(*listening), 60) == [1, 1, 1]
        assert live.listeners == 0

    asyncio.run(harness())


def test_who_has_listened_for_long_comes_back_and_misses_nothing() -> None:
    """A token that was revoked meanwhile is then refused at the gate."""

    async def harness() -> None:
        live = LiveEvents(life=0.05)
        heard = [text async for text in live.listen(None)]
        assert "event: hello" in heard[0]
        cursor = live.cursor
        live.status_changed("k1", "finished")
        assert events(await take(live.listen(cursor), 2)) == [("hello", None), ("run_status_changed", "finished")]

    asyncio.run(harness())
