"""Scripts written for W&B: `import onward as wandb`."""

from __future__ import annotations

import argparse
import copy
import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import onward
import onward as wandb
from onward.rundir.progress import SpoolReader
from onward.sdk import contract, stderr
from onward.sdk import process_run as module
from onward.sdk.unmanaged import exit_state


@pytest.fixture(autouse=True)
def by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (contract.CHECKPOINT_DIR, contract.RUN_DIR):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(contract.ROOT, str(tmp_path))
    monkeypatch.setattr(module, "_run", None)
    monkeypatch.setattr(module, "_early", {})
    monkeypatch.setattr(stderr, "_said", set())
    monkeypatch.setattr(exit_state, "_hook", lambda: None)
    yield
    exit_state._watched.clear()


def entries(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(tmp_path.rglob("*.jsonl")) for line in path.read_text().splitlines()]


def test_a_script_for_wandb_runs_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = wandb.init(project="digits", name="first try", config={"lr": 0.1, "optimizer": {"name": "adam"}}, entity="lab", mode="online")
    wandb.config.epochs = 3
    wandb.config.update({"batch": 32})
    for epoch in range(3):
        wandb.log({"loss": 1.0 / (epoch + 1)})
    wandb.log({"accuracy": 0.9}, commit=False)
    wandb.log({"loss": 0.2})
    assert wandb.summary["loss"] == 0.2
    wandb.summary["best"] = 0.95
    wandb.alert(title="low accuracy", text="0.9 is below 0.95", level="WARN")
    assert wandb.run is run
    wandb.finish()
    assert (wandb.run is None, run.config.lr, run.config["optimizer"]) == (True, 0.1, {"name": "adam"})
    records = entries(tmp_path)
    assert (records[0]["kind"], records[0]["experiment"]) == ("init", "digits")
    assert records[0]["params"] == {"lr": 0.1, "optimizer.name": "adam"}
    assert [r["params"] for r in records if r.get("kind") == "params"] == [{"epochs": 3}, {"batch": 32}]
    assert [(r["s"], r["m"]) for r in records if "m" in r][-1] == (3, {"accuracy": 0.9, "loss": 0.2})
    assert [r["tags"] for r in records if r.get("kind") == "tags"] == [{"summary.best": 0.95}]
    [alert] = [r for r in records if r.get("kind") == "alert"]
    assert (alert["title"], alert["text"], alert["level"]) == ("low accuracy", "0.9 is below 0.95", "WARN")
    assert records[-1]["kind"] == "finish"
    said = capsys.readouterr().err
    assert said.count("ignores entity, mode") == 1
    assert "first-try" in said  # the folder's name


def test_config_takes_an_argparse_namespace(tmp_path: Path) -> None:
    run = wandb.init(config=argparse.Namespace(lr=0.5, layers=[1, 2]))
    assert (run.config.lr, run.config.layers, dict(run.config)) == (0.5, [1, 2], {"lr": 0.5, "layers": [1, 2]})
    assert entries(tmp_path)[0]["params"] == {"lr": 0.5, "layers": "[1, 2]"}
    with pytest.raises(AttributeError, match="no 'momentum'; it has lr, layers"):
        run.config.momentum  # noqa: B018


def test_config_keeps_what_it_has_where_only_defaults_are_given() -> None:
    run = wandb.init(config={"lr": 0.5})
    run.config.setdefaults({"lr": 0.1, "seed": 1})
    assert run.config.as_dict() == {"lr": 0.5, "seed": 1}
    assert run.config.get("none") is None and "seed" in run.config and len(run.config) == 2


def test_values_kept_for_a_step_are_not_logged_with_another(tmp_path: Path) -> None:
    run = wandb.init()
    run.log({"a": 1.0}, step=5, commit=False)
    run.log({"b": 2.0}, step=5, commit=False)
    run.log({"c": 3.0}, step=6)
    assert [(r["s"], r["m"]) for r in entries(tmp_path) if "m" in r] == [(5, {"a": 1.0, "b": 2.0}), (6, {"c": 3.0})]


def test_what_was_kept_is_logged_at_the_end(tmp_path: Path) -> None:
    with wandb.init() as run:
        run.log({"a": 1.0}, commit=False)
    records = entries(tmp_path)
    assert [(r["s"], r["m"]) for r in records if "m" in r] == [(0, {"a": 1.0})]
    assert records[-1]["kind"] == "finish"


def test_a_block_that_raises_is_a_bad_end(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), wandb.init() as run:
        run.log({"a": 1.0})
        raise RuntimeError
    [end] = [r for r in entries(tmp_path) if r.get("kind") in ("finish", "end")]
    assert (end["state"], end["reason"]) == ("failed", "RuntimeError")


def test_words_of_init_become_tags_notes_and_names(tmp_path: Path) -> None:
    run = wandb.init(project="digits", name="a b", tags=["baseline", "v2"], notes="first try", group="sweep", job_type="train")
    assert (run.project, run.name, run.group, run.job_type, run.tags) == ("digits", "a b", "sweep", "train", ("baseline", "v2"))
    assert (run.notes, run.url, run.entity, len(run.id), run.step, run.resumed) == ("first try", None, "", 32, 0, False)
    assert Path(run.dir).is_dir() and Path(run.dir).is_relative_to(tmp_path)
    run.name = "better"
    run.tags += ("late",)
    begun, *others = entries(tmp_path)
    assert begun["name"] == "a b"
    assert [r["tags"] for r in others if r["kind"] == "tags"] == [
        {"baseline": "true", "v2": "true", "group": "sweep", "job_type": "train"},
        {"baseline": "true", "v2": "true", "late": "true"},
    ]
    assert [r["text"] for r in others if r["kind"] == "note"] == ["first try"]
    assert [r["name"] for r in others if r["kind"] == "name"] == ["better"]


def test_a_disabled_run_takes_everything_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = wandb.init(project="digits", mode="disabled", config={"lr": 1})
    wandb.log({"loss": 0.5, "deep": {"er": 1}})
    wandb.log({"image": wandb.Image([[0]])})
    wandb.save("nothing")
    wandb.log_artifact(wandb.Artifact("model", "model"))
    wandb.config.epochs = 3
    assert (run.summary["loss"], run.summary["deep.er"], run.config.lr, run.config.epochs) == (0.5, 1, 1, 3)
    wandb.finish()
    assert list(tmp_path.rglob("*")) == []
    assert "folder" not in capsys.readouterr().err


def test_an_offline_run_is_what_every_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert wandb.init(mode="offline").name == Path(sys.argv[0]).stem
    assert "ignores" not in capsys.readouterr().err


def test_resuming_without_an_id_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    wandb.init(resume=True)
    assert "without an id is ignored: ONWARD_RUN_DIR" in capsys.readouterr().err


def test_a_disabled_run_still_saves_checkpoints(tmp_path: Path) -> None:
    run = wandb.init(mode="disabled")
    run.log({"loss": 0.5, "odd": object()})
    with run.checkpoint(3) as folder:
        (folder / "w").write_text("x")
    assert [path.name for path in tmp_path.rglob("step-*")] == ["step-00000003"]


def test_what_is_set_in_config_before_init_is_the_runs(tmp_path: Path) -> None:
    wandb.config.lr = 0.1
    wandb.config.update({"seed": 1})
    assert wandb.config["lr"] == 0.1 and wandb.run is None and list(tmp_path.iterdir()) == []
    run = wandb.init(project="digits", config={"seed": 2})
    assert run.config.as_dict() == {"lr": 0.1, "seed": 2}
    assert entries(tmp_path)[0]["params"] == {"lr": 0.1, "seed": 2}


def test_a_config_can_be_copied_and_pickled_and_then_tells_nobody(tmp_path: Path) -> None:
    run = wandb.init(config={"lr": 0.1})
    for made in (copy.deepcopy(run.config), pickle.loads(pickle.dumps(run.config))):
        made.lr = 5
        assert made.lr == 5
    assert run.config.lr == 0.1 and all(r["kind"] != "params" for r in entries(tmp_path))


@pytest.mark.parametrize("odd", ["settings.yaml", 3, [1, 2]])
def test_a_config_that_is_none_is_said_and_ends_nothing(odd: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert wandb.init(config=odd).config.as_dict() == {}
    assert "is ignored: expected a mapping" in capsys.readouterr().err


def test_deeper_values_are_logged_with_dots(tmp_path: Path) -> None:
    round: dict[str, Any] = {"a": 1}
    round["self"] = round
    wandb.log({"train": {"loss": 0.5, "by": {"class": 1}}, "lr": 0.1, "round": round})
    [record] = [r["m"] for r in entries(tmp_path) if "m" in r]
    assert record.items() >= {"train.loss": 0.5, "train.by.class": 1.0, "lr": 0.1, "round.a": 1.0}.items()


def test_the_same_words_again_are_the_same_run_and_more_config_is_added(tmp_path: Path) -> None:
    run = wandb.init(project="p", name="n", config={"lr": 1})
    assert wandb.init() is run and wandb.init(project="p", name="n", config={"lr": 1}) is run
    assert wandb.init(project="p", config={"epochs": 3}) is run
    assert run.config.as_dict() == {"lr": 1, "epochs": 3} and not run.finished


@pytest.mark.parametrize(
    "words", [{"project": "q"}, {"project": "p", "name": "other"}, {"id": "x7"}, {"config": {"lr": 2}}, {"reinit": True}], ids=str
)
def test_what_names_another_run_finishes_the_first_and_begins_it(words: dict[str, Any], tmp_path: Path) -> None:
    first = wandb.init(project="p", config={"lr": 1})
    first.log({"loss": 1.0})
    second = wandb.init(**words)
    second.log({"loss": 2.0})
    assert first.finished and second is not first and wandb.run is second
    records = [json.loads(line) for path in first.folder.rglob("*.jsonl") for line in path.read_text().splitlines()]
    assert [r["m"] for r in records if "m" in r] == [{"loss": 1.0}] and records[-1]["kind"] == "finish"


def test_who_asks_for_the_previous_run_gets_it_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    first = wandb.init(project="p")
    assert wandb.init(project="q", reinit="return_previous") is first
    assert "continues; other project ignored" in capsys.readouterr().err


def test_logging_after_the_end_is_said_once_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wandb.init(project="p")
    wandb.finish()
    before = entries(tmp_path)
    for _ in range(3):
        wandb.log({"loss": 1.0})
    wandb.finish()
    assert entries(tmp_path) == before
    assert capsys.readouterr().err.count("log() after finish()") == 1
    wandb.init(project="p").log({"loss": 1.0})
    assert len(list((tmp_path / "by-hand").iterdir())) == 2


def test_a_run_is_gone_on_with_by_its_id(tmp_path: Path) -> None:
    with wandb.init(project="p", id="fold 1", resume="allow") as run:
        run.log({"loss": 1.0}, step=41)
    again = wandb.init(project="p", id="fold 1", resume="must")
    assert (again.folder, again.leg, again.resumed, again.id, again.step) == (run.folder, 2, True, "fold 1", 42)
    again.finish()
    with pytest.raises(ValueError, match=r"resume='never'.*already exists"):
        wandb.init(id="fold 1", resume="never")
    with pytest.raises(ValueError, match=r"resume='must'.*no run in"):
        wandb.init(id="fold 2", resume="must")


def test_in_a_job_there_is_one_run_whatever_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(contract.CHECKPOINT_DIR, str(tmp_path / "ckpt"))
    monkeypatch.setenv(contract.RUN_DIR, str(tmp_path / "run"))
    monkeypatch.setenv(contract.RUN_ID, "k3x9q2m7")
    run = wandb.init(project="p", config={"lr": 1})
    run.log({"loss": 1.0})
    run.finish()
    assert SpoolReader(tmp_path / "run" / "spool").read().finished
    again = wandb.init(project="q", name="fold 2", config={"lr": 2}, reinit=True)
    again.log({"loss": 2.0})
    assert not SpoolReader(tmp_path / "run" / "spool").read().finished, "asked to stop now, it is not complete"
    assert again is run and run.id == "k3x9q2m7"
    assert [r["m"]["loss"] for r in entries(tmp_path) if "m" in r] == [1.0, 2.0]


def test_a_process_may_train_twice_by_hand(tmp_path: Path) -> None:
    for lr in (0.1, 0.2):
        run = wandb.init(project="sweep", config={"lr": lr})
        run.log({"loss": lr})
        wandb.finish()
    assert len(list((tmp_path / "by-hand").iterdir())) == 2


def test_before_init_there_is_no_run_and_a_star_import_begins_none() -> None:
    assert wandb.run is None
    assert not {"config", "summary", "run"} & set(onward.__all__)
    assert module._run is None


def test_a_summary_is_the_last_values_and_what_was_set() -> None:
    run = wandb.init()
    run.log({"loss": 0.5, "count": 3})
    run.summary.update({"best": 0.1}, worst=2)
    assert dict(run.summary) == {"loss": 0.5, "count": 3.0, "best": 0.1, "worst": 2}
    assert (run.summary.best, len(run.summary)) == (0.1, 4)
    del run.summary["best"]
    with pytest.raises(AttributeError):
        run.summary.best  # noqa: B018
