"""YAML that remembers its lines, so that an error can name the one to change.

Scalars are read as YAML 1.2 means them, because 1.1's readings surprise: `24:00:00` is text and not a number of
seconds in base 60, `no` and `on` are text, `1e-3` is a number, `007` and `2026-11-15` stay as they were written.
Aliases and tags are refused: a params file needs neither, and both can be made to hurt. So can size and depth, which are bounded; libyaml
reads where it is there, ten times as fast as Python.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from onward.errors import InvalidInput

KeyPath = tuple[str, ...]

LARGEST = 256 * 1024  # bytes; a params file is written by a person
DEEPEST = 64  # mappings and lists inside each other
MOST_PROBLEMS = 50  # problems of one file

_SLOWLY_READ = 32 * 1024  # characters that Python alone may read, for its better words about what is wrong

_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    "float": (
        r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
}


class _Composer(yaml.composer.Composer):
    """Nodes from a parser's events: no aliases, and not too deep."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        mark = self.peek_event().start_mark  # type: ignore[attr-defined]
        if self.check_event(yaml.AliasEvent):  # type: ignore[attr-defined]
            raise yaml.composer.ComposerError(None, None, "found an alias (*), expected the value itself", mark)
        if self.depth > DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"nested too deeply: more than {DEEPEST} levels", mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Loader(_Composer, yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012  (PyYAML's own way: a class without 1.1's readings)


for _kind, (_pattern, _first) in _SCALARS.items():
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(rf"(?:{_pattern})\Z"), list(_first))


class _FastLoader(_Composer, getattr(yaml, "CSafeLoader", _Loader)):  # type: ignore[misc]
    """The same with libyaml, where PyYAML was built with it."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers

    def __init__(self, text: str) -> None:
        getattr(yaml, "CSafeLoader", _Loader).__init__(self, text)
        yaml.composer.Composer.__init__(self)


def _root(text: str) -> yaml.Node | None:
    try:
        return _read(_FastLoader, text)
    except yaml.YAMLError:
        if len(text) > _SLOWLY_READ:
            raise
        return _read(_Loader, text)


def _read(kind: type[Any], text: str) -> yaml.Node | None:
    loader = kind(text)
    try:
        found: yaml.Node | None = loader.get_single_node()
        return found
    finally:
        loader.dispose()


class _Dumper(yaml.SafeDumper):
    """Quotes what either YAML takes for something else than text: our reading is 1.2's, other programs' is 1.1's."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [*yaml.SafeDumper.yaml_implicit_resolvers.get(first, ()), *_Loader.yaml_implicit_resolvers.get(first, ())]
        for first in {*yaml.SafeDumper.yaml_implicit_resolvers, *_Loader.yaml_implicit_resolvers}
    }

    def ignore_aliases(self, data: Any) -> bool:
        return True


@dataclass(kw_only=True)
class YamlDocument:
    """One file's content, where each key stands, and what is wrong with it as YAML."""

    source: str
    data: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)  # line, sentence
    _spellings: dict[KeyPath, KeyPath] = field(default_factory=dict, repr=False)

    def complain(self, line: int, sentence: str) -> None:
        """Of very many problems, only the first are reported."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append((line, sentence))

    def find(self, keys: KeyPath) -> tuple[int, KeyPath]:
        """The line and the spelling in the file of a key, `-` and `_` alike; of a missing one, where it would belong."""
        if keys in self.lines or not keys:
            return self.lines.get(keys, 1), keys
        if len(self._spellings) != len(self.lines):
            self._spellings = {_alike(written): written for written in self.lines}
        alike = self._spellings.get(_alike(keys))
        if alike is not None:
            return self.lines[alike], alike
        line, parent = self.find(keys[:-1])
        return line, (*parent, keys[-1].replace("_", "-"))


def read_text(path: Path) -> str:
    """The text of a file that a person wrote, or InvalidInput with what keeps it from being read."""
    try:
        if not path.exists():
            raise InvalidInput(f"{path}: no such file", hint="check the name and the current folder")
        if not path.is_file():
            raise InvalidInput(f"{path}: not a file")
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(raw) > LARGEST:
        raise InvalidInput(f"{path}: larger than {LARGEST // 1024} KiB, which is too large for this file", hint="is this the right file?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"{path}:{line}: not UTF-8 text: found the byte 0x{raw[error.start]:02x}", hint="save the file as UTF-8"
        ) from error


def load_yaml(text: str, source: str, *, as_text: Collection[KeyPath] = ()) -> YamlDocument:
    """Read one YAML mapping. Raises where no more can be read; lesser faults are left in `problems`, to be told together.

    Below a path in `as_text`, scalars are kept as they were written: a version `3.10` must not become 3.1 on its way
    into an environment variable. A `*` in such a path is any key.
    """
    document = YamlDocument(source=source)
    if len(text) > LARGEST:
        raise InvalidInput(f"{source}: larger than {LARGEST // 1024} KiB, which is too large for this file", hint="is this the right file?")
    try:
        node = _root(text)
        if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"):
            raise InvalidInput(f"{source}:1: the file is empty, expected keys such as name and train")
        if not isinstance(node, yaml.MappingNode):
            kind = "a list" if isinstance(node, yaml.SequenceNode) else "a single text"
            raise InvalidInput(f"{source}:{node.start_mark.line + 1}: found {kind}, expected keys such as name and train")
        document.data = _value(node, (), document, frozenset(as_text))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = chr(error.character) if isinstance(error.character, int) else str(error.character)
        raise InvalidInput(f"{source}:{line}: found the character {found!r}, which YAML does not allow") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidInput(f"{source}:{mark.line + 1 if mark else 1}: {_syntax(error)}") from error
    except RecursionError as error:
        raise InvalidInput(f"{source}: nested too deeply to be a params file") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{source}: not YAML: {error}") from error
    return document


def to_yaml(data: Mapping[str, Any]) -> str:
    """Text that `load_yaml` reads back as the same data."""
    return str(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120))


def parse_scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted word means in YAML: the same reading for a param given as a flag."""
    kind = next((kind for kind, (pattern, _) in _SCALARS.items() if re.fullmatch(pattern, text)), "str")
    try:
        return _scalar(yaml.ScalarNode(_TAG + kind, text))
    except ValueError:  # a number of more digits than Python reads
        return text


def _value(node: yaml.Node, keys: KeyPath, document: YamlDocument, as_text: frozenset[KeyPath]) -> Any:
    line = node.start_mark.line + 1
    document.lines.setdefault(keys, line)
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        return _mapping(node, keys, document, as_text)
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return [_value(item, (*keys, str(index)), document, as_text) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode) and node.tag != f"{_TAG}null" and any(_below(keys, path) for path in as_text):
        return node.value
    try:
        return _scalar(node)
    except ValueError:
        kind = node.tag.removeprefix(_TAG)
        found = "an invalid number" if kind in ("int", "float") else f"the YAML tag {node.tag.replace(_TAG, '!!')}"
        document.complain(line, f"{'.'.join(keys)}: found {found}, expected a plain value")
        return None


def _mapping(node: yaml.MappingNode, keys: KeyPath, document: YamlDocument, as_text: frozenset[KeyPath]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            document.complain(line, f"{'.'.join((*keys, '?'))}: found a list or mapping as a key, expected a text")
            continue
        path = (*keys, key_node.value)
        if key_node.value in data:
            first = document.lines[path]
            document.complain(line, f"{'.'.join(path)}: appears twice, expected once (the first is on line {first})")
            continue
        document.lines[path] = line
        data[key_node.value] = _value(value_node, path, document, as_text)
    return data


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    text = str(node.value)
    match node.tag.removeprefix(_TAG) if isinstance(node, yaml.ScalarNode) else "":
        case "str":
            return text
        case "int":
            return int(text)
        case "float":
            return float(re.sub(r"\.(inf|nan)\Z", r"\1", text.lower()))
        case "bool":
            return text.lower() == "true"
        case "null":
            return None
    raise ValueError(f"{node.tag} is not a supported scalar")


def _syntax(error: yaml.MarkedYAMLError) -> str:
    if "'\\t'" in (error.problem or ""):
        return "found a tab, expected spaces: YAML is indented with spaces only"
    said = ", ".join(part for part in (error.context, error.problem) if part)
    begun = error.context_mark.line + 1 if error.context_mark else None
    since = f" (it began on line {begun})" if begun and error.problem_mark and begun != error.problem_mark.line + 1 else ""
    return f"not YAML: {said}{since}"


def _below(keys: KeyPath, path: KeyPath) -> bool:
    return len(keys) >= len(path) and all(part in ("*", key) for key, part in zip(keys, path, strict=False))


def _alike(keys: KeyPath) -> KeyPath:
    return tuple(key.replace("-", "_") for key in keys)
