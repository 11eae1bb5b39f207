"""Messages reach real receivers on this machine, signed and escaped; what does not arrive says why, and whether trying again can help."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import socket
import threading
from dataclasses import replace
from email import message_from_string, policy
from pathlib import Path
from typing import Any

import pytest

from onward.errors import DeliveryRefused, InvalidInput, NotDelivered, StorageError
from onward.model.alerts.message import AlertMessage
from onward.model.alerts.rules import NoticeLevel
from onward.operations.alerts import webhooks as deliver_module
from onward.operations.alerts.channel_secrets import ChannelSecrets
from onward.operations.alerts.webhooks import check_webhook_url, deliver
from onward.tracker.alerts.rules import Channel
from tests.receivers import hooks, mails

MESSAGE = AlertMessage(
    id="msg_1",
    rule="mine",
    level=NoticeLevel.ERROR,
    title="digits <!channel> failed",
    text="a & b",
    link="http://h/runs/x",
    runs=("x",),
    at=1e9,
)
SLACK = Channel(id="c", name="ops", kind="slack", target={})
HOOK = Channel(id="c", name="ops", kind="webhook", target={})
HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "alerts.md"
KEY = "whsec_" + base64.b64encode(b"k" * 32).decode()


def test_slack_gets_plain_text_in_which_a_name_can_call_nobody() -> None:
    with hooks() as kept:
        deliver(SLACK, {"url": f"{kept.url}/services/T0"}, MESSAGE, now=1e9)
    [(path, _, body)] = kept.posts
    assert path == "/services/T0"
    assert json.loads(body)["text"] == "digits &lt;!channel&gt; failed\na &amp; b\nhttp://h/runs/x"
    assert json.loads(body)["mrkdwn"] is False


def test_a_webhook_is_signed_over_id_time_and_body_as_the_standard_has_it() -> None:
    with hooks() as kept:
        deliver(HOOK, {"url": f"{kept.url}/in?x=1", "key": KEY}, MESSAGE, now=1234.9)
    [(path, headers, body)] = kept.posts
    expected = base64.b64encode(hmac.new(b"k" * 32, b"msg_1.1234." + body, hashlib.sha256).digest()).decode()
    assert (path, headers["webhook-id"], headers["webhook-timestamp"]) == ("/in?x=1", "msg_1", "1234")
    assert headers["webhook-signature"] == f"v1,{expected}"
    shown: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", HOWTO.read_text(), re.DOTALL)[0], shown)  # as the page says that a receiver can check it
    assert shown["is_ours"](KEY, headers, body)
    assert not shown["is_ours"](KEY, headers, body + b" ")
    assert json.loads(body)["data"]["runs"] == ["x"]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_receiver_that_is_busy_or_broken_is_tried_again(status: int) -> None:
    with hooks() as kept, pytest.raises(NotDelivered, match=f"answered {status}") as raised:
        kept.answers = [(status, {})]
        deliver(SLACK, {"url": kept.url}, MESSAGE, now=1e9)
    assert raised.value.transient


@pytest.mark.parametrize("status", [400, 404, 410])
def test_a_receiver_that_says_no_is_not_asked_again(status: int) -> None:
    with hooks() as kept, pytest.raises(DeliveryRefused, match=f"answered {status}") as raised:
        kept.answers = [(status, {})]
        deliver(SLACK, {"url": kept.url}, MESSAGE, now=1e9)
    assert not raised.value.transient


def test_a_redirect_is_not_followed() -> None:
    with hooks() as kept, pytest.raises(DeliveryRefused, match="redirects are not followed"):
        kept.answers = [(307, {"Location": f"{kept.url}/elsewhere"})]
        deliver(SLACK, {"url": kept.url}, MESSAGE, now=1e9)
    assert [path for path, _, _ in kept.posts] == ["/"]


def test_a_receiver_that_is_not_there_or_never_answers_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver_module, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        with pytest.raises(NotDelivered, match="could not be reached"):
            deliver(SLACK, {"url": f"http://127.0.0.1:{port}"}, MESSAGE, now=1e9)
    with pytest.raises(NotDelivered, match="could not be reached"):
        deliver(SLACK, {"url": f"http://127.0.0.1:{port}"}, MESSAGE, now=1e9)


def test_a_receiver_that_drips_its_answer_is_late_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver_module, "PATIENCE", 0.3)
    over = threading.Event()

    def drip(server: socket.socket) -> None:
        there, _ = server.accept()
        with there:
            there.sendall(b"HTTP/1.1 200 OK\r\n")
            while not over.wait(0.05):
                try:
                    there.sendall(b"X: y\r\n")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        try:
            with pytest.raises(NotDelivered):
                deliver(SLACK, {"url": f"http://127.0.0.1:{server.getsockname()[1]}"}, MESSAGE, now=1e9)
        finally:
            over.set()
            thread.join()


def test_nothing_is_sent_to_an_address_of_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads there is caught at the connection: no look at the name before could."""

    class Peer(socket.socket):
        def getpeername(self) -> tuple[str, int]:
            return "169.254.169.254", 80

    def connect(address: tuple[str, int], *_: object, **__: object) -> socket.socket:
        peer = Peer()
        peer.connect(address)
        return peer

    with hooks() as kept:
        monkeypatch.setattr(socket, "create_connection", connect)
        with pytest.raises(DeliveryRefused, match=r"a link-local address \(169\.254\.169\.254\)"):
            deliver(SLACK, {"url": kept.url}, MESSAGE, now=1e9)
    assert kept.posts == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://x", "//x", "", "http://", "http://u:p@x/", "http://x:99999/", "http://x/a b"]
)
def test_an_address_where_nothing_can_be_sent_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="address"):
        check_webhook_url(url)


def test_a_channel_without_its_secret_says_so() -> None:
    with pytest.raises(DeliveryRefused, match="this server has no secret for channel 'ops'"):
        deliver(SLACK, {}, MESSAGE, now=1e9)
    with pytest.raises(DeliveryRefused, match="key is not base64"):
        deliver(HOOK, {"url": "http://127.0.0.1:1", "key": "whsec_!"}, MESSAGE, now=1e9)
    with pytest.raises(DeliveryRefused, match="no channel of kind 'pigeon'"):
        deliver(replace(HOOK, kind="pigeon"), {}, MESSAGE, now=1e9)


def mail_channel(port: int, **others: object) -> Channel:
    target = {"host": "127.0.0.1", "port": port, "security": "none", "sender": "onward@lab.org", "to": ["ada@lab.org", "bob@lab.org"]}
    return Channel(id="c", name="mail", kind="email", target={**target, **others})


def test_mail_is_plain_text_with_a_subject_on_one_line_and_an_id_that_stays() -> None:
    with mails() as kept:
        deliver(mail_channel(kept.port), {}, replace(MESSAGE, title="digits\r\nBcc: all@lab.org"), now=1e9)
        deliver(mail_channel(kept.port), {}, MESSAGE, now=2e9)
    (sender, to, text), (_, _, again) = kept.mails
    mail = message_from_string(text, policy=policy.default)
    assert (sender, to) == ("onward@lab.org", ["ada@lab.org", "bob@lab.org"])
    assert (mail["Subject"], mail["Bcc"], mail["Auto-Submitted"]) == ("[onward] digits Bcc: all@lab.org", None, "auto-generated")
    assert mail["Message-ID"] == message_from_string(again, policy=policy.default)["Message-ID"] == "<msg_1@lab.org>"
    assert mail.get_content_type() == "text/plain"
    assert "http://h/runs/x" in mail.get_content()


def test_mail_that_is_refused_for_now_is_tried_again_and_for_good_is_not() -> None:
    with mails() as kept:
        kept.refuse = {"ada@lab.org": 451, "bob@lab.org": 451}
        with pytest.raises(NotDelivered, match="accepts mail for none of") as raised:
            deliver(mail_channel(kept.port), {}, MESSAGE, now=1e9)
        assert raised.value.transient
        kept.refuse = {"ada@lab.org": 550, "bob@lab.org": 550}
        with pytest.raises(DeliveryRefused):
            deliver(mail_channel(kept.port), {}, MESSAGE, now=1e9)
        with pytest.raises(DeliveryRefused, match="does not offer starttls"):
            deliver(mail_channel(kept.port, security="starttls"), {}, MESSAGE, now=1e9)
    assert kept.mails == []
    with pytest.raises(NotDelivered, match="could not be reached"):
        deliver(mail_channel(kept.port), {}, MESSAGE, now=1e9)


def test_a_password_never_travels_unencrypted() -> None:
    with mails() as kept, pytest.raises(DeliveryRefused, match="would be sent unencrypted"):
        deliver(mail_channel(kept.port, user="ada"), {"password": "hunter2"}, MESSAGE, now=1e9)


def test_secrets_lie_in_a_file_of_their_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "tracker.secrets"
    held = ChannelSecrets(path)
    assert held.of("a") == {}
    held.keep("a", {"url": "http://x"})
    held.keep("b", {"password": "y"})
    held.forget("a")
    held.forget("a")
    assert (held.of("a"), held.of("b"), path.stat().st_mode & 0o777) == ({}, {"password": "y"}, 0o600)
    path.chmod(0o640)
    with pytest.raises(StorageError, match="can be read by other users"):
        held.of("b")
    path.chmod(0o600)
    path.write_text("not json")
    with pytest.raises(StorageError, match="is not JSON"):
        held.of("b")
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="cannot be read"):
        held.of("b")
    with pytest.raises(StorageError, match="cannot be written"):
        ChannelSecrets(tmp_path / "no" / "where").keep("a", {})
