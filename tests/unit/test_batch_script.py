"""A batch script as a leg's training: its command, its surroundings, when it is stopped and what its end is taken for."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from onward.model.policy.lifecycle import Close, Continue
from onward.model.run import LegEnd
from onward.model.spec import RunSpec, Script
from onward.model.stop_reason import StopReason
from onward.rundir.layout import LegLocal, RunDir
from onward.supervisor.leg.verdict import TrainingOutcome, judge_leg
from onward.supervisor.preparation.batch_script import adjusted_exit, script_command, script_environment, script_plan, send_stop_signal
from onward.supervisor.stop.plan import StopPlan
from tests.histories import History, make_spec

USUAL = StopPlan(ask=600.0, kill=300.0)


def script(**others: Any) -> Script:
    usual: dict[str, Any] = {"name": "train.sh", "folder": "/home/ada", "shell": ("/bin/bash", "-l"), "job_name": "digits"}
    return Script(**{**usual, **others})


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    run.make()
    return run


@pytest.fixture
def local(tmp_path: Path) -> LegLocal:
    local = LegLocal(tmp_path / "local")
    local.make()
    return local


def spec_of(*, stop_signal: str | None = None, stop_lead: int | None = None, **others: Any) -> RunSpec:
    return make_spec(script=script(**others), stop_signal=stop_signal, stop_lead=stop_lead)


# ── around it ─────────────────────────────────────────────────────────────────


def test_the_command_is_its_shell_with_the_text_that_was_kept(run: RunDir) -> None:
    found = script_command(script(arguments=("--seed", "{params.x}")), run)
    assert found == ("/bin/bash", "-l", str(run.params / "batch-script"), "--seed", "{params.x}")


def test_the_schedulers_variables_are_as_if_this_were_the_only_job(run: RunDir, tmp_path: Path) -> None:
    env = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "digits.1.token", "SLURM_SUBMIT_DIR": "/runs", "SLURM_NNODES": "2"}
    variables = script_environment(script(submitted_from="/home/ada"), env, run=run, folder=tmp_path, job="7")
    wanted = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "digits", "SLURM_SUBMIT_DIR": "/home/ada", "SLURM_NNODES": "2", "PWD": str(tmp_path)}
    assert {key: variables[key] for key in wanted} == wanted
    assert "SLURM_ARRAY_TASK_ID" not in variables


def test_a_task_of_an_array_knows_which_and_of_how_many(run: RunDir, tmp_path: Path) -> None:
    variables = script_environment(script(array="1-9:4,20", task=5), {}, run=run, folder=tmp_path, job="7")
    names = ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX")
    assert [variables[name] for name in names] == ["7", "5", "4", "1", "20"]
    variables = script_environment(script(array="1-9:4", task=5, family="gridengine"), {}, run=run, folder=tmp_path, job="7")
    assert [variables[f"SGE_TASK_{word}"] for word in ("ID", "FIRST", "LAST", "STEPSIZE")] == ["5", "1", "9", "4"]


def test_a_job_of_grid_engine_that_is_no_array_is_told_so(run: RunDir, tmp_path: Path) -> None:
    variables = script_environment(script(family="gridengine"), {"JOB_NAME": "digits.1.token"}, run=run, folder=tmp_path, job="7")
    assert (variables["SGE_TASK_ID"], variables["JOB_NAME"], variables["JOB_ID"], variables["SGE_O_WORKDIR"]) == (
        "undefined",
        "digits",
        "7",
        str(tmp_path),
    )


def test_the_users_own_values_of_names_that_we_set_are_kept(run: RunDir, tmp_path: Path) -> None:
    run.environment.write_text(json.dumps({"EXPERIMENT_ID": "exp-001", "PYTHONPATH": "/mine", "ONWARD_LEG": "9"}))
    env = {"EXPERIMENT_ID": "digits", "PYTHONPATH": "/mine:/run/supervisor.pyz", "ONWARD_LEG": "1"}
    variables = script_environment(script(), env, run=run, folder=tmp_path, job="7")
    assert (variables["EXPERIMENT_ID"], variables["PYTHONPATH"], variables["ONWARD_LEG"]) == ("exp-001", "/mine:/run/supervisor.pyz", "1")


# ── when it is stopped ────────────────────────────────────────────────────────


def test_a_script_that_heard_nothing_runs_to_its_last_seconds(local: LegLocal) -> None:
    day = script_plan(spec_of(), USUAL, limit=86400.0, local=local)
    assert (day.ask_at(86400.0), day.kill_at(86400.0)) == (86390.0, 86390.0)
    minute = script_plan(spec_of(), USUAL, limit=60.0, local=local)
    assert (minute.ask_at(60.0), minute.kill_at(60.0)) == (57.0, 57.0)
    assert minute.ask_at(None) is None
    assert script_plan(spec_of(), USUAL, limit=-5.0, local=local).ask_at(100.0) is not None


def test_a_signal_comes_as_long_before_the_limit_as_the_script_said(local: LegLocal) -> None:
    plan = script_plan(spec_of(stop_signal="USR1", stop_lead=120), USUAL, limit=3600.0, local=local)
    assert (plan.ask_at(3600.0), plan.kill_at(3600.0)) == (3480.0, 3590.0)
    short = script_plan(spec_of(stop_signal="USR1", stop_lead=120), USUAL, limit=60.0, local=local)
    assert short.ask_at(60.0) == pytest.approx(6.0)


def test_a_script_that_knows_of_us_gets_its_signal_no_later_than_it_said(local: LegLocal) -> None:
    (local.spool / "leg-0001.train-7.jsonl").touch()
    early = script_plan(spec_of(stop_signal="USR1", stop_lead=900), USUAL, limit=3600.0, local=local)
    assert (early.ask_at(3600.0), early.kill_at(3600.0)) == (2700.0, 3300.0)
    late = script_plan(spec_of(stop_signal="USR1", stop_lead=60), USUAL, limit=3600.0, local=local)
    assert late.ask_at(3600.0) == 3000.0, "a save and its publish take longer here"


def test_a_signal_by_flag_alone_comes_as_for_any_training(local: LegLocal) -> None:
    assert script_plan(spec_of(stop_signal="USR1"), USUAL, limit=3600.0, local=local) is USUAL


@pytest.mark.parametrize("sign", ["spool/leg-0001.train-7.jsonl", "checkpoints/model.pt"])
def test_a_script_that_shows_that_it_knows_of_us_is_asked_like_any_training(local: LegLocal, sign: str) -> None:
    plan = script_plan(spec_of(), USUAL, limit=3600.0, local=local)
    for ours in ("leg-0001.system.jsonl", "leg-0001.train-relay.jsonl", "leg-0001.train-relay-n1.jsonl"):
        (local.spool / ours).touch()  # these say nothing: every leg has them
    assert plan.ask_at(3600.0) == 3590.0
    (local.path / sign).touch()
    plan = script_plan(spec_of(), USUAL, limit=3600.0, local=local)
    assert (plan.ask_at(3600.0), plan.kill_at(3600.0)) == (3000.0, 3300.0)


class Child:
    def __init__(self) -> None:
        self.signals: list[tuple[str, int]] = []

    def signal(self, number: int) -> None:
        self.signals.append(("shell", number))

    def kill(self, number: int) -> None:
        self.signals.append(("all", number))


@pytest.mark.parametrize(("to", "expected"), [("shell", [("shell", signal.SIGUSR1)]), ("all", [("all", signal.SIGUSR1)]), ("steps", [])])
def test_the_signal_goes_to_whom_the_scheduler_would_have_sent_it(to: str, expected: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    child = Child()
    send_stop_signal(spec_of(stop_signal="USR1", signal_to=to), child)  # type: ignore[arg-type]
    assert child.signals == expected


# ── what its end is taken for ─────────────────────────────────────────────────


def verdict(local: LegLocal, *, code: int, asked: StopReason | None, ended: bool = False, stop_signal: str | None = None) -> LegEnd | None:
    spec = spec_of(stop_signal=stop_signal, stop_lead=60 if stop_signal else None)
    code, asked = adjusted_exit(spec, code=code, asked=asked, ended_by_us=ended, local=local)
    judged = judge_leg(TrainingOutcome(code=code, asked=asked, finished=False))
    return judged[0] if judged else None


@pytest.mark.parametrize("code", [-15, -9, 143, 130, 1, 0])
def test_whatever_its_shell_makes_of_being_ended_at_the_limit_the_leg_met_the_limit(local: LegLocal, code: int) -> None:
    assert verdict(local, code=code, asked=StopReason.DEADLINE, ended=True) is LegEnd.TIME_LIMIT


def test_an_exit_in_the_last_seconds_of_a_script_that_heard_nothing_is_its_own(local: LegLocal) -> None:
    assert verdict(local, code=0, asked=StopReason.DEADLINE) is LegEnd.DONE
    assert verdict(local, code=3, asked=StopReason.DEADLINE) is LegEnd.CRASHED
    assert verdict(local, code=0, asked=StopReason.WARNING) is LegEnd.DONE


@pytest.mark.parametrize(("code", "end"), [(0, "time_limit"), (75, "time_limit"), (138, "time_limit"), (-10, "time_limit"), (1, "crashed")])
def test_after_its_signal_a_script_that_leaves_met_the_limit_unless_it_failed(local: LegLocal, code: int, end: str) -> None:
    assert verdict(local, code=code, asked=StopReason.DEADLINE, stop_signal="USR1") == end


def test_a_job_that_its_scheduler_ends_is_asked_after_there(local: LegLocal) -> None:
    assert verdict(local, code=-15, asked=StopReason.SIGNAL) is None


def test_a_training_that_is_no_script_is_judged_as_ever(local: LegLocal) -> None:
    assert adjusted_exit(make_spec(), code=1, asked=StopReason.DEADLINE, ended_by_us=True, local=local) == (1, StopReason.DEADLINE)


def test_the_0_of_a_training_that_keeps_its_own_checkpoints_is_its_own_word_unless_it_could_hear(local: LegLocal) -> None:
    def heard(spec: RunSpec, code: int = 0, *, ended: bool = False, own: bool = True) -> StopReason | None:
        return adjusted_exit(spec, code=code, asked=StopReason.DEADLINE, ended_by_us=ended, local=local, own=own)[1]

    assert heard(make_spec()) is None
    assert heard(make_spec(), own=False) is StopReason.DEADLINE
    assert heard(make_spec(), 1) is heard(make_spec(), ended=True) is StopReason.DEADLINE
    assert heard(make_spec(stop_signal="USR1")) is StopReason.DEADLINE
    (local.spool / "leg-0001.train-r0.jsonl").touch()
    assert heard(make_spec()) is StopReason.DEADLINE


def test_the_0_of_a_training_that_surely_heard_nothing_is_its_own_word(local: LegLocal) -> None:
    def heard(spec: RunSpec, code: int = 0, *, ended: bool = False) -> StopReason | None:
        return adjusted_exit(spec, code=code, asked=StopReason.DEADLINE, ended_by_us=ended, local=local, deaf=True)[1]

    (local.spool / "leg-0001.train-r0.jsonl").touch()  # it may log through the SDK
    assert heard(make_spec()) is heard(spec_of()) is None
    assert heard(make_spec(), 1) is heard(make_spec(), ended=True) is StopReason.DEADLINE
    assert heard(make_spec(stop_signal="USR1")) is StopReason.DEADLINE


# ── what follows ──────────────────────────────────────────────────────────────


def history() -> History:
    records = History()
    records.spec = make_spec(script=script())
    return records


def test_a_script_that_saves_its_own_way_goes_on_from_limit_to_limit() -> None:
    records = history()
    for leg in range(1, 6):
        records.leg(LegEnd.TIME_LIMIT)
        assert isinstance(records.action, Continue) and records.action.leg == leg + 1


def test_a_script_that_crashes_twice_in_the_same_way_is_ended() -> None:
    records = history()
    records.leg(LegEnd.TIME_LIMIT)
    records.leg(LegEnd.CRASHED, reason="exit code 1")
    assert isinstance(records.action, Continue)
    records.leg(LegEnd.CRASHED, reason="exit code 1")
    assert isinstance(records.action, Close)
