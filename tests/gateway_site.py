"""A folder with what `onward gateway` needs as a process: settings, a recipe, and the environment of the first gateway around it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from beds.rabbitmq import USER, RabbitMQ
from beds.waiting import until

PATIENCE = 90.0

RECIPE = """\
name: shout
recipe:
  settings:
    word: {type: str, max: 100, default: hello}
  outputs:
    Said: {file: said.txt, required: true}
train:
  command: PYTHON shout.py
"""
SHOUT = """\
import json, os, pathlib
asked = json.loads(pathlib.Path(os.environ["ONWARD_REQUEST_FILE"]).read_text())
print({key: value for key, value in os.environ.items() if "PASSWORD" in key})
pathlib.Path(os.environ["ONWARD_ARTIFACTS_DIR"], "said.txt").write_text(asked["settings"]["word"].upper())
"""
DIES = """\
import os, signal
from onward.cli.main import main
from onward.tracker.requests.store import Requests
Requests.set_run = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
main()
"""


class GatewaySite:
    def __init__(self, folder: Path, server: RabbitMQ, vhost: str) -> None:
        self.folder = folder
        recipe = folder / "recipes" / "shout"
        recipe.mkdir(parents=True)
        (recipe / "recipe.yaml").write_text(RECIPE.replace("PYTHON", sys.executable))
        (recipe / "shout.py").write_text(SHOUT)
        self.settings = f"""
cluster = "local"
[gateway]
url = "{server.url(vhost, tls=True)}"
ca-file = "{server.authority.certificate}"
recipes = "{folder / "recipes"}"
[gateway.v1]
enabled = true
recipe = "shout"
"""
        (folder / "settings.toml").write_text(self.settings)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ONWARD_")}
        own = {"ONWARD_STATE_DIR": f"{folder}/state", "ONWARD_SETTINGS": f"{folder}/settings.toml", "ONWARD_ROOT": f"{folder}/runs"}
        self.login = {"RABBITMQ_USER": USER, "RABBITMQ_PASSWORD": server.password}
        self.env = {**kept, **own, **self.login}

    def start(self, *words: str, dies: bool = False) -> subprocess.Popen[bytes]:
        """`dies`: as soon as a job is queued, before its store knows of it."""
        argv = [sys.executable, "-c", DIES, "gateway", *words] if dies else self.argv(*words)
        with (self.folder / "err").open("ab") as err:
            process = subprocess.Popen(argv, env=self.env, stderr=err, stdout=err, stdin=subprocess.DEVNULL)
        said = self.log.count("listening at")
        assert until(lambda: self.log.count("listening at") >= said + 1 or process.poll() is not None, timeout=PATIENCE), self.log
        assert process.poll() is None, self.log
        return process

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.argv(*words), env={**self.env, **env}, capture_output=True, text=True, timeout=PATIENCE, check=False)

    @staticmethod
    def argv(*words: str) -> list[str]:
        return [sys.executable, "-m", "onward", "gateway", *words]

    @property
    def log(self) -> str:
        return (self.folder / "err").read_text()

    def texts(self) -> str:
        """All that lies in the folder, as text."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()]
        return "\n".join(path.read_bytes().decode(errors="replace") for path in files)
