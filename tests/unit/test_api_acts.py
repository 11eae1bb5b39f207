"""Runs submitted, cloned and resumed over HTTP: by the verbs of the command line, with code from where the settings allow, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.model.run import LegEnd
from onward.operations.submit.new_run import submit
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.tracker.access.tokens import Rights, Scope
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good

FILE = """\
name: digits
experiment: figures
cluster: local
train:
  command: python3 train.py --lr {params.lr}
  params: {lr: 0.1, seed: 1}
  resources: {time: "1:00:00", mem: 2G}
"""


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[server]\ncode = ["{tmp_path}/desk/project", "/nowhere/at/all"]\n')
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened, ONWARD_SETTINGS=str(settings))


def folder(harness: Harness) -> str:
    return str(harness.sandbox.project)


def dir_of(harness: Harness, run: str) -> RunDir:
    return next(dir for dir in harness.sandbox.context.runs() if read_run(dir).spec.id == run)


# ── submit ────────────────────────────────────────────────────────────────────


def test_a_params_file_is_submitted_and_shows_at_once(harness: Harness) -> None:
    made = good(harness.client.post("/api/v1/runs", {"file": FILE, "folder": folder(harness)}), 201)
    assert (made["name"], made["experiment_name"], made["source"], made["params"]) == (
        "digits",
        "figures",
        "onward",
        {"lr": "0.1", "seed": "1"},
    )
    dir = dir_of(harness, made["id"])
    assert (dir.code / "train.py").read_text() == "print('trained')\n"
    assert read_run(dir).spec.resources.mem == 2048
    assert [one["id"] for one in good(harness.client.get("/api/v1/runs"))["runs"]] == [made["id"]]
    good(harness.client.post(f"/api/v1/runs/{made['id']}/cancel"))


def test_a_run_whose_spec_is_damaged_is_cancelled_over_http_too(harness: Harness) -> None:
    run = harness.sandbox.play().begin(1)
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    id = run.spec.id
    run.dir.spec.write_text("{")
    good(harness.client.post(f"/api/v1/runs/{id}/cancel"))
    assert not [job for job in harness.sandbox.scheduler.jobs.values() if job.status.state.live]
    assert run.dir.done.exists()


def test_the_same_as_data(harness: Harness) -> None:
    draft = {"name": "digits", "cluster": "local", "train": {"command": ["python3", "train.py"], "resources": {"cpus-per-task": 2}}}
    made = good(harness.client.post("/api/v1/runs", {"draft": draft, "folder": folder(harness)}), 201)
    assert read_run(dir_of(harness, made["id"])).spec.resources.cpus_per_task == 2


def test_a_dry_run_tells_the_script_and_queues_nothing(harness: Harness) -> None:
    seen = good(harness.client.post("/api/v1/runs", {"file": FILE, "folder": folder(harness), "dry_run": True}))
    assert seen["script"].startswith("#!")
    assert seen["folder"].endswith("_A_digits")
    assert seen["command"]
    assert harness.sandbox.folders() == []


def test_all_that_is_wrong_is_told_at_once_with_its_line(harness: Harness) -> None:
    wrong = FILE.replace("mem: 2G", "mem: much, tiem: 3").replace("cluster: local", "claster: local")
    answer = harness.client.post("/api/v1/runs", {"file": wrong, "folder": folder(harness)})
    assert answer.status == 400
    body = {one["at"]: one["problem"] for one in answer.json["errors"]}
    assert set(body) == {"file:3: claster", "file:7: train.resources.mem", "file:7: train.resources.tiem"}
    assert "did you mean" in body["file:7: train.resources.tiem"]
    draft = {"name": "x y", "train": {"resources": {"time": "soon"}}}
    answer = harness.client.post("/api/v1/runs", {"draft": draft, "folder": folder(harness)})
    assert {one["at"] for one in answer.json["errors"]} == {"name", "train.command", "train.resources.time"}
    assert harness.sandbox.folders() == []


@pytest.mark.parametrize("file", ["", "[]", "a: &x 1\nb: *x", "name: [" * 3000, "\t", "name: digits", "!!python/object:os.system {}"])
def test_a_text_that_is_no_params_file_is_a_400(harness: Harness, file: str) -> None:
    assert harness.client.post("/api/v1/runs", {"file": file, "folder": folder(harness)}).status == 400


def test_code_is_run_from_under_the_folders_of_the_settings_alone(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (harness.sandbox.project / "link").symlink_to(tmp_path / "elsewhere")
    (harness.sandbox.project / "inner").mkdir()
    (harness.sandbox.project / "inner" / "train.py").write_text("")
    asked = {"file": FILE, "dry_run": True}
    project = folder(harness)
    for refused in (
        tmp_path,
        tmp_path / "elsewhere",
        f"{project}/link",
        f"{project}/../../elsewhere",
        f"{project}/none",
        f"{project}/train.py",
        "/",
    ):
        assert harness.client.post("/api/v1/runs", {**asked, "folder": str(refused)}).status == 403, refused
    for odd in ("project", "", "a\x00b"):
        assert harness.client.post("/api/v1/runs", {**asked, "folder": odd}).status == 400
    good(harness.client.post("/api/v1/runs", {**asked, "folder": f"{project}/inner"}))


def test_where_the_settings_name_no_folder_nobody_submits_code(tmp_path: Path) -> None:
    with tracker_in(tmp_path) as opened:
        harness = Harness(tmp_path, opened)
        answer = harness.client.post("/api/v1/runs", {"file": FILE, "folder": folder(harness)})
    assert answer.status == 403
    assert "server.code" in answer.json["hint"]


def test_who_may_only_read_and_narrow_tokens_submit_and_clone_nothing(harness: Harness) -> None:
    run = harness.sandbox.play().spec.id
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    for client in (
        harness.as_(Scope.USER, rights=Rights.READ),
        harness.as_(Scope.RUN, run=run),
        harness.as_(Scope.AGENT, cluster="local"),
        harness.as_(Scope.WEBHOOK),
    ):
        assert client.post("/api/v1/runs", {"file": FILE, "folder": folder(harness)}).status == 403
        assert client.post(f"/api/v1/runs/{run}/clone", {}).status == 403
        assert client.post(f"/api/v1/runs/{run}/resume").status == 403


@pytest.mark.parametrize(
    "body",
    [
        {"folder": "/x"},
        {"file": FILE},
        {"file": FILE, "draft": {}, "folder": "/x"},
        {"file": FILE, "folder": "/x", "name": "both a submit and a record"},
        {"file": 3, "folder": "/x"},
        {"draft": [], "folder": "/x"},
    ],
)
def test_a_submit_of_a_wrong_shape_is_a_400(harness: Harness, body: Any) -> None:
    assert harness.client.post("/api/v1/runs", body).status == 400


def test_a_cluster_behind_ssh_is_not_this_servers_to_submit_to(harness: Harness, tmp_path: Path) -> None:
    with (tmp_path / "settings.toml").open("a") as settings:
        settings.write('[clusters.lab]\nscheduler = "slurm"\nssh = "lab"\n')
    harness.sandbox.context._settings = None
    answer = harness.client.post("/api/v1/runs", {"file": FILE.replace("cluster: local", "cluster: lab"), "folder": folder(harness)})
    assert answer.status == 400
    assert "ssh" in answer.json["detail"]
    answer = harness.client.post("/api/v1/runs", {"file": FILE.replace("cluster: local", "cluster: moon"), "folder": folder(harness)})
    assert answer.status == 404


# ── clone, resume ─────────────────────────────────────────────────────────────


def source(harness: Harness, **others: Any) -> RunDir:
    asked = {"command": ("python3", "train.py", "--lr", "{params.lr}"), "params": {"lr": 0.1, "seed": 1}, "variables": {"KEY": "secret"}}
    dir = submit(harness.sandbox.context, harness.sandbox.draft(**{**asked, **others}), cwd=harness.sandbox.project)
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    return dir


def test_a_clone_runs_the_frozen_code_with_the_changes(harness: Harness) -> None:
    first = source(harness)
    harness.sandbox.write("train.py", "print('changed since')\n")
    (first.code / "written-by-the-training.bin").write_bytes(b"x")
    asked = {"params": {"lr": 0.2}, "resources": {"mem": "4G", "cpus-per-task": 3}, "limits": {"max-legs": 5}, "name": "again"}
    made = good(harness.client.post(f"/api/v1/runs/{read_run(first).spec.id}/clone", asked), 201)
    assert made["params"] == {"lr": "0.2", "seed": "1"}
    dir = dir_of(harness, made["id"])
    spec, before = read_run(dir).spec, read_run(first).spec
    assert spec.id != before.id
    assert (spec.name, spec.experiment, spec.command) == ("again", "digits", before.command)
    assert (spec.resources.mem, spec.resources.cpus_per_task, spec.limits.max_legs) == (4096, 3, 5)
    assert (dir.code / "train.py").read_text() == "print('trained')\n"
    assert not (dir.code / "written-by-the-training.bin").exists()
    assert json.loads(dir.environment.read_text())["KEY"] == "secret"
    assert dir.environment.stat().st_mode & 0o077 == 0
    assert "secret" not in harness.client.get(f"/api/v1/runs/{made['id']}").text


def test_a_clone_of_code_that_was_not_frozen_runs_where_it_stands(harness: Harness) -> None:
    first = source(harness, freeze=False)
    run = read_run(first).spec.id
    made = good(harness.client.post(f"/api/v1/runs/{run}/clone", {}), 201)
    assert read_run(dir_of(harness, made["id"])).spec.workdir == folder(harness)
    harness.sandbox.project.rename(harness.sandbox.folder / "moved")
    assert harness.client.post(f"/api/v1/runs/{run}/clone", {}).status == 409


def test_a_clone_may_be_tried_dry_and_tells_all_that_is_wrong(harness: Harness) -> None:
    run = read_run(source(harness)).spec.id
    before = harness.sandbox.folders()
    assert good(harness.client.post(f"/api/v1/runs/{run}/clone", {"dry_run": True}))["script"]
    answer = harness.client.post(f"/api/v1/runs/{run}/clone", {"resources": {"mem": "much", "gpu": 1}, "limits": {"max-legs": 0}})
    assert answer.status == 400
    assert {one["at"] for one in answer.json["errors"]} == {"resources.mem", "resources.gpu", "limits.max-legs"}
    for odd in (
        {"resources": {"extra": ["--wrap=x"]}},
        {"command": "rm"},
        {"params": {"a b": 1}},
        {"name": "../x"},
        {"params": {"lr": [1]}},
    ):
        assert harness.client.post(f"/api/v1/runs/{run}/clone", odd).status == 400, odd
    assert harness.sandbox.folders() == before
    assert harness.client.post(f"/api/v1/runs/{harness.run()}/clone", {}).status == 404
    assert harness.client.post("/api/v1/runs/nosuchrn/clone", {}).status == 404


@pytest.mark.parametrize("value", ["1; id >x; echo ", "$(id)", "'; id; '"])
def test_no_clone_runs_a_params_value_as_a_command(harness: Harness, value: str) -> None:
    text = FILE.replace("python3 train.py --lr {params.lr}", """bash -c 'cd . && python3 train.py --lr {params.lr} "{params.seed}"'""")
    made = good(harness.client.post("/api/v1/runs", {"file": text, "folder": folder(harness)}), 201)
    answer = harness.client.post(f"/api/v1/runs/{made['id']}/clone", {"params": {"lr": value}})
    assert answer.status == 400
    assert "source code" in answer.text
    quoted = good(harness.client.post(f"/api/v1/runs/{made['id']}/clone", {"params": {"seed": value, "lr": 1e-5}}), 201)
    assert quoted["params"] == {"lr": "1e-05", "seed": value}


def test_a_clone_over_http_runs_no_other_program(harness: Harness) -> None:
    text = FILE.replace("train.py", "{params.script}").replace("seed: 1", "seed: 1, script: train.py")
    made = good(harness.client.post("/api/v1/runs", {"file": text, "folder": folder(harness)}), 201)
    answer = harness.client.post(f"/api/v1/runs/{made['id']}/clone", {"params": {"script": "/elsewhere/evil.py"}})
    assert answer.status == 403
    good(harness.client.post(f"/api/v1/runs/{made['id']}/clone", {"params": {"lr": 0.2, "script": "train.py"}}), 201)


def test_a_run_is_resumed_with_other_resources(harness: Harness) -> None:
    played = harness.sandbox.play()
    run = played.spec.id
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    assert harness.client.post(f"/api/v1/runs/{run}/resume").status == 409
    played.begin(1).end(1, LegEnd.CANCELLED)
    assert played.run.state == "cancelled"
    assert harness.client.post(f"/api/v1/runs/{run}/resume", {"resources": {"mem": "much"}}).status == 400
    shown = good(harness.client.post(f"/api/v1/runs/{run}/resume", {"resources": {"mem": "8G"}, "limits": {"max-legs": 9}}))
    assert shown["state"] == "waiting"
    assert (played.run.resources.mem, played.run.changes["max_legs"]) == (8192, 9)


def test_a_scheduler_that_is_away_is_a_503_and_one_that_refuses_a_422(harness: Harness) -> None:
    harness.sandbox.scheduler.down = True
    assert harness.client.post("/api/v1/runs", {"file": FILE, "folder": folder(harness)}).status == 503
    harness.sandbox.scheduler.down = False
    harness.sandbox.scheduler.refuse = "no such account"
    answer = harness.client.post("/api/v1/runs", {"file": FILE, "folder": folder(harness)})
    assert answer.status == 422
    assert "no such account" in answer.json["detail"]
