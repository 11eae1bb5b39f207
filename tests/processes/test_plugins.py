"""Plugins: found by their entry point, frozen with the run, and found again inside the archive; and what is said of bad ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.model.spec import Cluster
from onward.rundir.freeze import build_archive
from onward.schedulers.cluster_settings import Settings
from onward.schedulers.local.scheduler import LocalScheduler
from onward.schedulers.registry import files_to_freeze, is_known_scheduler, known_names, scheduler_for

MODULE = """
from onward_{name}.inner.deep import WORD

class Scheduler:
    def __init__(self, cluster):
        self.cluster = cluster

    def check(self):
        return f"{{WORD}} {{self.cluster.options['who']}}"
"""


def install(folder: Path, name: str, *, value: str | None = None, module: str = MODULE) -> None:
    """What an installer leaves: a package, and its metadata beside it."""
    inner = folder / f"onward_{name}" / "inner"
    inner.mkdir(parents=True, exist_ok=True)
    (inner.parent / "__init__.py").write_text(module.format(name=name))
    (inner / "__init__.py").write_text("")
    (inner / "deep.py").write_text("WORD = 'hello'\n")
    info = folder / f"{value or name}_plugin-1.0.dist-info".replace(":", "_")
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {info.name.split('-')[0]}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[onward.schedulers]\n{name} = {value or f'onward_{name}:Scheduler'}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_those_built_in_come_first_and_plugins_after(site: Path) -> None:
    install(site, "early")
    assert known_names()[:3] == ("local", "slurm", "gridengine")
    assert "early" in known_names()[3:]
    assert is_known_scheduler("early") and is_known_scheduler("local") and not is_known_scheduler("never")


def test_a_plugin_is_made_with_its_cluster(site: Path) -> None:
    install(site, "polite")
    assert scheduler_for(Cluster(name="box", scheduler="polite", options={"who": "world"})).check() == "hello world"


def test_a_plugin_is_a_cluster_by_itself_too(site: Path) -> None:
    install(site, "alone")
    assert Settings().cluster("alone")[0] == Cluster(name="alone", scheduler="alone")


def test_a_plugin_cannot_take_the_name_of_one_that_is_built_in(site: Path) -> None:
    install(site, "local")
    assert isinstance(scheduler_for(Cluster(name="local", scheduler="local")), LocalScheduler)
    assert known_names().count("local") == 1
    assert files_to_freeze("local") == {}


def test_a_plugin_is_frozen_with_the_run_and_found_inside_the_archive(site: Path, tmp_path: Path) -> None:
    install(site, "carried")
    archive = tmp_path / "supervisor.pyz"
    build_archive(archive, also=files_to_freeze("carried"))
    asks = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "from onward.model.spec import Cluster\n"
        "from onward.schedulers.registry import files_to_freeze, scheduler_for\n"
        "print(scheduler_for(Cluster(name='b', scheduler='carried', options={'who': 'node'})).check())\n"
        "print(*sorted(files_to_freeze('carried')))\n"  # as on a host that has nothing but an archive
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", asks], capture_output=True, text=True, timeout=60, cwd="/")
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["hello node", " ".join(sorted(files_to_freeze("carried")))]
    assert "onward_carried/inner/deep.py" in files_to_freeze("carried")


@pytest.mark.parametrize(
    ("text", "said"),
    [("raise RuntimeError('broken inside')", "RuntimeError: broken inside"), ("Other = 1", "AttributeError")],
)
def test_a_plugin_that_cannot_be_loaded_is_named_with_its_reason(site: Path, text: str, said: str) -> None:
    name = f"bad{len(text)}"
    install(site, name, module=text)
    with pytest.raises(InvalidInput, match=rf"the scheduler {name} cannot be loaded from onward_{name}:Scheduler: {said}") as caught:
        scheduler_for(Cluster(name="box", scheduler=name))
    assert caught.value.hint == f"reinstall {name}_plugin"


def test_a_scheduler_that_nobody_has_is_told_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"clusters\.box\.scheduler: no scheduler named 'pbs'") as caught:
        scheduler_for(Cluster(name="box", scheduler="pbs"))
    assert "known are local, slurm, gridengine" in caught.value.message
    assert "entry point" in caught.value.hint


def test_two_plugins_of_one_name_are_not_chosen_between(site: Path) -> None:
    install(site, "twice")
    install(site, "twice", value="onward_other:Scheduler")
    with pytest.raises(InvalidInput, match="several schedulers named 'twice': onward_other:Scheduler, onward_twice:Scheduler"):
        scheduler_for(Cluster(name="box", scheduler="twice"))


def test_a_plugin_whose_module_is_gone_is_told_at_submit(site: Path) -> None:
    install(site, "gone", value="onward_nowhere:Scheduler")
    with pytest.raises(InvalidInput, match="no module onward_nowhere"):
        files_to_freeze("gone")
