"""Tokens: what they look like, what is kept of them, and when they no longer stand."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select

from onward.errors import InvalidInput, NotFound
from onward.operations.tracker_access.location import OpenTracker
from onward.tracker.access.token_store import TokenStore
from onward.tracker.access.tokens import AFTER_ARCHIVE, AFTER_END, UNTIL_RESUMED, Rights, Scope, mint, parse, redact, run_token_until
from onward.tracker.schema import tokens
from tests.databases import tracker_in

NOW = 1_794_744_000.0


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenTracker]:
    with tracker_in(tmp_path) as opened:
        yield opened


@pytest.fixture
def store(opened: OpenTracker) -> TokenStore:
    return opened.tokens


def test_a_token_says_its_scope_and_id_and_has_256_random_bits() -> None:
    id, secret, digest = mint(Scope.USER)
    assert parse(secret.text) == (Scope.USER, id)
    assert len(secret.text.split("_", 2)[2]) == 43
    assert len(digest) == 64
    assert mint(Scope.USER)[1] != mint(Scope.USER)[1]


def test_a_secret_is_not_shown_by_accident() -> None:
    _, secret, _ = mint(Scope.USER)
    assert secret.text not in f"{secret} {secret!r} {[secret]}"


@pytest.mark.parametrize(
    "text", ["", "owu", "owu__", "owx_00000000_" + "a" * 43, "owu_00000000_" + "a" * 42, "owu_0000000g_" + "a" * 43, "é" * 60]
)
def test_what_has_not_the_form_is_no_token(text: str, store: TokenStore) -> None:
    assert parse(text) is None
    assert store.check(text, now=NOW) is None


def test_a_token_that_was_made_is_known_and_one_changed_letter_is_not(store: TokenStore) -> None:
    token, secret = store.create(Scope.USER, name="ada", now=NOW)
    found = store.check(secret.text, now=NOW)
    assert found is not None
    assert (found.id, found.name, found.rights) == (token.id, "ada", Rights.WRITE)
    other = secret.text[:-1] + ("a" if secret.text[-1] != "a" else "b")
    assert store.check(other, now=NOW) is None
    assert store.check("owr" + secret.text[3:], now=NOW) is None


def test_the_database_holds_no_secret(opened: OpenTracker, tmp_path: Path) -> None:
    _, secret = opened.tokens.create(Scope.USER, now=NOW)
    with opened.tracker.database.reading() as connection:
        row = connection.execute(select(tokens)).one()
    assert secret.text.split("_", 2)[2] not in str(row)
    assert all(secret.text.split("_", 2)[2].encode() not in path.read_bytes() for path in tmp_path.glob("tracker.db*"))


def test_the_database_is_its_owners_alone(opened: OpenTracker, tmp_path: Path) -> None:
    assert [oct(path.stat().st_mode & 0o077) for path in tmp_path.glob("tracker.db*")] == ["0o0"] * len(list(tmp_path.glob("tracker.db*")))


def test_a_revoked_or_expired_token_opens_nothing(store: TokenStore) -> None:
    token, secret = store.create(Scope.USER, now=NOW)
    _, brief = store.create(Scope.USER, expires=NOW + 10, now=NOW)
    store.revoke(token.id, now=NOW + 1)
    store.revoke(token.id[:5], now=NOW + 2)
    assert store.check(secret.text, now=NOW + 3) is None
    assert store.check(brief.text, now=NOW + 9) is not None
    assert store.check(brief.text, now=NOW + 10) is None


def test_when_it_was_used_is_kept_to_the_minute(store: TokenStore) -> None:
    token, secret = store.create(Scope.USER, now=NOW)
    store.check(secret.text, now=NOW + 5)
    store.create(Scope.USER, now=NOW)  # after what was asked before it
    assert store.named(token.id).last_used == NOW + 5
    store.check(secret.text, now=NOW + 6)
    store.create(Scope.USER, now=NOW)
    assert store.named(token.id).last_used == NOW + 5


def test_a_login_code_is_good_once_even_if_many_try_at_once(store: TokenStore) -> None:
    _, code = store.create(Scope.LOGIN, name="ada", expires=NOW + 60, now=NOW)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: store.redeem(code.text, now=NOW + 1), range(8)))
    assert sum(token is not None for token in found) == 1
    assert store.redeem(code.text, now=NOW + 2) is None


def test_only_a_login_code_can_be_redeemed_and_only_in_time(store: TokenStore) -> None:
    _, user = store.create(Scope.USER, now=NOW)
    _, late = store.create(Scope.LOGIN, expires=NOW + 60, now=NOW)
    assert store.redeem(user.text, now=NOW) is None
    assert store.redeem(late.text, now=NOW + 60) is None


@pytest.mark.parametrize(
    ("created", "over", "archived", "until"),
    [
        (100.0, False, None, None),
        (100.0, True, None, 1000.0 + AFTER_END),
        (1000.0, True, None, 1000.0 + AFTER_END),
        (1001.0, True, None, 1001.0 + UNTIL_RESUMED),  # made after the end: for the next leg
        (100.0, False, 500.0, 500.0 + AFTER_ARCHIVE),  # out of the lists, and still training
        (100.0, True, 2000.0, 1000.0 + AFTER_END),
    ],
)
def test_a_runs_token_ends_soon_after_its_run(created: float, over: bool, archived: float | None, until: float | None) -> None:
    assert run_token_until(created, over=over, ended=1000.0, archived=archived) == until


def test_the_token_of_a_run_that_is_not_there_opens_nothing(store: TokenStore) -> None:
    _, secret = store.create(Scope.RUN, run="k3f9a1c0", now=NOW)
    assert store.check(secret.text, now=NOW) is None


def test_a_token_ends_soon_in_its_last_fortnight_unless_it_never_had_more(store: TokenStore) -> None:
    long, _ = store.create(Scope.USER, expires=NOW + 90 * 86400, now=NOW)
    short, _ = store.create(Scope.USER, expires=NOW + 86400, now=NOW)
    endless, _ = store.create(Scope.USER, now=NOW)
    session, _ = store.create(Scope.SESSION, expires=NOW + 90 * 86400, now=NOW)
    later = NOW + 80 * 86400
    assert [token.ends_soon(NOW + 1) for token in (long, short, endless)] == [False, False, False]
    assert [token.ends_soon(later) for token in (long, short, endless, session)] == [True, False, False, False]
    assert not long.ends_soon(NOW + 90 * 86400)


def test_a_narrow_token_says_what_it_is_for(store: TokenStore) -> None:
    with pytest.raises(InvalidInput, match="needs a run"):
        store.create(Scope.RUN, now=NOW)
    with pytest.raises(InvalidInput, match="needs a cluster"):
        store.create(Scope.AGENT, now=NOW)


def test_an_unknown_id_is_not_found(store: TokenStore) -> None:
    with pytest.raises(NotFound, match="no token"):
        store.revoke("deadbeef", now=NOW)
    with pytest.raises(NotFound):
        store.revoke("", now=NOW)


def test_old_sessions_are_forgotten(store: TokenStore) -> None:
    store.create(Scope.SESSION, expires=NOW + 10, now=NOW)
    store.create(Scope.USER, expires=NOW + 10, now=NOW)
    store.create(Scope.USER, now=NOW + 30 * 86400)
    assert [token.scope for token in store.all()] == [Scope.USER, Scope.USER]


def test_what_looks_like_a_token_is_blotted_out() -> None:
    id, secret, _ = mint(Scope.RUN)
    said = redact(f"GET /t/{secret.text}/runs and {secret.text}")
    assert secret.text.split("_", 2)[2] not in said
    assert said.count(f"owr_{id}_…") == 2
