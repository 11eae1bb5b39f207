from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import onward
from onward.rundir.progress import Progress, SpoolReader
from onward.sdk import contract
from onward.sdk import process_run as sdk
from onward.sdk.run import TrainingRun


@pytest.fixture(autouse=True)
def no_run_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("ONWARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sdk, "_run", None)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TrainingRun:
    """As a training is that a supervisor started, in a process that keeps its own signals."""
    for name, value in surroundings(tmp_path).items():
        monkeypatch.setenv(name, value)
    return TrainingRun.of_environment(name=None)


def surroundings(folder: Path) -> dict[str, str]:
    (folder / "ckpt").mkdir(exist_ok=True)
    return {
        contract.RUN_DIR: str(folder / "run"),
        contract.LEG: "3",
        contract.CHECKPOINT_DIR: str(folder / "ckpt"),
        contract.SPOOL_DIR: str(folder / "spool"),
        contract.STOP_FILE: str(folder / "stop"),
    }


def spooled(folder: Path) -> Progress:
    return SpoolReader(folder / "spool").read()


def saved(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / "ckpt"))


def python(script: str, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ONWARD_")}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], env={**clean, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(script: str, *arguments: str, env: dict[str, str] | None = None) -> str:
    process = python(script, *arguments, env=env)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def training(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Trainings put in here do not outlive the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


# ── the public face ───────────────────────────────────────────────────────────


def test_the_public_names_are_these() -> None:
    assert sorted(onward.__all__) == ["Client", "Run", "Sender", "alert", "checkpoint", "finish", "init", "log", "resume", "should_stop"]
    for name in onward.__all__:
        assert callable(getattr(onward, name))
    with pytest.raises(AttributeError, match="latest"):
        onward.latest  # noqa: B018
    public = {name for name in dir(TrainingRun) if not name.startswith("_")}
    assert public == {
        *("announce", "checkpoint", "finish", "listen_for_term", "log", "of_environment", "reopen"),
        *("alert", "config", "configure", "describe", "summary"),
        *("dir", "entity", "get_url", "group", "id", "job_type", "name", "notes", "project", "resumed", "step", "tags", "url"),
        *("artifacts", "define_metric", "log_artifact", "log_code", "log_model", "mark_preempting", "save", "unwatch"),
        *("use_artifact", "watch"),
        *("local_rank", "rank", "resume", "resume_step", "should_checkpoint", "should_stop", "world_size"),
    }


def test_importing_onward_loads_next_to_nothing() -> None:
    script = "import sys; before = set(sys.modules); import onward; print(*sorted(set(sys.modules) - before))"
    assert set(finished(script).split()) <= {"__future__", "onward"}


def test_using_it_loads_no_third_party_module_and_nothing_heavy(tmp_path: Path) -> None:
    script = "import sys; before = set(sys.modules); import onward; onward.log({'loss': 1.0}); print(*sorted(set(sys.modules) - before))"
    loaded = set(finished(script, env=surroundings(tmp_path)).split())
    roots = {name.partition(".")[0] for name in loaded} - {"onward"}
    assert roots <= sys.stdlib_module_names
    assert loaded & {"asyncio", "subprocess", "typing", "dataclasses", "inspect", "logging", "socket", "ssl", "multiprocessing"} == set()
    assert {name for name in loaded if name.startswith("onward.")} == {
        *(
            "onward.sdk",
            "onward.sdk.wandb",
            "onward.sdk.wandb.init_arguments",
            "onward.sdk.contract",
            "onward.sdk.wandb.run_methods",
            "onward.sdk.atomic_files",
            "onward.sdk.ranks",
        ),
        *("onward.sdk.process_run", "onward.sdk.run", "onward.sdk.stderr", "onward.sdk.saving", "onward.sdk.spool", "onward.sdk.stop"),
    }


def test_init_called_twice_is_the_same_run(tmp_path: Path) -> None:
    script = "import onward; a = onward.init(total_steps=9); assert onward.init() is a; onward.log({'x': 1})"
    finished(script, env=surroundings(tmp_path))
    progress = spooled(tmp_path)
    assert (progress.total, progress.records) == (9, 2)


def test_params_of_any_kind_can_be_announced(supervised: TrainingRun, tmp_path: Path) -> None:
    supervised.announce(total_steps=None, params={"lr": 0.1, "folder": tmp_path, "layers": [1, 2], 7: None})  # type: ignore[dict-item]
    [path] = (tmp_path / "spool").iterdir()
    assert json.loads(path.read_text())["params"] == {"lr": 0.1, "folder": str(tmp_path), "layers": "[1, 2]", "7": "None"}


# ── logging ───────────────────────────────────────────────────────────────────


def test_steps_count_by_themselves_unless_they_are_given(supervised: TrainingRun, tmp_path: Path) -> None:
    for step in (None, None, 10, None):
        supervised.log({"loss": 1.0}, step)
    [path] = (tmp_path / "spool").iterdir()
    assert [json.loads(line)["s"] for line in path.read_text().splitlines()] == [0, 1, 10, 11]


def test_numbers_of_any_kind_are_logged(supervised: TrainingRun, tmp_path: Path) -> None:
    supervised.log({"np": numpy.float32(0.5), "int": 3, "bool": True, "text": "0.25", "nan": math.nan, 5: 1.0}, step=numpy.int64(4))  # type: ignore[dict-item,arg-type]
    progress = spooled(tmp_path)
    assert progress.last_step == 4
    assert math.isnan(progress.last.pop("nan"))
    assert progress.last == {"np": 0.5, "int": 3.0, "bool": 1.0, "text": 0.25, "5": 1.0}


class Unconvertible:
    def __float__(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")


@pytest.mark.parametrize("value", ["tall", None, [1.0], object(), 10**400, numpy.zeros(3), Unconvertible()], ids=type)
def test_what_is_no_number_is_skipped_with_one_warning(
    supervised: TrainingRun, tmp_path: Path, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in range(3):
        supervised.log({"odd": value, "loss": 0.5}, step)
    progress = spooled(tmp_path)
    assert (progress.last, progress.last_step, progress.records) == ({"loss": 0.5}, 2, 3)
    assert capsys.readouterr().err.count("is not a number") == 1


def test_keys_of_any_kind_do_not_end_the_training(supervised: TrainingRun, tmp_path: Path) -> None:
    supervised.log({("a", 1): 0.5, None: 1.0})  # type: ignore[dict-item]
    assert spooled(tmp_path).last == {"('a', 1)": 0.5, "None": 1.0}


LOGS_FOR_EVER = """
import os, onward
run = onward.init()
step = 0
while True:
    run.log({"loss": 1.0 / (step + 1), "accuracy": 0.5}, step=step)
    os.write(1, b"%d\\n" % step)
    step += 1
"""


def test_a_training_killed_in_a_tight_loop_loses_no_step_it_logged(tmp_path: Path, training: list[subprocess.Popen[str]]) -> None:
    for enough in (1, 50, 400, 1500):
        folder = tmp_path / str(enough)
        folder.mkdir()
        process = python(LOGS_FOR_EVER, env=surroundings(folder))
        training.append(process)
        assert process.stdout
        for _ in range(enough):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        text = [int(line) for line in process.stdout.read().split("\n")[:-1]]
        acknowledged = max(text, default=enough - 1)
        [path] = (folder / "spool").iterdir()
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
        steps = [record["s"] for record in lines if "m" in record]
        assert steps == list(range(len(steps)))
        assert len(steps) > acknowledged


# ── saving ────────────────────────────────────────────────────────────────────


def test_a_checkpoint_appears_whole_when_its_block_ends(supervised: TrainingRun, tmp_path: Path) -> None:
    supervised.log({"loss": 0.5, "nan": math.nan})
    with supervised.checkpoint(7) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "w").write_bytes(b"weights")
        assert all(name.startswith(".") for name in saved(tmp_path))
    assert saved(tmp_path) == ["step-00000007"]
    note = json.loads((tmp_path / "ckpt" / "step-00000007" / contract.COMMIT_FILE).read_text())
    assert note["step"] == 7 and note["metrics"] == {"loss": 0.5} and note["seconds"] >= 0
    assert (tmp_path / "ckpt" / "step-00000007" / "deep" / "w").read_bytes() == b"weights"


def test_a_step_may_be_a_number_of_numpy(supervised: TrainingRun, tmp_path: Path) -> None:
    with supervised.checkpoint(numpy.int64(5)) as folder:  # type: ignore[arg-type]
        (folder / "w").write_bytes(b"x")
    assert saved(tmp_path) == ["step-00000005"]


@pytest.mark.parametrize("error", [ValueError("no"), OSError(errno.EACCES, "denied"), KeyboardInterrupt(), SystemExit(75)])
def test_a_block_that_raises_leaves_nothing_and_says_so(supervised: TrainingRun, tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), supervised.checkpoint(7) as folder:
        (folder / "w").write_bytes(b"half")
        raise error
    assert saved(tmp_path) == []


def test_saving_a_step_again_puts_the_new_in_the_place_of_the_old(supervised: TrainingRun, tmp_path: Path) -> None:
    for content in (b"old", b"new"):
        with supervised.checkpoint(7) as folder:
            (folder / content.decode()).write_bytes(content)
    assert saved(tmp_path) == ["step-00000007"]
    assert sorted(os.listdir(tmp_path / "ckpt" / "step-00000007")) == [contract.COMMIT_FILE, "new"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_costs_the_checkpoint_and_not_the_training(
    supervised: TrainingRun, tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with supervised.checkpoint(6) as folder:
        (folder / "w").write_bytes(b"good")
    with supervised.checkpoint(7) as folder:
        (folder / "w").write_bytes(b"half")
        raise OSError(number, os.strerror(number))
    assert saved(tmp_path) == ["step-00000006"]
    err = capsys.readouterr().err
    assert "checkpoint 7 skipped" in err and str(tmp_path / "ckpt") in err
    assert spooled(tmp_path).skipped == [f"{tmp_path / 'ckpt'}: [Errno {number}] {os.strerror(number)}"]


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    monkeypatch.setattr(os, "mkdir", refuse)


def test_a_disk_too_full_for_a_folder_costs_no_more(supervised: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervised.log({"loss": 1.0})
    with monkeypatch.context() as full:
        full_disk(full)
        with supervised.checkpoint(7) as folder:
            (folder / "w").write_bytes(b"no folder to write to")
    assert saved(tmp_path) == []
    assert len(spooled(tmp_path).skipped) == 1


def test_a_full_disk_is_known_even_where_the_library_does_not_name_it(
    supervised: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's writer raises a RuntimeError that says only that a write failed."""
    with monkeypatch.context() as full, supervised.checkpoint(7):
        full_disk(full)
        raise RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed")
    assert saved(tmp_path) == []
    with pytest.raises(RuntimeError), supervised.checkpoint(8):
        raise RuntimeError("with room on the disk this is the training's own failure")
    assert saved(tmp_path) == []


def test_it_is_time_to_save_when_the_interval_has_passed(supervised: TrainingRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not supervised.should_checkpoint()
    monkeypatch.setenv(contract.CHECKPOINT_EVERY, "0")
    assert TrainingRun.of_environment(name=None).should_checkpoint()
    monkeypatch.setattr("time.monotonic", lambda: 1e9)
    assert supervised.should_checkpoint()
    with supervised.checkpoint(1):
        pass
    assert not supervised.should_checkpoint()


# ── resuming ──────────────────────────────────────────────────────────────────


def test_under_supervision_the_supervisor_says_what_to_resume_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {**surroundings(tmp_path), contract.RESUME_DIR: "/node/resume", contract.RESUME_STEP: "42"}.items():
        monkeypatch.setenv(name, value)
    run = TrainingRun.of_environment(name=None)
    assert (run.leg, run.resume(), run.resume_step, run.by_hand) == (3, Path("/node/resume"), 42, False)


def test_without_a_checkpoint_there_is_nothing_to_resume(supervised: TrainingRun) -> None:
    assert supervised.resume() is None and supervised.resume_step is None


BY_HAND = """
import json, onward, sys
run = onward.init()
state = run.resume()
begin = int((state / "n").read_text()) if state else 0
for step in range(begin + 1, begin + 6):
    run.log({"n": step}, step=step)
    with run.checkpoint(step) as folder:
        (folder / "n").write_text(str(step))
print(json.dumps([begin, str(run.folder), run.leg, run.resume_step]))
"""


def test_started_by_hand_a_training_goes_on_from_its_folder_in_a_new_process(tmp_path: Path) -> None:
    begin, folder, leg, step = json.loads(finished(BY_HAND, env={contract.ROOT: str(tmp_path / "root")}))
    assert (begin, leg, step) == (0, 1, None)
    assert Path(folder).parent == tmp_path / "root" / "by-hand"
    again = json.loads(finished(BY_HAND, env={contract.RUN_DIR: folder}))
    assert again == [5, folder, 2, 5]
    assert json.loads(finished(BY_HAND, env={contract.RUN_DIR: folder}))[:3] == [10, folder, 3]
    kept = sorted(os.listdir(Path(folder) / "checkpoints"))
    assert kept == ["step-00000013", "step-00000014", "step-00000015"]


def test_started_by_hand_it_says_where_its_folder_is(tmp_path: Path) -> None:
    process = python("import onward; onward.init(name='mine')", env={contract.ROOT: str(tmp_path)})
    _, err = process.communicate(timeout=60)
    [folder] = (tmp_path / "by-hand").iterdir()
    assert folder.name.split("_")[2] == "mine"
    assert f"ONWARD_RUN_DIR={folder}" in err


def test_the_module_speaks_for_the_run_of_the_process(tmp_path: Path) -> None:
    script = """
import onward
assert onward.resume() is None and not onward.should_stop()
onward.log({"loss": 1.0}, step=4)
with onward.checkpoint(4) as folder:
    (folder / "w").write_text("x")
onward.finish()
"""
    finished(script, env=surroundings(tmp_path))
    assert saved(tmp_path) == ["step-00000004"]
    assert (spooled(tmp_path).finished, spooled(tmp_path).last_step) == (True, 4)


# ── stopping ──────────────────────────────────────────────────────────────────


def test_the_stop_file_asks_to_stop(supervised: TrainingRun, tmp_path: Path) -> None:
    assert not supervised.should_stop()
    (tmp_path / "stop").touch()
    assert supervised.should_stop()
    (tmp_path / "stop").unlink()
    assert supervised.should_stop(), "once asked, always asked"


def test_finish_claims_completion(supervised: TrainingRun, tmp_path: Path) -> None:
    supervised.finish()
    assert spooled(tmp_path).finished


def test_finish_after_should_stop_is_no_claim(supervised: TrainingRun, tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    assert supervised.should_stop()
    supervised.finish()
    assert not spooled(tmp_path).finished


WAITS_FOR_TERM = """
import os, signal, sys, time, onward
run = onward.init()
reading, writing = os.pipe()
worker = os.fork()
if worker == 0:
    os.write(writing, b"!")  # Python drops signals that reach a child before it has come this far
    while True:
        time.sleep(0.05)
os.read(reading, 1)
print(worker, flush=True)
while not run.should_stop():
    time.sleep(0.01)
print("asked", flush=True)
os.kill(worker, signal.SIGTERM)
print("worker", os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]), flush=True)
time.sleep(60)
"""


def test_the_first_term_asks_the_second_kills_and_a_worker_dies_of_its_first(tmp_path: Path, training: list[subprocess.Popen[str]]) -> None:
    process = python(WAITS_FOR_TERM, env=surroundings(tmp_path))
    training.append(process)
    assert process.stdout and int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "asked\n"
    assert process.stdout.readline() == f"worker {-signal.SIGTERM}\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == -signal.SIGTERM


@pytest.mark.parametrize("own", ["signal.SIG_IGN", "lambda *_: sys.exit(3)"])
def test_a_training_that_minds_term_itself_keeps_its_handler(tmp_path: Path, own: str) -> None:
    script = f"import signal, sys; signal.signal(signal.SIGTERM, {own}); before = signal.getsignal(signal.SIGTERM); import onward; "
    script += "onward.init(); assert signal.getsignal(signal.SIGTERM) is before or signal.getsignal(signal.SIGTERM) == before"
    finished(script, env=surroundings(tmp_path))


def test_started_by_hand_term_kills_as_ever(tmp_path: Path) -> None:
    script = "import onward, signal; onward.init(); assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL"
    finished(script, env={contract.ROOT: str(tmp_path)})


def test_it_works_from_a_thread_that_may_not_set_handlers(tmp_path: Path) -> None:
    script = "import threading, onward; t = threading.Thread(target=onward.init); t.start(); t.join(); onward.log({'x': 1}, step=8)"
    finished(script, env=surroundings(tmp_path))
    assert spooled(tmp_path).last_step == 8
