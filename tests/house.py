"""The tree of packages as CONTRIBUTING shows it: `python -m tests.house` writes it from the packages' docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).parents[1]
SOURCE = REPO / "src" / "onward"
PAGE = REPO / "CONTRIBUTING.md"
# Top to bottom: a room imports from the rooms below it.
ROOMS = ["contrib", "cli", "api", "gateway", "tui", "operations", "inputs", "pipelines", "planning", "tracker", "supervisor"]
ROOMS += ["torch", "schedulers", "checkpoints", "rundir", "model", "sdk"]
OTHERS = {  # folders whose modules are no package
    "contrib/patchwise": "The recipe patchwise: scripts that learn to tell the layers of a document page apart.",
    "tracker/migrations": "Alembic's environment.",
    "tracker/migrations/versions": "One module per schema change; unchanged once released.",
}
_TREE = re.compile(r"(?<=<!-- written by python -m tests.house -->\n```\n).+?(?=```\n)", re.DOTALL)


def docstrings() -> dict[str, str]:
    """Of every package, by its path below src/onward."""
    packages = [path for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE]
    return {str(path.parent.relative_to(SOURCE)): ast.get_docstring(ast.parse(path.read_text())) or "" for path in packages}


def tree() -> str:
    lines = {name: text.split("\n")[0].split(". ")[0].removesuffix(".") for name, text in docstrings().items()}
    lines |= {name: text.removesuffix(".") for name, text in OTHERS.items()}
    return "src/onward/\n" + "".join(f"{'  ' * depth}{name + '/':{26 - 2 * depth}}{text}\n" for depth, name, text in _walk(lines))


def shown() -> str:
    found = _TREE.search(PAGE.read_text())
    assert found, f"{PAGE.name} has no tree of packages"
    return found.group()


def _walk(lines: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    def tree_position(name: str) -> tuple[int, list[str]]:
        first, *rest = name.split("/")
        return (ROOMS.index(first) if first in ROOMS else len(ROOMS)), [first, *rest]

    for name in sorted(lines, key=tree_position):
        yield name.count("/") + 1, name.split("/")[-1], lines[name]


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().replace(shown(), tree()))
