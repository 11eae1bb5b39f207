"""Further calls of MLflow's client, for the same comparison as `calls.py`: odd arguments, errors, pages, second lives, models and their versions.

`python further.py URL FILE` writes one JSON object, call → answer, as `calls.py` does. Each line of a table is one call.
"""

from __future__ import annotations

import math
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import asking
import mlflow
from asking import T, ask, both, client, fields, keep
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag, ViewType


def info(id: str) -> Any:
    i = client.get_run(id).info
    return [i.run_name, i.status, i.start_time, i.end_time, i.lifecycle_stage, i.user_id]


def experiment(id: str) -> Any:
    e = client.get_experiment(id)
    return [e.name, e.lifecycle_stage, e.tags, type(e.creation_time).__name__, type(e.last_update_time).__name__]


def elsewhere(id: str) -> Any:
    run = client.create_run(id).info
    where = client.get_experiment(id).artifact_location
    found = client.search_runs([id], "attributes.artifact_uri LIKE 's3://bucket/some/%'")
    return [where, run.artifact_uri.replace(run.run_id, "RUN"), len(found)]


def history(id: str, key: str) -> Any:
    return [(m.key, m.value, m.timestamp, m.step) for m in client.get_metric_history(id, key)]


def runs(*experiments: str, **more: Any) -> Any:
    return [r.info.run_name for r in client.search_runs(list(experiments) or [E], **more)]


E = client.create_experiment("further", tags={"a": "1", "b b": "2"})
new_run = partial(asking.new_run, experiment=E)
R = new_run("r", start_time=T)

# ── experiments ───────────────────────────────────────────────────────────────
odd_ids = ["abc", "", "-1", "1.5", "99999999999999999999", "a b", "0x1", None]
ask({f"get_experiment({id!r})": lambda id=id: experiment(id) for id in odd_ids})
ask({f"delete_experiment({id!r})": lambda id=id: client.delete_experiment(id) for id in ("abc", "424242")})
ask({f"restore_experiment({id!r})": lambda id=id: client.restore_experiment(id) for id in ("abc", "424242")})
ask({f"rename_experiment({id!r})": lambda id=id: client.rename_experiment(id, "x") for id in ("abc", "424242")})
ask({f"set_experiment_tag({id!r})": lambda id=id: client.set_experiment_tag(id, "a", "b") for id in ("abc", "424242")})
ask({f"create_run in {id!r}": lambda id=id: client.create_run(id) for id in ("abc", "424242", "-1")})
ask({f"search_runs in {ids!r}": lambda ids=ids: runs(*ids) for ids in (["abc"], ["424242", "abc"], ["-1"], [""])})
G = client.create_experiment("gone")
ask(
    {
        "experiment names": lambda: [
            experiment(client.create_experiment(name))[0] for name in (" spaced ", "ünï ✓", "a/b:c", "x" * 500, "'quo\"te'")
        ],
        "an experiment's name of 501 characters": lambda: client.create_experiment("y" * 501),
        "an experiment's name of spaces": lambda: client.create_experiment("   "),
        "an experiment's name that is a number": lambda: client.create_experiment(5),
        "an artifact location with ..": lambda: bool(client.create_experiment("loc", artifact_location="mlflow-artifacts:/../x")),
        "an artifact location with a query": lambda: bool(client.create_experiment("loc2", artifact_location="s3://b/x?y=1")),
        "an artifact location elsewhere": lambda: elsewhere(client.create_experiment("loc3", artifact_location="s3://bucket/some/")),
        "an experiment's tag of 5000 characters": lambda: both(
            lambda: client.set_experiment_tag(E, "long", "x" * 5000), lambda: len(client.get_experiment(E).tags["long"])
        ),
        "an experiment's tag of 6000 characters": lambda: client.set_experiment_tag(E, "longer", "x" * 6000),
        "an experiment's tag with a bad key": lambda: client.set_experiment_tag(E, "a$b", "x"),
        "an experiment's tag with a long key": lambda: client.set_experiment_tag(E, "k" * 251, "x"),
        "an experiment's tag without a key": lambda: client.set_experiment_tag(E, "", "x"),
        "an experiment's tag that is a number": lambda: both(
            lambda: client.set_experiment_tag(E, "n", 5), lambda: client.get_experiment(E).tags["n"]
        ),
        "an experiment's tag that is empty": lambda: both(
            lambda: client.set_experiment_tag(E, "e", ""), lambda: client.get_experiment(E).tags.get("e")
        ),
        "delete_experiment_tag twice": lambda: both(*[lambda: client.delete_experiment_tag(E, "n")] * 2),
        "delete_experiment": lambda: both(lambda: client.delete_experiment(G), lambda: experiment(G)[:2]),
        "delete_experiment twice": lambda: client.delete_experiment(G),
        "rename a deleted experiment": lambda: client.rename_experiment(G, "gone2"),
        "tag a deleted experiment": lambda: client.set_experiment_tag(G, "a", "b"),
        "untag a deleted experiment": lambda: client.delete_experiment_tag(G, "a"),
        "create a deleted experiment again": lambda: client.create_experiment("gone"),
        "get a deleted experiment by name": lambda: client.get_experiment_by_name("gone").lifecycle_stage,
        "restore_experiment": lambda: both(lambda: client.restore_experiment(G), lambda: experiment(G)[:2]),
        "restore_experiment twice": lambda: client.restore_experiment(G),
        "delete the default experiment": lambda: both(
            lambda: client.delete_experiment("0"), lambda: client.get_experiment("0").lifecycle_stage
        ),
        "restore the default experiment": lambda: client.restore_experiment("0"),
        "rename_experiment to nothing": lambda: client.rename_experiment(E, ""),
        "rename_experiment to itself": lambda: client.rename_experiment(E, "further"),
        "set_experiment of a deleted one": lambda: both(lambda: client.delete_experiment(G), lambda: mlflow.set_experiment("gone")),
        "set_experiment by id": lambda: mlflow.set_experiment(experiment_id=E).name,
        "set_experiment by an id that is not there": lambda: mlflow.set_experiment(experiment_id="424242"),
    }
)
fields.pop("restore the default experiment")
client.restore_experiment(G)


def experiments(**more: Any) -> Any:
    mine = ("further", "gone", "Default", "a/b:c", "ünï ✓")
    return [e.name for e in client.search_experiments(**more) if e.name in mine]


for text in (
    "name = 'further'", "name != 'further'", "name LIKE '%urthe%'", "name ILIKE 'FUR%'", "name LIKE 'FUR%'", "attribute.name = 'further'", "attributes.name = 'gone'",
    "tags.a = '1'", "tag.a = '1'", "tags.`b b` = '2'", 'tags."b b" = \'2\'', "tags.a != '1'", "tags.a LIKE '1%'", "tags.nothing = 'x'", "tags.a IS NULL", "tags.a IS NOT NULL",
    f"creation_time > {T}", f"creation_time < {T}", f"last_update_time >= {T}", "creation_time > 'x'", "name > 'a'", "experiment_id = '0'", "attr.name = 'gone'", "Attribute.name = 'gone'", "lifecycle_stage = 'active'", "metrics.a > 1", "params.a = '1'",
    "name = further", "name IN ('further', 'gone')", "name = 'further' OR name = 'gone'", "name = 'further' AND tags.a = '1'", "name == 'further'", "NAME = 'further'", "'name' = 'further'", "name", "tags.a = 1",
):  # fmt: skip
    ask({f"search_experiments[{text}]": lambda text=text: experiments(filter_string=text)})
for order in (
    ["name"], ["name ASC"], ["name DESC"], ["experiment_id ASC"], ["experiment_id DESC"], ["creation_time"], ["lifecycle_stage"], ["nothing"], ["tags.a"], ["metrics.a"],
    ["name SIDEWAYS"], ["attribute.name DESC"], [""],
):  # fmt: skip
    ask({f"search_experiments ordered by {order}": lambda order=order: experiments(order_by=order)})
ask(
    {
        f"search_experiments of {size}": lambda size=size: len(client.search_experiments(max_results=size)) > 0
        for size in (0, -1, 50_000, 50_001)
    }
)
ask({"search_experiments with a bad token": lambda: experiments(page_token="nonsense")})

# ── runs ──────────────────────────────────────────────────────────────────────
ask({f"get_run({id!r})": lambda id=id: info(id) for id in ("nothing", "", "0" * 31, "../x", "x" * 300)})
ask({f"{verb} of a run that is not there": lambda verb=verb, more=more: getattr(client, verb)("f" * 32, *more) for verb, more in (
    ("delete_run", ()), ("restore_run", ()), ("set_terminated", ()), ("update_run", ("FINISHED",)), ("set_tag", ("a", "b")), ("delete_tag", ("a",)), ("log_param", ("a", "b")),
    ("log_batch", ([Metric("a", 1, T, 0)],)), ("log_inputs", ([],)), ("get_metric_history", ("a",)), ("list_artifacts", ()), ("get_parent_run", ()), ("download_artifacts", ("x",)),
)})  # fmt: skip
ask(
    {
        "get_metric_history without a key": lambda: client.get_metric_history(R, ""),
        "a run with an early start": lambda: info(new_run("past", start_time=1)),
        "a run with a negative start": lambda: info(new_run("negative", start_time=-5000)),
        "a run with no name": lambda: bool(client.create_run(E, run_name="").info.run_name),
        "a run with a name of 300 characters": lambda: len(
            client.get_run(client.create_run(G, run_name="n" * 300).info.run_id).info.run_name
        ),
        "a run with a name tag": lambda: client.create_run(G, tags={"mlflow.runName": "tagged"}).info.run_name,
        "a run with two names": lambda: client.create_run(G, run_name="one", tags={"mlflow.runName": "two"}).info.run_name,
        "a run with a bad tag": lambda: client.create_run(G, tags={"a$": "x"}).data.tags["a$"],
        "a run with a tag that is a number": lambda: client.create_run(G, tags={"n": 5}).data.tags["n"],
        "a run with a long tag": lambda: len(client.create_run(G, tags={"n": "x" * 9000}).data.tags["n"]),
        "a run with a tag of None": lambda: client.create_run(G, tags={"n": None}).data.tags.get("n"),
        "update_run with nothing": lambda: both(lambda: client.update_run(R), lambda: info(R)),
        "update_run with a name": lambda: both(lambda: client.update_run(R, name="r2"), lambda: info(R)),
        "update_run with an empty name": lambda: both(lambda: client.update_run(R, name=""), lambda: info(R)),
        "update_run with both": lambda: both(lambda: client.update_run(R, "FINISHED", "r"), lambda: info(R)),
        "update_run with a bad status": lambda: client.update_run(R, "DONE"),
        "set_terminated with a bad status": lambda: client.set_terminated(R, "DONE"),
        "set_terminated with RUNNING": lambda: both(lambda: client.set_terminated(R, "RUNNING", end_time=T + 1), lambda: info(R)[1]),
        "set_terminated": lambda: both(lambda: client.set_terminated(R, end_time=T + 5), lambda: info(R)),
        "set_terminated again": lambda: both(lambda: client.set_terminated(R, "KILLED", end_time=T + 9), lambda: info(R)),
        "update_run keeps the end": lambda: both(lambda: client.update_run(R, "FAILED"), lambda: info(R)),
        "the end of a run that went on": lambda: both(
            lambda: client.update_run(R, "RUNNING"), lambda: client.update_run(R, "KILLED"), lambda: info(R)
        ),
        "delete_run twice": lambda: both(*[lambda: client.delete_run(R)] * 2),
        "update a deleted run": lambda: client.update_run(R, "FINISHED"),
        "set_terminated of a deleted run": lambda: client.set_terminated(R),
        "tag a deleted run": lambda: client.set_tag(R, "a", "b"),
        "untag a deleted run": lambda: client.delete_tag(R, "a"),
        "log_param to a deleted run": lambda: client.log_param(R, "late", "b"),
        "log_batch to a deleted run": lambda: client.log_batch(R, [Metric("late", 1, T, 0)]),
        "log_inputs to a deleted run": lambda: client.log_inputs(R, []),
        "history of a deleted run": lambda: client.get_metric_history(R, "a"),
        "list_artifacts of a deleted run": lambda: client.list_artifacts(R),
        "log_artifact to a deleted run": lambda: client.log_text(R, "x", "late.txt"),
        "restore_run twice": lambda: both(*[lambda: client.restore_run(R)] * 2, lambda: info(R)),
        "get_parent_run of none": lambda: client.get_parent_run(R),
    }
)

# ── metrics, params, tags ─────────────────────────────────────────────────────
M = new_run("m", start_time=T)


def logged(key: str, value: Any, **more: Any) -> Any:
    client.log_metric(M, key, value, **{"timestamp": T, **more})
    return [client.get_run(M).data.metrics[key], history(M, key)]


def param(key: Any, value: Any) -> Any:
    client.log_param(M, key, value)
    return client.get_run(M).data.params.get(str(key))


def tag(key: Any, value: Any) -> Any:
    client.set_tag(M, key, value)
    return client.get_run(M).data.tags.get(str(key))


ask(
    {
        "a negative timestamp": lambda: logged("negative", 1.0, timestamp=-5),
        "a timestamp of 0": lambda: logged("zero", 1.0, timestamp=0),
        "a timestamp in seconds": lambda: logged("seconds", 1.0, timestamp=1_700_000_000),
        "a timestamp with a fraction": lambda: logged("fraction", 1.0, timestamp=T + 0.5),
        "a timestamp far ahead": lambda: logged("ahead", 1.0, timestamp=T * 100),
        "a step with a fraction": lambda: logged("step", 1.0, step=1.5),
        "a step that is text": lambda: logged("step2", 1.0, step="a"),
        "a large step": lambda: logged("large", 1.0, step=2**62),
        "a step that is too large": lambda: logged("larger", 1.0, step=2**64),
        "a value that is an int": lambda: logged("int", 3),
        "a value that is a bool": lambda: logged("bool", True),
        "a value that is a text of a number": lambda: logged("numeral", "1.5"),
        "a value that is None": lambda: logged("none", None),
        "no key": lambda: logged("", 1.0),
        "a key of None": lambda: logged(None, 1.0),
        "a key with an accent": lambda: logged("précision", 1.0),
        "a key that ends with a slash": lambda: logged("a/", 1.0),
        "a key that begins with a slash": lambda: logged("/a", 1.0),
        "a key with two slashes": lambda: logged("a//b", 1.0),
        "a key with a dot": lambda: logged("a/./b", 1.0),
        "a key of one dot": lambda: logged(".", 1.0),
        "a key with spaces at its ends": lambda: logged(" a ", 1.0),
        "a key with a colon": lambda: logged("a:b", 1.0),
        "a key with a percent sign": lambda: logged("a%b", 1.0),
        "a key with a bracket": lambda: logged("a[0]", 1.0),
        "a key with a line": lambda: logged("a\nb", 1.0),
        "a key with a tab": lambda: logged("a\tb", 1.0),
        "a key with an at sign": lambda: logged("recall@5", 1.0),
        "a key of 250 characters": lambda: len(logged("k" * 250, 1.0)),
        "NaN and a number at one step": lambda: both(
            lambda: logged("mixed", math.nan), lambda: logged("mixed", 1.0), lambda: logged("mixed", math.nan)
        ),
        "a number, then NaN at a later step": lambda: both(lambda: logged("later", 1.0), lambda: logged("later", math.nan, step=1)),
        "two values at one step and time": lambda: both(
            lambda: logged("tie", 1.0), lambda: logged("tie", 2.0), lambda: logged("tie", -3.0)
        ),
        "a later time at an earlier step": lambda: both(
            lambda: logged("back", 1.0, step=5), lambda: logged("back", 2.0, step=3, timestamp=T + 99)
        ),
        "a metric with a dataset": lambda: both(
            lambda: client.log_metric(M, "dm", 1.0, timestamp=T, dataset_name="d", dataset_digest="1"), lambda: history(M, "dm")
        ),
        "log_metric gives": lambda: client.log_metric(M, "gives", 1.0),
        "params": lambda: [
            param("p1", 1),
            param("p2", 1.5),
            param("p3", True),
            param("p4", None),
            param("p5", [1, "a"]),
            param("p6", {"a": 1}),
        ],
        "a param with no key": lambda: param("", "x"),
        "a param with a bad key": lambda: param("a$b", "x"),
        "a param with a long key": lambda: param("k" * 251, "x"),
        "a param with a slash at the end": lambda: param("a/", "x"),
        "a param with newlines": lambda: param("lines", "a\nb\n"),
        "a param with spaces": lambda: param("spaces", "  x "),
        "log_param gives": lambda: client.log_param(M, "gives", "x"),
        "a tag of 8000 characters": lambda: len(tag("long", "x" * 8000)),
        "a tag of 8001 characters": lambda: len(tag("longer", "x" * 8001)),
        "tags": lambda: [tag("t1", 1), tag("t2", None), tag("t3", ""), tag("t4", True), tag("t5", {"a": 1}), tag("a/b.c:d e", "ok")],
        "a tag with no key": lambda: tag("", "x"),
        "a tag with a bad key": lambda: tag("a$b", "x"),
        "a tag with a long key": lambda: tag("k" * 251, "x"),
        "delete the name tag": lambda: both(
            lambda: client.delete_tag(M, "mlflow.runName"), lambda: client.get_run(M).data.tags.get("mlflow.runName")
        ),
        "set the user tag": lambda: both(lambda: client.set_tag(M, "mlflow.user", "bob"), lambda: info(M)[-1]),
        "an empty name tag": lambda: both(lambda: client.set_tag(M, "mlflow.runName", ""), lambda: info(M)[0]),
        "a name tag": lambda: both(lambda: client.set_tag(M, "mlflow.runName", "m"), lambda: info(M)[0]),
        "a batch with too many metrics": lambda: client.log_batch(M, [Metric(f"b{i}", 1, T, 0) for i in range(1001)]),
        "a batch with too many params": lambda: client.log_batch(M, params=[Param(f"b{i}", "1") for i in range(101)]),
        "a batch with too many tags": lambda: client.log_batch(M, tags=[RunTag(f"b{i}", "1") for i in range(101)]),
        "a batch with one param twice": lambda: client.log_batch(M, params=[Param("twice", "1"), Param("twice", "1")]),
        "a batch with one param twice, otherwise": lambda: client.log_batch(M, params=[Param("thrice", "1"), Param("thrice", "2")]),
        "a batch with one tag twice": lambda: both(
            lambda: client.log_batch(M, tags=[RunTag("twice", "1"), RunTag("twice", "2")]), lambda: client.get_run(M).data.tags["twice"]
        ),
        "a batch with a bad metric stores nothing": lambda: client.log_batch(M, [Metric("good", 1, T, 0), Metric("b$d", 1, T, 0)]),
        "nothing of that batch": lambda: "good" in client.get_run(M).data.metrics,
        "a batch with a bad param stores nothing": lambda: client.log_batch(M, [Metric("good2", 1, T, 0)], [Param("b$d", "x")]),
        "nothing of that batch either": lambda: "good2" in client.get_run(M).data.metrics,
        "a batch with a repeated metric": lambda: both(
            lambda: client.log_batch(M, [Metric("rep", 1, T, 0)] * 3), lambda: history(M, "rep")
        ),
        "a batch with values that are none": lambda: client.log_batch(M, [Metric("none", None, T, 0)]),
        "a batch with NaN": lambda: both(
            lambda: client.log_batch(M, [Metric("bnan", math.nan, T, 0), Metric("bnan", 2.0, T, 1)]), lambda: history(M, "bnan")
        ),
        "all metrics": lambda: {k: v for k, v in client.get_run(M).data.metrics.items() if k != "gives"},
        "all params": lambda: client.get_run(M).data.params,
        "all tags": lambda: {k: v for k, v in client.get_run(M).data.tags.items() if len(v) < 100},
    }
)

# ── lives ─────────────────────────────────────────────────────────────────────
L = new_run("l", start_time=T)


def life(steps: range, value: float, at: int) -> None:
    client.log_batch(L, [Metric("loss", value, T + at + step, step) for step in steps])


ask(
    {
        "a second life": lambda: both(
            lambda: life(range(10), 1.0, 0),
            lambda: client.set_terminated(L, end_time=T + 50),
            lambda: client.update_run(L, "RUNNING"),
            lambda: life(range(5, 8), 2.0, 100),
            lambda: [history(L, "loss"), client.get_run(L).data.metrics],
        ),
        "a third life": lambda: both(
            lambda: client.set_terminated(L, "FAILED", end_time=T + 150),
            lambda: client.update_run(L, "RUNNING"),
            lambda: life(range(7, 12), 3.0, 200),
            lambda: client.set_terminated(L, end_time=T + 250),
            lambda: [history(L, "loss"), client.get_run(L).data.metrics, info(L)],
        ),
        "a run of several lives is found by its last value": lambda: [
            runs(filter_string=f"run_name = 'l' AND metrics.loss = {value}") for value in (1, 2, 3)
        ],
    }
)

# ── searching ─────────────────────────────────────────────────────────────────
S = client.create_experiment("searched")
for i in range(6):
    r = new_run(f"s{i}", experiment=S, start_time=T + i * 1000, tags={"k k": f"v{i % 2}", "it's": "yes", "a.b": "dot", "plain": f"P{i}"})
    client.log_param(r, "lr", ["0.1", "0.01", "10", "2", "abc", "0.1"][i])
    if i != 3:
        client.log_metric(r, "m", [3.0, 1.0, math.nan, 0.0, 2.0, 1e9][i], timestamp=T)
    if i < 2:
        client.log_inputs(
            r, [DatasetInput(Dataset(f"d{i}", f"x{i}", "local", "here"), [InputTag("mlflow.data.context", ["train", "eval"][i])])]
        )
    if i < 4:
        client.set_terminated(r, ["FINISHED", "FAILED", "KILLED", "FINISHED"][i], end_time=T + 10_000 - i)
for text in (
    "tags.'k k' = 'v0'", 'tags."k k" = \'v0\'', "tags.`k k` = 'v0'", "tags.k k = 'v0'", "tags.`it's` = 'yes'", "tags.\"it's\" = 'yes'", "tags.a.b = 'dot'", "tags.`a.b` = 'dot'", "`tags`.plain = 'P1'",
    "tags.plain = 'P1' and tags.plain = 'P2'", "tags.plain LIKE 'p%'", "tags.plain ILIKE 'p_'", "tags.plain LIKE '%'", "tags.plain like 'P%'", "tags.plain ilike 'p1'", "tags.plain = \"P1\"", "tags.plain = `P1`",
    "params.lr > '1'", "params.lr >= '1'", "params.lr = 0.1", "params.lr LIKE '0.%'", "params.'lr' = '0.1'", "params.lr IN ('0.1', '2')", "params.lr IS NULL", "params.lr is not null", "params.other IS NULL",
    "metrics.m > 1", "metrics.m >= 1", "metrics.m < 2", "metrics.m != 1", "metrics.m = 1.0", "metrics.m = 1", "metrics.m > 1e0", "metrics.m > -.5", "metrics.m > +1", "metrics.m = NaN", "metrics.m = nan", "metrics.m = 'nan'",
    "metrics.m > Infinity", "metrics.m IS NULL", "metrics.'m' > 1", "metrics.m > '1'", "metrics.m in (1)", "m > 1", "metrics.m>1", "metrics.m > 1 AND metrics.m < 3", "metrics.m > 1 && metrics.m < 3",
    "NOT metrics.m > 1", "(metrics.m > 1)", "metrics.m BETWEEN 1 AND 2", "metrics.m > 1 AND", "metrics.m >", "> 1", "metrics.m == 1", "metrics.m <> 1",
    "status = 'finished'", "status != 'FINISHED'", "status LIKE 'F%'", "status ILIKE 'f%'", "status IN ('FINISHED', 'FAILED')", "status = FINISHED", "attributes.status = \"FAILED\"", "attr.status = 'KILLED'", "run.status = 'RUNNING'", "run_status = 'x'",
    "run_name = 's1'", "run_name != 's1'", "run_name IN ('s1', 's2')", "`run_name` = 's1'", "attributes.`run_name` = 's1'", "`run name` = 's1'", "attributes.`Run name` = 's1'", "attributes.`Run Name` = 's1'", "\"run name\" = 's1'", "'run_name' = 's1'", "Run_Name = 's1'", "RUN_NAME = 's1'",
    f"start_time >= {T + 3000}", f"start_time = '{T + 3000}'", f"start_time > {T + 3000}.5", f"end_time < {T + 10_000}", "end_time IS NULL", "end_time != 5", f"created >= {T + 4000}", f"Created >= {T + 4000}", "start_time > abc",
    "user_id = ''", "user_id != 'x'", "user_id LIKE '%'", "experiment_id = '1'", "lifecycle_stage = 'active'", "artifact_uri LIKE '%artifacts'", "attributes.artifact_uri = 'x'", "run_id = 'x'", "run_id LIKE '%'", "run_id IN ()", "run_id IN ('a' 'b')", "run_id IN 'a'", "run_id NOT IN ('a')", "run_uuid = 'x'",
    "dataset.name = 'd0'", "datasets.name = 'd0'", "dataset.digest = 'x1'", "dataset.context = 'train'", "dataset.name LIKE 'd%'", "dataset.name IN ('d0', 'd1')", "dataset.name NOT IN ('d0')", "dataset.name != 'd0'", "dataset.other = 'x'", "dataset.name = 'd0' AND dataset.context = 'eval'", "dataset.name = d0",
    "tags.plain = 'P1' AND params.lr = '0.01' AND metrics.m < 5 AND status = 'FAILED'", "tags.`mlflow.runName` = 's2'", "tags.mlflow.runName LIKE 's%'", "tag.plain = 'P3'", "Tags.plain = 'P3'", "TAGS.plain = 'P3'", "labels.plain = 'P3'", "tags = 'x'", "tags.plain = ''", "tags.plain = 'it''s'",
    "   ", "'", "\"", "`", "tags.plain = 'P1", "tags.plain = 'P1' -- comment", "tags.plain = 'P1'; tags.plain = 'P2'", "tags.plain != 'P1' AND tags.other IS NULL", "params.lr NOT LIKE '0%'", "tags.plain NOT IN ('P1')", "1 = 1", "true",
):  # fmt: skip
    ask({f"search_runs[{text}]": lambda text=text: runs(S, filter_string=text)})
for order in (
    ["metrics.m"], ["metrics.m ASC"], ["metrics.m DESC"], ["metrics.m desc", "start_time asc"], ["params.lr"], ["params.lr DESC"], ["tags.`k k`", "params.lr"], ["tags.'k k' DESC"], ["tags.\"k k\" DESC"], ["status"], ["status DESC", "start_time"], ["end_time"], ["end_time DESC"],
    ["attributes.end_time"], ["run_name DESC"], ["attribute.run_name"], ["`run name`"], ["attributes.`Run Name` DESC"], ["user_id"], ["lifecycle_stage"], ["experiment_id"], ["nothing"], ["attributes.nothing"], ["dataset.name"], ["metrics"],
    ["metrics.m ASC DESC"], ["metrics.m ascending"], ["metrics.m, start_time"], ["metrics.m > 1"], [""], ["Created"], ["created DESC"], ["metrics.m  DESC"], ["METRICS.m"], ["tags.plain"], ["params.nothing", "run_name"], ["m"], ["'metrics.m'"], ["1"],
):  # fmt: skip
    ask({f"search_runs ordered by {order}": lambda order=order: runs(S, order_by=order)})
ask(
    {
        f"search_runs ordered by {key}": lambda key=key: len(runs(S, order_by=[key]))
        for key in ("run_id", "attributes.run_id DESC", "artifact_uri", "run_uuid")
    }
)


def pages(size: int, **more: Any) -> Any:
    found, token = [], None
    while True:
        page = client.search_runs([S], max_results=size, page_token=token, **more)
        found.append([r.info.run_name for r in page])
        token = page.token
        if not token:
            return found


ask({f"search_runs by pages of {size}": lambda size=size: pages(size) for size in (1, 2, 3, 6, 7)})
ask({f"search_runs of {size}": lambda size=size: len(client.search_runs([S], max_results=size)) for size in (0, -1, 50_000, 50_001, "x")})
ask(
    {
        "pages in an order with ties": lambda: pages(2, order_by=["tags.`k k`"]),
        "pages by a metric": lambda: pages(2, order_by=["metrics.m DESC"]),
        "search_runs in several experiments": lambda: sorted(runs(S, E, filter_string="run_name LIKE '_'") + runs(S, E, filter_string="run_name = 's1'")),
        "search_runs of all views": lambda: {view: len(runs(S, run_view_type=getattr(ViewType, view))) for view in ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")},
        "search_runs of a view that there is not": lambda: runs(S, run_view_type=9),
        "search_runs gives data": lambda: [[r.data.metrics, r.data.params, r.data.tags.get("plain"), [d.dataset.name for d in r.inputs.dataset_inputs]] for r in client.search_runs([S])],
        "mlflow.search_runs as a list": lambda: len(mlflow.search_runs([S], output_format="list", max_results=4)),
        "mlflow.search_runs by name": lambda: len(mlflow.search_runs(experiment_names=["searched"], output_format="list")),
        "mlflow.search_runs by a name that is not there": lambda: mlflow.search_runs(experiment_names=["nowhere"], output_format="list"),
        "mlflow.search_experiments": lambda: [e.name for e in mlflow.search_experiments(filter_string="name = 'searched'")],
        "history by pages": lambda: both(
            lambda: [client.log_batch(M, [Metric("long", float(i), T + i, i) for i in range(n, n + 1000)]) for n in (0, 1000)],
            lambda: len(client.get_metric_history(M, "long")),
        ),
    }
)  # fmt: skip

# ── datasets ──────────────────────────────────────────────────────────────────
D = new_run("d")


def dataset(name: Any = "d", digest: Any = "x", kind: Any = "local", source: Any = "s", tags: Any = (), **more: Any) -> Any:
    client.log_inputs(D, [DatasetInput(Dataset(name, digest, kind, source, **more), [InputTag(k, v) for k, v in tags])])
    inputs = client.get_run(D).inputs.dataset_inputs
    return sorted(
        [
            i.dataset.name,
            i.dataset.digest,
            i.dataset.source_type,
            i.dataset.source,
            i.dataset.schema,
            i.dataset.profile,
            sorted((t.key, t.value) for t in i.tags),
        ]
        for i in inputs
    )


ask(
    {
        "a dataset": lambda: dataset(schema="{}", profile="{}", tags=[("mlflow.data.context", "train"), ("a", "b")]),
        "the same dataset with another tag": lambda: dataset(tags=[("a", "c")]),
        "a dataset of another digest": lambda: dataset(digest="y"),
        "a dataset with no name": lambda: dataset(name=""),
        "a dataset with a long name": lambda: dataset(name="n" * 501),
        "a dataset with a long digest": lambda: dataset(digest="n" * 37),
        "a dataset with no digest": lambda: dataset(digest=""),
        "a dataset with a long tag": lambda: dataset(name="t", tags=[("k", "v" * 501)]),
        "a dataset with a long tag's key": lambda: dataset(name="t2", tags=[("k" * 256, "v")]),
        "a dataset with no source": lambda: dataset(name="t3", source=""),
        "log_inputs of nothing": lambda: client.log_inputs(D),
    }
)

# ── artifacts ─────────────────────────────────────────────────────────────────
A = new_run("a")
folder = Path(tempfile.mkdtemp())


def put(name: str, path: str | None = None, text: str = "x") -> Any:
    (folder / name).write_text(text)
    client.log_artifact(A, str(folder / name), path)
    return sorted(f.path for f in client.list_artifacts(A, path))


def listed(path: str | None = None) -> Any:
    return [[f.path, f.is_dir, f.file_size] for f in client.list_artifacts(A, path)]


def text_of(path: str) -> str:
    return Path(client.download_artifacts(A, path, tempfile.mkdtemp())).read_text()


ask(
    {
        "an artifact": lambda: put("plain.txt"),
        "an artifact with spaces": lambda: both(lambda: put("with space.txt"), lambda: text_of("with space.txt")),
        "an artifact with an accent": lambda: both(lambda: put("ünï.txt", "déep"), lambda: text_of("déep/ünï.txt")),
        "an artifact with a plus and an ampersand": lambda: both(lambda: put("a+b&c=d.txt"), lambda: text_of("a+b&c=d.txt")),
        "an artifact with a question mark": lambda: both(lambda: put("what?.txt"), lambda: text_of("what?.txt")),
        "an artifact with a percent sign": lambda: both(lambda: put("100%.txt"), lambda: text_of("100%.txt")),
        "an artifact with an encoded slash": lambda: both(lambda: put("a%2Fb.txt"), lambda: text_of("a%2Fb.txt")),
        "an artifact with an encoded space": lambda: both(lambda: put("a%20b.txt"), lambda: text_of("a%20b.txt")),
        "an artifact with a number sign": lambda: both(lambda: put("a#b.txt"), lambda: text_of("a#b.txt")),
        "an artifact with a colon": lambda: both(lambda: put("a:b.txt"), lambda: text_of("a:b.txt")),
        "an artifact with a quote": lambda: both(lambda: put("it's.txt"), lambda: text_of("it's.txt")),
        "an artifact with a bracket": lambda: both(lambda: put("a[1].txt"), lambda: text_of("a[1].txt")),
        "an empty artifact": lambda: both(lambda: put("empty.txt", None, ""), lambda: text_of("empty.txt")),
        "an artifact that begins with a dot": lambda: both(lambda: put(".hidden"), lambda: text_of(".hidden")),
        "an artifact under ..": lambda: put("plain.txt", "../up"),
        "an artifact under /": lambda: put("plain.txt", "/abs"),
        "an artifact under a/../b": lambda: put("plain.txt", "a/../b"),
        "an artifact under a path with a slash at its end": lambda: put("plain.txt", "sub/"),
        "an artifact under a file": lambda: put("below.txt", "plain.txt"),
        "list_artifacts of a file": lambda: listed("plain.txt"),
        "list_artifacts of a folder with a slash": lambda: listed("sub/"),
        "list_artifacts of ..": lambda: listed(".."),
        "list_artifacts of a/..": lambda: listed("sub/.."),
        "list_artifacts of /": lambda: listed("/"),
        "list_artifacts of a path with %": lambda: listed("100%"),
        "download a folder": lambda: sorted(p.name for p in Path(client.download_artifacts(A, "sub", tempfile.mkdtemp())).iterdir()),
        "download all": lambda: "plain.txt" in [p.name for p in Path(client.download_artifacts(A, "", tempfile.mkdtemp())).iterdir()],
        "download what is not there": lambda: text_of("nothing.txt"),
        "download ..": lambda: text_of("../x"),
        "log_artifact of what is not there": lambda: client.log_artifact(A, str(folder / "nowhere")),
        "log_artifact of a folder": lambda: both(lambda: (folder / "dir").mkdir(), lambda: (folder / "dir" / "in.txt").write_text("x"), lambda: client.log_artifact(A, str(folder / "dir")), lambda: listed("dir")),
        "log_dict as yaml": lambda: both(lambda: client.log_dict(A, {"a": 1}, "d.yaml"), lambda: text_of("d.yaml")),
        "log_dict with no ending": lambda: both(lambda: client.log_dict(A, {"a": 1}, "d"), lambda: text_of("d")),
        "mlflow.artifacts.load_text": lambda: mlflow.artifacts.load_text(client.get_run(A).info.artifact_uri + "/plain.txt"),
        "mlflow.artifacts.load_dict": lambda: both(lambda: client.log_dict(A, {"a": [1]}, "d.json"), lambda: mlflow.artifacts.load_dict(client.get_run(A).info.artifact_uri + "/d.json")),
        "mlflow.artifacts.list_artifacts": lambda: len(mlflow.artifacts.list_artifacts(run_id=A)) > 5,
        "log_table twice": lambda: both(*[lambda: client.log_table(A, {"x": [1]}, "t.json")] * 2, lambda: client.load_table(E, "t.json", [A]).to_dict()),
    }
)  # fmt: skip

keep()
