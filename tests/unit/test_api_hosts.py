"""Host, Origin, paths and credentials: pure rules."""

from __future__ import annotations

import base64

import pytest

from onward.api.access.allowed_hosts import HostRules, split_host
from onward.api.access.credentials import PresentedCredential, presented_credential, split_address
from onward.api.access.path_check import path_problem

RULES = HostRules.of(bound="127.0.0.1", machine="Node7", given=["tracker.example.org"])


@pytest.mark.parametrize(
    "host", ["localhost:8765", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST", "node7:1", "tracker.example.org", "localhost."]
)
def test_our_own_names_are_ours_on_any_port(host: str) -> None:
    assert RULES.host_is_ours(host, "127.0.0.1")


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "localhost.evil.test",
        "evil.test:8765",
        "127.0.0.1.evil.test",
        "127.0.0.2",
        "0.0.0.0",
        "",
        ":8765",
        "localhost:x",
        "localhost:8765@evil.test",
        "evil.test#localhost",
        "[::1",
        "[::1]x",
        "tracker.example.org.evil.test",
        "localhost/",
        "localhost\\",
        "lo calhost",
    ],
)
def test_another_host_is_foreign(host: str) -> None:
    assert not RULES.host_is_ours(host, "127.0.0.1")


def test_the_address_a_connection_came_in_on_is_ours() -> None:
    rules = HostRules.of(bound="0.0.0.0", machine="node7")
    assert rules.host_is_ours("10.1.2.3:8765", "10.1.2.3")
    assert not rules.host_is_ours("10.1.2.4:8765", "10.1.2.3")
    assert not rules.host_is_ours("0.0.0.0:8765", "10.1.2.3")


def test_an_origin_is_ours_only_with_the_same_host_and_port() -> None:
    assert RULES.origin_is_ours("http://localhost:8765", "localhost:8765")
    assert RULES.origin_is_ours("https://localhost", "localhost")
    assert RULES.origin_is_ours("https://tracker.example.org", "127.0.0.1:8765")  # a proxy rewrote Host


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.test",
        "http://localhost:3000",
        "http://127.0.0.1:8765",
        "http://localhost:8765.evil.test",
        "http://localhost:8765@evil.test",
        "http://evil.test/http://localhost:8765",
        "ftp://localhost:8765",
        "localhost:8765",
        "http://tracker.example.org:9999",
        "http://[",
        "file://",
    ],
)
def test_another_origin_is_foreign(origin: str) -> None:
    assert not RULES.origin_is_ours(origin, "localhost:8765")


def test_a_host_is_split_into_name_and_port() -> None:
    assert split_host("A.example:80") == ("a.example", "")
    assert split_host("[::1]:8765") == ("::1", "8765")
    assert split_host("a b") == ("", "")


@pytest.mark.parametrize(
    "path",
    [
        "/a/../b",
        "/..",
        "/a/..",
        "/./a",
        "/a\\b",
        "/a#b",
        "/a\x00",
        "/%2e%2e/a",
        "/%2E./",
        "/a%5cb",
        "/a%2fb",
        "/%252e",
        "/a/..;x/b",
        "/a\nb",
    ],
)
def test_odd_paths_are_refused(path: str) -> None:
    assert path_problem(path)


@pytest.mark.parametrize(
    "path", ["/", "/runs/k1/metrics", "/api/v1/runs/k1/artifacts/epoch=3-val.ckpt", "/a/...", "/a/.hidden", "/50%", "/a..b/c", "/a;b"]
)
def test_honest_paths_pass(path: str) -> None:
    assert path_problem(path) is None


def test_a_token_in_the_address_is_taken_off_it() -> None:
    assert split_address("/t/owu_1/runs/1/metrics") == ("owu_1", "/runs/1/metrics")
    assert split_address("/t/owu_1") == ("owu_1", "/")
    assert split_address("/t/") == ("", "/")
    assert split_address("/runs/t/1") == (None, "/runs/t/1")


COOKIE = "onward_session_k1"


def basic(user: str, password: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())


def test_a_token_can_come_in_five_ways_and_the_first_shown_counts() -> None:
    assert presented_credential({}, None, COOKIE) is None
    assert presented_credential({b"authorization": b"Bearer abc"}, None, COOKIE) == PresentedCredential("abc", "bearer")
    assert presented_credential({b"authorization": b"bearer  abc "}, None, COOKIE) == PresentedCredential("abc", "bearer")
    assert presented_credential({b"x-api-key": b"abc"}, None, COOKIE) == PresentedCredential("abc", "key")
    assert presented_credential({b"authorization": basic("ada", "abc")}, None, COOKIE) == PresentedCredential("abc", "basic")
    assert presented_credential({b"authorization": basic("abc", "")}, None, COOKIE) == PresentedCredential("abc", "basic")
    assert presented_credential(
        {b"cookie": b"a=1; onward_session=old; onward_session_k2=other; onward_session_k1=abc; b=2"}, None, COOKIE
    ) == PresentedCredential("abc", "cookie")
    assert presented_credential({b"cookie": b"a=1"}, None, COOKIE) is None
    assert presented_credential({b"authorization": basic("from", "netrc"), b"x-api-key": b"k"}, "abc", COOKIE) == PresentedCredential(
        "abc", "address"
    )
    assert presented_credential({b"authorization": b"Bearer bad", b"x-api-key": b"good"}, None, COOKIE) == PresentedCredential(
        "bad", "bearer"
    )


@pytest.mark.parametrize("header", [b"Basic !!!", b"Basic", b"Digest abc", b"", b"Basic \xff"])
def test_a_header_that_makes_no_sense_is_a_bad_token_not_an_absent_one(header: bytes) -> None:
    shown = presented_credential({b"authorization": header}, None, COOKIE)
    assert shown is not None
    assert shown.text == ""
