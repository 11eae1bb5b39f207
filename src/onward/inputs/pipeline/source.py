"""The text of a pipeline: its file over those it includes, variables filled in, defaults spread. Every key knows where it was written."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward.errors import InvalidInput
from onward.inputs.values import did_you_mean
from onward.inputs.yaml_lines import KeyPath, YamlDocument, load_yaml, read_text
from onward.model.commands.placeholders import value_text
from onward.model.spec import ParamValue

_AS_TEXT = (
    *(
        (*stage, *below)
        for stage in (("train",), ("stages", "*"), ("benchmark", "*"))
        for below in (("command",), ("environment", "variables"))
    ),
    ("defaults", "environment", "variables"),
    *(("environments", "*", key) for key in ("python", "packages", "opam", "setup", "activate")),
)
_VARIABLE = re.compile(r"\{\{(vars\.[^{}\s]*)\}\}|(?<!\$)\{vars\.([^{}\s]*)\}")
_SPREAD = ("params", "resources", "limits", "environment", "launcher", "stop", "checkpoints", "code")  # of `defaults`, to stages
_SPREAD_TO_BENCHMARKS = ("params", "resources", "environment")


@dataclass(frozen=True, kw_only=True)
class SourcePosition:
    source: str
    line: int
    keys: KeyPath  # as written there

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {'.'.join(self.keys)}"


@dataclass(kw_only=True)
class SourcePart:
    """A piece of the file, with the place of each key in it."""

    data: Any
    places: dict[KeyPath, SourcePosition]

    def below(self, key: str) -> SourcePart:
        data = self.data[int(key)] if isinstance(self.data, list) else self.data[key]
        return SourcePart(data=data, places={keys[1:]: position for keys, position in self.places.items() if keys[:1] == (key,)})

    def put(self, key: str, part: SourcePart) -> None:
        self.places = {keys: position for keys, position in self.places.items() if keys[:1] != (key,)}
        self.places |= {(key, *keys): position for keys, position in part.places.items()}
        if isinstance(self.data, list):
            self.data[int(key)] = part.data
        else:
            self.data[key] = part.data


@dataclass(kw_only=True)
class PipelineSource:
    """A pipeline's file, whole. Problems are told together, each with the place where it was written."""

    path: str
    whole: SourcePart
    problems: list[tuple[SourcePosition, str]] = field(default_factory=list)

    def find(self, keys: KeyPath) -> SourcePosition:
        """Where a key is written, `-` and `_` alike; of a missing one, where it would belong."""
        alike = {tuple(key.replace("-", "_") for key in keys): position for keys, position in self.whole.places.items()}
        wanted = tuple(key.replace("-", "_") for key in keys)
        if wanted in alike:
            return alike[wanted]
        if not keys:
            return SourcePosition(source=self.path, line=1, keys=())
        above = self.find(keys[:-1])
        return SourcePosition(source=above.source, line=above.line, keys=(*above.keys, keys[-1].replace("_", "-")))

    def complain(self, keys: KeyPath, sentence: str) -> None:
        self.problems.append((self.find(keys), sentence))


def read_source(path: Path, given: Mapping[str, ParamValue], *, text: str | None = None) -> PipelineSource:
    """`given` are variables that win over the file's; `text` is the file's, where it is known already."""
    source = PipelineSource(path=str(path), whole=SourcePart(data={}, places={}))
    source.whole = _with_includes(path, text, source, ())
    if source.problems:  # what is below would only follow from them
        return source
    _fill_variables(source, given)
    _spread_defaults(source)
    return source


def merged(below: SourcePart, above: SourcePart) -> SourcePart:
    """What stands above wins, key by key; lists and plain values are replaced whole."""
    if not (isinstance(below.data, dict) and isinstance(above.data, dict)):
        return above
    whole = SourcePart(data={}, places={keys: position for part in (below, above) for keys, position in part.places.items() if not keys})
    for key in {**below.data, **above.data}:
        parts = [part.below(key) for part in (below, above) if key in part.data]
        with_data = [part for part in parts if part.data is not None] or parts[-1:]  # a key without a value is as good as absent
        whole.put(key, merged(*with_data) if len(with_data) == 2 else with_data[0])
    return whole


# ── include ───────────────────────────────────────────────────────────────────


def _with_includes(path: Path, text: str | None, source: PipelineSource, above: tuple[Path, ...]) -> SourcePart:
    document = load_yaml(read_text(path) if text is None else text, str(path), as_text=_AS_TEXT)
    own = _part(document)
    source.problems += [(SourcePosition(source=str(path), line=line, keys=()), sentence) for line, sentence in document.problems]
    whole = SourcePart(data={}, places={})
    names = own.data.get("include") or []
    for name in [names] if isinstance(names, str) else names if isinstance(names, list) else []:
        target = path.parent / str(name)
        if target.resolve() in (path.resolve(), *above):
            source.problems.append((own.places[("include",)], f"found {name}, which includes this file again, expected no cycle"))
            continue
        try:
            whole = merged(whole, _with_includes(target, None, source, (*above, path.resolve())))
        except InvalidInput as error:
            if not error.message.startswith(f"{target}:"):
                raise
            source.problems.append((own.places[("include",)], error.message))
    return merged(whole, own)


def _part(document: YamlDocument) -> SourcePart:
    places = {keys: SourcePosition(source=document.source, line=line, keys=keys) for keys, line in document.lines.items()}
    return SourcePart(data=document.data, places=places)


# ── variables ─────────────────────────────────────────────────────────────────


def _fill_variables(source: PipelineSource, given: Mapping[str, ParamValue]) -> None:
    variables = source.whole.data.get("vars") or {}
    if not isinstance(variables, dict):
        return  # reported as a wrong section
    if strangers := [name for name in given if name not in variables]:
        known = did_you_mean(strangers[0], variables) or f" (it has {', '.join(variables) or 'none'})"
        raise InvalidInput(f"{source.path} has no variable {strangers[0]}{known}", hint="define variables under `vars:`")
    values: dict[str, ParamValue] = {}

    def put(keys: KeyPath, text: str) -> Any:
        def one(match: re.Match[str]) -> str:
            literal, name = match.groups()
            if literal is not None:
                return f"{{{literal}}}"
            if name not in values:
                source.complain(keys, f"found {{vars.{name}}}, expected a variable of the file{did_you_mean(name, variables)}")
                return ""
            return value_text(values[name])

        alone = _VARIABLE.fullmatch(text)
        if alone and alone[2] in values:
            return values[alone[2]]
        return _VARIABLE.sub(one, text)

    for name, value in {**variables, **given}.items():  # each may use those above it
        values[name] = put(("vars", name), value) if isinstance(value, str) and name not in given else value
    rest = {key: value for key, value in source.whole.data.items() if key != "vars"}
    source.whole.data = {**_mapped(rest, (), put), **({"vars": values} if variables else {})}


def _mapped(data: Any, keys: KeyPath, put: Callable[[KeyPath, str], Any]) -> Any:
    if isinstance(data, dict):
        return {key: _mapped(value, (*keys, key), put) for key, value in data.items()}
    if isinstance(data, list):
        return [_mapped(value, (*keys, str(index)), put) for index, value in enumerate(data)]
    return put(keys, data) if isinstance(data, str) else data


# ── defaults ──────────────────────────────────────────────────────────────────


def _spread_defaults(source: PipelineSource) -> None:
    """Into every stage and benchmark; what workers ask for goes to benchmarks, above the defaults."""
    whole = source.whole
    if isinstance(whole.data.get("train"), dict):
        whole.put("train", _above(whole, "defaults", _SPREAD, whole.below("train")))
    for room, kept in (("stages", _SPREAD), ("benchmark", _SPREAD_TO_BENCHMARKS)):
        inside = whole.data.get(room)
        if not isinstance(inside, dict | list):
            continue
        part = whole.below(room)
        for key in map(str, inside if isinstance(inside, dict) else range(len(inside))):
            one = part.below(key)
            if isinstance(one.data, dict):
                one = _above(whole, "workers", ("resources",), one) if room == "benchmark" else one
                part.put(key, _above(whole, "defaults", kept, one))
        whole.put(room, part)


def _above(whole: SourcePart, section: str, kept: tuple[str, ...], own: SourcePart) -> SourcePart:
    """`own`, over those keys of the section that mean something to it."""
    if not isinstance(whole.data.get(section), dict):
        return own
    given = whole.below(section)
    base = SourcePart(data={}, places={})
    for key in kept:
        if given.data.get(key) is not None:
            part = given.below(key)
            base.put(key, SourcePart(data=copy.deepcopy(part.data), places=part.places))
    return merged(base, own)
