"""The desk: which roots, which scheduler, which user."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.model.spec import Cluster
from onward.operations.context import OperationsContext
from onward.operations.hosts.local import LocalHost
from onward.operations.repair.tend import tend
from onward.operations.runs.find import find_run
from onward.schedulers.local.scheduler import LocalScheduler
from tests.fakes import FakeScheduler
from tests.sandbox import Sandbox


def settings(folder: Path, text: str) -> dict[str, str]:
    path = folder / "settings.toml"
    path.write_text(text)
    return {"ONWARD_SETTINGS": str(path)}


def test_without_anything_runs_are_looked_for_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = {"ONWARD_STATE_DIR": str(tmp_path / "state")}  # nothing is remembered there
    assert OperationsContext(env=env).roots == [tmp_path / "runs"]
    assert OperationsContext(env=env).runs() == []


def test_the_variable_goes_before_every_setting(tmp_path: Path) -> None:
    env = settings(tmp_path, '[clusters.lab]\nscheduler = "local"\nroot = "/shared/runs"\n')
    assert OperationsContext(env={**env, "ONWARD_ROOT": "/mine"}).roots == [Path("/mine")]


def test_runs_are_looked_for_in_the_roots_of_all_profiles(tmp_path: Path) -> None:
    text = f'root = "{tmp_path}/runs"\n[clusters.lab]\nscheduler = "local"\nroot = "{tmp_path}/lab/runs"\n[clusters.local]\ncpus = 1\n'
    env = {**settings(tmp_path, text), "ONWARD_ROOT": ""}
    here, lab = Sandbox(tmp_path, env=env), Sandbox(tmp_path / "lab", env=env)
    one, other = here.play("here"), lab.play("there")
    assert here.context.roots == [tmp_path / "runs", tmp_path / "lab" / "runs"]
    assert [run.path for run in here.context.runs()] == [one.dir.path, other.dir.path]
    assert find_run(here.context, "there") == other.dir
    assert tend(here.context).looked_at == 2


def test_a_root_that_cannot_be_read_hides_no_other_and_is_told(tmp_path: Path) -> None:
    text = f'root = "{tmp_path}/runs"\n[clusters.lab]\nscheduler = "local"\nroot = "/{"x" * 300}"\n'
    here = Sandbox(tmp_path, env={**settings(tmp_path, text), "ONWARD_ROOT": ""})
    one = here.play("here")
    records = LocalHost(here.context).runs(state=None, newest=None)
    tended = tend(here.context)
    assert [run["folder"] for run in records.runs] == [str(one.dir.path)]
    assert list(records.broken) == [f"the runs in /{'x' * 300} cannot be read: File name too long"]
    assert (tended.looked_at, tended.problems) == (1, list(records.broken))


def test_a_folder_that_was_removed_under_ones_feet_is_said_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(InvalidInput, match="the current folder no longer exists"):
        OperationsContext(env={}).runs()


def test_a_cluster_has_one_scheduler_object(tmp_path: Path) -> None:
    made: list[Cluster] = []

    def make(cluster: Cluster) -> FakeScheduler:
        made.append(cluster)
        return FakeScheduler()

    context = OperationsContext(env={}, make_scheduler=make)
    a, b = Cluster(name="a", scheduler="local"), Cluster(name="b", scheduler="local")
    assert context.scheduler(a) is context.scheduler(a)
    assert context.scheduler(a) is not context.scheduler(b)
    assert made == [a, b]


def test_a_profile_is_turned_into_its_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONWARD_STATE_DIR", str(tmp_path))
    assert isinstance(OperationsContext(env={}).scheduler(Cluster(name="x", scheduler="local", cpus=1)), LocalScheduler)
    with pytest.raises(InvalidInput, match="no scheduler named 'sun'"):
        OperationsContext(env={}).scheduler(Cluster(name="x", scheduler="sun"))


def test_a_user_whom_nobody_knows_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert OperationsContext(env={}).user == str(os.getuid())
