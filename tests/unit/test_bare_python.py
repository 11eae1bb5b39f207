"""What a bare Python on a node or an ssh host must import, it can: with the standard library alone."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

import onward
from onward.rundir.freeze import MODULES, ROOMS

REPO = Path(__file__).resolve().parents[2]
SOURCE = REPO / "src" / "onward"
CARRIED = {"pynvml"}  # one file, packed with our modules


class NothingInstalled:
    """Before all other finders: there is the standard library, Onward, and what is carried with it."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        top = name.partition(".")[0]
        if top != "onward" and top not in sys.stdlib_module_names | CARRIED:
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)
        return None


@contextmanager
def bare_python() -> Iterator[None]:
    """As a Python that has no packages and has not loaded any module of ours."""
    before: dict[str, ModuleType] = dict(sys.modules)
    packages = {"onward", *(name for named in forbidden_packages() for name in named)}
    for name in before:
        if name.partition(".")[0] in packages:
            del sys.modules[name]
    finder = NothingInstalled()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.modules.update(before)


def forbidden_packages() -> list[set[str]]:
    """By the contracts on what needs the standard library alone."""
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [set(contract["forbidden_modules"]) for contract in contracts if contract["type"] == "forbidden"]


def modules_in_jobs() -> list[str]:
    by_itself = [room for room in ROOMS if room != "torch"]  # that is for trainings, and imports the user's own PyTorch
    rooms = [module.name for room in by_itself for module in pkgutil.walk_packages([str(SOURCE / room)], f"onward.{room}.")]
    return [f"onward.{name.removesuffix('.py')}" for name in MODULES if name != "__init__.py"] + rooms


def test_every_module_of_a_job_is_imported_without_any_package() -> None:
    names = modules_in_jobs()
    assert len(names) > 200
    with bare_python():
        for name in names:
            importlib.import_module(name)


VERBS = ("hosts.local", "repair.tend", "runs.control", "runs.home", "submit.clone", "submit.new_run")  # loaded when they are asked for


def test_the_agent_of_an_ssh_host_and_its_verbs_are_imported_without_any_package() -> None:
    with bare_python():
        for name in ("ssh.agent", *VERBS):
            importlib.import_module(f"onward.operations.{name}")
        assert importlib.import_module("onward") is not onward, "imported anew"


def test_what_needs_a_package_is_not_imported_there() -> None:
    with bare_python(), pytest.raises(ModuleNotFoundError, match="is not installed here"):
        importlib.import_module("onward.settings")


def test_every_package_that_we_import_is_named_in_the_contracts_on_the_standard_library() -> None:
    forbidding = forbidden_packages()
    scripts = {path.stem for path in (SOURCE / "contrib" / "patchwise").glob("*.py")}  # they import each other by name
    ours = scripts | CARRIED | {"onward"}
    imported = {
        name.partition(".")[0]
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
    packages = imported - ours - sys.stdlib_module_names
    assert len(forbidding) == 2 and len(packages) > 10
    assert [packages - named for named in forbidding] == [set(), set()]
