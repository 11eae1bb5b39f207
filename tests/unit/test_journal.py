from __future__ import annotations

import errno
import json
import logging
import os
import threading
import time
from pathlib import Path

import pytest

from onward.model import events as ev
from onward.model.policy.lifecycle import Close, Continue, NothingToDo, decide
from onward.model.run import LegEnd, RunState
from onward.model.spec import spec_to_json
from onward.rundir.claim import claim
from onward.rundir.journal import Journal, broken_lines, desk_journal, read_events, read_run
from onward.rundir.layout import RunDir
from onward.rundir.run_end import ask_to_stop, close_run, end_of, is_over, is_to_stop, reopen_run
from tests.histories import History, make_spec


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    made.make()
    made.spec.write_text(json.dumps(spec_to_json(make_spec())))
    return made


def warned(number: int, *, leg: int = 1) -> ev.Warned:
    return ev.Warned(leg=leg, at=float(number), text=f"word {number}\nof two lines – ✓")


def texts(run: RunDir) -> list[str]:
    return [event.text for event in read_events(run) if isinstance(event, ev.Warned)]


def test_a_run_is_read_back_from_all_of_its_journals(run: RunDir) -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[10]).leg(LegEnd.DONE, steps=[20])
    first, second, acts = Journal(run.leg_journal(1)), Journal(run.leg_journal(2)), desk_journal(run)
    for event in history.events:
        (acts if isinstance(event, ev.Submitting | ev.Submitted) else first if event.leg == 1 else second).write(event)
    assert read_run(run) == history.run


def test_an_event_is_there_when_write_returns(run: RunDir) -> None:
    journal = Journal(run.leg_journal(1))
    for number in range(3):
        journal.write(warned(number))
        assert len(texts(run)) == number + 1
    journal.close()


def test_a_torn_last_line_is_ignored(run: RunDir) -> None:
    journal = Journal(run.leg_journal(1))
    journal.write(warned(1))
    whole = run.leg_journal(1).read_bytes()
    line = warned(2).line().encode()
    for cut in range(len(line) + 1):
        run.leg_journal(1).write_bytes(whole + line[:cut])
        assert texts(run) == [warned(1).text], cut
    run.leg_journal(1).write_bytes(whole + line + b"\n")
    assert texts(run) == [warned(1).text, warned(2).text]


@pytest.mark.parametrize(
    "broken", [b"\0\0\0\0", b"{", b"[1, 2]", b"7", b'"kind"', b'{"kind":"warned"}', b'{"kind":"warned","leg":1}', b"\xff\xfe"]
)
def test_a_broken_line_in_the_middle_is_passed_over_and_named_to_whoever_asks(
    run: RunDir, broken: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [warned(1).line().encode(), broken, warned(2).line().encode(), b""]
    run.leg_journal(1).write_bytes(b"\n".join(lines))
    with caplog.at_level(logging.WARNING):
        assert texts(run) == [warned(1).text, warned(2).text]
        (named,) = broken_lines(run)
    assert named.startswith("leg-0001.jsonl, line 2: ") and not caplog.text


def test_kinds_and_fields_of_a_newer_version_are_ignored(run: RunDir) -> None:
    newer = json.dumps({"kind": "teleported", "leg": 1, "at": 1.0, "to": "mars"})
    wider = json.dumps({**json.loads(warned(1).line()), "tone": "grave"})
    run.leg_journal(1).write_text(f"{newer}\n{wider}\n")
    assert texts(run) == [warned(1).text]
    assert read_run(run).state is RunState.SUBMITTED


def test_two_desks_at_once_write_two_files_and_lose_nothing(run: RunDir) -> None:
    def act(number: int) -> None:
        journal = desk_journal(run)
        for i in range(20):
            journal.write(warned(number * 100 + i))

    threads = [threading.Thread(target=act, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(run.journals.iterdir())) == 8
    assert len(set(texts(run))) == len(texts(run)) == 160


def test_threads_of_one_supervisor_do_not_mix_their_lines(run: RunDir) -> None:
    journal = Journal(run.leg_journal(1))

    def act(number: int) -> None:
        for i in range(20):
            journal.write(ev.Warned(leg=1, at=1.0, text=f"{number}.{i} " + "x" * 5000))

    threads = [threading.Thread(target=act, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(text.split()[0] for text in texts(run)) == sorted(f"{n}.{i}" for n in range(4) for i in range(20))


def test_a_big_journal_is_read_whole(run: RunDir) -> None:
    lines = [ev.Published(leg=1, at=float(i), step=i, bytes=i, save_seconds=0.1, stage_seconds=0.2).line() for i in range(20_000)]
    run.leg_journal(1).write_text("\n".join(lines) + "\n")
    assert read_run(run).legs[1].last_published == 19_999


def nearly_full(patch: pytest.MonkeyPatch) -> None:
    """Room for half of what is written next, and then for nothing."""
    real = os.write

    def half(handle: int, data: bytes) -> int:
        patch.setattr(os, "write", nothing)
        return real(handle, bytes(data)[: len(data) // 2])

    def nothing(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr(os, "write", half)


def test_an_event_that_met_a_full_disk_spoils_no_later_one(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(run.leg_journal(1))
    journal.write(warned(1))
    with monkeypatch.context() as full:
        nearly_full(full)
        for number in (2, 3):
            with pytest.raises(OSError, match="No space left"):
                journal.write(warned(number))
    journal.write(warned(4))
    journal.write(warned(5))
    assert texts(run) == [warned(1).text, warned(4).text, warned(5).text]


def test_a_patient_journal_keeps_what_it_cannot_write_and_writes_it_with_the_next(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(run.leg_journal(1), patient=True)
    journal.write(warned(1))
    with monkeypatch.context() as full:
        nearly_full(full)
        journal.write(warned(2))
        journal.write(warned(3))
        assert texts(run) == [warned(1).text]
    journal.write(warned(4))
    assert texts(run) == [warned(number).text for number in (1, 2, 3, 4)]


def test_a_patient_journal_tries_once_more_when_it_is_closed(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for leg, room in ((1, True), (2, False)):
        journal = Journal(run.leg_journal(leg), patient=True)
        with monkeypatch.context() as full:
            nearly_full(full)
            journal.write(warned(leg, leg=leg))
            if not room:
                journal.close()
        journal.close()
    assert texts(run) == [warned(1).text]
    assert "leg-0002.jsonl is missing its last 1 events" in caplog.text


def test_a_journal_is_not_begun_on_storage_that_is_not_mounted_now(run: RunDir, tmp_path: Path) -> None:
    """All that a leg says would go to a file that nobody sees again."""
    journal, away = Journal(run.leg_journal(2), patient=True), tmp_path / "away"
    run.path.rename(away)
    journal.write(warned(1, leg=2))
    assert not run.path.exists()
    away.rename(run.path)
    journal.write(warned(2, leg=2))
    journal.close()
    assert len(run.leg_journal(2).read_text().splitlines()) == 2


def test_a_leg_whose_job_died_between_claim_and_event_took_place_all_the_same(run: RunDir) -> None:
    """Nobody can ever claim it again: a run that waited for it would wait for ever."""
    desk_journal(run).write(ev.Submitting(leg=1, at=1.0, name="digits.1.a"))
    desk_journal(run).write(ev.Submitted(leg=1, at=2.0, name="digits.1.a", job="7"))
    claim(run, 1, job="7")
    found = read_run(run)
    assert found.state is RunState.RUNNING and found.legs[1].job == "7"
    assert decide(found) == NothingToDo()
    desk_journal(run).write(ev.EndFound(leg=1, at=time.time(), end=LegEnd.LOST, reason="it wrote no end record"))
    assert decide(read_run(run)) == Continue(leg=2, mem=None)


def test_the_event_of_a_claim_says_more_than_the_claim(run: RunDir) -> None:
    claim(run, 1, job="7")
    Journal(run.leg_journal(1)).write(ev.Claimed(leg=1, at=5.0, job="7", hosts=["a", "b"], deadline=9.0))
    claimed = read_run(run).legs[1].claimed
    assert claimed is not None and (claimed.hosts, claimed.deadline) == (["a", "b"], 9.0)


def test_a_claim_that_cannot_be_read_is_still_one(run: RunDir) -> None:
    run.claim(1).write_text("")
    assert read_run(run).state is RunState.RUNNING


def test_foreign_files_among_the_journals_are_left_alone(run: RunDir) -> None:
    (run.journals / "notes.txt").write_text("not ours\n")
    (run.journals / ".leg-0001.jsonl.swp").write_text("x")
    assert list(read_events(run)) == []


def test_a_run_without_journals_was_submitted(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.params.mkdir()
    run.spec.write_text(json.dumps(spec_to_json(make_spec())))
    assert read_run(run).state is RunState.SUBMITTED


def test_a_closed_run_says_so_in_its_journal_and_by_its_mark(run: RunDir) -> None:
    action = Close(state=RunState.FAILED, cause="it crashed", evidence="Traceback", next="mend it")
    close_run(run, desk_journal(run), action, leg=3, at=5.0)
    closed = read_run(run).closed
    assert closed == ev.Closed(leg=3, at=5.0, state="failed", cause="it crashed", evidence="Traceback", next="mend it")
    assert json.loads(run.done.read_text()) == {"state": "failed", "cause": "it crashed", "leg": 3, "at": 5.0}


def test_a_reopened_run_has_neither_mark_nor_request(run: RunDir) -> None:
    run.done.write_text("{}")
    run.stop_request.write_text("{}")
    reopen_run(run, leg=2, at=5.0)
    reopen_run(run, leg=2, at=5.0)
    assert not run.done.exists() and not run.stop_request.exists()


def test_the_mark_of_a_leg_before_the_last_resume_does_not_close_the_run(run: RunDir) -> None:
    """Whoever closed leg 3 was slow: it wrote its mark after the run was resumed with leg 4."""
    reopen_run(run, leg=4, at=100.0)
    late = Close(state=RunState.FAILED, cause="it was over")
    close_run(run, desk_journal(run), late, leg=3, at=99.0)
    assert run.done.exists() and not is_over(run) and end_of(run) is None
    close_run(run, desk_journal(run), late, leg=4, at=200.0)
    assert is_over(run) and (end_of(run) or {})["leg"] == 4


def test_a_request_to_stop_from_before_the_last_resume_stops_no_later_leg(run: RunDir) -> None:
    reopen_run(run, leg=4, at=100.0)
    ask_to_stop(run, leg=3, at=101.0, by="ada")
    assert run.stop_request.exists() and not is_to_stop(run)
    ask_to_stop(run, leg=4, at=102.0, by="ada")
    assert is_to_stop(run)


def test_marks_of_an_older_version_are_judged_by_their_time(run: RunDir) -> None:
    reopen_run(run, leg=4, at=100.0)
    run.stop_request.write_text('{"at": 99.0, "by": "ada"}')
    assert not is_to_stop(run)
    run.stop_request.write_text('{"at": 101.0, "by": "ada"}')
    assert is_to_stop(run)
