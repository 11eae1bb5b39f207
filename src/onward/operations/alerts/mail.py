"""A message as mail: plain text, through an SMTP server. A password goes only over an encrypted connection."""

from __future__ import annotations

import contextlib
import smtplib
import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any

from onward.errors import DeliveryRefused, NotDelivered
from onward.model.alerts.message import AlertMessage, one_line


def send_mail(target: Mapping[str, Any], password: str, message: AlertMessage, *, patience: float) -> None:
    host, port, security = str(target["host"]), int(target["port"]), target.get("security", "starttls")
    if target.get("user") and security == "none":
        raise DeliveryRefused(f"a password for {host} would be sent unencrypted", hint="choose tls or starttls for this channel")
    try:
        server = _connected(host, port, str(security), patience)
        try:
            if target.get("user"):
                server.login(str(target["user"]), password)
            server.send_message(mail_of(target, message))
        finally:
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()
    except smtplib.SMTPRecipientsRefused as error:
        raise _judged(f"{host} accepts mail for none of {', '.join(error.recipients)}", *_first(error)) from error
    except smtplib.SMTPAuthenticationError as error:
        raise DeliveryRefused(f"{host} did not accept the user or the password", hint="enter them again") from error
    except smtplib.SMTPResponseException as error:
        raise _judged(f"{host} answered {error.smtp_code}", error.smtp_code) from error
    except smtplib.SMTPNotSupportedError as error:
        raise DeliveryRefused(
            f"{host} does not offer {security}", hint="choose tls, starttls or none, as its documentation says"
        ) from error
    except (smtplib.SMTPException, OSError) as error:
        raise NotDelivered(f"{host} port {port} could not be reached: {error}", hint="it is retried") from error


def mail_of(target: Mapping[str, Any], message: AlertMessage) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = f"[onward] {one_line(message.title)}"
    mail["From"] = str(target["sender"])
    mail["To"] = ", ".join(target["to"])
    mail["Date"] = formatdate(message.at)
    mail["Message-ID"] = f"<{message.id}@{str(target['sender']).rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    words = [message.text, message.link, f"Sent by Onward for the rule “{one_line(message.rule)}”."]
    mail.set_content("\n\n".join(word for word in words if word) + "\n")
    return mail


def _connected(host: str, port: int, security: str, patience: float) -> smtplib.SMTP:
    if security == "tls":
        return smtplib.SMTP_SSL(host, port, timeout=patience, context=ssl.create_default_context())
    server = smtplib.SMTP(host, port, timeout=patience)
    try:
        if security == "starttls":
            server.starttls(context=ssl.create_default_context())
    except BaseException:
        server.close()
        raise
    return server


def _first(error: smtplib.SMTPRecipientsRefused) -> tuple[int]:
    return (next((code for code, _ in error.recipients.values()), 550),)


def _judged(words: str, code: int) -> NotDelivered:
    """A mail server says 4xx for now, and 5xx for good."""
    return DeliveryRefused(words, hint="check the addresses") if code >= 500 else NotDelivered(words, hint="it is retried")
