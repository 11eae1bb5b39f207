"""A sender's answer: its results become files that are whole, by whatever way they come."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from onward.errors import HostUnreachable, InvalidInput, NotFound, StorageError
from onward.gateway.messages.reply import file_name, reply_from_body

DATA = b"weights" * 1000


def state(**others: Any) -> dict[str, Any]:
    return {"size": len(DATA), "sha256": hashlib.sha256(DATA).hexdigest(), "media_type": "application/x-hdf5", **others}


def inline(data: bytes = DATA) -> dict[str, Any]:
    return state(data=base64.encodebytes(data).decode())


class _Files(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = {"/gone": 404, "/closed": 401, "/broken": 503}.get(self.path, 200)
        body = DATA[: len(DATA) // 2] if self.path == "/half" else DATA
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def files() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_result_that_did_not_come_is_told_with_its_reason_and_the_others_are_kept(tmp_path: Path) -> None:
    results = {"Large": state(reason="it is too large; it is kept in the run r-1", next="ask for it"), "Model 0": inline()}
    answer = reply_from_body({"id": "r1", "state": "done", "results": results})

    with pytest.raises(
        NotFound, match="the result Large did not come with the reply: it is too large; it is kept in the run r-1"
    ) as caught:
        answer.save(tmp_path / "out")
    assert caught.value.hint == "ask for it"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["Model 0"]


def test_results_inside_the_message_and_by_address_become_files_of_their_names(files: str, tmp_path: Path) -> None:
    body = {
        "kind": "reply",
        "id": "r1",
        "state": "done",
        "at": 1.0,
        "results": {"Model 0": inline(), "Model 1": state(url=f"{files}/a", file="m1.hdf5")},
    }
    answer = reply_from_body(body)
    assert (answer.id, answer.done, answer.results["Model 0"].read()) == ("r1", True, DATA)
    saved = answer.save(tmp_path / "models")
    assert [(path.name, path.read_bytes() == DATA) for path in saved] == [("Model 0", True), ("Model 1.hdf5", True)]


def test_a_name_cannot_lead_out_of_the_folder_and_two_cannot_share_a_file(tmp_path: Path) -> None:
    assert [file_name(one) for one in ("../a", "/etc/passwd", "..", "rgba PNG - Layer 0", "a\nb")] == [
        *("_a", "_etc_passwd", "_", "rgba PNG - Layer 0", "a_b"),
    ]
    with pytest.raises(InvalidInput, match="two results of r1 share a file name"):
        reply_from_body({"id": "r1", "state": "done", "results": {"a/b": inline(), "a_b": inline()}}).save(tmp_path)


@pytest.mark.parametrize("found", [inline(DATA[:-1]), inline(DATA[:-1] + b"x"), inline(DATA + b"x"), state(data="no base64!")])
def test_what_is_not_what_was_promised_leaves_no_file(found: dict[str, Any], tmp_path: Path) -> None:
    answer = reply_from_body({"id": "r1", "state": "done", "results": {"Model 0": found}})
    with pytest.raises(StorageError, match="the result Model 0"):
        answer.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_why_a_result_is_not_to_be_had_is_told(files: str) -> None:
    def fetched(path: str) -> bytes:
        return reply_from_body({"id": "r1", "state": "done", "results": {"M": state(url=path)}}).results["M"].read()

    for path, error, words in (
        (f"{files}/gone", NotFound, "the server answered 404"),
        (f"{files}/closed", NotFound, "the server answered 401"),
        (f"{files}/broken", HostUnreachable, "the server answered 503"),
        (f"{files}/half", StorageError, "3500 of 7000 bytes"),
        ("http://127.0.0.1:9/", HostUnreachable, "could not be fetched"),
        ("file:///etc/passwd", InvalidInput, "no web address"),
    ):
        with pytest.raises(error, match=words):
            fetched(path)


def test_words_of_later_versions_are_left_aside_and_missing_ones_are_empty() -> None:
    answer = reply_from_body({"id": "r1", "state": "failed", "reason": "it broke", "colour": "red", "metrics": None})
    assert (answer.done, answer.reason, answer.next, answer.metrics, answer.results) == (False, "it broke", "", {}, {})
