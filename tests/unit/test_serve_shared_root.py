"""One request has one run and one answer: whatever its store does, and however many gateways share the root."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onward.errors import StorageError, StorageFull
from onward.model.requests.outcome import OutcomeState
from onward.model.requests.request import Outgoing, RequestState
from onward.model.run import LegEnd
from onward.operations.repair import killed_submits
from onward.operations.requests import run_submission
from onward.rundir.layout import RunDir, runs_under
from onward.rundir.root.layout import RootDir
from onward.rundir.root.once_per_request import RequestMark, find_request, mark_request
from onward.rundir.root.presence import Presence, presence_of
from tests.disks import small_disk
from tests.serving import Gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path)
    yield made
    made.close()


@pytest.fixture
def other(gateway: Gateway, tmp_path: Path) -> Iterator[Gateway]:
    """A gateway of another login node: the same root and cluster, and a store of its own."""
    (tmp_path / "other").mkdir()
    made = Gateway(tmp_path / "other", gateway.sandbox)
    yield made
    made.close()


def to_send(*gateways: Gateway, id: str = "r1") -> list[Outgoing]:
    """The answers that leave these gateways."""
    now = gateways[0].now()
    return [message for one in gateways for message in one.requests.outbox.due(now=now) if message.request == id and message.terminal]


def fails_to_note_the_run(gateway: Gateway, patch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StorageFull("the gateway's store has no room left")

    patch.setattr(gateway.requests, "set_run", refuse)


def one_run(gateway: Gateway) -> RunDir:
    (run,) = runs_under(gateway.sandbox.root)
    assert len(gateway.sandbox.scheduler.jobs) == 1
    return run


# ── one run ───────────────────────────────────────────────────────────────────


def test_a_store_that_is_full_right_after_the_job_was_queued_makes_no_further_job(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.ask()
    with monkeypatch.context() as patch:
        fails_to_note_the_run(gateway, patch)
        for _ in range(5):
            with pytest.raises(StorageFull):
                gateway.step(5)
    gateway.step(5)
    assert gateway.of().folder == str(one_run(gateway).path)
    gateway.played().begin(1, successor=False).end(1, LegEnd.DONE)
    gateway.step(5)
    assert gateway.answer().state is OutcomeState.DONE


def test_another_gateway_goes_on_with_the_run_of_one_that_died_and_one_answer_leaves(
    gateway: Gateway, other: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.ask()
    fails_to_note_the_run(gateway, monkeypatch)
    with pytest.raises(StorageFull):
        gateway.step()
    gateway.serve.close()  # it is dead now, and its sender sends the request again
    other.ask()
    other.step(5)
    assert other.of().folder == str(one_run(other).path)
    other.played().begin(1, successor=False).end(1, LegEnd.DONE)
    other.step(5)
    assert other.answer().state is OutcomeState.DONE
    monkeypatch.undo()
    gateway.serve = gateway.another()  # it is started again, with its old store
    gateway.step(31, times=3)
    assert gateway.of().outcome == other.of().outcome
    assert len(to_send(gateway, other)) == 1
    one_run(gateway)


def test_two_gateways_that_have_the_same_request_share_its_run(gateway: Gateway, other: Gateway) -> None:
    for one in (gateway, other):
        one.ask()
        one.step()
    assert gateway.of().folder == other.of().folder == str(one_run(gateway).path)
    assert gateway.of().run == other.of().run == gateway.played().spec.id
    gateway.played().begin(1, successor=False).end(1, LegEnd.DONE)
    for one in (other, gateway, other):
        one.step(5)
    assert gateway.answer() == other.answer()
    assert len(to_send(gateway, other)) == 1


def test_of_two_that_make_the_run_at_the_same_moment_one_gives_way(
    gateway: Gateway, other: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.ask()
    other.ask()

    def slower(root: Path, mark: RequestMark) -> RequestMark:
        """The other one makes its run while this one is just about to mark its own."""
        monkeypatch.setattr(run_submission, "mark_request", mark_request)
        other.step()
        return mark_request(root, mark)

    monkeypatch.setattr(run_submission, "mark_request", slower)
    gateway.step()
    assert gateway.of().state is other.of().state is RequestState.SUBMITTED
    assert gateway.of().folder == other.of().folder == str(one_run(gateway).path)
    assert len(gateway.sandbox.folders()) == 1, "the run that nobody needs is removed"


def test_of_many_who_mark_at_once_all_get_the_same_run(tmp_path: Path) -> None:
    def mark(n: int) -> RequestMark:
        return mark_request(tmp_path, RequestMark(request="r/1 ü", body_sha256="b", run=f"run{n}", folder=f"/runs/2026-11-15_A_{n}"))

    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(mark, range(64)))
    assert len(found) == 1
    assert find_request([tmp_path / "away", tmp_path], "r/1 ü") in found
    assert [path.name for path in RootDir(tmp_path).requests.iterdir()] == [RootDir(tmp_path).request("r/1 ü").name]


def test_a_root_may_have_another_path_on_another_machine(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "elsewhere").symlink_to(tmp_path / "runs")
    mark_request(tmp_path / "runs", RequestMark(request="r1", body_sha256="b", run="k3x9q2m7", folder=f"{tmp_path}/runs/2026-11-15_A_x"))
    found = find_request([tmp_path / "elsewhere"], "r1")
    assert found is not None and found.folder == f"{tmp_path}/elsewhere/2026-11-15_A_x"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"request":"r1","body_sha256":"b","run":"k","folder":"../../home/eve/2026-11-15_A_x"}'])
def test_a_mark_that_is_damaged_or_leads_elsewhere_is_no_answer(gateway: Gateway, text: str) -> None:
    mark = RootDir(gateway.sandbox.root).request("r1")
    mark.parent.mkdir(parents=True)
    mark.write_text(text)
    gateway.ask()
    gateway.step(301, times=3)
    assert (gateway.of().state, gateway.of().outcome) == (RequestState.ACCEPTED, None)
    assert f"{mark} is damaged" in gateway.of().words
    assert gateway.sandbox.scheduler.jobs == {}
    mark.unlink()
    gateway.until(lambda: gateway.of().folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_mark_that_another_user_made_is_not_believed(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step()
    os.chown(RootDir(gateway.sandbox.root).request("r1"), 65534, 65534)
    with pytest.raises(StorageError, match="created by another user"):
        find_request([gateway.sandbox.root], "r1")


@pytest.mark.parametrize("who", ["its own gateway", "another gateway", "tend"])
def test_a_run_that_was_marked_and_not_finished_is_finished_by_whoever_comes_next(
    gateway: Gateway, other: Gateway, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    gateway.ask()
    with monkeypatch.context() as patch:

        def killed(run: RunDir) -> None:
            raise KeyboardInterrupt

        patch.setattr("onward.operations.submit.new_run.publish_spec", killed)
        with pytest.raises(KeyboardInterrupt):
            gateway.step()
    assert runs_under(gateway.sandbox.root) == []
    if who == "another gateway":
        other.ask()
        other.until(lambda: gateway.sandbox.scheduler.jobs)
        assert other.of().folder == str(one_run(gateway).path)
    if who == "tend":
        monkeypatch.setattr(killed_submits, "_OLD", -1.0)
        (words,) = killed_submits.sweep_killed_submits(gateway.sandbox.root)
        assert "finished" in words
    gateway.until(lambda: gateway.sandbox.scheduler.jobs)
    gateway.step(31)
    assert gateway.of().folder == str(one_run(gateway).path)


def test_a_disk_that_is_full_when_the_run_is_to_be_marked_leaves_nothing_behind(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway.ask()
    with monkeypatch.context() as patch:

        def refuse(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr("onward.rundir.root.once_per_request.take_file", refuse)
        gateway.step(301, times=3)
        assert gateway.of().outcome is None
        assert "No space left" in gateway.of().words
        assert gateway.sandbox.folders() == []
    gateway.step(301)
    one_run(gateway)


@pytest.mark.parametrize("over", [False, True])
def test_an_id_that_another_gateway_knows_from_another_request_is_refused(gateway: Gateway, other: Gateway, over: bool) -> None:
    gateway.ask()
    gateway.step()
    if over:
        gateway.played().begin(1, successor=False).end(1, LegEnd.DONE)
        gateway.step(5)
    other.ask(body_sha256="2" * 64)
    other.step()
    assert other.answer().state is OutcomeState.REFUSED
    assert "already received" in other.answer().reason
    if not over:
        gateway.played().begin(1, successor=False).end(1, LegEnd.DONE)
        gateway.step(5)
    assert gateway.answer().state is OutcomeState.DONE
    assert len(to_send(gateway, other)) == 2


def test_what_one_gateway_refused_or_cancelled_no_other_runs(gateway: Gateway, other: Gateway) -> None:
    gateway.sandbox.scheduler.refuse = "the account is locked"
    gateway.ask()
    gateway.step()
    gateway.sandbox.scheduler.refuse = ""
    other.ask()
    other.step()
    assert gateway.answer() == other.answer()
    assert gateway.sandbox.scheduler.jobs == {}
    assert len(to_send(gateway, other)) == 1


def test_a_gateway_that_died_between_the_mark_of_its_answer_and_its_store_still_sends_it(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.ask()
    gateway.step()
    gateway.played().begin(1, successor=False).end(1, LegEnd.DONE)
    with monkeypatch.context() as patch:

        def refuse(*_: object, **__: object) -> bool:
            raise StorageFull("no room")

        patch.setattr(gateway.requests, "settle", refuse)
        with pytest.raises(StorageFull):
            gateway.step(5)
    gateway.step(5)
    assert gateway.answer().state is OutcomeState.DONE
    assert len(to_send(gateway)) == 1


# ── a root that is away ───────────────────────────────────────────────────────


def test_a_root_that_is_away_for_a_while_fails_no_request(gateway: Gateway) -> None:
    for id in ("a", "b"):
        gateway.ask(id)
    gateway.step()
    gateway.played("a").begin(1, successor=False)
    root, away = gateway.sandbox.root, gateway.sandbox.root.with_name("away")
    for bare in (False, True):  # no folder, then a mount point with nothing in it
        root.rename(away)
        if bare:
            root.mkdir()
        gateway.step(31, times=10)
        assert [gateway.of(id).outcome for id in ("a", "b")] == [None, None]
        if bare:
            root.rmdir()
        away.rename(root)
    gateway.played("a").end(1, LegEnd.DONE)
    gateway.until(lambda: gateway.of("a").outcome)
    assert gateway.answer("a").state is OutcomeState.DONE
    assert gateway.of("b").outcome is None
    assert len(runs_under(root)) == 2


def test_a_root_that_is_mounted_over_for_a_while_fails_no_request(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step()
    shutil.move(gateway.sandbox.root, gateway.sandbox.root.with_name("kept"))
    with small_disk(gateway.sandbox.root, kilobytes=64):
        gateway.step(31, times=5)
        assert gateway.of().outcome is None
    gateway.sandbox.root.rmdir()
    shutil.move(gateway.sandbox.root.with_name("kept"), gateway.sandbox.root)
    gateway.played().begin(1, successor=False).end(1, LegEnd.DONE)
    gateway.step(31)
    assert gateway.answer().state is OutcomeState.DONE


def test_nothing_is_submitted_into_the_bare_mount_point_of_a_root_that_had_runs(gateway: Gateway) -> None:
    gateway.ask("a")
    gateway.step()
    root, away = gateway.sandbox.root, gateway.sandbox.root.with_name("away")
    root.rename(away)
    root.mkdir()
    gateway.ask("b")
    gateway.step(31, times=3)
    assert "is empty" in gateway.of("b").words
    assert list(root.iterdir()) == []
    root.rmdir()
    away.rename(root)
    gateway.until(lambda: gateway.of("b").folder)
    assert len(runs_under(root)) == 2


def test_a_run_of_an_older_version_gets_its_mark_so_that_its_deletion_can_be_told(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step()
    RootDir(gateway.sandbox.root).request("r1").unlink()
    gateway.step(5)
    assert find_request([gateway.sandbox.root], "r1") is not None
    shutil.rmtree(gateway.played().dir.path)
    gateway.until(lambda: gateway.of().outcome)
    assert "is gone" in gateway.answer().reason


def test_a_missing_folder_is_gone_only_where_its_root_is_seen_without_it(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    one, two = RunDir(root / "2026-11-15_A_one"), RunDir(root / "2026-11-15_B_two")
    assert presence_of(one) is Presence.UNKNOWN
    root.mkdir()
    assert presence_of(one) is Presence.UNKNOWN
    two.make()
    assert presence_of(one) is Presence.GONE
    one.make()
    one.spec.write_text("{}")
    assert presence_of(one) is Presence.THERE
    shutil.rmtree(one.path)
    mark = RootDir(root).request("r1")
    assert presence_of(one, mark=mark) is Presence.UNKNOWN, "another root may lie under the same name"
    mark.parent.mkdir(parents=True)
    mark.touch()
    assert presence_of(one, mark=mark) is Presence.GONE
