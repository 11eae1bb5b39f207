"""The map is tested: every room is on the README's tree, every verb in the docs is real, rooms and modules stay small, names are unique."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
SOURCE = REPO / "src" / "onward"

LONG = {  # to be split; each line goes with its split
    "model/policy/lifecycle.py",
    "sdk/run.py",
    "supervisor/leg/watch.py",
    "tracker/schema.py",
    "tracker/search/filter.py",
    "tracker/tensorboard/tail.py",
}


def test_every_room_is_on_the_readmes_tree() -> None:
    tree = (REPO / "README.md").read_text().split("## The house")[1]
    rooms = [path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if f"{room}/" not in tree] == []


def test_every_verb_has_a_line_in_the_reference() -> None:
    page = (REPO / "docs" / "reference" / "cli.md").read_text()
    registered = re.findall(r'app\.command\("(\w+)"', (SOURCE / "cli" / "verbs.py").read_text())
    assert registered
    assert [verb for verb in registered if f"## {verb}" not in page] == []


def test_every_variable_of_the_contract_is_explained() -> None:
    page = (REPO / "docs" / "concepts.md").read_text()
    names = re.findall(r'^[A-Z_]+ = "(ONWARD_\w+)"', (SOURCE / "sdk" / "contract.py").read_text(), re.MULTILINE)
    assert [name for name in names if name != "ONWARD_ROOT" and name not in page] == []


def test_links_between_pages_lead_somewhere() -> None:
    pages = [REPO / "README.md", REPO / "CONTRIBUTING.md", *(REPO / "docs").rglob("*.md")]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def test_no_room_has_more_than_16_modules() -> None:
    rooms = Counter(path.parent for path in SOURCE.rglob("*.py"))
    assert {str(room.relative_to(SOURCE)): count for room, count in rooms.items() if count > 16} == {}


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {path: lines for path, lines in lengths.items() if lines > 400 and path not in LONG and "migrations" not in path} == {}


def test_no_public_class_name_is_defined_twice() -> None:
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name: count for name, count in names.items() if count > 1} == {}
