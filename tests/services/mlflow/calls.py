"""What MLflow's client is asked, call by call, and what it reads back: the same script for MLflow's own server and for ours.

Run by a Python that has mlflow, never imported by the tests: `python calls.py URL FILE` writes one JSON object, call → answer.
Ids and times are replaced by words, so that two servers can be compared line by line.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

URL = sys.argv[1]
os.environ["MLFLOW_TRACKING_URI"] = URL
os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"
os.environ["GIT_PYTHON_REFRESH"] = "quiet"

import mlflow
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException

client = mlflow.MlflowClient()
fields: dict[str, Any] = {}
names: dict[str, str] = {}  # run and model ids → a word
STAMP = 1_700_000_000_000


def call(function: Callable[[], Any]) -> Callable[[], Any]:
    """Keep what a call gives, or the error code that it raises."""
    try:
        answer = plain(function())
    except MlflowException as error:
        answer = {"error": error.error_code}
    except Exception as error:
        answer = {"raised": f"{type(error).__name__}: {error}"}
    fields[function.__name__] = answer
    return function


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    for known, word in names.items():
        text = re.sub(rf"\b{known}\b", word, text)
    return re.sub(rf"^mlflow-artifacts:/{exp}(?=/|$)", "mlflow-artifacts:/EXP", text)


def run_of(run: Any) -> Any:
    info = run.info
    return {
        "id": info.run_id, "name": info.run_name, "experiment": info.experiment_id == exp, "status": info.status, "start": info.start_time,
        "end": info.end_time, "stage": info.lifecycle_stage, "artifacts": info.artifact_uri, "user": info.user_id,
        "metrics": dict(run.data.metrics), "params": dict(run.data.params),
        "tags": {k: v for k, v in run.data.tags.items() if k not in ("mlflow.source.name", "mlflow.source.git.commit")},
    }  # fmt: skip


def found(**more: Any) -> list[Any]:
    """Names of the runs that a search gives, in its order."""
    return [run.info.run_name for run in client.search_runs([exp], **more)]


# ── experiments ───────────────────────────────────────────────────────────────
exp = client.create_experiment("calls", tags={"team": "vision"})


@call
def get_experiment():
    e = client.get_experiment(exp)
    return [e.name, e.lifecycle_stage, e.tags, e.artifact_location, type(e.creation_time).__name__, e.experiment_id == exp]


@call
def get_experiment_by_name():
    return client.get_experiment_by_name("calls").experiment_id == exp


@call
def get_experiment_by_a_name_that_is_not_there():
    return client.get_experiment_by_name("nowhere")


@call
def get_experiment_that_is_not_there():
    return client.get_experiment("987654")


@call
def create_experiment_twice():
    return client.create_experiment("calls")


@call
def create_experiment_without_a_name():
    return client.create_experiment("")


@call
def default_experiment():
    e = client.get_experiment("0")
    return [e.name, e.lifecycle_stage]


@call
def experiment_tags():
    client.set_experiment_tag(exp, "k", "v")
    client.set_experiment_tag(exp, "k", "w")
    return client.get_experiment(exp).tags


@call
def delete_experiment_tag():
    client.delete_experiment_tag(exp, "k")
    return client.get_experiment(exp).tags


@call
def rename_experiment():
    client.rename_experiment(exp, "calls-renamed")
    return [client.get_experiment(exp).name, client.get_experiment_by_name("calls")]


second = client.create_experiment("zweites", tags={"team": "audio"})


@call
def rename_experiment_to_a_name_that_is_taken():
    return client.rename_experiment(second, "calls-renamed")


@call
def delete_and_restore_experiment():
    client.delete_experiment(second)
    gone = client.get_experiment(second).lifecycle_stage
    client.restore_experiment(second)
    return [gone, client.get_experiment(second).lifecycle_stage]


@call
def search_experiments_by_name():
    return [e.name for e in client.search_experiments(filter_string="name = 'calls-renamed'")]


@call
def search_experiments_like():
    return [e.name for e in client.search_experiments(filter_string="name LIKE 'calls%'")]


@call
def search_experiments_ilike():
    return [e.name for e in client.search_experiments(filter_string="name ILIKE 'CALLS%'")]


@call
def search_experiments_by_tag():
    return [e.name for e in client.search_experiments(filter_string="tags.team = 'audio'")]


@call
def search_experiments_by_two():
    return [e.name for e in client.search_experiments(filter_string="tags.team = 'audio' AND name != 'x'")]


@call
def search_experiments_in_order():
    return [e.name for e in client.search_experiments(order_by=["name DESC"])]


@call
def search_experiments_in_default_order():
    return [e.name for e in client.search_experiments()]


@call
def search_experiments_by_pages():
    first = client.search_experiments(max_results=1, order_by=["name ASC"])
    then = client.search_experiments(max_results=5, order_by=["name ASC"], page_token=first.token)
    return [[e.name for e in first], [e.name for e in then], then.token]


@call
def search_experiments_with_a_bad_filter():
    return client.search_experiments(filter_string="nonsense ~ 3")


@call
def search_deleted_experiments():
    client.delete_experiment(second)
    gone = [e.name for e in client.search_experiments(view_type=ViewType.DELETED_ONLY)]
    everything = sorted(e.name for e in client.search_experiments(view_type=ViewType.ALL))
    client.restore_experiment(second)
    return [gone, everything]


@call
def create_run_in_a_deleted_experiment():
    client.delete_experiment(second)
    try:
        return client.create_run(second)
    finally:
        client.restore_experiment(second)


# ── runs ──────────────────────────────────────────────────────────────────────
run = client.create_run(exp, start_time=STAMP - 5000, tags={"a": "1", "mlflow.user": "ada"}, run_name="first")
rid = run.info.run_id
names[rid] = "RUN"


@call
def create_run():
    return run_of(run)


@call
def get_run():
    return run_of(client.get_run(rid))


@call
def run_ids_are_32_hex_digits():
    return bool(re.fullmatch(r"[0-9a-f]{32}", rid))


@call
def get_run_that_is_not_there():
    return client.get_run("0" * 32)


@call
def a_run_without_a_name_gets_one():
    r = client.create_run(second)
    return [bool(r.info.run_name), r.data.tags["mlflow.runName"] == r.info.run_name, r.info.status]


@call
def log_metric():
    for step, value in enumerate([0.9, 0.5, 0.7]):
        client.log_metric(rid, "loss", value, timestamp=STAMP + step * 1000, step=step)
    return client.get_run(rid).data.metrics


@call
def metric_history():
    return [(m.key, m.value, m.timestamp, m.step) for m in client.get_metric_history(rid, "loss")]


@call
def metric_history_of_nothing():
    return client.get_metric_history(rid, "nothing")


@call
def a_repeated_point_is_one_point():
    client.log_metric(rid, "loss", 0.7, timestamp=STAMP + 2000, step=2)
    return len(client.get_metric_history(rid, "loss"))


@call
def an_older_step_is_not_the_latest():
    client.log_metric(rid, "loss", 5.0, timestamp=STAMP + 9000, step=1)
    return [client.get_run(rid).data.metrics["loss"], len(client.get_metric_history(rid, "loss"))]


@call
def the_same_step_twice():
    client.log_metric(rid, "twice", 1.0, timestamp=STAMP, step=3)
    client.log_metric(rid, "twice", 2.0, timestamp=STAMP + 1, step=3)
    client.log_metric(rid, "twice", 0.5, timestamp=STAMP + 1, step=3)
    return [client.get_run(rid).data.metrics["twice"], sorted(m.value for m in client.get_metric_history(rid, "twice"))]


@call
def not_a_number_and_infinite():
    client.log_metric(rid, "nan", float("nan"), timestamp=STAMP, step=0)
    client.log_metric(rid, "inf", float("inf"), timestamp=STAMP, step=0)
    client.log_metric(rid, "minf", float("-inf"), timestamp=STAMP, step=0)
    metrics = client.get_run(rid).data.metrics
    return {key: [metrics[key], [m.value for m in client.get_metric_history(rid, key)]] for key in ("nan", "inf", "minf")}


@call
def negative_steps():
    client.log_metric(rid, "neg", 1.5, timestamp=STAMP, step=-4)
    return [(m.value, m.step) for m in client.get_metric_history(rid, "neg")]


@call
def large_and_small_numbers():
    for step, value in enumerate([1e308, 5e-324, -0.0, 123456789.123456789, 1e-10]):
        client.log_metric(rid, "sizes", value, timestamp=STAMP, step=step)
    return [m.value for m in client.get_metric_history(rid, "sizes")]


@call
def metric_names():
    for key in ("a/b/c", "with space", "dots.and-dashes_1", "colon:too"):
        client.log_metric(rid, key, 1.0, timestamp=STAMP, step=0)
    return sorted(key for key in client.get_run(rid).data.metrics if key[0] in "awdc")


@call
def a_bad_metric_name():
    return client.log_metric(rid, "no$dollar", 1.0)


@call
def a_metric_name_with_dots_up():
    return client.log_metric(rid, "../up", 1.0)


@call
def a_metric_name_that_is_too_long():
    return client.log_metric(rid, "m" * 251, 1.0)


@call
def a_metric_that_is_text():
    return client.log_metric(rid, "text", "abc")


@call
def log_param():
    client.log_param(rid, "lr", 0.01)
    client.log_param(rid, "name", "résumé ✓")
    client.log_param(rid, "empty", "")
    return client.get_run(rid).data.params


@call
def log_param_twice_with_one_value():
    client.log_param(rid, "lr", 0.01)
    return client.get_run(rid).data.params["lr"]


@call
def a_param_that_is_too_long():
    client.log_param(rid, "long", "x" * 6001)
    return len(client.get_run(rid).data.params["long"])


@call
def a_param_of_6000_characters():
    client.log_param(rid, "fits", "x" * 6000)
    return len(client.get_run(rid).data.params["fits"])


@call
def set_and_delete_tag():
    client.set_tag(rid, "t", "one")
    client.set_tag(rid, "t", "two")
    before = client.get_run(rid).data.tags["t"]
    client.delete_tag(rid, "t")
    return [before, "t" in client.get_run(rid).data.tags]


@call
def delete_a_tag_that_is_not_there():
    return client.delete_tag(rid, "nothing")


@call
def rename_a_run_by_its_tag():
    client.set_tag(rid, "mlflow.runName", "renamed")
    shown = client.get_run(rid)
    client.update_run(rid, name="first")
    again = client.get_run(rid)
    return [shown.info.run_name, again.info.run_name, again.data.tags["mlflow.runName"]]


@call
def log_batch():
    metrics = [Metric("acc", i / 10, STAMP + i, i) for i in range(10)] + [Metric("f1", 0.5, STAMP, 0)]
    client.log_batch(rid, metrics=metrics, params=[Param("layers", "3"), Param("act", "relu")], tags=[RunTag("b", "2")])
    r = client.get_run(rid)
    return [r.data.metrics["acc"], r.data.params["layers"], r.data.tags["b"], len(client.get_metric_history(rid, "acc"))]


@call
def log_an_empty_batch():
    return client.log_batch(rid)


@call
def a_batch_of_1000():
    client.log_batch(rid, metrics=[Metric("many", float(i), STAMP + i, i) for i in range(1000)])
    history = client.get_metric_history(rid, "many")
    return [len(history), history[0].value, history[-1].value]


@call
def params_100_at_once():
    r = client.create_run(second, run_name="params").info.run_id
    client.log_batch(r, params=[Param(f"p{i}", str(i)) for i in range(100)])
    return len(client.get_run(r).data.params)


@call
def set_terminated():
    client.set_terminated(rid, "FAILED", end_time=STAMP + 50_000)
    r = client.get_run(rid)
    return [r.info.status, r.info.end_time]


@call
def run_again():
    client.update_run(rid, status="RUNNING")
    return client.get_run(rid).info.status


@call
def statuses():
    seen = []
    for status in ("SCHEDULED", "FINISHED", "KILLED", "RUNNING"):
        client.update_run(rid, status=status)
        seen.append(client.get_run(rid).info.status)
    return seen


@call
def a_status_that_is_none():
    return client.update_run(rid, status="SLEEPING")


@call
def delete_and_restore_run():
    client.delete_run(rid)
    gone = client.get_run(rid).info.lifecycle_stage
    hidden = rid in [r.info.run_id for r in client.search_runs([exp])]
    client.restore_run(rid)
    return [gone, hidden, client.get_run(rid).info.lifecycle_stage]


@call
def log_to_a_deleted_run():
    client.delete_run(rid)
    try:
        return client.log_metric(rid, "late", 1.0)
    finally:
        client.restore_run(rid)


@call
def log_to_a_run_that_is_not_there():
    return client.log_metric("f" * 32, "x", 1.0)


# ── searching ─────────────────────────────────────────────────────────────────
ids = []
for i, (lr, acc, opt) in enumerate([("0.1", 0.5, "sgd"), ("0.01", 0.9, "adam"), ("0.001", 0.7, "adam"), ("1.0", float("nan"), "SGD")]):
    r = client.create_run(exp, start_time=STAMP + i * 1000, run_name=f"s{i}", tags={"opt": opt, "with space": f"v{i}"})
    ids.append(r.info.run_id)
    names[r.info.run_id] = f"RUN_S{i}"
    client.log_param(r.info.run_id, "lr", lr)
    client.log_metric(r.info.run_id, "score", acc, timestamp=STAMP, step=0)
    client.log_metric(r.info.run_id, "val/acc", acc, timestamp=STAMP, step=0)
    client.set_terminated(r.info.run_id, "FINISHED" if i % 2 == 0 else "FAILED", end_time=STAMP + 100_000 - i)
client.log_metric(ids[0], "only-first", 3.0, timestamp=STAMP, step=0)

FILTERS = [
    "metrics.score > 0.6", "metrics.score >= 0.7", "metrics.score < 0.6", "metrics.score = 0.5", "metrics.score != 0.5", "metric.score <= 0.7",
    "params.lr = '0.01'", "params.lr != '0.01'", "param.lr LIKE '0.0%'", "parameter.lr = \"0.1\"", "params.lr ILIKE '0.0%'", "tags.opt = 'adam'", "tags.opt ILIKE 'sgd'",
    "tags.opt LIKE 's%'", "tag.opt != 'adam'", "tags.`with space` = 'v1'", 'tags."with space" = \'v2\'', "metrics.`val/acc` > 0.6", 'metrics."val/acc" > 0.8',
    "attributes.status = 'FINISHED'", "status = 'FAILED'", "attributes.run_name = 's1'", "run_name LIKE 's%'", "attributes.run_name ILIKE 'S%'", "tags.mlflow.runName = 's2'",
    f"attributes.start_time > {STAMP + 1500}", f"start_time <= {STAMP + 1000}", f"attributes.end_time = {STAMP + 100_000}", "attribute.artifact_uri LIKE 'mlflow-artifacts:%'",
    f"attributes.run_id = '{ids[1]}'", f"run_id IN ('{ids[0]}', '{ids[2]}')", f"attributes.run_id NOT IN ('{ids[0]}')", f"run_id != '{ids[1]}' AND tags.opt = 'adam'",
    "metrics.score > 0.4 AND params.lr != '0.1' AND tags.opt = 'adam'", "metrics.score > 0.6 and status = 'FINISHED'", "tags.nothing = 'x'", "tags.nothing != 'x'", "params.nothing IS NULL", "params.lr IS NOT NULL",
    "tags.opt IS NULL", "metrics.score > 0.6 OR metrics.score < 0.1", "metrics.score > 'abc'", "params.lr > 3", "params.lr = 3", "nonsense", "attributes.nothing = 'x'", "metrics.score LIKE 'x'", "status > 'FINISHED'",
    "start_time LIKE 'x'", "tags.opt IN ('adam')", "user_id = 'nobody'", "attributes.run_name IN ('s0','s3')", "created > 3", "", "params.lr = '0.01' AND", "metrics.score = 0.5; DROP TABLE runs",
    "metrics.score > -1", "metrics.score > 5e-1", "dataset.name = 'iris'", "datasets.name = 'iris'",
]  # fmt: skip
for text in FILTERS:

    def search(text: str = text) -> Any:
        return found(filter_string=text)

    search.__name__ = f"search_runs[{plain(text)}]"
    call(search)

ORDERS = [
    ["metrics.score DESC"], ["metrics.score ASC"], ["metrics.score"], ["params.lr ASC"], ["params.lr DESC"], ["tags.opt ASC", "metrics.score DESC"], ["attributes.start_time DESC"], ["attributes.start_time ASC"],
    ["start_time"], ["end_time DESC"], ["attributes.run_name ASC"], ["run_name DESC"], ["status ASC", "run_name ASC"], ["metrics.`val/acc` DESC"], ["metrics.`only-first` ASC"], ["metrics.`only-first` DESC"],
    ["metrics.nothing DESC"], ["params.nothing ASC"], ["nonsense"], ["metrics.score SIDEWAYS"], ["attributes.nothing"], ["tags.`with space` DESC"], ["created"], ["Created DESC"], ["run_id ASC"][:0],
]  # fmt: skip
for order in ORDERS:

    def search_ordered(order: list[str] = order) -> Any:
        return found(order_by=order)

    search_ordered.__name__ = f"search_runs ordered by {order}"
    call(search_ordered)


@call
def search_by_pages():
    pages, token = [], None
    while True:
        page = client.search_runs([exp], max_results=2, order_by=["attributes.start_time ASC"], page_token=token)
        pages.append([r.info.run_name for r in page])
        token = page.token
        if not token:
            return pages


@call
def search_with_a_bad_token():
    return client.search_runs([exp], page_token="nonsense!")


@call
def search_in_no_experiment():
    return client.search_runs([])


@call
def search_in_an_experiment_that_is_not_there():
    return list(client.search_runs(["424242"]))


@call
def search_in_two_experiments():
    return sorted(r.info.run_name for r in client.search_runs([exp, second]) if r.info.run_name in ("s0", "params"))


@call
def search_too_many():
    return client.search_runs([exp], max_results=50_001)


@call
def search_deleted_runs():
    client.delete_run(ids[3])
    views = {view: sorted(found(run_view_type=getattr(ViewType, view))) for view in ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")}
    client.restore_run(ids[3])
    return views


@call
def search_as_a_table():
    table = mlflow.search_runs([exp], filter_string="metrics.score > 0.6", order_by=["metrics.score DESC"])
    return [sorted(c for c in table.columns if not c.startswith("tags.mlflow")), list(table["metrics.score"]), list(table["params.lr"])]


@call
def what_a_search_says_of_a_run():
    return run_of(next(r for r in client.search_runs([exp]) if r.info.run_name == "s1"))


# ── artifacts ─────────────────────────────────────────────────────────────────
here = Path(tempfile.mkdtemp())
(here / "one.txt").write_text("one")
(here / "deep" / "er").mkdir(parents=True)
(here / "deep" / "er" / "two.bin").write_bytes(bytes(range(256)))
(here / "deep" / "a=b c ü.txt").write_text("odd")


def tree(run_id: str, path: str | None = None) -> list[Any]:
    rows = []
    for file in client.list_artifacts(run_id, path):
        rows.append([file.path, file.is_dir, file.file_size])
        if file.is_dir:
            rows += tree(run_id, file.path)
    return rows


@call
def log_artifacts():
    client.log_artifact(rid, str(here / "one.txt"))
    client.log_artifact(rid, str(here / "one.txt"), "sub/folder")
    client.log_artifacts(rid, str(here), "all")
    return tree(rid)


@call
def download_artifacts():
    got = Path(client.download_artifacts(rid, "all", str(here.parent / tempfile.mkdtemp())))
    return {str(p.relative_to(got)): len(p.read_bytes()) for p in sorted(got.rglob("*")) if p.is_file()}


@call
def download_one_artifact():
    return Path(client.download_artifacts(rid, "sub/folder/one.txt", tempfile.mkdtemp())).read_text()


@call
def an_artifact_logged_again_is_replaced():
    (here / "one.txt").write_text("one, again")
    client.log_artifact(rid, str(here / "one.txt"))
    return Path(client.download_artifacts(rid, "one.txt", tempfile.mkdtemp())).read_text()


@call
def text_dict_and_table():
    client.log_text(rid, "hello", "notes/hello.txt")
    client.log_dict(rid, {"a": [1, 2]}, "notes/a.json")
    client.log_table(rid, data={"x": [1, 2], "y": ["a", "b"]}, artifact_file="notes/t.json")
    return [tree(rid, "notes"), "mlflow.loggedArtifacts" in client.get_run(rid).data.tags]


@call
def list_artifacts_of_nothing():
    return client.list_artifacts(rid, "not/there")


@call
def list_artifacts_outside():
    try:
        return client.list_artifacts(rid, "../../")
    except Exception as error:
        return type(error).__name__


@call
def download_what_is_not_there():
    return client.download_artifacts(rid, "not/there.txt", tempfile.mkdtemp())


@call
def no_artifacts():
    return client.list_artifacts(ids[0])


# ── the fluent way ────────────────────────────────────────────────────────────
@call
def fluent():
    mlflow.set_experiment("fluent")
    with mlflow.start_run(run_name="parent") as parent:
        mlflow.log_params({"a": 1, "b": "two"})
        mlflow.log_metrics({"x": 1.0, "y": 2.0}, step=1)
        mlflow.set_tags({"k": "v", "mlflow.note.content": "a note"})
        with mlflow.start_run(run_name="child", nested=True) as child:
            mlflow.log_metric("z", 3)
    names[parent.info.run_id] = "PARENT"
    names[child.info.run_id] = "CHILD"
    shown = client.get_run(child.info.run_id)
    above = client.get_parent_run(child.info.run_id)
    return [
        shown.data.tags["mlflow.parentRunId"],
        above.info.run_id,
        above.data.metrics,
        above.data.params,
        above.data.tags["k"],
        above.info.status,
        shown.data.metrics,
    ]


@call
def a_failed_run():
    try:
        with mlflow.start_run(run_name="broken") as broken:
            raise RuntimeError("boom")
    except RuntimeError:
        return client.get_run(broken.info.run_id).info.status


@call
def resume_a_run():
    with mlflow.start_run(run_name="again") as first:
        mlflow.log_metric("m", 1, step=0)
    with mlflow.start_run(run_id=first.info.run_id) as then:
        mlflow.log_metric("m", 2, step=1)
        during = client.get_run(then.info.run_id).info
    after = client.get_run(first.info.run_id)
    return [during.status, after.info.status, after.data.metrics, len(client.get_metric_history(first.info.run_id, "m"))]


@call
def log_input():
    from mlflow.data.dataset_source_registry import resolve_dataset_source
    from mlflow.data.meta_dataset import MetaDataset

    with mlflow.start_run(run_name="data") as r:
        mlflow.log_input(MetaDataset(resolve_dataset_source(str(here)), name="iris"), context="training")
    inputs = client.get_run(r.info.run_id).inputs.dataset_inputs
    return [[i.dataset.name, i.dataset.source_type, [(t.key, t.value) for t in i.tags], bool(i.dataset.digest)] for i in inputs]


@call
def search_by_dataset():
    e = client.get_experiment_by_name("fluent").experiment_id
    return [r.info.run_name for r in client.search_runs([e], filter_string="dataset.name = 'iris'")]


@call
def search_all_experiments():
    return sorted(mlflow.search_runs(search_all_experiments=True, filter_string="run_name = 'parent'")["tags.mlflow.runName"])


@call
def last_active_run():
    return mlflow.last_active_run().info.run_name


@call
def asynchronous_logging():
    r = client.create_run(second, run_name="async").info.run_id
    for i in range(20):
        client.log_metric(r, "m", float(i), timestamp=STAMP + i, step=i, synchronous=False)
    mlflow.flush_async_logging()
    import time

    for _ in range(100):
        if len(client.get_metric_history(r, "m")) == 20:
            break
        time.sleep(0.1)
    return [m.value for m in client.get_metric_history(r, "m")]


# ── logged models (3.x) ───────────────────────────────────────────────────────
if hasattr(client, "create_logged_model"):

    def model_of(m: Any) -> Any:
        return [m.name, str(m.status), dict(m.tags), dict(m.params), m.source_run_id, m.experiment_id == exp, m.artifact_location, m.model_type,
                sorted((x.key, x.value, x.step) for x in m.metrics or [])]  # fmt: skip

    @call
    def create_logged_model():
        m = client.create_logged_model(exp, name="net", source_run_id=rid, tags={"t": "1"}, params={"p": "2"}, model_type="torch")
        names[m.model_id] = "MODEL"
        fields["_model"] = m.model_id
        return [model_of(m), m.model_id[:2]]

    model = fields.pop("_model", "")

    @call
    def finalize_logged_model():
        return model_of(client.finalize_logged_model(model, "READY"))

    @call
    def logged_model_tags():
        client.set_logged_model_tags(model, {"x": "y", "z": "w"})
        client.delete_logged_model_tag(model, "z")
        return model_of(client.get_logged_model(model))

    @call
    def metrics_of_a_model():
        client.log_metric(rid, "test_acc", 0.75, timestamp=STAMP, step=7, model_id=model)
        client.log_batch(rid, metrics=[Metric("test_f1", 0.5, STAMP, 7, model_id=model)])
        return model_of(client.get_logged_model(model))

    @call
    def models_of_a_run():
        from mlflow.entities import LoggedModelInput, LoggedModelOutput

        client.log_outputs(rid, models=[LoggedModelOutput(model, 7)])
        client.log_inputs(ids[0], models=[LoggedModelInput(model)])
        out, into = client.get_run(rid).outputs, client.get_run(ids[0]).inputs
        return [[(m.model_id, m.step) for m in out.model_outputs], [m.model_id for m in into.model_inputs]]

    @call
    def search_logged_models():
        return [m.name for m in client.search_logged_models([exp])]

    @call
    def search_logged_models_with_a_filter():
        return [
            [m.name for m in client.search_logged_models([exp], filter_string=text)]
            for text in (
                "name = 'net'",
                "name = 'other'",
                "metrics.test_acc > 0.5",
                "params.p = '2'",
                "tags.x = 'y'",
                "source_run_id != 'q'",
            )
        ]

    @call
    def a_model_that_is_not_there():
        return client.get_logged_model("m-" + "0" * 32)

    @call
    def artifacts_of_a_model():
        client.log_model_artifacts(model, str(here))
        return sorted(f.path for f in client.list_logged_model_artifacts(model))

    @call
    def delete_logged_model():
        client.delete_logged_model(model)
        return [m.name for m in client.search_logged_models([exp])]


Path(sys.argv[2]).write_text(json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False))
