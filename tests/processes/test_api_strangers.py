"""Connections without a token: however many there are, who has one is answered."""

from __future__ import annotations

import resource
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from onward.api.transport.unidentified_connections import UnidentifiedConnections
from tests.servers import Running


class Guest:
    def __init__(self, *, answered: bool = False) -> None:
        self.answered, self.gone = answered, False

    def is_answered(self) -> bool:
        return self.answered

    def send_away(self) -> None:
        self.gone = True


def arrived(strangers: UnidentifiedConnections, count: int, address: str) -> list[Guest]:
    guests = [Guest() for _ in range(count)]
    for guest in guests:
        strangers.add(guest, address)
    return guests


def test_the_oldest_of_an_address_that_has_too_many_goes() -> None:
    strangers = UnidentifiedConnections(most=10, most_each=3)
    other, guests = arrived(strangers, 2, "b"), arrived(strangers, 5, "a")
    assert [guest.gone for guest in guests] == [True, True, False, False, False]
    assert not any(guest.gone for guest in other)
    assert len(strangers) == 5


def test_of_all_addresses_the_one_with_the_most_gives_way() -> None:
    strangers = UnidentifiedConnections(most=4, most_each=3)
    honest, many = arrived(strangers, 1, "b"), arrived(strangers, 3, "a")
    arrived(strangers, 1, "c")
    assert (honest[0].gone, [guest.gone for guest in many]) == (False, [True, False, False])


def test_one_that_is_being_answered_stays_and_one_that_is_known_does_not_count() -> None:
    strangers = UnidentifiedConnections(most=10, most_each=2)
    busy, known = Guest(answered=True), Guest()
    strangers.add(busy, "a")
    strangers.add(known, "a")
    strangers.remove(known)
    guests = arrived(strangers, 2, "a")
    assert (busy.gone, known.gone, [guest.gone for guest in guests]) == (False, False, [True, False])
    full = UnidentifiedConnections(most=1, most_each=1)
    full.add(busy, "a")
    late = Guest()
    full.add(late, "a")
    assert (busy.gone, late.gone, len(full)) == (False, True, 1)


@pytest.fixture
def server(tmp_path: Path) -> Running:
    """One that may have 256 files open, as some systems have it."""
    return Running(tmp_path / "served")


@pytest.mark.slow
def test_three_hundred_strangers_keep_no_client_from_its_answer(server: Running) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as held:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            held.enter_context(server)
            token = server.token()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        address = (urlsplit(server.url).hostname or "", urlsplit(server.url).port or 0)
        kept = held.enter_context(socket.create_connection(address, timeout=20))
        asked = f"GET /api/v1/runs HTTP/1.1\r\nhost: {address[0]}\r\nauthorization: Bearer {token}\r\n\r\n".encode()
        for said in (b"", b"GET / HTT", b"GET /api/v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"):
            kept.sendall(asked)
            assert kept.recv(1 << 16).startswith(b"HTTP/1.1 200")  # it has shown its token, and is not sent away for strangers
            for _ in range(300):
                stranger = held.enter_context(socket.create_connection(address))
                stranger.sendall(said)
            honest = held.enter_context(socket.create_connection(address, timeout=20))
            honest.sendall(asked)
            assert honest.recv(1 << 16).startswith(b"HTTP/1.1 200")
