"""Build an environment: the command of a run of its own. Never half there: it is made in a folder of its own, and shown by one rename.

<root>/.environments/<key>             the link by which everyone finds it: there when it is whole
<root>/.environments/.made/<key>-1/    where it was made; paths inside point here, so that nothing has to move
├── prefix/                            the environment
├── files/                             what it was made from
├── build.json                         its description
└── build.log                          everything that was printed
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onward.errors import OnwardError, PreparationFailed
from onward.model.pipelines.environment_build import Build, build_from_json, build_to_json
from onward.model.spec import Environment
from onward.sdk import contract
from onward.sdk.atomic_files import write_whole
from onward.supervisor.preparation.setup_steps import prepare

_LONGEST = 24 * 3600.0  # seconds: the job's own limit comes first


@dataclass(frozen=True)
class Environments:
    """All that one user built for runs in one root. What others built is theirs to change, so it is never used."""

    root: Path

    @property
    def path(self) -> Path:
        me = os.getuid()
        mine = not self.root.exists() or self.root.stat().st_uid == me
        return self.root / (".environments" if mine else f".environments-{me}")

    @property
    def made(self) -> Path:
        return self.path / ".made"

    def link(self, key: str) -> Path:
        return self.path / key

    def prefix(self, key: str) -> Path:
        return self.link(key) / "prefix"

    def is_whole(self, key: str) -> bool:
        return (self.link(key) / "build.json").is_file()

    def attempt(self, key: str, run: str, leg: int) -> Path:
        """A folder of this leg's own. What earlier legs of the same run left half-made goes: no two legs of a run live at once."""
        self.made.mkdir(parents=True, exist_ok=True)
        for left in self.made.glob(f"{key}-{run}.*"):
            shutil.rmtree(left, ignore_errors=True)
        folder = self.made / f"{key}-{run}.{leg}"
        folder.mkdir()
        return folder

    def show(self, key: str, folder: Path) -> bool:
        """Let everyone find it, unless another builder was first: of two links of one name there is only the first."""
        while True:
            try:
                self.link(key).symlink_to(folder.relative_to(self.path))
            except FileExistsError:
                if self.is_whole(key):
                    return False
                self.link(key).unlink(missing_ok=True)  # to something that was cleaned away
                continue
            return True


@dataclass(frozen=True, kw_only=True)
class Builder:
    """One leg of a build's run."""

    environments: Environments
    run: str
    leg: int
    env: Mapping[str, str]
    cwd: Path  # where the user's lines start: the frozen code

    def build(self, wanted: Build) -> bool:
        """False where it already existed. Raises PreparationFailed, which names the line that failed and has its last words."""
        here = self.environments
        if here.is_whole(wanted.key):
            return False
        folder = here.attempt(wanted.key, self.run, self.leg)
        began = time.monotonic()
        self._make(wanted, folder)
        facts = {**build_to_json(wanted), "seconds": round(time.monotonic() - began, 1)}
        write_whole(folder / "build.json", json.dumps(facts, indent=1))
        if here.show(wanted.key, folder):
            return True
        shutil.rmtree(folder, ignore_errors=True)
        return False

    def _make(self, wanted: Build, folder: Path) -> None:
        files, prefix = folder / "files", folder / "prefix"
        files.mkdir()
        for name, text in wanted.files.items():
            write_whole(files / name, text)
        env: Mapping[str, str] = {**self.env, "ONWARD_PREFIX": str(prefix)}
        bare = Environment(modules=wanted.modules, setup=wanted.making(str(prefix), str(files)))
        env = self._phase(wanted, "building it failed", bare, env, folder)
        env = self._phase(wanted, "activating it failed", replace(wanted.used(str(prefix)), modules=()), env, folder)
        self._phase(wanted, "its setup failed", Environment(setup=wanted.setup), env, folder)

    def _phase(self, wanted: Build, what: str, steps: Environment, env: Mapping[str, str], folder: Path) -> Mapping[str, str]:
        output = folder / "build.log"
        output.touch()
        try:
            return prepare(steps, env, cwd=self.cwd, folder=folder, output=output, seconds=_LONGEST) or env
        except PreparationFailed as error:
            raise PreparationFailed(f"the environment {wanted.name}: {what}: {error.message}", hint=error.hint) from error


def main(argv: Sequence[str]) -> int:
    """`supervisor.pyz build ROOT FILE`: what a build's run starts."""
    if len(argv) != 2:
        sys.stderr.write("usage: supervisor.pyz build ROOT FILE\n")
        return 2
    wanted = build_from_json(json.loads(Path(argv[1]).read_text()))
    environments = Environments(Path(argv[0]))
    run, leg = os.environ.get(contract.RUN_ID, "by-hand"), int(os.environ.get(contract.LEG, "1"))
    try:
        made = Builder(environments=environments, run=run, leg=leg, env=os.environ, cwd=Path.cwd()).build(wanted)
    except OnwardError as error:
        sys.stderr.write(f"{error.hint}\n{error.message}\n")  # the last line says what it was, as in a traceback
        return 1
    except OSError as error:  # no room, or a root in which another keeps the environments
        sys.stderr.write(f"the environment {wanted.name} cannot be stored in {environments.path}: {error.strerror}: {error.filename}\n")
        return 1
    sys.stdout.write(f"the environment {wanted.name} {'is built' if made else 'already existed'}: {environments.link(wanted.key)}\n")
    return 0
