"""Carry a message to a channel: Slack's webhooks, and signed ones for any program. Mail is in `deliver_mail`.

Only http and https; no redirect is followed, an address of the link (where clouds keep credentials) is refused, five seconds are enough.
The answer's body is never read. A signed message is HMAC-SHA256 over id.timestamp.body with the headers of standardwebhooks.com, whose
libraries check it; a message that is sent again carries the id it had.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from onward.errors import DeliveryRefused, InvalidInput, NotDelivered
from onward.model.alerts.message import AlertMessage
from onward.model.requests.inputs import is_link_local
from onward.operations.alerts.mail import send_mail
from onward.tracker.alerts.rules import Channel

PATIENCE = 5.0  # seconds
PREFIX = "whsec_"  # of a key, as the standard has it
_AGAIN = (408, 425, 429)
_NO_SECRET = "this server has no secret for channel {name!r}"


def deliver(channel: Channel, secret: Mapping[str, str], message: AlertMessage, *, now: float) -> None:
    """Raises NotDelivered where trying again may help, DeliveryRefused where it cannot."""
    match channel.kind:
        case "slack":
            _post(_url(channel, secret), json.dumps(slack_body(message)).encode(), {"Content-Type": "application/json"})
        case "webhook":
            body = json.dumps(webhook_body(message), separators=(",", ":")).encode()
            _post(_url(channel, secret), body, signed_headers(secret.get("key", ""), message.id, body, now))
        case "email":
            send_mail(channel.target, secret.get("password", ""), message, patience=PATIENCE)
        case other:
            raise DeliveryRefused(f"there is no channel of kind {other!r}")


def slack_body(message: AlertMessage) -> dict[str, Any]:
    """Plain text: what a name holds is shown, and calls nobody."""
    words = [message.title, message.text, message.link]
    text = "\n".join(word for word in words if word).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": text, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}


def webhook_body(message: AlertMessage) -> dict[str, Any]:
    return {
        "type": "alert",
        "id": message.id,
        "timestamp": message.at,
        "data": {
            "rule": message.rule,
            "level": str(message.level),
            "title": message.title,
            "text": message.text,
            "link": message.link,
            "runs": list(message.runs),
        },
    }


def signed_headers(key: str, id: str, body: bytes, now: float) -> dict[str, str]:
    try:
        raw = base64.b64decode(key.removeprefix(PREFIX), validate=True)
    except ValueError as error:
        raise DeliveryRefused("the channel's key is not base64", hint="enter it again, or leave it out to generate one") from error
    signature = hmac.new(raw, f"{id}.{int(now)}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


def check_webhook_url(url: str) -> SplitResult:
    """The address's parts; InvalidInput where nothing can be sent there."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"the address is malformed: {error}", hint="write it like https://hooks.example.org/path") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidInput("the address does not begin with http:// or https://", hint="write it like https://hooks.example.org/path")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("the address has a name or password before its host", hint="leave them out; messages are signed instead")
    if not url.isascii() or any(not char.isprintable() or char == " " for char in url):
        raise InvalidInput("the address has characters that an address cannot have", hint="copy it again")
    return parts


def _url(channel: Channel, secret: Mapping[str, str]) -> str:
    if not secret.get("url"):
        raise DeliveryRefused(_NO_SECRET.format(name=channel.name), hint="enter the channel's address again on this server")
    return secret["url"]


def _post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    parts = check_webhook_url(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=ssl.create_default_context())
    else:
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    late = threading.Timer(PATIENCE, connection.close)  # a receiver that drips its answer is late all the same
    late.daemon = True
    try:
        connection.connect()
        late.start()
        _must_be_outside(connection, host)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body=body, headers={**headers, "User-Agent": "onward"})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, AttributeError, ValueError) as error:  # the last two: closed under it, being late
        raise NotDelivered(f"{host} could not be reached: {error or type(error).__name__}", hint="it is retried") from error
    finally:
        late.cancel()
        connection.close()
    _must_be_taken(host, status)


def _must_be_outside(connection: http.client.HTTPConnection, host: str) -> None:
    """Asked of the connection itself: a name may lead elsewhere from one moment to the next."""
    address = str(connection.sock.getpeername()[0])
    if is_link_local(address):
        raise DeliveryRefused(f"{host} is a link-local address ({address}), which is not allowed")


def _must_be_taken(host: str, status: int) -> None:
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise DeliveryRefused(f"{host} answered {status}, and redirects are not followed", hint="use the address that it leads to")
    if status in _AGAIN or status >= 500:
        raise NotDelivered(f"{host} answered {status}", hint="it is retried")
    raise DeliveryRefused(f"{host} answered {status}", hint="check that the channel's address is still correct")
