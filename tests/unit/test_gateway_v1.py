"""The first protocol: what its applications send, and what they are answered."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from onward.contrib.rodan import messages
from onward.gateway.messages.incoming import Incoming, Refusal
from onward.gateway.messages.packed_results import PackedResult
from onward.model.requests.gateway_settings import V1Settings
from onward.model.requests.inputs import check_address
from onward.model.requests.outcome import OutcomeFile
from onward.model.requests.request import Outgoing, OutgoingKind, Request, RequestInput

SETTINGS = V1Settings(enabled=True, rodan="https://rodan.test/rodan")
BODY = {"inputs": {"Image": "/uploads/a.png", "rgba PNG - Layer 0": "/uploads/b.png"}, "settings": {"CPUs": 6, "Patch height": 256}}


def read(body: object, **properties: Any) -> Request | Refusal:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    properties = {"reply_to": "hpc-results", "correlation_id": "c0ffee", **properties}
    return messages.request_of(Incoming(body=raw, **properties), SETTINGS, most=1 << 20, now=5.0)


def reply(payload: dict[str, Any], parcels: dict[str, PackedResult] | None = None, kind: OutgoingKind = OutgoingKind.REPLY) -> Any:
    message = Outgoing(id="a", request="v1-a", kind=kind, protocol="v1", reply_to="q", correlation_id="c", payload=payload, made=1.0)
    body = messages.body_of(message, parcels)
    return None if body is None else json.loads(bytes(body))


def test_a_message_of_the_old_application_is_a_request_for_the_sites_recipe() -> None:
    found = read(BODY)

    assert isinstance(found, Request)
    assert (found.id, found.recipe, found.protocol, found.reply_to, found.correlation_id) == (
        *("v1-c0ffee", "patchwise", "v1", "hpc-results", "c0ffee"),
    )
    assert found.settings == BODY["settings"]
    assert found.inputs == (
        RequestInput(name="Image", url="https://rodan.test/uploads/a.png"),
        RequestInput(name="rgba PNG - Layer 0", url="https://rodan.test/uploads/b.png"),
    )


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/uploads/Salzinnes 001.png", "/uploads/Salzinnes%20001.png"),
        ("/uploads/Köln/頁.png", "/uploads/K%C3%B6ln/%E9%A0%81.png"),
        ("/uploads/a%20b.png?v=1&w=é", "/uploads/a%20b.png?v=1&w=%C3%A9"),
        ("/uploads/50% #2.png", "/uploads/50%25%20%232.png"),
    ],
)
def test_a_path_is_the_name_of_a_file_in_any_alphabet_escaped_or_not(path: str, address: str) -> None:
    found = read({"inputs": {"Image": path}, "settings": {}})

    assert isinstance(found, Request)
    assert found.inputs == (RequestInput(name="Image", url=f"https://rodan.test{address}"),)
    check_address(found.inputs[0].url, ["rodan.test"])


def test_a_message_without_a_correlation_id_is_known_by_its_content() -> None:
    once, again, other = (read(body, correlation_id=None, reply_to="mine") for body in (BODY, BODY, {**BODY, "settings": {}}))

    assert isinstance(once, Request) and isinstance(again, Request) and isinstance(other, Request)
    assert once.id == again.id != other.id


def test_a_correlation_id_of_any_form_makes_an_id_that_fits_in_a_file_name() -> None:
    found = read(BODY, correlation_id="../../x y\n")

    assert isinstance(found, Request)
    assert found.correlation_id == "../../x y\n" and messages._PLAIN.fullmatch(found.id)


def test_where_no_queue_is_named_the_answer_goes_to_the_one_that_all_share() -> None:
    found = read(BODY, reply_to=None)

    assert isinstance(found, Request) and found.reply_to == "hpc-results"


@pytest.mark.parametrize("reply_to", ["hpc-results", None])
def test_a_message_whose_answer_nobody_could_tell_from_others_is_refused_before_anything_is_trained(reply_to: str | None) -> None:
    shared, own = read(BODY, correlation_id=None, reply_to=reply_to), read(BODY, correlation_id=None, reply_to="mine")

    assert isinstance(shared, Refusal) and shared.aside
    assert "no correlation id" in shared.reason and "reply_to of your own" in shared.next
    assert shared.request is not None and shared.request.reply_to is None, "nobody would know whose the refusal is either"
    assert isinstance(own, Request) and own.reply_to == "mine"


def test_a_token_in_the_settings_is_not_kept() -> None:
    found = read({**BODY, "settings": {"CPUs": 1, "token": "secret"}})

    assert isinstance(found, Request) and found.settings == {"CPUs": 1}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"{", "not JSON"),
        (b"[1]", "not an object"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"inputs": {}, "settings": {"a": NaN}}', "NaN is not a JSON number"),
        (b'{"inputs": {}, "inputs": {}, "settings": {}}', "twice"),
        (b'{"inputs": {}, "settings": {"a": "\\ud800"}}', "an incomplete character"),
        (b" " * (1 << 20) + b"{}", "1,048,578 bytes, expected at most 1,048,576"),
        ({"settings": {}}, "has no inputs"),
        ({"inputs": {}, "settings": {"a": [1]}}, "'a' is neither text nor a number"),
        ({"inputs": {"Image": "iVBORw0KGgo=="}, "settings": {}}, "'Image' is not an address"),
        ({"inputs": {"Image": "//elsewhere.test/a.png"}, "settings": {}}, "'Image' is not an address"),
        ({"inputs": {"Image": None}, "settings": {}}, "'Image' is not an address"),
    ],
)
def test_what_is_no_request_is_answered_and_put_aside(body: object, said: str) -> None:
    found = read(body)

    assert isinstance(found, Refusal) and found.aside
    assert said in found.reason
    assert found.request is not None and found.request.correlation_id == "c0ffee"


def test_a_path_without_a_rodan_to_fetch_it_from_is_the_sites_to_mend() -> None:
    found = messages.request_of(Incoming(body=json.dumps(BODY).encode()), V1Settings(enabled=True), most=1 << 20, now=5.0)

    assert isinstance(found, Refusal)
    assert "cannot fetch /uploads/a.png" in found.reason and "gateway.v1.rodan" in found.next


def test_results_are_base64_with_line_breaks_by_their_names(tmp_path: Path) -> None:
    data = bytes(range(256))
    (tmp_path / "m").write_bytes(data)
    inside = OutcomeFile(name="Model 0", path=str(tmp_path / "m"), size=256, sha256=hashlib.sha256(data).hexdigest())
    answer = reply({"state": "done"}, {"Model 0": PackedResult(size=256, sha256="", media_type="", inside=inside)})

    assert list(answer) == ["Model 0"]
    assert answer["Model 0"].count("\n") == 5 and base64.b64decode(answer["Model 0"]) == data


def test_every_other_end_is_one_text() -> None:
    payload = {"state": "out_of_memory", "reason": "leg 1 ran out of memory", "next": "ask for more", "log_tail": "MemoryError\n"}

    assert reply(payload) == {"error": "leg 1 ran out of memory. ask for more\nMemoryError"}
    assert reply({"reason": "another request came before"}, kind=OutgoingKind.ERROR) == {"error": "another request came before"}


def test_results_that_do_not_fit_are_an_error_that_says_so() -> None:
    answer = reply({"state": "done"}, {"Model 0": PackedResult(size=1, sha256="", media_type="", trouble="it is too large")})

    assert answer == {"error": "the training is done, but Model 0 cannot be sent: it is too large"}


def test_it_has_no_word_for_progress() -> None:
    assert reply({"state": "running"}, kind=OutgoingKind.PROGRESS) is None
