"""The wire: who sends without end, or stops half-way, is let go; who only takes their time is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from onward.api.transport.http_protocol import OnwardHttpProtocol

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Brief(OnwardHttpProtocol):
    patience = 0.3


class Slow(OnwardHttpProtocol):
    patience = 2.0


class Patient(OnwardHttpProtocol):
    patience = 600.0


class App:
    """Answers with the length of the body; `early`: before it has come."""

    def __init__(self, *, early: bool = False, busy: float = 0.0) -> None:
        self.early, self.busy = early, busy
        self.gone = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(self.busy)
        length = 0
        while not self.early:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
            length += len(message["body"])
            if not message.get("more_body"):
                break
        said = str(length).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
        await send({"type": "http.response.body", "body": said})


@asynccontextmanager
async def talk(app: App, wire: type[OnwardHttpProtocol]) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = uvicorn.Config(app, http=wire, ws="none", lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: wire(config=config, server_state=state, app_state={}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()


def said_to(sent: bytes, *, wire: type[OnwardHttpProtocol] = Brief, early: bool = False) -> bytes:
    """All that comes back until the server hangs up."""

    async def go() -> bytes:
        async with talk(App(early=early), wire) as (reader, writer):
            writer.write(sent)
            return await asyncio.wait_for(reader.read(), 30)

    return asyncio.run(go())


HEAD = b"POST / HTTP/1.1\r\nhost: x\r\n"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", b""),
        (b"\r\n", b""),
        (HEAD, b"HTTP/1.1 408 "),
        (HEAD + b"content-length: 9\r\n\r\nhalf", b""),
    ],
)
def test_who_stops_before_a_request_is_whole_is_let_go(sent: bytes, said: bytes) -> None:
    answer = said_to(sent)
    assert answer.startswith(said) and bool(answer) == bool(said)


def test_who_was_answered_early_and_sends_no_more_is_let_go_without_another_answer() -> None:
    answer = said_to(HEAD + b"content-length: 9\r\n\r\nhalf", early=True)
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1") == 1


def test_headers_without_end_are_not_read_on() -> None:
    async def go() -> bytes:
        async with talk(App(), Patient) as (_, writer):
            writer.write(HEAD + b"x: ")
            with pytest.raises(ConnectionError):
                while True:
                    writer.write(b"x" * 4096)
                    await writer.drain()
                    await asyncio.sleep(0)
            return b"hung up"

    assert asyncio.run(asyncio.wait_for(go(), 60)) == b"hung up"


def test_an_app_that_waits_for_a_body_that_stopped_hears_that_nobody_is_there() -> None:
    async def go() -> None:
        app = App()
        async with talk(app, Brief) as (_, writer):
            writer.write(HEAD + b"content-length: 9\r\n\r\nhalf")
            await asyncio.wait_for(app.gone.wait(), 30)

    asyncio.run(go())


def test_a_body_that_comes_slowly_is_read_and_the_connection_goes_on() -> None:
    async def go() -> None:
        async with talk(App(), Slow) as (reader, writer):
            for length in (12, 0):
                writer.write(HEAD + b"content-length: %d\r\n\r\n" % length)
                for _ in range(length):
                    await asyncio.sleep(Slow.patience / 10)
                    writer.write(b"x")
                answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
                assert answer.startswith(b"HTTP/1.1 200 ")
                said = str(length).encode()
                assert await reader.readexactly(len(said)) == said

    asyncio.run(go())


def test_who_sends_more_than_is_read_is_waited_for_while_the_server_is_busy() -> None:
    async def go() -> None:
        async with talk(App(busy=Brief.patience * 4), Brief) as (reader, writer):
            writer.write(HEAD + b"content-length: 1000000\r\n\r\n" + b"x" * 1_000_000)
            answer = await asyncio.wait_for(reader.readuntil(b"1000000"), 30)
            assert answer.startswith(b"HTTP/1.1 200 ")

    asyncio.run(go())
