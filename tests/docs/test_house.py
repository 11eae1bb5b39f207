"""The map is tested: every room is on the README's tree, and every verb and error in the docs is real."""

from __future__ import annotations

import re
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
SOURCE = REPO / "src" / "onward"


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
