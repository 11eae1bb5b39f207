"""A submit that is asked again while its first asking is still at work, on the host: it makes one run."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from onward.errors import SubmitRefused, SubmitUnclear
from onward.model.plain_data import value_to_json
from onward.operations.ssh import agent
from onward.operations.ssh.agent import HostAgent
from onward.operations.submit import arriving_code
from onward.operations.submit.code_snapshot import CodeSnapshot, freeze_code
from onward.operations.submit.new_run import submit
from tests.sandbox import Sandbox

ID = "k3x9q2m7"


class Asking:
    """The same request, as often as it is sent; the first is held up between its look and its run's folder."""

    def __init__(self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, *, freeze: bool) -> None:
        self.sandbox = sandbox
        self.at_work, self.go_on, self.waits = threading.Event(), threading.Event(), threading.Event()
        self.fails: Exception | None = None
        folder, frozen = "", CodeSnapshot(workdir=str(sandbox.project), facts={"frozen": False}, diff="")
        if freeze:
            room = arriving_code.prepare(sandbox.root, ID)
            folder, frozen = str(room), freeze_code(sandbox.project, room, exclude=(), runs=sandbox.root)
        self._given = {"id": ID, "draft": value_to_json(sandbox.draft(freeze=freeze)), "folder": folder, "frozen": value_to_json(frozen)}
        real = submit

        def slow(*given: Any, **named: Any) -> Any:
            if not self.at_work.is_set():
                self.at_work.set()
                assert self.go_on.wait(60)
                if self.fails:
                    raise self.fails
            return real(*given, **named)

        def waits() -> None:
            self.waits.set()
            threading.Event().wait(0.01)

        monkeypatch.setattr(agent, "submit", slow)
        monkeypatch.setattr(arriving_code, "_pause", waits)

    def ask(self) -> Any:
        return HostAgent(self.sandbox.context, io.BytesIO()).serve("submit", self._given)

    def both(self) -> tuple[Any, Any]:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self.ask)
            assert self.at_work.wait(60)
            second = pool.submit(self.ask)
            while not (self.waits.wait(0.01) or second.done()):
                pass
            self.go_on.set()
            return _result(first), _result(second)


def _result(future: Any) -> Any:
    return future.exception() or future.result()


@pytest.mark.parametrize("freeze", [True, False])
def test_the_second_asking_waits_and_answers_with_the_run_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, freeze: bool
) -> None:
    sandbox = Sandbox(tmp_path)
    asking = Asking(sandbox, monkeypatch, freeze=freeze)
    first, second = asking.both()
    assert (first.id, first) == (ID, second)
    assert asking.ask() == first
    assert len(list(sandbox.root.glob("20*"))) == 1
    assert len(sandbox.scheduler.jobs) == 1
    assert not list((sandbox.root / ".arriving").iterdir())


def test_where_the_first_fails_the_second_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(tmp_path)
    asking = Asking(sandbox, monkeypatch, freeze=False)
    asking.fails = SubmitRefused("no such queue")
    first, second = asking.both()
    assert first is asking.fails
    assert second.id == ID
    assert len(list(sandbox.root.glob("20*"))) == 1


def test_one_that_never_ends_is_told_and_not_repeated(tmp_path: Path) -> None:
    root = tmp_path / "new" / "runs"  # the first asking makes it
    with (
        arriving_code.submit_lock(root, ID),
        pytest.raises(SubmitUnclear, match=r"process [0-9]+ on") as caught,
        arriving_code.submit_lock(root, ID, patience=0),
    ):
        raise AssertionError("two at a time")
    assert f"onward show {ID}" in caught.value.hint
    with arriving_code.submit_lock(root, ID, patience=0):
        pass
