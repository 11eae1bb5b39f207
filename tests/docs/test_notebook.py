"""The page about notebooks: its snippets run as they stand; those of pandas where it is there."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.servers import Running

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "notebook.md"


def test_the_snippets_run_as_they_stand(tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    have = {"pandas": importlib.util.find_spec("pandas"), "matplotlib": importlib.util.find_spec("matplotlib")}
    run = [text for text in snippets if all(have[name] for name in re.findall(r"pandas|matplotlib", text))]
    assert len(run) >= 3
    script = tmp_path / "notebook.py"
    script.write_text("\n".join(run) + "\nprint(len(runs), len(ids), len(points) > 0, len(rough) > 0)\n")
    with Running(tmp_path / "up", "--demo-data") as server:
        env = {**os.environ, **server.env}
        done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("5 5 True True\n", 0), done.stderr
