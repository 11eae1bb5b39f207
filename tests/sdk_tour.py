"""All that a training can ask of the SDK, for any Python from 3.8 on: `python sdk_tour.py FOLDER`, with the SDK on its path.

It needs nothing but the standard library, and prints `done` when all of it holds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path

import onward


def main() -> None:
    folder = Path(sys.argv[1])
    every_module_is_loaded()
    a_training_in_a_job(folder / "job")
    several_ranks(folder / "ranks")
    os.environ.update(ONWARD_ROOT=str(folder / "runs"))
    a_training_by_hand(folder)
    words_of_wandb(folder)
    print("done")


def every_module_is_loaded() -> None:
    for module in pkgutil.walk_packages(onward.sdk.__path__ if hasattr(onward, "sdk") else _sdk(), "onward.sdk."):
        importlib.import_module(module.name)
    for name in set(onward.__all__) - {"Client", "Sender"}:
        assert callable(getattr(onward, name)), name
    for name in ("Client", "sweep", "nothing"):
        try:
            getattr(onward, name)
        except AttributeError:
            continue
        assert name == "Client", name


def _sdk() -> list[str]:
    return list(importlib.import_module("onward.sdk").__path__)


def new_run(env: dict[str, str], **words: object) -> onward.Run:
    from onward.sdk import process_run as sdk

    for name in [name for name in os.environ if name.startswith("ONWARD_") and name != "ONWARD_ROOT"]:
        del os.environ[name]
    os.environ.update(env)
    sdk._run = None
    return onward.init(**words)  # type: ignore[arg-type]


def in_a_job(folder: Path, **others: str) -> dict[str, str]:
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    return {
        "ONWARD_RUN_DIR": str(folder / "run"),
        "ONWARD_LEG": "2",
        "ONWARD_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "ONWARD_SPOOL_DIR": str(folder / "spool"),
        "ONWARD_ARTIFACTS_DIR": str(folder / "artifacts"),
        "ONWARD_STOP_FILE": str(folder / "stop"),
        **others,
    }


def records(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for path in sorted((folder / "spool").glob("*.jsonl")) for line in path.read_text().splitlines()]


# ── the SDK's own words ───────────────────────────────────────────────────────


def a_training_in_a_job(folder: Path) -> None:
    from onward.sdk.packed_metrics import unpacked

    run = new_run(
        in_a_job(folder, ONWARD_RESUME_DIR=str(folder), ONWARD_RESUME_STEP="7"), total_steps=9, params={"lr": 0.1, "layers": [1, 2]}
    )
    assert (run.leg, run.resume(), run.resume_step) == (2, folder, 7)
    run.log({"loss": 0.5})
    run.log({"loss": 1, "deep": {"er": 2}, "word": "no number"}, step=8)
    run.log({"held": 1.0}, commit=False)
    run.log({"wide%d" % n: float(n) for n in range(150)}, step=9)  # noqa: UP031
    for written_by in ("first", "all"):
        with run.checkpoint(9, written_by=written_by) as inside:
            (inside / "weights").write_text("w")
    assert (folder / "checkpoints" / "step-00000009" / "weights").read_text() == "w"
    note = json.loads((folder / "checkpoints" / "step-00000009" / ".onward-checkpoint.json").read_text())
    assert note["metrics"]["loss"] == 1.0, note
    try:
        with run.checkpoint(10) as inside:
            raise ValueError("a failed save")
    except ValueError:
        assert not (folder / "checkpoints" / "step-00000010").exists()
    assert not run.should_checkpoint() and not run.should_stop()
    (folder / "stop").touch()
    assert run.should_stop() and onward.should_stop()
    onward.alert("low", "very", onward.AlertLevel.WARN)
    run.finish()
    logged = [unpacked(record) for record in records(folder)]
    assert [one["s"] for one in logged if "m" in one] == [0, 8, 9], logged
    assert logged[-2]["m"]["wide149"] == 149.0 and logged[-2]["m"]["held"] == 1.0, logged[-2]


def several_ranks(folder: Path) -> None:
    (folder / "notes").mkdir(parents=True)
    (folder / "stop").write_text("1")
    for rank in ("1", "0"):
        env = in_a_job(folder, ONWARD_RANK=rank, ONWARD_WORLD_SIZE="2", ONWARD_LOCAL_RANK=rank, ONWARD_RANKS_DIR=str(folder / "notes"))
        run = new_run(env, log_from="all")
        assert (run.rank, run.world_size, run.local_rank) == (int(rank), 2, int(rank))
        run.log({"loss": 0.1}, step=1)
        with run.checkpoint(1, written_by="all") as inside:
            (inside / ("share-" + rank)).touch()
        assert run.should_stop()
    shares = sorted(path.name for path in (folder / "checkpoints" / ".shares" / "step-00000001").iterdir())
    assert shares == ["rank-00000", "rank-00001"], shares
    assert sorted(path.name for path in (folder / "notes").iterdir()) == ["rank-00000.json", "rank-00001.json"]


def a_training_by_hand(folder: Path) -> None:
    run = new_run({}, name="by hand")
    run.log({"loss": 0.5}, step=3)
    with run.checkpoint(3) as inside:
        (inside / "weights").write_text("three")
    run.finish()
    run = new_run({"ONWARD_RUN_DIR": str(run.folder)})
    state = run.resume()
    assert state is not None and (state / "weights").read_text() == "three" and run.leg == 2
    run.finish(exit_code=1)
    for rank in ("1", "0"):
        run = new_run({"ONWARD_RUN_DIR": str(folder / "both"), "ONWARD_RANK": rank, "ONWARD_WORLD_SIZE": "2"})
        with run.checkpoint(1, written_by="all") as inside:
            (inside / ("share-" + rank)).touch()
    assert {"share-0", "share-1"} <= set(os.listdir(folder / "both" / "checkpoints" / "step-00000001"))
    for _ in range(2):
        run = new_run({}, id="mine", resume="allow")
        run.log({"loss": 1.0})
    assert (run.leg, run.step) == (2, 2)
    with new_run({}) as run:
        pass
    assert run.finished


# ── W&B's ─────────────────────────────────────────────────────────────────────


class FakeFrame:
    """As pandas has them."""

    columns = ("name", "value")

    def itertuples(self, index: bool) -> list[tuple[str, float]]:
        return [("a", 1.0), ("b", 2.0)]


class FakeFigure:
    def savefig(self, file: object, format: str) -> None:
        file.write(b"a picture")  # type: ignore[attr-defined]


def words_of_wandb(folder: Path) -> None:
    import onward as wandb_in_old_scripts

    wandb = sys.modules["onward"]
    assert wandb is wandb_in_old_scripts
    words = vars(importlib.import_module("onward.sdk.wandb.module_names"))
    os.chdir(folder)
    config = argparse.Namespace(lr=0.1, net={"layers": [1, 2]})
    settings = words["Settings"](mode="offline")
    run = new_run(in_a_job(folder / "wandb"), project="p", name="n", config=config, tags=["a"], notes="why", group="g", settings=settings)
    run.config.update({"batch": 8})
    run.config.setdefaults({"batch": 9, "seed": 1})
    assert (run.config.lr, run.config["batch"], dict(run.config)["seed"]) == (0.1, 8, 1)
    run.log({"acc": 0.5})
    run.summary["best"] = 0.9
    assert (run.summary["acc"], run.summary.best, len(run.summary)) == (0.5, 0.9, 2)
    assert (run.name, run.project, run.group, run.tags, run.resumed) == ("n", "p", "g", ("a",), True)

    pixels = [[0.0, 0.5], [1.0, 0.25]]
    table = words["Table"](columns=["a", "b"], data=[[1, None]])
    table.add_data("x", words["Html"]("<p>"))
    table.add_column("c", [1.5, 2.5])
    media = {
        "image": words["Image"](pixels),
        "images": [words["Image"](pixels), words["Image"](pixels)],
        "figure": FakeFigure(),
        "sound": words["Audio"]([0.0, 0.5, -0.5], sample_rate=8000),
        "page": words["Html"]("<p>hello</p>"),
        "table": table,
        "frame": FakeFrame(),
        "plot": words["plot"].line(table, "a", "b"),
        "spread": words["Histogram"]([1.0, 2.0, 3.0]),
        "bins": words["Histogram"](np_histogram=([1, 3], [0.0, 1.0, 2.0])),
        "graph": words["Graph"](),
        "unfit": object(),
    }
    run.log(media, step=5)
    kept = sorted(path.relative_to(folder / "wandb" / "artifacts").as_posix() for path in (folder / "wandb" / "artifacts").rglob("*.*"))
    suffixes = {path.rpartition(".")[2] for path in kept}
    assert suffixes == {"png", "wav", "html", "csv"} and len(kept) == 9, kept
    logged = records(folder / "wandb")[-1]["m"]
    assert logged["bins.mean"] == 1.25 and logged["spread.max"] == 3.0, logged  # type: ignore[index]

    (folder / "model").mkdir()
    (folder / "model" / "weights.pt").write_text("w")
    assert len(run.save("model/*.pt")) == 1 and len(run.save(str(folder / "model" / "*"), base_path=str(folder))) == 1
    artifact = words["Artifact"]("model", "model", metadata={"a": 1})
    artifact.add_dir("model")
    artifact.add(table, "table")
    with artifact.new_file("notes.txt") as file:
        file.write("n")
    artifact.add_reference("s3://bucket")
    run.log_artifact(artifact, aliases=["best"]).wait()
    words["log_model"]("model/weights.pt", "model")
    words["define_metric"]("loss", step_metric="epoch")
    words["watch"]()
    assert len(words["util"].generate_id()) == 8 and words["login"]()
    run.name = "other"
    run.tags = ("b",)
    run.finish()

    run = new_run({}, id="artifacts")
    run.log_artifact("model/weights.pt", name="w", type="model")
    copied = run.use_artifact("w:latest").download(str(folder / "copied"))
    assert (Path(copied) / "weights.pt").read_text() == "w"
    other = onward.init(id="another")
    assert other is not run and run.finished
    assert onward.run is other and onward.config is other.config and onward.summary is other.summary


main()
