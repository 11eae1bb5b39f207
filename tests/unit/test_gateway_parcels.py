"""Results in a reply: inside while there is room, else by an address; changed or gone, they are not sent."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.gateway.messages.encoding import ReplyEncoder
from onward.gateway.messages.packed_results import ResultPacker
from onward.model.requests.outcome import Outcome, OutcomeFile, OutcomeState
from onward.model.requests.request import Outgoing, OutgoingKind


def packing(*, inline: int = 10, server: str | None = "https://onward.test/") -> ResultPacker:
    return ResultPacker(inline=inline, kept=60, server=lambda: server, sign=lambda request, name, expires: f"{request}|{name}|{expires}")


def result(folder: Path, name: str, data: bytes) -> OutcomeFile:
    (folder / "out").mkdir(exist_ok=True)
    path = folder / "out" / name.replace("/", "_")
    path.write_bytes(data)
    return OutcomeFile(name=name, path=str(path), size=len(data), sha256=hashlib.sha256(data).hexdigest())


def reply(*results: OutcomeFile, protocol: str = "v2") -> Outgoing:
    payload = Outcome(state=OutcomeState.DONE, reason="done", results=results).to_json()
    return Outgoing(
        id="m", request="job 1", kind=OutgoingKind.REPLY, protocol=protocol, reply_to="q", correlation_id="c", payload=payload, made=1.0
    )


def test_the_small_ones_go_inside_and_the_rest_by_an_address_that_closes(tmp_path: Path) -> None:
    packed = packing().pack(
        "job 1", [result(tmp_path, "big/one", b"123456789"), result(tmp_path, "a", b"12345"), result(tmp_path, "b", b"54321")], now=100.5
    )

    assert [packed[name].inside is not None for name in ("a", "b", "big/one")] == [True, True, False]
    assert packed["big/one"].url == (
        "https://onward.test/api/v1/requests/job%201/results/big%2Fone?expires=160&signature=job 1|big/one|160"
    )
    assert packed["big/one"].expires == 160


def test_without_a_server_to_fetch_them_from_all_go_inside(tmp_path: Path) -> None:
    large = result(tmp_path, "a", b"x" * 100)

    assert packing(server=None).pack("r", [large], now=0.0)["a"].inside == large
    assert packing().pack("r", [large], now=0.0, addresses=False)["a"].inside == large


def test_what_the_broker_has_no_room_for_has_an_address_or_says_why_not_and_where_it_is_and_the_rest_is_inside(tmp_path: Path) -> None:
    small, large = result(tmp_path, "a", b"x"), result(tmp_path, "b", b"x" * 9)

    with_server = packing().pack("r", [small, large], now=0.0, room=5)
    without = packing(server=None).pack("r", [small, large], now=0.0, room=5, run="run-1")

    assert with_server["a"].inside and with_server["b"].url
    assert without["a"].inside == small
    assert without["b"].trouble == "it is too large for a message of this broker; it is kept as b in the run run-1"
    assert "gateway.server" in without["b"].next


@pytest.mark.parametrize("protocol", ["v1", "v2"])
@pytest.mark.parametrize("size", [0, 1, 56, 57, 58, 3 * 57, 1_000_003])
def test_a_body_has_the_size_that_it_says_and_its_files_as_they_are(tmp_path: Path, protocol: str, size: int) -> None:
    data = os.urandom(size)
    body = ReplyEncoder(packing(server=None), ManualClock(5.0)).body(reply(result(tmp_path, 'a "b"', data), protocol=protocol))

    assert body is not None
    raw = bytes(body)
    answer = json.loads(raw)
    assert len(raw) == body.size
    assert base64.b64decode(answer['a "b"'] if protocol == "v1" else answer["results"]['a "b"']["data"]) == data
    assert protocol == "v2" or answer['a "b"'] == base64.encodebytes(data).decode(), "lines, as the old applications know them"


def test_a_result_that_was_changed_or_deleted_before_it_was_sent_is_a_failure(tmp_path: Path) -> None:
    replies = ReplyEncoder(packing(), ManualClock(5.0))
    found = result(tmp_path, "a", b"x")
    Path(found.path).write_bytes(b"y")
    changed = json.loads(bytes(replies.body(reply(found)) or b""))
    Path(found.path).unlink()
    gone = json.loads(bytes(replies.body(reply(found, protocol="v1")) or b""))

    assert (changed["state"], changed["results"]) == ("failed", {})
    assert "was changed after its run was done" in changed["reason"]
    assert "the result a cannot be read: No such file or directory" in gone["error"]
