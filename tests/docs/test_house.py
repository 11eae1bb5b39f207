"""CONTRIBUTING's tree is the real one; verbs, variables and links in the docs exist; modules stay small and names unique."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from tests.house import OTHERS, ROOMS, SOURCE, docstrings, shown, tree

REPO = Path(__file__).resolve().parents[2]
README = (REPO / "README.md").read_text()
SHORT_PROCESSES = {  # unit tests that ask a program of the system, and what for
    "test_code.py": "git",
    "test_folder_links.py": "a fork that acts as another user",
    "test_gateway_setup.py": "what a shell reads from a file of secrets, and systemd-analyze verify",
    "test_params_in_shells.py": "what a shell makes of a quoted word",
    "test_submit_line.py": "sbatch --help, where it is installed",
    "test_pipeline_plan.py": "bash -n",
    "test_timer.py": "systemd-analyze verify",
}
_STARTS_PROCESSES = re.compile(
    r"^(?:import|from) (?:subprocess|multiprocessing)\b|\bos\.fork\(|^from tests\.(?:servers|hosts|interpreters) import", re.M
)


def test_every_package_is_on_the_tree_in_its_place() -> None:
    assert shown() == tree(), "write it with `python -m tests.house`"


def test_every_folder_with_modules_is_a_package_or_explained() -> None:
    folders = {str(path.parent.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if path.parent != SOURCE}
    assert folders - docstrings().keys() == OTHERS.keys()


def test_every_package_says_what_lives_there_and_what_does_not() -> None:
    assert [name for name, text in docstrings().items() if "\nNot here: " not in text] == []


def test_every_room_is_named_in_the_readme() -> None:
    assert [room for room in ROOMS if room not in README.split("## The house")[1]] == []


def test_every_verb_has_a_line_in_the_reference() -> None:
    page = (REPO / "docs" / "reference" / "cli.md").read_text()
    registered = re.findall(r'app\.command\("(\w+)"', (SOURCE / "cli" / "verbs.py").read_text())
    assert registered
    assert [verb for verb in registered if f"## {verb}" not in page] == []


def test_every_term_of_the_glossary_has_one_meaning() -> None:
    glossary = (REPO / "docs" / "concepts.md").read_text().split("## Glossary")[1].split("\n## ")[0]
    terms = Counter(term for row in re.findall(r"^\| (\*\*.+?) \|", glossary, re.MULTILINE) for term in re.findall(r"\*\*(.+?)\*\*", row))
    assert len(terms) > 80
    assert [term for term, count in terms.items() if count > 1] == []


def test_every_variable_of_the_contract_is_explained() -> None:
    page = (REPO / "docs" / "concepts.md").read_text()
    names = re.findall(r'^[A-Z_]+ = "(ONWARD_\w+)"', (SOURCE / "sdk" / "contract.py").read_text(), re.MULTILINE)
    assert [name for name in names if name != "ONWARD_ROOT" and name not in page] == []


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*REPO.glob("*.md"), *(REPO / "docs").rglob("*.md"), *(REPO / "examples").rglob("*.md")]
    broken = [
        f"{page.relative_to(REPO)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
        if "://" not in target and not _leads_somewhere(page, target)
    ]
    assert broken == []


def test_every_decision_has_a_number_of_its_own_which_is_also_in_its_title() -> None:
    titles = {page.name[:4]: re.match(r"# (\d+)\. ", page.read_text()) for page in (REPO / "docs" / "adr").glob("*.md")}
    assert len(titles) == len(list((REPO / "docs" / "adr").glob("*.md")))
    assert {number for number, title in titles.items() if title is None or int(title[1]) != int(number)} == set()


def test_no_room_has_more_than_16_modules() -> None:
    rooms = Counter(path.parent for path in SOURCE.rglob("*.py"))
    assert {str(room.relative_to(SOURCE)): count for room, count in rooms.items() if count > 16} == {}


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {path: lines for path, lines in lengths.items() if lines > 400 and "migrations" not in path} == {}


def test_unit_tests_start_no_processes() -> None:
    found = {path.name for path in (REPO / "tests" / "unit").glob("*.py") if _STARTS_PROCESSES.search(path.read_text())}
    assert found == SHORT_PROCESSES.keys(), "those that start processes belong in tests/processes"


def test_no_class_name_is_defined_twice() -> None:
    names = Counter(
        node.name for path in SOURCE.rglob("*.py") for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    )
    assert {name: count for name, count in names.items() if count > 1} == {}


def _leads_somewhere(page: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    there = page.parent / file if file else page
    return there.exists() and (not anchor or anchor in _anchors(there.read_text()))


def _anchors(text: str) -> set[str]:
    """Of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
