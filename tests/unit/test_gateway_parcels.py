"""Results in a reply: inside while there is room, else by an address; changed or gone, they are not sent."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

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

    assert (packed["a"].data, packed["b"].data, packed["big/one"].data) == (b"12345", b"54321", None)
    assert packed["big/one"].url == (
        "https://onward.test/api/v1/requests/job%201/results/big%2Fone?expires=160&signature=job 1|big/one|160"
    )
    assert packed["big/one"].expires == 160


def test_without_a_server_to_fetch_them_from_all_go_inside(tmp_path: Path) -> None:
    large = result(tmp_path, "a", b"x" * 100)

    assert packing(server=None).pack("r", [large], now=0.0)["a"].data == b"x" * 100
    assert packing().pack("r", [large], now=0.0, addresses=False)["a"].data == b"x" * 100


def test_a_reply_that_the_broker_found_too_large_has_addresses_alone_or_says_what_is_missing(tmp_path: Path) -> None:
    small = result(tmp_path, "a", b"x")

    assert packing().pack("r", [small], now=0.0, light=True)["a"].url
    assert "larger than the broker's largest message" in packing(server=None).pack("r", [small], now=0.0, light=True)["a"].trouble


def test_a_result_that_was_changed_or_deleted_before_it_was_sent_is_a_failure(tmp_path: Path) -> None:
    replies = ReplyEncoder(packing(), ManualClock(5.0))
    found = result(tmp_path, "a", b"x")
    Path(found.path).write_bytes(b"y")
    changed = json.loads(replies.body(reply(found)) or b"")
    Path(found.path).unlink()
    gone = json.loads(replies.body(reply(found, protocol="v1")) or b"")

    assert (changed["state"], changed["results"]) == ("failed", {})
    assert "was changed after its run was done" in changed["reason"]
    assert "the result a cannot be read: No such file or directory" in gone["error"]
