"""The login at Rodan, by either way, at the stand-in; and that nothing of it is told to anybody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.gateway.rodan import Rodan
from onward.clock import ManualClock
from onward.contrib.rodan.login import RodanLogin, login
from onward.errors import InputsFailed, InvalidInput, NotAllowed
from onward.model.requests.gateway_settings import V1Settings
from onward.model.requests.request import Request, RequestInput
from onward.operations.requests.context import InputLogin

TOKEN_AT = "/api/auth/token/"


@pytest.fixture
def rodan(tmp_path: Path) -> Iterator[Rodan]:
    with Rodan(tmp_path) as rodan:
        yield rodan


def logged_in(rodan: Rodan, user: str = "hpc", **others: str) -> RodanLogin:
    made = login({"RODAN_USER": user, "RODAN_PASSWORD": rodan.password, **others}, V1Settings(rodan=rodan.url))
    assert made is not None
    made.clock = ManualClock()
    return made


@pytest.mark.parametrize("way", ["username", "email"])
@pytest.mark.parametrize("user", ["hpc", "hpc@example.org"])
def test_a_name_or_an_address_logs_in_where_rodan_knows_the_one_or_the_other(rodan: Rodan, way: str, user: str) -> None:
    rodan.logs_in_by = (way,)
    rodan.username = rodan.email = user
    assert logged_in(rodan, user).token() == rodan.token


def test_a_wrong_login_is_refused_with_a_sentence_that_keeps_the_password(rodan: Rodan) -> None:
    wrong = logged_in(rodan, RODAN_PASSWORD="not-the-password")
    with pytest.raises(NotAllowed) as caught:
        wrong.token()
    assert caught.value.message == f"Rodan at {rodan.host} refused the login of 'hpc'"
    assert len(rodan.seen) == 2
    assert "not-the-password" not in f"{caught.value.message}{caught.value.hint}{wrong!r}"
    assert rodan.token not in repr(logged_in(rodan))


@pytest.mark.parametrize("how", ["503", "429", "refuse"])
def test_a_rodan_out_of_order_may_be_asked_again(rodan: Rodan, how: str) -> None:
    rodan.behave(TOKEN_AT, how, times=2)
    with pytest.raises(InputsFailed) as caught:
        logged_in(rodan).token()
    assert caught.value.transient


def test_a_rodan_that_says_nothing_is_left(rodan: Rodan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.contrib.rodan.login._PATIENCE", 0.3)
    rodan.behave(TOKEN_AT, "silent")
    with pytest.raises(InputsFailed, match="cannot be reached"):
        logged_in(rodan).token()


def test_a_password_follows_no_redirect(rodan: Rodan, tmp_path: Path) -> None:
    with Rodan(tmp_path, password=rodan.password) as other:
        rodan.behave(TOKEN_AT, "redirect", to=other.url + TOKEN_AT)
        with pytest.raises(NotAllowed, match="redirects logins"):
            logged_in(rodan).token()
        assert other.seen == []


def test_an_answer_without_a_token_is_no_login(rodan: Rodan) -> None:
    rodan.token = "a b\r\nX: y"
    with pytest.raises(NotAllowed, match="no token"):
        logged_in(rodan).token()
    rodan.behave(TOKEN_AT, "404")
    with pytest.raises(NotAllowed, match="answered a login with 404"):
        logged_in(rodan).token()


def test_a_token_is_asked_for_now_and_then_and_a_refusal_is_not_kept(rodan: Rodan) -> None:
    mine = logged_in(rodan)
    assert mine.token() == mine.token()
    assert len(rodan.seen) == 1
    mine.clock.sleep(301)
    rodan.behave(TOKEN_AT, "401", times=2)
    with pytest.raises(NotAllowed):
        mine.token()
    assert mine.token() == rodan.token


def test_only_requests_of_the_first_protocol_get_the_token(rodan: Rodan) -> None:
    def asked(protocol: str, *inputs: RequestInput) -> Request:
        return Request(id="r", sender="s", protocol=protocol, recipe="pages", inputs=inputs, body_sha256="", received=0.0)

    page = RequestInput(name="Image", url=f"{rodan.url}/uploads/page.png")
    assert logged_in(rodan)(asked("v1", page)) == InputLogin(token=rodan.token, origin=rodan.url)
    assert logged_in(rodan)(asked("v2", page)) is None
    assert logged_in(rodan)(asked("v1")) is None


# ── where the login is named ──────────────────────────────────────────────────


def test_the_first_gateways_variables_name_the_login() -> None:
    made = login({"RODAN_USER": "hpc", "RODAN_PASSWORD": "p", "RODAN_HOST": "rodan:8000"}, V1Settings(rodan=None))
    assert made is not None
    assert (made.url, made.user) == ("http://rodan:8000", "hpc")
    assert login({}, V1Settings()) is None


def test_an_application_without_a_login_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"there is no login for https://rodan\.example\.org"):
        login({}, V1Settings(rodan="https://rodan.example.org"))


def test_the_password_may_lie_in_a_file_that_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from a file\n")
    file.chmod(0o600)
    named = {"RODAN_USER": "hpc", "RODAN_PASSWORD_FILE": str(file)}
    made = login(named, V1Settings(rodan="https://rodan.example.org/"))
    assert made is not None
    assert (made.password, made.url) == ("from a file", "https://rodan.example.org")
    file.chmod(0o644)
    with pytest.raises(NotAllowed, match="other users can read or change"):
        login(named, V1Settings(rodan="https://rodan.example.org"))
    file.unlink()
    with pytest.raises(InvalidInput, match="RODAN_PASSWORD_FILE cannot be read"):
        login(named, V1Settings(rodan="https://rodan.example.org"))


@pytest.mark.parametrize(
    ("env", "url", "words"),
    [
        ({"RODAN_USER": "hpc"}, "https://r", "lacks a password"),
        ({"RODAN_PASSWORD": "p"}, None, "lacks a user and an address"),
        ({"RODAN_USER": "hpc", "RODAN_PASSWORD": "p"}, "ftp://r", "invalid address of Rodan"),
        ({"RODAN_USER": "hpc", "RODAN_PASSWORD": "p"}, "https://u:p@r", "invalid address of Rodan"),
        ({"RODAN_USER": "hpc", "RODAN_PASSWORD": "p", "RODAN_HOST": "r\r\nx"}, None, "invalid address of Rodan"),
    ],
)
def test_half_a_login_says_what_it_has_not(env: dict[str, str], url: str | None, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        login(env, V1Settings(rodan=url))


# ── tokens that do not last ───────────────────────────────────────────────────


def test_a_token_that_was_revoked_is_forgotten_and_one_login_serves_all_who_were_refused_with_it(rodan: Rodan) -> None:
    mine = logged_in(rodan)
    old = mine.token()
    rodan.token = "another"
    assert [mine.token(refused=old) for _ in range(5)] == ["another"] * 5
    assert len(rodan.seen) == 2


@pytest.mark.parametrize(
    "said",
    [
        {"expires_in": 60},
        {"expiry": "1970-01-01T00:01:00Z"},
        {"expires_at": 60},
        {"token": "e30.eyJleHAiOjYwfQ.c2ln"},  # a JSON Web Token with exp 60
    ],
)
def test_a_token_is_not_used_for_longer_than_the_answer_says(rodan: Rodan, said: dict[str, object]) -> None:
    rodan.said = said
    mine = logged_in(rodan)
    mine.clock = ManualClock(0.0)
    mine.token()
    mine.clock.sleep(59)
    mine.token()
    assert len(rodan.seen) == 1
    mine.clock.sleep(1)
    mine.token()
    assert len(rodan.seen) == 2


@pytest.mark.parametrize("way", ["username", "email"])
@pytest.mark.parametrize("otherwise", [401, 422, 500])
def test_a_rodan_that_reads_one_field_alone_gets_the_name_or_the_address_that_belongs_there(rodan: Rodan, way: str, otherwise: int) -> None:
    rodan.logs_in_by, rodan.refuses_with = (way,), otherwise
    mine = logged_in(rodan, "hpc", RODAN_EMAIL="hpc@example.org")
    assert mine.token() == rodan.token
    asked = len(rodan.seen)
    mine.clock.sleep(301)
    mine.token()
    assert len(rodan.seen) == asked + 1, "the way that worked is tried first"
