"""Rodan's door: a token for its files, by the login that the first gateway used.

`POST /api/auth/token/` with `username` and `password`; newer ones (from 3.1 on) want `email` instead, so both are tried, first the one
that worked last. A token is used for some minutes, never longer than the answer says, and not after Rodan has refused it. Neither the
password nor the token is ever part of a message; a redirect is not followed, since it would carry the password on.
"""

from __future__ import annotations

import http.client
import re
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlencode, urlsplit

from onward.clock import Clock, SystemClock
from onward.contrib.rodan.token import RodanToken, token_in
from onward.errors import InputsFailed, InvalidInput, NotAllowed
from onward.model.requests.gateway_settings import V1Settings
from onward.model.requests.inputs import host_words
from onward.model.requests.request import Request
from onward.operations.requests.context import InputLogin
from onward.supervisor.telemetry.tracker_server import read_token

_PATIENCE = 10.0  # seconds
_LARGEST = 1 << 16  # bytes of an answer
_OTHER_WAY = (400, 401, 403, 422, 500)  # perhaps it wants the other field: a Rodan without the one it reads may even fail
_HINT = "RODAN_USER and RODAN_PASSWORD (or RODAN_PASSWORD_FILE) set the login, gateway.v1.rodan or RODAN_HOST the address"


@dataclass(kw_only=True)
class RodanLogin:
    """As what a request of the first protocol has its inputs fetched. Called for each, it asks Rodan now and then."""

    url: str  # https://rodan.example.org
    user: str  # a name, or an e-mail address
    email: str = ""  # where it is another one
    password: str = field(repr=False)
    ca_file: Path | None = None
    clock: Clock = field(default_factory=SystemClock)
    _token: RodanToken | None = None
    _worked: str = ""  # the field that it knew us by last

    def __call__(self, request: Request, *, refused: str = "") -> InputLogin | None:
        """What `RequestSettings.login` wants. Senders of the second protocol give addresses that open by themselves."""
        return InputLogin(token=self.token(refused=refused), origin=self.url) if request.protocol == "v1" and request.inputs else None

    def token(self, *, refused: str = "") -> str:
        """NotAllowed where Rodan refuses the login, InputsFailed where it does not answer. `refused`: one that it no longer accepts."""
        if self._token is None or self._token.text == refused or self.clock.now() >= self._token.until:
            self._token = None
            self._token = self._log_in()
        return self._token.text

    def _log_in(self) -> RodanToken:
        failed = 0
        for way, name in self._ways():
            status, body = self._post({way: name, "password": self.password})
            if status not in _OTHER_WAY:
                found = self._token_in(status, body)
                self._worked = way
                return found
            failed = max(failed, status)
        if failed >= 500:
            raise self._out_of_order(failed)
        raise NotAllowed(f"Rodan at {self._place} refused the login of {self.user!r}", hint=_HINT)

    def _ways(self) -> list[tuple[str, str]]:
        """The likelier first."""
        ways = [("username", self.user), ("email", self.email or self.user)]
        likely = self._worked or ("email" if "@" in self.user else "username")
        return sorted(ways, key=lambda way: way[0] != likely)

    def _token_in(self, status: int, body: bytes) -> RodanToken:
        if status == 429 or status >= 500:
            raise self._out_of_order(status)
        if 300 <= status < 400:
            raise NotAllowed(
                f"Rodan at {self._place} redirects logins, the password is not resent",
                hint="set the address that it redirects to",
            )
        found = token_in(body, now=self.clock.now()) if status in (200, 201) else None
        if found is None:
            raise NotAllowed(f"Rodan at {self._place} answered a login with {status} but no token", hint="check its address")
        return found

    def _out_of_order(self, status: int) -> InputsFailed:
        return InputsFailed(f"Rodan at {self._place} answered {status} to a login", hint="Onward retries")

    def _post(self, form: Mapping[str, str]) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        connection = _connection(parts, self.ca_file)
        late = threading.Timer(_PATIENCE, connection.close)  # one that drips its answer is late all the same
        late.daemon = True
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json", "User-Agent": "onward"}
        try:
            late.start()
            connection.request("POST", f"{parts.path}/api/auth/token/", body=urlencode(form).encode(), headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_LARGEST)
        except (OSError, http.client.HTTPException, AttributeError, ValueError) as error:  # the last two: closed under it, being late
            words = getattr(error, "strerror", None) or type(error).__name__
            raise InputsFailed(f"Rodan at {self._place} cannot be reached: {words}", hint="Onward retries") from error
        finally:
            late.cancel()
            connection.close()

    @property
    def _place(self) -> str:
        return host_words(urlsplit(self.url))


def login(env: Mapping[str, str], settings: V1Settings) -> RodanLogin | None:
    """By the settings and the variables that the first gateway had; None where they name no application."""
    email = env.get("RODAN_EMAIL") or ""
    user = env.get("RODAN_USER") or env.get("RODAN_USERNAME") or email
    where = settings.rodan or env.get("RODAN_URL") or (f"http://{env['RODAN_HOST']}" if env.get("RODAN_HOST") else "")
    password = env.get("RODAN_PASSWORD") or _password_in(env.get("RODAN_PASSWORD_FILE"))
    if not user and not password and not where:
        return None
    if not user and not password:
        hint = "set RODAN_USER and RODAN_PASSWORD, or RODAN_PASSWORD_FILE"
        raise InvalidInput(f"v1 messages cannot be served: there is no login for {where}", hint=hint)
    if not user or not password or not where:
        missing = [what for what, there in (("a user", user), ("a password", password), ("an address", where)) if not there]
        raise InvalidInput(f"the login at Rodan lacks {' and '.join(missing)}", hint=_HINT)
    ca_file = Path(env["SSL_CERT_FILE"]) if env.get("SSL_CERT_FILE") else None
    return RodanLogin(url=_checked(where), user=user, email=email, password=password, ca_file=ca_file)


def _connection(parts: SplitResult, ca_file: Path | None) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=_PATIENCE)
    context = ssl.create_default_context(cafile=ca_file)
    return http.client.HTTPSConnection(host, parts.port, timeout=_PATIENCE, context=context)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable or not url.isascii() or re.search(r"[\s\x00-\x1f?#]", url):
        raise InvalidInput("invalid address of Rodan", hint="write it like https://rodan.example.org")
    return url.rstrip("/")


def _password_in(path: str | None) -> str | None:
    if not path:
        return None
    try:
        return read_token(Path(path).expanduser(), folder=False)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not a text file"
        raise InvalidInput(f"RODAN_PASSWORD_FILE cannot be read: {why}", hint="set it to a file of mode 600 with the password") from error
