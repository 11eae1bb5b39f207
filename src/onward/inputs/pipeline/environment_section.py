"""`environments:` of a pipeline: what each is built from, with the texts of the files it names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from onward.errors import InvalidInput
from onward.inputs.params.sections import ResourcesIn, Section
from onward.inputs.pipeline.content_hash import digests
from onward.inputs.pipeline.stage_section import Paths
from onward.inputs.values import Argument, File, Line, Module, Name, Package, ShortForm, Version, choice, custom_error, listed
from onward.inputs.yaml_lines import read_text
from onward.model.pipelines.environment_build import TOOLS, Build

_CONDAS = ("conda", "mamba", "micromamba")
_LOCKS = {
    "uv.lock": "uv export --format requirements-txt -o requirements.lock",
    "poetry.lock": "poetry export -o requirements.lock",
    "pdm.lock": "pdm export -o requirements.lock",
    "Pipfile.lock": "pipenv requirements > requirements.lock",
}
_INPUTS = ".inputs.json"
_NESTED = re.compile(r"^\s*(?:-r|-c|--requirement|--constraint)(?:\s+|=)(\S+)", re.MULTILINE)
_LOCAL = re.compile(r"^\s*(?:-e\s|--editable[\s=]|\.{1,2}(?:/|\s*$))", re.MULTILINE)

Files = Annotated[list[File], BeforeValidator(listed), ShortForm({"type": "string"})]


class BuildIn(Section):
    """An environment that is built once, and again only when something that it is made of has changed."""

    tool: Annotated[str, choice(*TOOLS)] | None = Field(
        default=None,
        description="What makes it: venv, uv, conda, mamba, micromamba, or none (the setup lines alone). "
        "conda where `file` is given, else venv.",
    )
    python: Version | None = Field(default=None, description="Python in it: a version such as 3.11; for venv also a program.")
    packages: list[Package] = Field(default_factory=list, description="Packages to install, as pip or conda write them.")
    requirements: Files = Field(default_factory=list, description="Files of requirements or locks for pip, one or several.")
    file: File | None = Field(default=None, description="For conda: an environment.yml, or an explicit list of packages.")
    modules: list[Module] = Field(default_factory=list, description="Modules to load before it is built, and before it is used.")
    opam: Package | None = Field(
        default=None, description="An opam switch beside it, with this compiler, such as ocaml-base-compiler.4.11.2."
    )
    setup: list[Line] = Field(default_factory=list, description="Lines for bash that are run in it once it is made, one after another.")
    activate: list[Line] = Field(default_factory=list, description="Lines for bash that everyone who uses it runs first.")
    inputs: Paths = Field(
        default_factory=list, description="Files, folders and patterns that the setup lines read: it is built again when they have changed."
    )
    image: Argument | None = Field(
        default=None,
        description="A container for Apptainer, such as docker://python:3.12 or a .sif file: commands run in it, and nothing is built.",
    )
    image_options: list[Argument] = Field(default_factory=list, description="Words for `apptainer exec`, such as --nv.")
    resources: ResourcesIn | None = Field(
        default=None, description="What the job that builds it asks for. Otherwise the defaults of the file, without GPUs and on one node."
    )
    cluster: Name | None = Field(
        default=None, description="Where it is built, if not where the pipeline runs: local is the machine you are at."
    )

    @field_validator("file")
    @classmethod
    def _by_conda(cls, file: str | None, info: ValidationInfo) -> str | None:
        if file and info.data.get("tool") not in (None, *_CONDAS):
            raise custom_error(
                f"found a file for conda and the tool {info.data['tool']}, expected requirements, or one of {', '.join(_CONDAS)}"
            )
        return file

    @field_validator("image")
    @classmethod
    def _not_built(cls, image: str | None, info: ValidationInfo) -> str | None:
        built = [key for key in ("tool", "python", "packages", "requirements", "file", "opam", "setup") if info.data.get(key)]
        if image and built:
            raise custom_error(f"found a container and {', '.join(built)}, expected either: what is in a container is built with it")
        return image

    def to_model(self, name: str, folder: Path) -> Build:
        """Raises InvalidInput for a file that cannot be used. Paths are seen from `folder`."""
        files: dict[str, str] = {}
        for path in (*self.requirements, *filter(None, [self.file])):
            _collect(path, folder, files)
        if self.inputs:
            files[_INPUTS] = json.dumps(dict(digests(self.inputs, folder)), indent=1)  # so that its name by content follows them
        return Build(
            name=name,
            tool=self.tool or ("conda" if self.file else "venv"),
            python=self.python,
            packages=tuple(self.packages),
            requirements=tuple(PurePosixPath(path).name for path in self.requirements),
            definition=PurePosixPath(self.file).name if self.file else None,
            files=files,
            modules=tuple(self.modules),
            opam=self.opam,
            setup=tuple(self.setup),
            activate=tuple(self.activate),
            image=self.image,
            image_options=tuple(self.image_options),
        )


def _collect(path: str, folder: Path, files: dict[str, str]) -> None:
    """The text of a file and of those it names itself: they all lie in one folder when it is built."""
    name = PurePosixPath(path).name
    if name in _LOCKS:
        raise InvalidInput(f"{path} is not a list that pip reads", hint=f"make one of it: {_LOCKS[name]}")
    text = read_text(folder / path)
    if files.get(name, text) != text:
        raise InvalidInput(f"two different files are called {name}", hint="they are kept in one folder: rename one")
    known = name in files
    files[name] = text
    if known or name.endswith((".yml", ".yaml", ".toml")):
        return
    if local := _LOCAL.search(text):
        line = text.count("\n", 0, local.end()) + 1
        raise InvalidInput(
            f"{path}:{line}: found a folder of yours to install",
            hint="install it by a setup line, with its files as inputs",
        )
    for nested in _nested(text):
        if "/" in nested:
            raise InvalidInput(f"{path} names {nested}", hint="files that it names must lie beside it")
        _collect(str(PurePosixPath(path).parent / nested), folder, files)


def _nested(text: str) -> Iterator[str]:
    for match in _NESTED.finditer(text):
        yield match[1]
