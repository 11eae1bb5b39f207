"""`onward help`: every page that a hint names is there, and reads well in a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from build_web import help_pages
from onward.cli.help_pages import help_topics, page_text
from tests.user_texts import source_texts

REPO = Path(__file__).parents[2]
SOURCES = [*(REPO / "src" / "onward").rglob("*.py"), *(REPO / "web" / "src").rglob("*.ts*"), *(REPO / "docs").rglob("*.md")]
SOURCES = [path for path in SOURCES if "static" not in path.parts and path.name != "help_pages.py"]


def onward(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "onward", "help", *words], capture_output=True, text=True, timeout=60)


def test_every_page_that_a_hint_names_exists() -> None:
    named = {(match[1], path.name) for path in SOURCES for match in re.finditer(r"onward help ([a-z][a-z-]*)", path.read_text())}
    assert {name for name, _ in named} >= {"params", "settings", "gridengine"}
    assert [found for found in named if found[0] not in help_topics()] == []


def test_no_hint_names_a_file_that_an_installed_onward_does_not_have() -> None:
    found = [text for text in source_texts() if re.search(r"\bdocs/(?!adr)\S+\.md\b", text.text)]
    assert found == []


def test_the_wheel_carries_every_page() -> None:
    topics = {path.relative_to(REPO / "docs") for path in help_topics().values()}
    assert topics <= {Path(page) for page in help_pages()}


def test_without_a_topic_the_pages_are_listed_with_their_titles() -> None:
    listed = onward().stdout
    assert re.search(r"^params +The params file$", listed, re.MULTILINE)
    assert len(listed.splitlines()) == len(help_topics()) + 1


def test_a_page_names_other_pages_by_what_to_type() -> None:
    pages = help_topics()
    text = page_text(pages["coming-from-hugging-face"], pages)
    assert "optional words (onward help params)" in text and "](" not in text
    assert onward("coming-from-hugging-face").stdout.strip() == text


def test_in_a_terminal_a_long_page_goes_through_the_pager() -> None:
    script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    command = [sys.executable, "-c", script, sys.executable, "-m", "onward", "help", "params"]
    env = {**os.environ, "PAGER": "sed s/^/paged:/", "TERM": "xterm"}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("paged:# The params file"), done.stderr


@pytest.mark.parametrize(
    ("topic", "hint"),
    [
        ("sbatch", "did you mean coming-from-sbatch?"),
        ("parms", "did you mean params?"),
        ("submit", "it is a verb: onward submit --help"),
        ("xyzzy", "onward help lists them all"),
    ],
)
def test_a_page_that_is_not_there_is_told_with_what_to_type(topic: str, hint: str) -> None:
    done = onward(topic)
    assert done.returncode == 3 and done.stdout == ""
    assert f"there is no page on {topic!r}" in done.stderr and hint in done.stderr
