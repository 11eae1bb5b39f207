"""The second protocol: requests, questions about them, and what goes back."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from onward.gateway.messages import v2
from onward.gateway.messages.incoming import Incoming, Refusal
from onward.gateway.messages.packed_results import PackedResult
from onward.gateway.messages.v2 import Control, ControlKind
from onward.model.requests.outcome import OutcomeFile
from onward.model.requests.request import Outgoing, OutgoingKind, Request, RequestInput

BODY: dict[str, Any] = {
    "id": "job:1",
    "recipe": "patchwise",
    "inputs": {"Image": {"url": "https://files.test/a.png", "sha256": "a" * 64, "size": 5_000_000_000}, "Mask": "http://files.test/b.png"},
    "settings": {"Patch height": 128, "note": "$(rm -rf ~); `x` \n --flag"},
    "resources": {"mem": "4G"},
    "deadline": 1_900_000_000,
    "priority": 9,
    "sender": "scribe",
}


def read(body: object, **properties: Any) -> Request | Refusal:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return v2.request_of(Incoming(body=raw, **{"reply_to": "mine", **properties}), most=1 << 20, now=5.0)


def test_a_request_is_read_as_it_is_written() -> None:
    found = read(BODY)

    assert isinstance(found, Request)
    assert found.inputs == (
        RequestInput(name="Image", url="https://files.test/a.png", sha256="a" * 64, size=5_000_000_000),
        RequestInput(name="Mask", url="http://files.test/b.png"),
    )
    assert (found.id, found.recipe, found.settings, found.resources) == ("job:1", "patchwise", BODY["settings"], {"mem": "4G"})
    assert (found.deadline, found.priority, found.sender, found.correlation_id) == (1_900_000_000, 9, "anonymous/scribe", "job:1")


def test_the_user_that_the_broker_vouches_for_counts_before_the_name_that_a_message_gives_itself() -> None:
    vouched, nameless = read(BODY, user_id="rodan"), read({"id": "a", "recipe": "b"})

    assert isinstance(vouched, Request) and vouched.sender == "rodan"
    assert isinstance(nameless, Request) and nameless.sender == "anonymous"


@pytest.mark.parametrize("body", [b"", b"null", b"\x80", b'{"recipe": "a"}', b'{"id": "a b"}', b'{"id": 7}', {"id": "x" * 129}])
def test_a_message_without_an_id_is_nobodys(body: object) -> None:
    found = read(body)

    assert isinstance(found, Refusal) and found.request is None and found.aside


def test_one_in_another_encoding_is_told_so() -> None:
    found = read(b"H4sIAAAA", content_encoding="gzip")

    assert isinstance(found, Refusal) and "encoded as 'gzip'" in found.reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipe": "../x"}, "recipe: found '../x'"),
        ({"recipe": None}, "recipe: missing"),
        ({"input": {}}, "input: unknown key (did you mean inputs?)"),
        ({"inputs": {"Image": "ftp://a/b"}}, "inputs.Image.url: found 'ftp://a/b', expected an address"),
        ({"inputs": {"Image": {"url": "https://a/b", "sha256": "x"}}}, "inputs.Image.sha256: found 'x'"),
        ({"inputs": {"Image": {"url": "https://a/b", "size": -1}}}, "inputs.Image.size: found -1"),
        ({"settings": {"a": {"b": 1}}}, "settings.a: found a mapping"),
        ({"deadline": -1}, "deadline: found -1, expected unix seconds"),
        ({"priority": 10}, "priority: found 10, expected 0 to 9"),
        ({"sender": "a\nb"}, "sender: found"),
    ],
)
def test_everything_wrong_with_a_request_is_told_under_its_id(change: dict[str, Any], said: str) -> None:
    found = read({**BODY, **change, "priority": change.get("priority", 1)})

    assert isinstance(found, Refusal)
    assert found.request is not None and found.request.id == "job:1"
    assert said in found.reason and "onward gateway schema" in found.next


def test_questions_are_cancel_and_status() -> None:
    def control(body: object) -> Control | Refusal:
        return v2.control_of(Incoming(body=json.dumps(body).encode(), user_id="rodan"), most=1000)

    assert control({"kind": "cancel", "id": "job:1"}) == Control(kind=ControlKind.CANCEL, id="job:1", by="rodan")
    strange: list[object] = [
        {"kind": "stop", "id": "a"},
        {"kind": ["cancel"], "id": "a"},
        {"kind": "status"},
        {"kind": "status", "id": "a", "x": 1},
        [],
    ]
    for wrong in strange:
        assert isinstance(control(wrong), Refusal)


def test_a_reply_holds_its_results_or_their_addresses_or_why_not_and_never_a_path(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hi")
    inside = OutcomeFile(name="A", path=str(tmp_path / "a"), size=2, sha256=hashlib.sha256(b"hi").hexdigest())
    payload = {"state": "done", "reason": "done", "run": None, "results": [{"name": "A", "path": "/secret/place"}]}
    message = Outgoing(
        id="m", request="job:1", kind=OutgoingKind.REPLY, protocol="v2", reply_to="q", correlation_id="c", payload=payload, made=7.0
    )
    parcels = {
        "A": PackedResult(file="a.hdf5", size=2, sha256="aa", media_type="x/y", inside=inside),
        "B": PackedResult(file="b.hdf5", size=9, sha256="bb", media_type="x/y", url="https://a/b", expires=99),
        "C": PackedResult(file="c.hdf5", size=9, sha256="cc", media_type="x/y", trouble="it is too large", next="ask for it"),
    }

    raw = bytes(v2.body_of(message, parcels))

    assert b"/secret" not in raw and str(tmp_path).encode() not in raw
    assert json.loads(raw) == {
        "kind": "reply",
        "id": "job:1",
        "at": 7.0,
        "state": "done",
        "reason": "done",
        "results": {
            "A": {"file": "a.hdf5", "size": 2, "sha256": "aa", "media_type": "x/y", "data": base64.b64encode(b"hi").decode()},
            "B": {"file": "b.hdf5", "size": 9, "sha256": "bb", "media_type": "x/y", "url": "https://a/b", "expires": 99},
            "C": {"file": "c.hdf5", "size": 9, "sha256": "cc", "media_type": "x/y", "reason": "it is too large", "next": "ask for it"},
        },
    }
