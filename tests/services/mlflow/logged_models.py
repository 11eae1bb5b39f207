"""Calls of MLflow's 3.x client about logged models, for the same comparison as `calls.py`.

`python logged_models.py URL FILE` writes one JSON object, call → answer, as `calls.py` does. Each line of a table is one call.
"""

from __future__ import annotations

import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import asking
import mlflow
from asking import T, ask, both, client, keep, names
from mlflow.entities import LoggedModelInput, LoggedModelOutput, Metric

E = client.create_experiment("models")
new_run = partial(asking.new_run, experiment=E)
R = new_run("r")


def shown(m: Any) -> Any:
    return [m.name, str(m.status), m.status_message, dict(m.tags), dict(m.params), m.source_run_id, m.model_type, m.experiment_id == E,
            re.sub(r"/[0-9]+/", "/E/", m.artifact_location), sorted((x.key, x.value, x.step, x.dataset_name, x.dataset_digest) for x in m.metrics or [])]  # fmt: skip


def model(name: str | None = None, **more: Any) -> str:
    made = client.create_logged_model(more.pop("experiment", E), name=name, **more)
    names[made.model_id] = f"MODEL-{name}"
    return str(made.model_id)


def seen(id: str) -> Any:
    return shown(client.get_logged_model(id))


A = model("a", source_run_id=R, tags={"t": "1"}, params={"lr": "0.1", "depth": "3"}, model_type="torch")
B = model("b", tags={"t": "2"}, params={"lr": "0.01"})
C = model("c")
ask(
    {
        "a model": lambda: seen(A),
        "a model of nothing": lambda: seen(C),
        "a model with no name": lambda: bool(client.create_logged_model(E).name),
        "a model with an empty name": lambda: bool(client.create_logged_model(E, name="").name),
        **{f"a model named {name!r}": lambda name=name: seen(model(name))[0] for name in ("a.b", "a b", "ünï", "a-b_c", "n" * 256)},
        **{f"a model named with {char!r}": lambda char=char: model(f"a{char}b") for char in "/:.%\"'`"},
        "a model of an experiment that is not there": lambda: model("x", experiment="424242"),
        "a model of an experiment that is no number": lambda: model("x", experiment="abc"),
        "a model of a run that is not there": lambda: bool(model("x", source_run_id="f" * 32)),
        "a model with a bad tag": lambda: bool(model("x", tags={"a$": "1"})),
        "a model with a bad param": lambda: bool(model("x", params={"a$": "1"})),
        "a model with a long param": lambda: len(client.get_logged_model(model("x", params={"p": "x" * 7000})).params["p"]),
        "a model with many params": lambda: len(client.get_logged_model(model("x", params={f"p{i}": str(i) for i in range(150)})).params),
        "finalize to READY": lambda: shown(client.finalize_logged_model(A, "READY"))[1],
        "finalize to FAILED": lambda: shown(client.finalize_logged_model(B, "FAILED"))[1],
        "finalize to PENDING": lambda: shown(client.finalize_logged_model(C, "PENDING"))[1],
        "finalize to something": lambda: client.finalize_logged_model(C, "SOMETHING"),
        "finalize what is not there": lambda: client.finalize_logged_model("m-" + "0" * 32, "READY"),
        "set tags": lambda: both(lambda: client.set_logged_model_tags(A, {"x": "1", "y y": "2"}), lambda: seen(A)[3]),
        "set a tag again": lambda: both(lambda: client.set_logged_model_tags(A, {"x": "3"}), lambda: seen(A)[3]),
        "set a bad tag": lambda: client.set_logged_model_tags(A, {"a$b": "3"}),
        "set a tag of a number": lambda: both(lambda: client.set_logged_model_tags(A, {"n": 5}), lambda: seen(A)[3]),
        "set no tags": lambda: client.set_logged_model_tags(A, {}),
        "delete a tag": lambda: both(lambda: client.delete_logged_model_tag(A, "y y"), lambda: seen(A)[3]),
        "delete a tag that is not there": lambda: client.delete_logged_model_tag(A, "nothing"),
        "tags of what is not there": lambda: client.set_logged_model_tags("m-" + "0" * 32, {"a": "b"}),
        "get what is not there": lambda: client.get_logged_model("m-" + "0" * 32),
        "get an odd id": lambda: client.get_logged_model("abc"),
        "log params": lambda: both(lambda: client.log_model_params(C, {"q": "1"}), lambda: seen(C)[4]),
        "log a param again": lambda: both(lambda: client.log_model_params(C, {"q": "2"}), lambda: seen(C)[4]),
        "metrics of a model": lambda: both(
            lambda: client.log_metric(R, "acc", 0.5, timestamp=T, step=1, model_id=A),
            lambda: client.log_metric(R, "acc", 0.75, timestamp=T + 1, step=2, model_id=A),
            lambda: client.log_metric(R, "acc", 0.9, timestamp=T, step=1, model_id=B, dataset_name="d", dataset_digest="x"),
            lambda: client.log_batch(R, [Metric("f1", 0.25, T, 3, model_id=A)]),
            lambda: [seen(A)[-1], seen(B)[-1], client.get_run(R).data.metrics],
        ),
        "a metric of a model again": lambda: both(
            lambda: client.log_metric(R, "acc", 0.75, timestamp=T + 1, step=2, model_id=A), lambda: seen(A)[-1]
        ),
        "a metric of a model that is not there": lambda: client.log_metric(R, "acc", 1.0, model_id="m-" + "0" * 32),
        "outputs of a run": lambda: both(
            lambda: client.log_outputs(R, [LoggedModelOutput(A, 1), LoggedModelOutput(B, 5)]),
            lambda: sorted((m.model_id == A, m.step) for m in client.get_run(R).outputs.model_outputs),
        ),
        "outputs of a run again": lambda: both(
            lambda: client.log_outputs(R, [LoggedModelOutput(A, 2)]),
            lambda: sorted((m.model_id == A, m.step) for m in client.get_run(R).outputs.model_outputs),
        ),
        "inputs of a run": lambda: both(
            lambda: client.log_inputs(R, models=[LoggedModelInput(B)]), lambda: [m.model_id for m in client.get_run(R).inputs.model_inputs]
        ),
        "outputs of a run that is not there": lambda: client.log_outputs("f" * 32, [LoggedModelOutput(A, 1)]),
    }
)


def found(**more: Any) -> Any:
    return [m.name for m in client.search_logged_models([E], **more) if m.name in ("a", "b", "c")]


for text in (
    "name = 'a'", "name != 'a'", "name LIKE 'a%'", "name ILIKE 'A'", "name IN ('a', 'b')", "name NOT IN ('a')", "attributes.name = 'a'", "attribute.name = 'a'", "model_id = 'x'", "model_type = 'torch'", "model_type != 'torch'", "status = 'READY'", "status = 'ready'", "status != 'READY'",
    "status = 'LOGGED_MODEL_READY'", "source_run_id = 'x'", "source_run_id != 'x'", "source_run_id IS NULL", "creation_timestamp > 0", "creation_timestamp_ms > 0", "creation_time > 0", "last_updated_timestamp > 0", "last_updated_timestamp_ms > 0", "params.lr = '0.1'", "params.lr != '0.1'", "params.lr LIKE '0.%'", "params.lr > '0'", "params.`lr` = '0.1'",
    "tags.t = '1'", "tag.t = '1'", "metric.acc > 0.8", "param.lr = '0.1'", "parameters.lr = '0.1'", "attr.name = 'a'", "tags.t != '1'", "tags.x = '3'", "tags.nothing = '1'", "tags.t IS NULL", "tags.t IS NOT NULL", "tags.t IN ('1', '2')", "metrics.acc > 0.8", "metrics.acc = 0.5", "metrics.acc = 0.75", "metrics.acc > 0", "metrics.nothing > 0", "metrics.acc LIKE 'x'", "experiment_id = '1'", "nothing = 'x'", "name = 'a' AND tags.t = '1'",
    "name = 'a' OR name = 'b'", "artifact_location LIKE '%'", " ",
):  # fmt: skip
    ask({f"search_logged_models[{text}]": lambda text=text: sorted(found(filter_string=text))})
for field, up in (("name", True), ("name", False), ("metrics.acc", True), ("metrics.acc", False), ("creation_timestamp", True), ("creation_timestamp", False), ("creation_time", True), ("params.lr", True), ("tags.t", True), ("status", True), ("nothing", True), ("model_id", True), ("last_updated_timestamp", True), ("last_updated_time", True), ("creation_timestamp_ms", True), ("experiment_id", True), ("source_run_id", True), ("model_type", True)):  # fmt: skip
    order = [{"field_name": field, "ascending": up}]
    ask({f"search_logged_models by {field} {up}": lambda order=order, field=field: (found(order_by=order) if field not in ("model_id", "last_updated_timestamp") else len(found(order_by=order)))})  # fmt: skip
ask(
    {
        "search by a metric of a dataset": lambda: found(order_by=[{"field_name": "metrics.acc", "dataset_name": "d", "dataset_digest": "x", "ascending": False}]),
        "search in datasets": lambda: found(datasets=[{"dataset_name": "d", "dataset_digest": "x"}], filter_string="metrics.acc > 0.1"),
        "search with an order of nothing": lambda: found(order_by=[{"ascending": True}]),
        "search by pages": lambda: both(
            lambda: [m.name for m in client.search_logged_models([E], max_results=2, order_by=[{"field_name": "name"}])],
        ),
        "search of 0": lambda: found(max_results=0),
        "search of 51": lambda: len(found(max_results=51)),
        "search in no experiment": lambda: list(client.search_logged_models([])),
        "search in an experiment that is not there": lambda: list(client.search_logged_models(["424242"])),
        "search in an experiment that is no number": lambda: list(client.search_logged_models(["abc"])),
        "mlflow.search_logged_models": lambda: sorted(m.name for m in mlflow.search_logged_models([E], output_format="list") if m.name in "abc"),
        "initialize_logged_model": lambda: str(mlflow.initialize_logged_model("init", source_run_id=R, experiment_id=E).status) if hasattr(mlflow, "initialize_logged_model") else None,
        "delete": lambda: both(lambda: client.delete_logged_model(C), lambda: found()),
        "delete again": lambda: client.delete_logged_model(C),
        "delete what is not there": lambda: client.delete_logged_model("m-" + "0" * 32),
        "get a deleted one": lambda: client.get_logged_model(C),
        "tag a deleted one": lambda: client.set_logged_model_tags(C, {"a": "b"}),
    }
)  # fmt: skip
folder = Path(tempfile.mkdtemp())
(folder / "sub").mkdir()
(folder / "sub" / "weights.bin").write_text("w")
(folder / "MLmodel").write_text("m")
ask(
    {
        "artifacts": lambda: both(lambda: client.log_model_artifacts(A, str(folder)), lambda: [(f.path, f.is_dir, f.file_size) for f in client.list_logged_model_artifacts(A)]),
        "artifacts of a folder": lambda: [(f.path, f.is_dir, f.file_size) for f in client.list_logged_model_artifacts(A, "sub")],
        "one artifact": lambda: both(lambda: client.log_model_artifact(B, str(folder / "MLmodel")), lambda: [f.path for f in client.list_logged_model_artifacts(B)]),
        "artifacts of what is not there": lambda: client.list_logged_model_artifacts("m-" + "0" * 32),
        "download": lambda: sorted(p.name for p in Path(mlflow.artifacts.download_artifacts(f"models:/{A}")).rglob("*")),
    }
)  # fmt: skip

keep()
