"""A connection to PostgreSQL that breaks at the worst moment: what was committed is not done twice, and what was not is done."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

from beds.postgres import Postgres
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.runs.registry import NewRun
from onward.tracker.store import Tracker
from tests.unit.test_tracker_files import Folder, steps


class Proxy:
    """Between a client and the server. `lose`: what of the next COMMIT is lost, with the connection: its answer, or itself."""

    def __init__(self, folder: Path, server: Postgres) -> None:
        self.lose = ""
        self.lost = 0
        self.url = f"postgresql://onward@/onward?host={folder}&port={server.port}"
        self._server = str(server.folder / f".s.PGSQL.{server.port}")
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / f".s.PGSQL.{server.port}"))
        self._door.listen()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        for one in (self._door, *self._sockets):
            _hang_up(one)
        for thread in self._threads:
            thread.join()
        for one in (self._door, *self._sockets):
            one.close()

    def _start(self, target: Callable[..., None], *args: socket.socket) -> None:
        self._threads.append(threading.Thread(target=target, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                client = self._door.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._sockets += [client, server]
            self._start(self._requests, client, server)
            self._start(self._answers, client, server)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1 << 16):
                if self.lose and b"COMMIT" in data:
                    what, self.lose = self.lose, ""
                    self.lost += 1
                    client.shutdown(socket.SHUT_WR)  # no answer will reach it
                    if what == "answer":
                        server.sendall(data)
                    break
                server.sendall(data)
        except OSError:
            pass
        finally:
            _hang_up(server)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := server.recv(1 << 16):
                client.sendall(data)
        except OSError:
            pass
        finally:
            _hang_up(client)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


@pytest.fixture
def proxy(postgres: Postgres, address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    made = Proxy(tmp_path_factory.mktemp("pg"), postgres)
    yield made
    made.close()


def _add_note(batch: Batch) -> str:
    """Something that done twice is there twice."""
    row = {"run": 1, "at": batch.now, "author": "ada", "text": "once"}
    batch.connection.execute(schema.notes.insert(), [row])
    return "noted"


def _notes(tracker: Tracker) -> int:
    with tracker.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(schema.notes)).scalar_one())


@pytest.mark.parametrize("lost", ["answer", "request"])
def test_a_commit_whose_answer_was_lost_is_done_once(proxy: Proxy, lost: str) -> None:
    with Tracker.open(proxy.url) as tracker:
        tracker.runs.create(NewRun())
        before = tracker.version()
        proxy.lose = lost
        assert tracker.write(_add_note) == "noted"
        assert proxy.lost == 1
        assert _notes(tracker) == 1
        assert tracker.wait_beyond(before, 0) == tracker.version()
        assert tracker.write(_add_note) == "noted"
        assert _notes(tracker) == 2


def test_points_without_numbers_are_acknowledged_once_too(proxy: Proxy) -> None:
    with Tracker.open(proxy.url) as tracker:
        run = tracker.runs.create(NewRun()).run_id
        proxy.lose = "answer"
        taken = tracker.ingest.points(run, [("loss", step, 1000.0 + step, 0.5) for step in range(10)])
        assert (taken.points, taken.repeated, proxy.lost) == (10, 0, 1)
        assert len(tracker.series.points(run, "loss")) == 10


def test_a_server_that_lost_its_office_amid_a_look_doubles_nothing(address: str, tmp_path: Path) -> None:
    """Its lock's connection breaks after it has read a piece and before it stores it; the other is elected, and reads the same files."""
    root = tmp_path / "runs"
    folder = Folder(root)
    folder.begin(1)
    folder.log(1, *range(10))
    with Tracker.open(address) as old, Tracker.open(address) as new:
        assert old.election.won()
        assert not new.election.won()
        old.files.look([root])
        folder.log(1, *range(10, 20), start=10)
        submit = old._writer.submit
        overtaken: list[bool] = []

        def late(job: object, *, weight: int = 1) -> object:
            if not overtaken:
                overtaken.append(True)
                with new.reading() as connection:
                    locks = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                    connection.execute(text(locks)).all()
                while not new.election.won():
                    pass
                new.files.look([root])
                folder.log(1, *range(20, 30), start=20)
                new.files.look([root])
            return submit(job, weight=weight)  # type: ignore[arg-type]

        old._writer.submit = late  # type: ignore[assignment, method-assign]
        old.files.look([root])
        assert overtaken
        assert not old.election.won()
        old.files.look([root])  # even if it did not ask
        new.files.look([root])
        assert steps(new) == list(range(30))
