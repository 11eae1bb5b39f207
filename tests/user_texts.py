"""Every text that a user can read, with its place: messages in the code, words on the page, paragraphs of the docs.

`scripts/user-texts` prints them as `file:line<TAB>text`, and `tests/docs/test_plain_words.py` looks for retired words in them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).resolve().parents[1]
SOURCE = REPO / "src" / "onward"
WEB = REPO / "web" / "src"

DOCUMENTED = (
    "cli",
    "sdk",
    "api/routes",
    "api/mlflow",
    "api/schemas",
    "contrib/seed_tracker",
)  # their docstrings are help texts, or in the OpenAPI
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
SQL = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|WITH|FROM|WHERE|BEGIN|VACUUM|ANALYZE)\b")
CODE = re.compile(r"\(\?|\\[bdsw]|^[\w./:*-]+$|^#!|^(import|from) \w")


class Text(NamedTuple):
    path: str
    line: int
    text: str


def user_texts() -> Iterator[Text]:
    yield from source_texts()
    yield from web_texts()
    yield from doc_texts()


def source_texts() -> Iterator[Text]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "versions" not in path.parts:
            name = str(path.relative_to(REPO))
            for line, text in _strings(ast.parse(path.read_text()), documented=_documented(path)):
                yield Text(name, line, text)


def _documented(path: Path) -> bool:
    return str(path.relative_to(SOURCE)).startswith(DOCUMENTED)


def _strings(tree: ast.Module, *, documented: bool) -> Iterator[tuple[int, str]]:
    seen: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                seen.add(id(body[0].value))
                text = ast.get_docstring(node)
                if documented and text and not isinstance(node, ast.Module) and not node.name.startswith("_"):
                    yield body[0].lineno, " ".join(text.split())
        if id(node) in seen:
            continue
        parts = _parts(node)
        if parts is None:
            continue
        seen.update(id(child) for child in ast.walk(node))
        text = " ".join("".join(parts).split())
        words = WORD.findall(" ".join(part for part in parts if not part.startswith("{")))
        if len(words) >= 2 and " " in text and not SQL.match(text) and not CODE.search(text):
            assert isinstance(node, ast.expr)
            yield node.lineno, text


def _parts(node: ast.AST) -> list[str] | None:
    """The pieces of a string expression, what is filled in as `{name}`; None for what is no string."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return [part for value in values for part in (_parts(value) or ["{…}"])]
        case ast.FormattedValue(value=value):
            return ["{" + ast.unparse(value) + "}"]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            before, after = _parts(left), _parts(right)
            if before is None and after is None:
                return None
            return [*(before or ["{…}"]), *(after or ["{…}"])]
    return None


def web_texts() -> Iterator[Text]:
    """Roughly: string literals of two words or more, and what stands between tags."""
    for path in sorted([*WEB.rglob("*.ts"), *WEB.rglob("*.tsx")]):
        if path.name == "api.gen.ts" or ".test." in path.name:
            continue
        source = re.sub(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", lambda found: "\n" * found[0].count("\n"), path.read_text(), flags=re.DOTALL)
        for found in re.finditer(r"\"([^\"\n]*)\"|`([^`]*)`|[>}]([^<>{}=;]*)(?=[<{])", source):
            text = " ".join((found[1] or found[2] or found[3] or "").split())
            prose = re.sub(r"\$\{[^}]*\}", "", text)
            if (
                len(re.findall(r"[A-Za-z][a-z'’]+", prose)) >= 2
                and " " in prose
                and "=>" not in text
                and not re.search(r"&&|\|\||\w\(\w*\)", prose)
            ):
                yield Text(str(path.relative_to(REPO)), source.count("\n", 0, found.start()) + 1, text)


def doc_texts() -> Iterator[Text]:
    pages = [
        REPO / "README.md",
        REPO / "CONTRIBUTING.md",
        REPO / "SECURITY.md",
        REPO / "CHANGELOG.md",
        *sorted((REPO / "docs").rglob("*.md")),
        *sorted((REPO / "examples").rglob("*.md")),
    ]
    for page in pages:
        text = page.read_text()
        if page.name == "CHANGELOG.md":  # released versions stay as they were written
            text = text.split("\n## [Unreleased]")[1].split("\n## [")[0]
        for line, paragraph in _paragraphs(text):
            yield Text(str(page.relative_to(REPO)), line, paragraph)


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items, rows and lines of code, each as one line."""
    start, lines, fenced = 0, list[str](), False
    for number, line in enumerate(text.splitlines(), start=1):
        if lines and (fenced or not line.strip() or re.match(r"\s*([-*|#>`]|\d+\.)", line)):
            yield start, " ".join(" ".join(lines).split())
            lines = []
        if line.startswith("```"):
            fenced = not fenced
        elif line.strip():
            start = start if lines else number
            lines.append(line)
    if lines:
        yield start, " ".join(" ".join(lines).split())


if __name__ == "__main__":
    sys.stdout.writelines(f"{path}:{line}\t{text}\n" for path, line, text in user_texts())
