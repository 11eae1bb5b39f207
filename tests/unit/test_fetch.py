"""Fetching a request's inputs from a stand-in that behaves, and from one that does not."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from beds.certificates import Authority
from examples.gateway.rodan import Rodan
from onward.clock import SystemClock
from onward.errors import InputRefused, InputsFailed, StorageFull, TokenRefused
from onward.model.requests.inputs import FileFetch, RunInputs, is_link_local
from onward.rundir.layout import RunDir
from onward.rundir.request_inputs import answer_token, ask_for_token, forget_addresses, read_inputs, write_inputs
from onward.sdk.atomic_files import PART
from onward.supervisor.preparation import request_inputs as module
from onward.supervisor.preparation.download import Downloaded, DownloadTerms, download
from onward.supervisor.preparation.request_inputs import InputFetch

PAGE = bytes(range(256)) * 400
SHA = hashlib.sha256(PAGE).hexdigest()
AT = "/uploads/page.png"


@pytest.fixture
def rodan(tmp_path: Path) -> Iterator[Rodan]:
    media = tmp_path / "media"
    media.mkdir()
    (media / "page.png").write_bytes(PAGE)
    with Rodan(media) as rodan:
        yield rodan


class Job:
    """Where files are fetched to, on the usual terms."""

    def __init__(self, rodan: Rodan, folder: Path) -> None:
        self.rodan = rodan
        self.target = folder / "Image"
        self.terms = DownloadTerms(hosts=(rodan.host,), token=rodan.token, token_for=rodan.url, env={}, cut=lambda: False)

    def fetch(self, path: str = AT, *, most: int = 1 << 20, cut: Callable[[], bool] = lambda: False, **about: Any) -> Downloaded:
        url = path if "://" in path else self.rodan.url + path
        return download(FileFetch(name="Image", url=url, most=1 << 20, **about), self.target, replace(self.terms, cut=cut), most=most)

    def refusal(self, path: str = AT, **about: Any) -> str:
        with pytest.raises(InputRefused) as caught:
            self.fetch(path, **about)
        assert not list(self.target.parent.glob(".Image*")), "a part is left behind"
        return caught.value.message

    def failure(self, path: str = AT, **about: Any) -> str:
        with pytest.raises(InputsFailed) as caught:
            self.fetch(path, **about)
        assert caught.value.transient
        assert not list(self.target.parent.glob(".Image*")), "a part is left behind"
        return caught.value.message


@pytest.fixture
def job(rodan: Rodan, tmp_path: Path) -> Job:
    return Job(rodan, tmp_path)


def test_a_file_is_there_whole_and_its_hash_is_known(job: Job) -> None:
    assert job.fetch(sha256=SHA, size=len(PAGE), types=("image/*",)) == Downloaded(size=len(PAGE), sha256=SHA)
    assert job.target.read_bytes() == PAGE


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"sha256": "0" * 64}, "input 'Image' does not match the request: its SHA-256 is"),
        ({"size": 7}, "input 'Image' does not match the request: it has 102400 bytes, expected 7"),
        ({"most": 1000}, "input 'Image' is larger than the 1.0 kB allowed"),
        ({"types": ("image/tiff",)}, "input 'Image' is image/png, expected image/tiff"),
    ],
)
def test_a_file_that_is_not_what_it_shall_be_is_refused(job: Job, about: dict[str, Any], words: str) -> None:
    assert words in job.refusal(**about)
    assert not job.target.exists()


@pytest.mark.parametrize("status", ["404", "403", "400", "410"])
def test_an_answer_that_no_other_try_changes_is_a_refusal(job: Job, status: str) -> None:
    job.rodan.behave(AT, status)
    assert f"answered {status}" in job.refusal()


@pytest.mark.parametrize("status", ["500", "502", "503", "429", "408"])
def test_an_answer_that_may_be_better_later_is_a_failure(job: Job, status: str) -> None:
    job.rodan.behave(AT, status)
    assert f"answered {status}" in job.failure()


def test_without_the_token_the_file_is_refused_and_words_hold_neither_token_nor_address(job: Job) -> None:
    job.terms = replace(job.terms, token="wrong-token")
    words = job.refusal(f"{AT}?signature=secret")
    assert words == f"cannot fetch input 'Image': {job.rodan.host} answered 401 Unauthorized"


def test_a_connection_that_breaks_is_a_failure(job: Job) -> None:
    job.rodan.behave(AT, "short")
    assert job.failure() == "the download of input 'Image' was interrupted after 500 B"
    job.rodan.behave(AT, "refuse")
    assert "cannot be reached" in job.failure()
    job.rodan.close()
    assert "cannot be reached" in job.failure()


PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 300_000 + b"\x00\x00\x00\x00IEND\xaeB`\x82"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (PNG, ""),
        (PNG[:-9], "input 'Image' is a PNG that is cut off"),
        (b"\xff\xd8\xff\xe0" + b"x" * 9, "input 'Image' is a JPEG that is cut off"),
        (b"\xff\xd8\xff\xe0" + b"x" * 9 + b"\xff\xd9", ""),
        (b"\n<!DOCTYPE html><html>log in</html>", "input 'Image' is a text such as HTML, not a picture"),
        (b"", "input 'Image' is empty"),
        (b"II*\x00 a kind that only the training knows", ""),
    ],
)
def test_a_picture_that_is_none_or_is_cut_off_is_refused_whatever_the_server_calls_it(job: Job, content: bytes, words: str) -> None:
    (job.rodan.media / "page.bin").write_bytes(content)
    if words:
        assert job.refusal("/uploads/page.bin", types=("image/*",)) == words
    else:
        job.fetch("/uploads/page.bin", types=("image/*",))
    assert job.fetch("/uploads/page.bin").size == len(content), "of anything else nobody knows what it should be"


def test_a_file_without_an_end_is_cut_off_at_its_limit(job: Job) -> None:
    job.rodan.behave(AT, "endless")
    assert job.refusal(most=1 << 18) == "input 'Image' is larger than the 262.1 kB allowed"


@pytest.mark.parametrize("how", ["slow", "silent", "endless"])
def test_a_server_that_drips_or_says_nothing_is_cut_off_when_time_is_up(job: Job, how: str) -> None:
    job.rodan.behave(AT, how)
    until = time.monotonic() + 0.5
    with pytest.raises(InputsFailed):
        job.fetch(most=1 << 62, cut=lambda: time.monotonic() > until)


# ── where from, and who sees the token ────────────────────────────────────────


def test_a_redirect_on_the_same_host_is_followed_with_the_token(job: Job) -> None:
    job.rodan.behave("/uploads/old", "redirect", to=AT)
    assert job.fetch("/uploads/old").sha256 == SHA


def test_a_redirect_to_another_host_is_not_followed_even_where_that_host_is_allowed(job: Job, tmp_path: Path) -> None:
    with Rodan(tmp_path / "media") as other:
        job.terms = replace(job.terms, hosts=(job.rodan.host, other.host))
        for to in (
            other.url + AT,
            f"//{other.host}{AT}",
            f"http://localhost:{job.rodan.port}{AT}",
            "file:///etc/passwd",
            "http://[bad",
            "http://127.0.0.1:99999/",
            "",
        ):
            job.rodan.behave(AT, "redirect", to=to)
            assert "only redirects within a host are followed" in job.refusal()
        assert other.seen == []


def test_redirects_in_circles_end(job: Job) -> None:
    job.rodan.behave(AT, "redirect", to=AT)
    assert "redirects in a loop" in job.refusal()
    assert len(job.rodan.seen) == 6


def test_the_token_goes_to_its_own_place_alone(job: Job, tmp_path: Path) -> None:
    with Rodan(tmp_path / "media") as other:
        job.terms = replace(job.terms, hosts=(job.rodan.host, other.host))
        assert "answered 401" in job.refusal(other.url + AT)
        assert [one.authorization for one in other.seen] == [None]
    job.fetch()
    assert [one.authorization for one in job.rodan.seen] == [f"Token {job.rodan.token}"]


@pytest.mark.parametrize(
    "url", ["http://localhost:{port}/x", "http://127.0.0.1/x", "ftp://127.0.0.1:{port}/x", "http://u:p@127.0.0.1:{port}/x"]
)
def test_a_host_that_is_not_allowed_is_not_even_asked(job: Job, url: str) -> None:
    job.refusal(url.format(port=job.rodan.port))
    assert job.rodan.seen == []


@pytest.mark.parametrize(
    ("address", "is_one"),
    [("169.254.169.254", True), ("::ffff:169.254.169.254", True), ("fe80::1%eth0", True), ("0.0.0.0", True), ("10.0.0.5", False)],
)
def test_an_address_of_the_link_is_known_in_every_spelling(address: str, is_one: bool) -> None:
    assert is_link_local(address) is is_one


def test_an_address_of_the_link_is_refused_whatever_its_name(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.supervisor.preparation.download.is_link_local", lambda address: address == "127.0.0.1")
    assert "is a link-local address" in job.refusal()
    assert job.rodan.seen == []


def test_a_proxy_of_the_runs_variables_is_asked_for_the_whole_address(job: Job, tmp_path: Path) -> None:
    job.terms = replace(job.terms, hosts=("pages.example.org",), env={"http_proxy": job.rodan.url, "no_proxy": "other.org"})
    assert "answered 404" in job.refusal("http://pages.example.org/x?y=1")
    [asked] = job.rodan.seen
    assert asked.authorization is None


def test_a_certificate_that_nobody_vouches_for_is_no_place_to_fetch_from(job: Job, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    authority.make(owner=getpass.getuser())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.server_certificate, authority.server_key)
    with Rodan(tmp_path / "media", tls=tls, token=job.rodan.token) as safe:
        job.terms = replace(job.terms, hosts=(safe.host,), token_for=safe.url)
        assert "certificate verify failed" in job.failure(safe.url + AT).lower().replace("_", " ")
        assert safe.seen == []
        job.terms = replace(job.terms, env={"SSL_CERT_FILE": str(authority.certificate)})
        assert job.fetch(safe.url + AT).sha256 == SHA
        job.terms = replace(job.terms, env={"SSL_CERT_FILE": "/no/such/file"})
        assert job.refusal(safe.url + AT) == "the certificates in /no/such/file cannot be read: No such file or directory"
        job.terms = replace(job.terms, env={"SSL_CERT_FILE": str(authority.certificate)})
        safe.behave(AT, "silent")
        until = time.monotonic() + 0.3
        assert "cannot be reached" in job.failure(safe.url + AT, cut=lambda: time.monotonic() > until)


# ── all inputs of a run ───────────────────────────────────────────────────────


class Leg:
    def __init__(self, rodan: Rodan, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rodan = rodan
        self.dir = RunDir(folder / "run")
        self.dir.make()
        monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)
        files = tuple(FileFetch(name=name, url=rodan.url + AT, most=1 << 20) for name in ("Image", "rgba PNG - Layer 0"))
        self.order = RunInputs(
            request="r-1", recipe="pages", fetch=files, hosts=(rodan.host,), most=1 << 20, token=rodan.token, token_for=rodan.url
        )

    def work(self, *, stopped: Callable[[], bool] = lambda: False, deadline: float | None = None, **changes: Any) -> bool:
        write_inputs(self.dir, replace(self.order, **changes))
        order = read_inputs(self.dir)
        assert order is not None
        return InputFetch(self.dir, order, env={}, clock=SystemClock(), stopped=stopped, deadline=deadline).work()

    @property
    def asked(self) -> int:
        return len(self.rodan.seen)


@pytest.fixture
def leg(rodan: Rodan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Leg:
    return Leg(rodan, tmp_path, monkeypatch)


def test_all_inputs_lie_under_their_names_for_their_owner_alone(leg: Leg) -> None:
    assert leg.work()
    assert sorted(path.name for path in leg.dir.inputs.iterdir()) == [".there.json", "Image", "rgba PNG - Layer 0"]
    assert stat.S_IMODE(leg.dir.inputs.stat().st_mode) == 0o700
    assert stat.S_IMODE(leg.dir.inputs_order.stat().st_mode) == 0o600
    assert stat.S_IMODE(leg.dir.inputs_order.parent.stat().st_mode) == 0o700
    body = json.loads(leg.dir.request.read_text())
    assert Path(body["inputs"]["rgba PNG - Layer 0"]).read_bytes() == PAGE
    assert leg.rodan.token not in leg.dir.request.read_text()


def test_what_is_there_and_whole_is_not_fetched_again_and_what_is_not_is(leg: Leg) -> None:
    assert leg.work()
    assert leg.work()
    assert leg.asked == 2
    (leg.dir.inputs / "Image").write_bytes(PAGE[:-1] + b"x")
    assert leg.work()
    assert leg.asked == 3
    assert (leg.dir.inputs / "Image").read_bytes() == PAGE


@pytest.mark.parametrize("last", ["fsync", "replace", "noted"])
def test_a_leg_that_is_killed_leaves_nothing_that_the_next_takes_for_whole(leg: Leg, monkeypatch: pytest.MonkeyPatch, last: str) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    place: tuple[Any, str] = (module, "write_whole") if last == "noted" else (os, last)
    write_inputs(leg.dir, leg.order)
    with monkeypatch.context() as dying, pytest.raises(Killed):
        dying.setattr(Path, "unlink", lambda *_, **__: None)  # the dead tidy nothing up
        dying.setattr(*place, killed)
        InputFetch(leg.dir, leg.order, env={}, clock=SystemClock()).work()
    assert leg.work()
    assert leg.asked == 3
    names = [path.name for path in leg.dir.inputs.iterdir() if not path.name.endswith(PART)]  # the "dead" process is this one
    assert sorted(names) == [".there.json", "Image", "rgba PNG - Layer 0"]
    assert (leg.dir.inputs / "Image").read_bytes() == PAGE


def test_a_server_out_of_order_is_asked_again_and_one_that_refuses_is_not(leg: Leg) -> None:
    leg.rodan.behave(AT, "503", times=2)
    assert leg.work()
    assert leg.asked == 4
    leg.rodan.behave(AT, "404")
    (leg.dir.inputs / "Image").unlink()
    with pytest.raises(InputRefused):
        leg.work()
    assert leg.asked == 5


def test_one_that_stays_out_of_order_is_asked_a_few_times_and_another_leg_may_try(leg: Leg) -> None:
    leg.rodan.behave(AT, "503")
    with pytest.raises(InputsFailed) as caught:
        leg.work()
    assert caught.value.transient
    assert leg.asked == 6
    assert "6 times" in caught.value.message and "retried" not in caught.value.hint


def test_a_file_that_ends_at_the_same_place_each_time_is_refused_and_nobody_says_that_it_is_retried(leg: Leg) -> None:
    leg.rodan.behave(AT, "short")
    with pytest.raises(InputRefused, match=r"interrupted after 500 B, 3 times at the same place") as caught:
        leg.work()
    assert leg.asked == 3
    assert "retried" not in caught.value.hint and "upload it again" in caught.value.hint


def test_all_inputs_together_may_not_be_larger_than_their_limit(leg: Leg) -> None:
    with pytest.raises(InputRefused, match=r"'rgba PNG - Layer 0' is larger than the 47.6 kB allowed"):
        leg.work(most=150_000)


def test_time_that_is_up_is_said(leg: Leg) -> None:
    leg.rodan.behave(AT, "slow")
    with pytest.raises(InputsFailed, match=r"not all inputs were fetched after 00:00:01: the download of input 'Image' was interrupted"):
        leg.work(seconds=1)


def test_a_leg_that_is_to_stop_leaves_a_slow_server_at_once(leg: Leg) -> None:
    leg.rodan.behave(AT, "silent")
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    assert leg.work(stopped=stop.is_set) is False


def test_a_full_disk_is_called_so(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("onward.sdk.atomic_files.os.fsync", full)
    monkeypatch.setattr("onward.rundir.request_inputs.write_whole", lambda path, data, mode: path.write_text(data))
    with pytest.raises(StorageFull, match="'Image' could not be stored: No space left on device"):
        leg.work()


def test_a_token_that_was_revoked_is_asked_for_again_and_the_leg_goes_on(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOKEN_LOOK", 0.01)
    leg.rodan.token = "another"

    def answered(dir: RunDir) -> None:
        ask_for_token(dir)
        answer_token(dir, "another")

    monkeypatch.setattr(module, "ask_for_token", answered)
    assert leg.work()
    assert leg.asked == 3, "the second file is fetched with the new one at once"


def test_a_token_than_which_there_is_no_better_is_a_refusal(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOKEN_LOOK", 0.01)
    monkeypatch.setattr(module, "ask_for_token", lambda dir: answer_token(dir, leg.rodan.token))
    leg.rodan.behave(AT, "403")
    with pytest.raises(TokenRefused, match="answered 403"):
        leg.work()
    assert leg.asked == 1


def test_a_leg_waits_for_a_token_as_long_as_somebody_may_come_and_another_leg_may_try(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOKEN_LOOK", 0.01)
    monkeypatch.setattr(module, "_TOKEN_PATIENCE", 0.05)
    with pytest.raises(InputsFailed, match="nobody logged in again") as caught:
        leg.work(token="old")
    assert caught.value.transient
    assert leg.work(token="old", stopped=lambda: True) is False


def test_a_run_that_is_over_knows_neither_token_nor_address_any_more(leg: Leg) -> None:
    assert leg.work()
    forget_addresses(leg.dir)
    text = leg.dir.inputs_order.read_text()
    assert leg.rodan.token not in text
    assert leg.rodan.url + AT not in text
    order = read_inputs(leg.dir)
    assert order is not None
    assert InputFetch(leg.dir, order, env={}, clock=SystemClock()).work()  # resumed: all of it is still there
    (leg.dir.inputs / "Image").unlink()
    with pytest.raises(InputRefused, match="is gone, and its address was deleted"):
        InputFetch(leg.dir, order, env={}, clock=SystemClock()).work()


def test_a_run_without_a_request_has_no_inputs(tmp_path: Path) -> None:
    assert read_inputs(RunDir(tmp_path)) is None
