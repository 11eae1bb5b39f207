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
        description="What builds it: venv, uv, conda, mamba, micromamba, or none (only the setup lines). "
        "Default: conda if `file` is given, else venv.",
    )
    python: Version | None = Field(default=None, description="Its Python: a version such as 3.11; for venv also a program.")
    packages: list[Package] = Field(default_factory=list, description="Packages to install, as for pip or conda.")
    requirements: Files = Field(default_factory=list, description="Requirements or lock files for pip, one or several.")
    file: File | None = Field(default=None, description="For conda: an environment.yml or an explicit list of packages.")
    modules: list[Module] = Field(default_factory=list, description="Modules to load before building it and before using it.")
    opam: Package | None = Field(
        default=None, description="An opam switch next to it with this compiler, such as ocaml-base-compiler.4.11.2."
    )
    setup: list[Line] = Field(default_factory=list, description="Bash lines to run in it once after it is built, in order.")
    activate: list[Line] = Field(default_factory=list, description="Bash lines to run before each use.")
    inputs: Paths = Field(
        default_factory=list, description="Files, folders and patterns that the setup lines read: it is rebuilt when they change."
    )
    image: Argument | None = Field(
        default=None,
        description="A container for Apptainer, such as docker://python:3.12 or a .sif file: commands run in it, nothing is built.",
    )
    image_options: list[Argument] = Field(default_factory=list, description="Options for `apptainer exec`, such as --nv.")
    resources: ResourcesIn | None = Field(
        default=None, description="What the job that builds it requests. Default: the file's defaults, without GPUs and on one node."
    )
    cluster: Name | None = Field(
        default=None, description="Where to build it. Default: where the pipeline runs. local is the machine you are on."
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
            raise custom_error(f"found a container and {', '.join(built)}, expected one of the two: a container has its packages")
        return image

    def to_model(self, name: str, folder: Path) -> Build:
        """Raises InvalidInput for a file that cannot be used. Paths are relative to `folder`."""
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
        raise InvalidInput(f"{path} is not a requirements file for pip", hint=f"convert it: {_LOCKS[name]}")
    text = read_text(folder / path)
    if files.get(name, text) != text:
        raise InvalidInput(f"two different files are named {name}", hint="they are stored in one folder: rename one")
    known = name in files
    files[name] = text
    if known or name.endswith((".yml", ".yaml", ".toml")):
        return
    if local := _LOCAL.search(text):
        line = text.count("\n", 0, local.end()) + 1
        raise InvalidInput(
            f"{path}:{line}: found a local folder to install",
            hint="install it in a setup line, and list its files as inputs",
        )
    for nested in _nested(text):
        if "/" in nested:
            raise InvalidInput(f"{path} names {nested}", hint="files that it refers to must be in the same folder")
        _collect(str(PurePosixPath(path).parent / nested), folder, files)


def _nested(text: str) -> Iterator[str]:
    for match in _NESTED.finditer(text):
        yield match[1]
