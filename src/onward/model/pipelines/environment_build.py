"""An environment that is built once for all who need it: what goes into it, its name by content, and the lines that make it. Pure."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from onward.model.spec import Environment

TOOLS = ("venv", "uv", "conda", "mamba", "micromamba", "none")
_CONDAS = ("conda", "mamba", "micromamba")
_FORMAT = 1  # another way of building makes other environments of the same description


@dataclass(frozen=True, kw_only=True)
class Build:
    """Files are here with their text, as they were at submit: what is built depends on nothing that can change later."""

    name: str
    tool: str = "venv"  # one of TOOLS; none: only the setup lines
    python: str | None = None  # a version such as 3.11, or for a venv a program
    packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()  # names in `files`, installed by pip
    definition: str | None = None  # name in `files`: an environment.yml, or an explicit list of packages
    files: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    opam: str | None = None  # a switch beside it, with this compiler
    setup: tuple[str, ...] = ()  # lines of the user's, run inside it
    activate: tuple[str, ...] = ()  # lines that everyone who uses it runs
    image: str | None = None  # a container: everything runs in it, and nothing is built
    image_options: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name by content: the same description, the same environment, whatever it is called."""
        content = {**asdict(self), "name": "", "format": _FORMAT}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    @property
    def is_built(self) -> bool:
        return self.image is None

    def prefix_command(self) -> tuple[str, ...]:
        """What a command is put behind, so that it runs in the container."""
        return ("apptainer", "exec", *self.image_options, self.image) if self.image else ()

    def used(self, prefix: str) -> Environment:
        """What a run that uses it is prepared with; `prefix` is the folder it was built in."""
        if self.image:
            return Environment(modules=self.modules, setup=self.activate)
        opam = (f'eval "$(opam env --switch={shlex.quote(f"{prefix}/opam")} --set-switch)"',) if self.opam else ()
        return Environment(
            modules=self.modules,
            conda=prefix if self.tool in _CONDAS else None,
            venv=prefix if self.tool in ("venv", "uv") else None,
            setup=(*opam, *self.activate),
        )

    def making(self, prefix: str, files: str) -> tuple[str, ...]:
        """Lines for bash that make it in `prefix`; the files' texts lie in `files`. The user's own lines come after, inside it."""
        match self.tool:
            case "venv":
                lines = _venv(self, prefix, files)
            case "uv":
                lines = _uv(self, prefix, files)
            case "conda" | "mamba" | "micromamba":
                lines = _conda(self, prefix, files)
            case _:
                lines = [f"mkdir -p {shlex.quote(prefix)}"]
        if self.opam:
            switch = shlex.quote(f"{prefix}/opam")
            lines += [f"mkdir -p {switch}", f"opam switch create {switch} {shlex.quote(self.opam)} --yes"]
        return tuple(lines)


def _venv(build: Build, prefix: str, files: str) -> list[str]:
    python = build.python or "python3"
    program = f"python{python}" if python[0].isdigit() else python
    lines = [f"{shlex.quote(program)} -m venv {shlex.quote(prefix)}"]
    if wanted := _wanted(build, files):
        lines.append(f"{shlex.quote(f'{prefix}/bin/python')} -m pip install --disable-pip-version-check {wanted}")
    return lines


def _uv(build: Build, prefix: str, files: str) -> list[str]:
    python = f"--python {shlex.quote(build.python)} " if build.python else ""
    lines = [f"uv venv {python}{shlex.quote(prefix)}"]
    if wanted := _wanted(build, files):
        lines.append(f"uv pip install --python {shlex.quote(f'{prefix}/bin/python')} {wanted}")
    return lines


def _conda(build: Build, prefix: str, files: str) -> list[str]:
    prefix_option = f"--yes --prefix {shlex.quote(prefix)}"
    if build.definition:
        path = shlex.quote(f"{files}/{build.definition}")
        described = build.definition.endswith((".yml", ".yaml"))
        make = "create" if build.tool == "micromamba" or not described else "env create"
        lines = [f"{build.tool} {make} {prefix_option} --file {path}"]
    else:
        version = [f"python={build.python}"] if build.python else []
        lines = [f"{build.tool} create {prefix_option} {' '.join(map(shlex.quote, [*version, *build.packages]))}".rstrip()]
    if build.requirements:
        by_pip = " ".join(f"--requirement {shlex.quote(f'{files}/{name}')}" for name in build.requirements)
        lines.append(f"{shlex.quote(f'{prefix}/bin/python')} -m pip install --disable-pip-version-check {by_pip}")
    return lines


def _wanted(build: Build, files: str) -> str:
    listed = [f"--requirement {shlex.quote(f'{files}/{name}')}" for name in build.requirements]
    return " ".join([*listed, *map(shlex.quote, build.packages)])


def build_to_json(build: Build) -> dict[str, Any]:
    return {"schema": 1, **asdict(build)}


def build_from_json(data: Mapping[str, Any]) -> Build:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "schema"}
    return Build(**fields)
