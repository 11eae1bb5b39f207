"""Scripts written for W&B: `import onward as wandb`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import onward
import onward as wandb
from onward.sdk import contract
from onward.sdk import run as module


@pytest.fixture(autouse=True)
def by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (contract.CHECKPOINT_DIR, contract.RUN_DIR):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(contract.ROOT, str(tmp_path))
    monkeypatch.setattr(module, "_run", None)
    yield


def told(tmp_path: Path) -> list[dict[str, Any]]:
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
    wandb.finish()
    assert (wandb.run is run, run.config.lr, run.config["optimizer"]) == (True, 0.1, {"name": "adam"})
    records = told(tmp_path)
    assert (records[0]["kind"], records[0]["experiment"]) == ("init", "digits")
    assert records[0]["params"] == {"lr": 0.1, "optimizer.name": "adam"}
    assert [r["params"] for r in records if r.get("kind") == "params"] == [{"epochs": 3}, {"batch": 32}]
    assert [(r["s"], r["m"]) for r in records if "m" in r][-1] == (3, {"accuracy": 0.9, "loss": 0.2})
    assert [r["tags"] for r in records if r.get("kind") == "tags"] == [{"summary.best": 0.95}]
    [alert] = [r for r in records if r.get("kind") == "alert"]
    assert (alert["title"], alert["text"], alert["level"]) == ("low accuracy", "0.9 is below 0.95", "WARN")
    assert records[-1]["kind"] == "finish"
    said = capsys.readouterr().err
    assert said.count("passes over entity, mode") == 1
    assert "first-try" in said  # the folder's name


def test_config_takes_an_argparse_namespace(tmp_path: Path) -> None:
    run = wandb.init(config=argparse.Namespace(lr=0.5, layers=[1, 2]))
    assert (run.config.lr, run.config.layers, dict(run.config)) == (0.5, [1, 2], {"lr": 0.5, "layers": [1, 2]})
    assert told(tmp_path)[0]["params"] == {"lr": 0.5, "layers": "[1, 2]"}
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
    assert [(r["s"], r["m"]) for r in told(tmp_path) if "m" in r] == [(5, {"a": 1.0, "b": 2.0}), (6, {"c": 3.0})]


def test_what_was_kept_is_logged_at_the_end(tmp_path: Path) -> None:
    with wandb.init() as run:
        run.log({"a": 1.0}, commit=False)
    records = told(tmp_path)
    assert [(r["s"], r["m"]) for r in records if "m" in r] == [(0, {"a": 1.0})]
    assert records[-1]["kind"] == "finish"


def test_a_block_that_raises_is_no_end(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), wandb.init() as run:
        run.log({"a": 1.0})
        raise RuntimeError
    assert all(r.get("kind") != "finish" for r in told(tmp_path))


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
