from __future__ import annotations

import signal
from pathlib import Path

import pytest

from onward.model.policy.lifecycle import crash_signature
from onward.model.run import LegEnd
from onward.model.stop_reason import StopReason
from onward.supervisor.leg.verdict import TrainingOutcome, describe_exit, judge_leg, last_words

KILLED = -signal.SIGKILL
TERMED = -signal.SIGTERM


@pytest.mark.parametrize(
    ("code", "asked", "finished", "end"),
    [
        # it was let alone
        (0, None, True, LegEnd.DONE),
        (0, None, False, LegEnd.DONE),  # a training that knows nothing of us
        (75, None, False, LegEnd.AGAIN),
        (1, None, False, LegEnd.CRASHED),
        (1, None, True, LegEnd.CRASHED),  # said it was complete, and then failed
        (75, None, True, LegEnd.AGAIN),
        (KILLED, None, False, LegEnd.CRASHED),
        (-signal.SIGSEGV, None, False, LegEnd.CRASHED),
        # the deadline came
        (0, StopReason.DEADLINE, True, LegEnd.DONE),
        (0, StopReason.DEADLINE, False, LegEnd.TIME_LIMIT),
        (75, StopReason.DEADLINE, False, LegEnd.TIME_LIMIT),
        (KILLED, StopReason.DEADLINE, False, LegEnd.TIME_LIMIT),
        (TERMED, StopReason.DEADLINE, False, LegEnd.TIME_LIMIT),
        (1, StopReason.DEADLINE, False, LegEnd.CRASHED),
        # the scheduler warned, long before the limit: the job is wanted back
        (0, StopReason.WARNING, True, LegEnd.DONE),
        (75, StopReason.WARNING, False, LegEnd.PREEMPTED),
        (KILLED, StopReason.WARNING, False, LegEnd.PREEMPTED),
        (1, StopReason.WARNING, False, LegEnd.CRASHED),
        # somebody asked
        (0, StopReason.REQUEST, True, LegEnd.DONE),
        (0, StopReason.REQUEST, False, LegEnd.AGAIN),
        (75, StopReason.REQUEST, False, LegEnd.AGAIN),
        (KILLED, StopReason.REQUEST, False, LegEnd.AGAIN),
        (1, StopReason.REQUEST, False, LegEnd.CRASHED),
        # the scheduler ended the job: only it knows why
        (0, StopReason.SIGNAL, True, LegEnd.DONE),
        (0, StopReason.SIGNAL, False, None),
        (75, StopReason.SIGNAL, False, None),
        (1, StopReason.SIGNAL, False, None),
        (KILLED, StopReason.SIGNAL, False, None),
    ],
)
def test_the_end_follows_from_what_was_seen(code: int, asked: StopReason | None, finished: bool, end: LegEnd | None) -> None:
    verdict = judge_leg(TrainingOutcome(code=code, asked=asked, finished=finished))
    assert (verdict and verdict[0]) == end
    assert verdict is None or verdict[1]


def test_a_failure_under_which_another_node_went_away_is_the_nodes() -> None:
    lost = TrainingOutcome(code=1, asked=None, finished=False, lost_nodes=("g2",))
    assert judge_leg(lost) == (LegEnd.NODE_LOST, "g2 were lost during the training (exit code 1)")
    asked = TrainingOutcome(code=75, asked=StopReason.DEADLINE, finished=False, lost_nodes=("g2",))
    assert judge_leg(asked) == (LegEnd.TIME_LIMIT, "stopped before the time limit")


@pytest.mark.parametrize("asked", [None, *StopReason])
@pytest.mark.parametrize("code", [0, 75, 1, KILLED, TERMED])
@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("memory_killed", [True, False])
def test_only_an_exit_of_0_is_ever_done(asked: StopReason | None, code: int, finished: bool, memory_killed: bool) -> None:
    verdict = judge_leg(
        TrainingOutcome(code=code, asked=asked, finished=finished, memory_killed=memory_killed, evidence="MemoryError", mem=1)
    )
    done = verdict is not None and verdict[0] is LegEnd.DONE
    assert done == (code == 0 and (finished or asked is None))


def test_a_stall_is_a_stall_however_it_was_ended() -> None:
    for code in (0, 1, KILLED, -signal.SIGABRT):
        verdict = judge_leg(TrainingOutcome(code=code, asked=None, finished=False, stalled=True, stall_seconds=90))
        assert verdict is not None and verdict[0] is LegEnd.STALLED and "90 s" in verdict[1]


def test_it_says_how_the_training_ended() -> None:
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-signal.SIGSEGV) == "killed by SIGSEGV"
    assert describe_exit(-99) == "killed by signal 99"
    verdict = judge_leg(TrainingOutcome(code=KILLED, asked=StopReason.DEADLINE, finished=False))
    assert verdict is not None and verdict[1].endswith(": it did not stop by itself (killed by SIGKILL)")
    assert verdict[1].startswith("ended "), "it did not stop"


@pytest.mark.parametrize(
    ("asked", "end"),
    [(StopReason.DEADLINE, LegEnd.TIME_LIMIT), (StopReason.REQUEST, LegEnd.AGAIN), (StopReason.WARNING, LegEnd.PREEMPTED)],
)
@pytest.mark.parametrize("code", [137, 143, 1, KILLED])
def test_what_we_ended_has_not_crashed_whatever_its_launcher_made_of_it(asked: StopReason, end: LegEnd, code: int) -> None:
    verdict = judge_leg(
        TrainingOutcome(code=code, asked=asked, finished=False, ended_by_us=True, stayed="rank 3 stayed, ranks 0, 1, 2 had left")
    )
    assert verdict is not None and verdict[0] is end
    assert verdict[1].endswith(": it did not stop by itself (rank 3 stayed, ranks 0, 1, 2 had left)")


def test_memory_that_is_refused_is_told_from_a_kill_for_it() -> None:
    refused = TrainingOutcome(code=1, asked=None, finished=False, mem=300, peak_mem=10, evidence="MemoryError")
    assert judge_leg(refused) == (LegEnd.OUT_OF_MEMORY, "the training was refused more memory (exit code 1)")


@pytest.mark.parametrize("asked", [None, StopReason.DEADLINE])
def test_the_rank_that_failed_is_named_with_its_node_and_its_last_line(asked: StopReason | None) -> None:
    verdict = judge_leg(TrainingOutcome(code=1, asked=asked, finished=False, who="rank 3 of 4 on g2", said="ValueError: no such data set"))
    assert verdict is not None and verdict[0] is LegEnd.CRASHED
    assert verdict[1].startswith("rank 3 of 4 on g2 failed") and verdict[1].endswith("(exit code 1): ValueError: no such data set")


# ── memory ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "seen",
    [
        TrainingOutcome(code=KILLED, asked=None, finished=False, memory_killed=True),
        TrainingOutcome(code=1, asked=None, finished=False, memory_killed=True),  # a worker was killed, and the training failed of it
        TrainingOutcome(code=KILLED, asked=None, finished=False, peak_mem=950, mem=1000),
        TrainingOutcome(code=1, asked=None, finished=False, mem=1000, evidence="Traceback\nMemoryError"),
        TrainingOutcome(code=1, asked=None, finished=False, mem=1000, evidence="MemoryError: std::bad_alloc"),
        TrainingOutcome(code=1, asked=None, finished=False, mem=1000, evidence="numpy._core._exceptions._ArrayMemoryError: Unable"),
        TrainingOutcome(code=1, asked=None, finished=False, mem=1000, evidence="numpy.core._exceptions._ArrayMemoryError: Unable\nbye"),
        TrainingOutcome(
            code=-6, asked=None, finished=False, mem=1000, evidence="terminate called\n  what():  std::bad_alloc\nFatal: Aborted"
        ),
        *(
            TrainingOutcome(code=1, asked=None, finished=False, mem=1000, evidence=f"{words}\nbye")
            for words in (
                "ImportError: libtorch_cpu.so: failed to map segment from shared object",
                "OSError: [Errno 12] Cannot allocate memory",
                "bash: fork: Cannot allocate memory",
                "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 40 bytes.",
                "RuntimeError: can't start new thread",
            )
        ),
        TrainingOutcome(code=KILLED, asked=StopReason.SIGNAL, finished=False, memory_killed=True),
        TrainingOutcome(code=KILLED, asked=StopReason.DEADLINE, finished=False, memory_killed=True),
    ],
)
def test_running_out_of_memory_is_recognised(seen: TrainingOutcome) -> None:
    verdict = judge_leg(seen)
    assert verdict is not None and verdict[0] is LegEnd.OUT_OF_MEMORY


@pytest.mark.parametrize(
    "seen",
    [
        TrainingOutcome(code=0, asked=None, finished=True, memory_killed=True),  # it got over the loss of a worker
        TrainingOutcome(code=75, asked=None, finished=False, memory_killed=True),
        TrainingOutcome(code=KILLED, asked=None, finished=False, peak_mem=500, mem=1000),
        TrainingOutcome(code=KILLED, asked=None, finished=False, peak_mem=500),
        TrainingOutcome(code=KILLED, asked=StopReason.REQUEST, finished=False, peak_mem=1000, mem=1000),
        TrainingOutcome(code=1, asked=None, finished=False, mem=1000, evidence="torch.OutOfMemoryError: CUDA out of memory."),
        TrainingOutcome(code=1, asked=None, finished=False, mem=None, evidence="MemoryError"),  # there was no limit to run into
        TrainingOutcome(code=1, asked=None, finished=False, mem=None, evidence="RuntimeError: can't start new thread"),
    ],
)
def test_what_is_not_for_want_of_memory_is_not_called_so(seen: TrainingOutcome) -> None:
    verdict = judge_leg(seen)
    assert verdict is not None and verdict[0] is not LegEnd.OUT_OF_MEMORY


def test_it_says_how_much_memory_was_used() -> None:
    verdict = judge_leg(TrainingOutcome(code=KILLED, asked=None, finished=False, memory_killed=True, peak_mem=2048))
    assert verdict is not None and "after using 2G" in verdict[1]


# ── last words ────────────────────────────────────────────────────────────────


@pytest.fixture
def err(tmp_path: Path) -> Path:
    return tmp_path / "leg-0001.err"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "leg-0001.out"


def traceback(frames: int, exception: str) -> str:
    stack = "".join(f'  File "deep.py", line {i}, in f{i}\n    f{i + 1}()\n    ^^^^\n' for i in range(frames))
    return f"Traceback (most recent call last):\n{stack}{exception}\n"


def test_the_last_words_are_the_traceback(err: Path, out: Path) -> None:
    err.write_text("warning: slow\n" + traceback(1, "ValueError: no") + "")
    assert last_words(err, out) == traceback(1, "ValueError: no").strip()


def test_of_several_tracebacks_the_last_counts(err: Path, out: Path) -> None:
    err.write_text(
        traceback(1, "KeyError: 'a'")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback(2, "OSError: b")
    )
    words = last_words(err, out)
    assert words.count("Traceback") == 1 and words.endswith("OSError: b")


def test_however_deep_the_stack_the_exception_is_kept(err: Path, out: Path) -> None:
    err.write_text(traceback(50, "RuntimeError: the very thing") + "".join(f"cleaning up {i}\n" for i in range(100)))
    words = last_words(err, out).splitlines()
    assert words[0].startswith("Traceback") and "RuntimeError: the very thing" in words
    assert "    f50()" in words and len(words) <= 41


def test_deep_stacks_of_the_same_crash_have_the_same_signature(err: Path, out: Path) -> None:
    found = []
    for frames in (30, 50):
        err.write_text(traceback(frames, "RuntimeError: the very thing"))
        found.append(crash_signature(last_words(err, out)))
    assert found[0] == found[1] and "the very thing" in found[0]


def test_without_a_traceback_the_last_lines_of_stderr_then_of_stdout_are_told(err: Path, out: Path) -> None:
    assert last_words(err, out) == ""
    out.write_text("".join(f"epoch {i}\n" for i in range(100)))
    assert last_words(err, out).splitlines() == [f"epoch {i}" for i in range(80, 100)]
    err.write_text("Segmentation fault\n")
    assert last_words(err, out) == "Segmentation fault"
    err.write_text(" \n\n")
    assert "epoch 99" in last_words(err, out)


def test_colours_progress_bars_and_odd_bytes_are_cleaned_away(err: Path, out: Path) -> None:
    err.write_bytes(b"\x1b[31mred\x1b[0m\r\n 10%\r 99%\r100%\n\x07bell \xff\xfe \x1b]0;title\x07\n")
    words = last_words(err, out)
    assert words.splitlines()[0] == "red" and "100%" in words
    assert not any(ord(character) < 32 and character != "\n" for character in words)


def test_only_the_end_of_a_huge_log_is_read(err: Path, out: Path) -> None:
    with err.open("wb") as file:
        file.write(traceback(1, "OldError: long ago").encode())
        file.seek(1 << 26, 1)
        file.write(b"\nthe end\n")
    assert last_words(err, out) == "the end"


@pytest.mark.parametrize(
    ("code", "asked", "end", "final"),
    [
        (99, None, LegEnd.AGAIN, False),
        (99, StopReason.DEADLINE, LegEnd.TIME_LIMIT, False),
        (100, None, LegEnd.CRASHED, True),
        (100, StopReason.DEADLINE, LegEnd.CRASHED, False),
        (0, StopReason.DELETED, LegEnd.CANCELLED, False),
        (75, StopReason.DELETED, LegEnd.CANCELLED, False),
        (KILLED, StopReason.DELETED, LegEnd.CANCELLED, False),
        (1, StopReason.DELETED, LegEnd.CANCELLED, False),
        (0, StopReason.GIVEN_UP, LegEnd.NODE_LOST, False),
        (KILLED, StopReason.GIVEN_UP, LegEnd.NODE_LOST, False),
    ],
)
def test_grid_engines_own_exit_codes_and_deletions(code: int, asked: StopReason | None, end: LegEnd, final: bool) -> None:
    seen = TrainingOutcome(code=code, asked=asked, finished=False, again_code=99, final_code=100)
    judged = judge_leg(seen)
    assert judged is not None and judged[0] is end
    assert seen.final is final


def test_elsewhere_99_and_100_are_codes_like_any_other() -> None:
    for code in (99, 100):
        judged = judge_leg(TrainingOutcome(code=code, asked=None, finished=False))
        assert judged is not None and judged[0] is LegEnd.CRASHED


def test_a_training_that_finished_in_the_moment_it_was_deleted_is_done() -> None:
    judged = judge_leg(TrainingOutcome(code=0, asked=StopReason.DELETED, finished=True))
    assert judged is not None and judged[0] is LegEnd.DONE


def test_a_system_call_without_memory_is_out_of_memory_where_there_is_a_limit() -> None:
    seen = TrainingOutcome(code=1, asked=None, finished=False, mem=500, evidence="OSError: [Errno 12] Cannot allocate memory")
    judged = judge_leg(seen)
    assert judged is not None and judged[0] is LegEnd.OUT_OF_MEMORY


def test_a_long_line_of_the_evidence_is_cut(tmp_path: Path) -> None:
    (tmp_path / "err").write_text(f"{'x' * 20000}\nlast\n")
    first, last = last_words(tmp_path / "err", tmp_path / "out").split("\n")
    assert (len(first), first[-1], last) == (501, "…", "last")
