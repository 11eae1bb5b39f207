"""The recipes of a site: folders with a `recipe.yaml` and the code it runs, read again when they change.

A recipe that cannot be used keeps no other from being used, and says what is wrong with it when it is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from onward.errors import InvalidInput, NotFound
from onward.inputs.params.file import read_as
from onward.inputs.recipes.definition import Recipe, RecipeInput, RecipeOutput
from onward.inputs.recipes.numbered_names import NumberedName
from onward.inputs.recipes.sections import RecipeFileIn, RecipeInputIn
from onward.inputs.values import did_you_mean
from onward.inputs.yaml_lines import read_text
from onward.model.commands.placeholders import placeholders_in
from onward.plugins import PluginGroup, find_plugin, plugin_names

FILE = "recipe.yaml"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}\Z")
_MIB = 1 << 20
_REFERENCE = "`onward help recipes` describes every key"
_CODE_FOLLOWS = frozenset({"-c", "-e", "-m", "--command", "--eval", "--execute", "eval"})
_WHOLE = re.compile(r"(--?[A-Za-z][A-Za-z0-9_-]*=)?\{params\.[^{}\s]+\}\Z")


def packaged_recipes() -> dict[str, Path]:
    """The folders of those that installed packages bring, by name."""
    return {name: _packaged(name) for name in plugin_names(PluginGroup.RECIPES)}


def _packaged(name: str) -> Path:
    point = find_plugin(PluginGroup.RECIPES, name)
    try:
        spec = find_spec(point.value)
    except ImportError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise InvalidInput(
            f"the recipe {name} cannot be found: {point.value} is not a package", hint="correct its entry point, or uninstall it"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def read_recipe(folder: Path, name: str = "") -> Recipe:
    """The recipe in a folder, with the folder's name by default; or InvalidInput with everything that is wrong with it."""
    source = str(folder / FILE)
    read = read_as(RecipeFileIn, read_text(folder / FILE), source, hint=_REFERENCE)
    section, draft = read.recipe, read.to_draft()
    texts = {target.removeprefix("params.") for one in section.settings.values() if one.type == "str" for target in one.to}
    most = section.limits.inputs * _MIB
    return Recipe(
        name=name or folder.name,
        title=section.title,
        folder=folder,
        draft=draft,
        inputs=tuple(_rule(name, one, most) for name, one in section.inputs.items()),
        one_of=tuple(tuple(names) for names in section.one_of),
        settings=tuple(one.to_model(name) for name, one in section.settings.items()),
        resources=tuple(one.to_model(key) for key, one in section.resources.items()),
        outputs=tuple(
            RecipeOutput(name=NumberedName(text=name, last=999), file=one.file, required=one.required, of=one.of, media_type=one.type)
            for name, one in section.outputs.items()
        ),
        fit_gpus=section.fit.gpus if section.fit else None,
        deadline=section.limits.deadline,
        most=most,
        seconds=section.limits.download_time,
        bare=frozenset(_bare(draft.command, texts, source)),
    )


class Recipes:
    """By name, from several folders: the first that has a name gives it. Then `packaged` ones, each in a folder of its own."""

    def __init__(self, *folders: Path, packaged: Mapping[str, Path] = MappingProxyType({})) -> None:
        self._folders = folders
        self._packaged = packaged
        self._read: dict[Path, _LoadedRecipe] = {}

    @property
    def names(self) -> list[str]:
        return list(self._found())

    @property
    def broken(self) -> dict[str, str]:
        """What is wrong with those that cannot be used."""
        return {name: error.message for name, folder in self._found().items() if (error := self._at(name, folder).error)}

    def __iter__(self) -> Iterator[Recipe]:
        for name, folder in self._found().items():
            if recipe := self._at(name, folder).recipe:
                yield recipe

    def get(self, name: str) -> Recipe:
        """NotFound where there is none of this name, InvalidInput where it cannot be used."""
        found = self._found()
        if name not in found:
            known = ", ".join(found) or "none"
            raise NotFound(f"no recipe named {name[:64]!a}{did_you_mean(name[:64], found)}", hint=f"this site has {known}")
        read = self._at(name, found[name])
        if read.recipe is None:
            why = read.error.message if read.error else "it cannot be read"
            raise InvalidInput(f"the recipe {name} of this site cannot be used: {why}", hint="tell the administrator of the gateway")
        return read.recipe

    def _found(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self._folders:
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                continue
            for name in names:
                if _NAME.match(name) and (folder / name / FILE).is_file():
                    found.setdefault(name, folder / name)
        return found | {name: folder for name, folder in self._packaged.items() if name not in found}

    def _at(self, name: str, folder: Path) -> _LoadedRecipe:
        """As it was read, unless its file has changed."""
        try:
            seen = (folder / FILE).stat()
            stamp = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
        except OSError:
            stamp = (0, 0, 0)
        read = self._read.get(folder)
        if read is None or read.stamp != stamp:
            try:
                read = _LoadedRecipe(stamp=stamp, recipe=read_recipe(folder, name))
            except InvalidInput as error:
                read = _LoadedRecipe(stamp=stamp, error=error)
            self._read[folder] = read
        return read


def read_recipes(folder: Path | None) -> Recipes:
    """Those of the site's folder, and those of installed packages."""
    return Recipes(*([folder] if folder else []), packaged=packaged_recipes())


@dataclass(frozen=True, kw_only=True)
class _LoadedRecipe:
    stamp: tuple[int, int, int]
    recipe: Recipe | None = None
    error: InvalidInput | None = None


def _rule(name: str, read: RecipeInputIn, most: int) -> RecipeInput:
    first, _, last = (read.n or "0-9").partition("-")
    return RecipeInput(
        name=NumberedName(text=name, first=int(first), last=int(last)),
        required=read.required,
        most=min(read.max_size * _MIB, most) if read.max_size else most,
        types=tuple(read.types),
        gaps=read.gaps,
    )


def _bare(command: tuple[str, ...], texts: set[str], source: str) -> Iterator[str]:
    """Params with a sender's text in them that are a word of the command: as a part of one, they could be a program's source."""
    for before, text in zip(("", *command), command, strict=False):
        named = [name.removeprefix("params.") for name in placeholders_in([text]) if name.removeprefix("params.") in texts]
        if not named:
            continue
        whole = _WHOLE.match(text)
        if whole is None or before in ("", *_CODE_FOLLOWS):
            raise InvalidInput(
                f"{source}: train.command: {text!r} has a setting of type str, so a sender's text, in what may be source code",
                hint="write {params.NAME} as a separate word or as --name={params.NAME}, or read it from ONWARD_REQUEST_FILE",
            )
        if not whole[1]:
            yield from named
