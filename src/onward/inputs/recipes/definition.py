"""A recipe: a params file that the site's admin installed, and what a request may fill in of it. Request in, RunDraft out.

Nothing of a message is ever shell source: settings are typed and bounded, they become argument words, scheduler options of
known kinds, or lines of a JSON file; which of its files are fetched, and from where, is the recipe's and the site's to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from onward.errors import InvalidInput
from onward.inputs.params.sections import ResourcesIn
from onward.inputs.problems import problems_of
from onward.inputs.recipes.numbered_names import NumberedName
from onward.inputs.recipes.settings import RecipeSetting, shown
from onward.inputs.values import did_you_mean
from onward.model.quantity import format_bytes, format_duration
from onward.model.requests.inputs import FileFetch, RunInputs, check_address
from onward.model.requests.request import RequestInput
from onward.model.spec import ParamValue, RunDraft

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_MOST_SAID = 20  # problems in one answer


@dataclass(frozen=True, kw_only=True)
class RecipeInput:
    """One of a recipe's inputs; with a {n} in its name, a family of them."""

    name: NumberedName
    required: bool = False
    most: int  # bytes
    types: tuple[str, ...] = ()
    gaps: bool = True


@dataclass(frozen=True, kw_only=True)
class RecipeOutput:
    """One of a recipe's outputs: the name it has in an answer, and the file below the run's artifacts."""

    name: NumberedName
    file: str
    required: bool = False
    of: str | None = None  # the input with which it is required
    media_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    name: str
    title: str = ""
    folder: Path  # of its code: where a run of it is submitted from
    draft: RunDraft
    inputs: tuple[RecipeInput, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    settings: tuple[RecipeSetting, ...] = ()
    resources: tuple[RecipeSetting, ...] = ()  # those that a request may ask for by their own names
    outputs: tuple[RecipeOutput, ...] = ()
    fit_gpus: int | None = None  # GPUs that a request gets where the cluster has any; None: requests are not fitted to the cluster
    deadline: int | None = None  # seconds from a request's arrival to its answer
    most: int  # bytes of all inputs
    seconds: int  # that fetching them may take
    bare: frozenset[str] = frozenset()  # params that are a whole word of the command

    def fill(
        self,
        *,
        settings: Mapping[str, Any],
        inputs: Iterable[RequestInput],
        resources: Mapping[str, Any] | None = None,
        request: str = "",
        hosts: Collection[str] = (),
    ) -> RunDraft:
        """The run that a request asks for. InvalidInput says everything that is wrong with it at once, a line each."""
        given = tuple(inputs)
        problems: list[str] = []
        values = self._values(settings, problems)
        fetch = tuple(self._fetches(given, hosts, problems))
        problems += self._missing([one.name for one in given])
        changes = _Changes(self.draft, bare=self.bare)
        for setting in self.settings:
            if values.get(setting.name) is not None:
                problems += changes.take(setting, values[setting.name], f"setting {shown(setting.name)}")
        for setting, value in self._asked(resources or {}, problems):
            problems += changes.take(setting, value, f"resources: {setting.name}")
        if problems:
            more = [f"and {len(problems) - _MOST_SAID} more"] if len(problems) > _MOST_SAID else []
            raise InvalidInput(
                "\n".join([*problems[:_MOST_SAID], *more]), hint=f"`onward gateway schema {self.name}` prints what it accepts"
            )
        order = RunInputs(
            request=request,
            recipe=self.name,
            settings=values,
            fetch=fetch,
            hosts=tuple(hosts),
            most=self.most,
            seconds=self.seconds,
        )
        return replace(changes.draft, inputs=order)

    def wanted(self, inputs: Iterable[str]) -> Iterator[tuple[str, str, bool, RecipeOutput]]:
        """For these inputs: each output's name and file without {n}, and whether a run must have it.

        An output with a {n} that no input numbers is named by its pattern, with the {n} in it.
        """
        names = list(inputs)
        for output in self.outputs:
            rule = next((rule for rule in self.inputs if rule.name.text == output.of), None)
            found = [number for name in names if rule and (number := rule.name.match(name)) is not None]
            if not output.name.numbered or rule is None:
                yield output.name.text, output.file, output.required or bool(found), output
                continue
            for number in sorted(found):
                yield output.name.at(number), NumberedName.fill(output.file, number), True, output

    # ── what a request gives ──────────────────────────────────────────────────

    def _values(self, given: Mapping[str, Any], problems: list[str]) -> dict[str, ParamValue]:
        known = {setting.name: setting for setting in self.settings}
        problems += [f"setting {shown(name)}: unknown{did_you_mean(name, known)}" for name in given if name not in known]
        values: dict[str, ParamValue] = {}
        for name, setting in known.items():
            value = given.get(name)
            if value is None and setting.required:
                problems.append(f"setting {shown(name)}: missing, expected {setting.expected}")
            elif value is not None or setting.default is not None:
                try:
                    values[name] = setting.read(setting.default if value is None else value)
                except InvalidInput as error:
                    problems.append(f"setting {shown(name)}: {error.message}")
        return values

    def _asked(self, given: Mapping[str, Any], problems: list[str]) -> Iterator[tuple[RecipeSetting, ParamValue]]:
        known = {setting.name: setting for setting in self.resources}
        for name, value in given.items():
            setting = known.get(name.replace("_", "-"))
            if setting is None:
                allowed = ", ".join(known) or "none"
                problems.append(f"resources: {shown(name)} cannot be chosen by a request; it may choose {allowed}")
                continue
            try:
                yield setting, setting.read(value)
            except InvalidInput as error:
                problems.append(f"resources: {name}: {error.message}")

    def _fetches(self, given: Sequence[RequestInput], hosts: Collection[str], problems: list[str]) -> Iterator[FileFetch]:
        seen: set[str] = set()
        for one in given:
            what = f"input {shown(one.name)}"
            rule = next((rule for rule in self.inputs if rule.name.match(one.name) is not None), None)
            if rule is None:
                known = [rule.name.text for rule in self.inputs]
                problems.append(f"{what}: unknown{did_you_mean(one.name, known)}; known are {', '.join(known) or 'none'}")
                continue
            if one.name in seen:
                problems.append(f"{what}: found twice, expected once")
            seen.add(one.name)
            try:
                check_address(one.url, hosts)
            except InvalidInput as error:
                problems.append(f"{what}: {error.message} ({error.hint})")
            if one.sha256 is not None and not _SHA256.match(one.sha256):
                problems.append(f"{what}: found {shown(one.sha256)}, expected a SHA-256 as 64 small hexadecimal digits")
            if one.size is not None and one.size > rule.most:
                problems.append(f"{what}: {format_bytes(one.size)}, expected at most {format_bytes(rule.most)}")
            yield FileFetch(name=one.name, url=one.url, most=rule.most, sha256=one.sha256, size=one.size, types=rule.types)
        total = sum(one.size or 0 for one in given)
        if total > self.most:
            problems.append(f"inputs: {format_bytes(total)} together, expected at most {format_bytes(self.most)}")

    def _missing(self, names: Sequence[str]) -> Iterator[str]:
        found = {rule.name.text: [n for name in names if (n := rule.name.match(name)) is not None] for rule in self.inputs}
        for rule in self.inputs:
            numbers = found[rule.name.text]
            if rule.required and not numbers:
                yield f"input {shown(rule.name.text)}: missing{', expected at least one' if rule.name.numbered else ''}"
            left_out = sorted({*range(min(numbers), max(numbers))} - {*numbers}) if numbers and not rule.gaps else []
            if left_out:
                given = f"{rule.name.at(max(n for n in numbers if n < left_out[0]))!r} and {rule.name.at(max(numbers))!r}"
                yield f"input {rule.name.at(left_out[0])!r}: missing between {given}, expected numbers without gaps"
        for names_of_one in self.one_of:
            if not any(found[name] for name in names_of_one):
                yield f"inputs: none of {', '.join(repr(name) for name in names_of_one)} given, expected at least one"


class _Changes:
    """A recipe's draft, with what a request changes of it."""

    def __init__(self, draft: RunDraft, *, bare: frozenset[str]) -> None:
        self.draft = draft
        self._bare = bare

    def take(self, setting: RecipeSetting, value: ParamValue, what: str) -> list[str]:
        """Problems, where it cannot go where it is to go."""
        return [problem for target in setting.to for problem in self._put(target.partition(".")[::2], setting, value, what)]

    def _put(self, target: tuple[str, str], setting: RecipeSetting, value: ParamValue, what: str) -> Iterator[str]:
        room, key = target
        match room:
            case "params":
                if key in self._bare and isinstance(value, str) and (value.startswith("-") or not value):
                    yield f"{what}: found {shown(value)}, expected text that does not begin with '-'"
                self.draft = replace(self.draft, params={**self.draft.params, key: value})
            case "limits":
                changed: dict[str, Any] = {key: value}
                self.draft = replace(self.draft, limits=replace(self.draft.limits, **changed))
            case _ if value in ("", 0):  # as good as absent
                return
            case _:
                yield from self._resource(key, setting, value, what)

    def _resource(self, key: str, setting: RecipeSetting, value: ParamValue, what: str) -> Iterator[str]:
        text = format_duration(float(value)) if setting.kind == "duration" and isinstance(value, int | float) else value
        try:
            read = ResourcesIn.model_validate({key: text})
        except ValidationError as error:
            yield from (sentence for _, sentence in problems_of(error, ResourcesIn, lambda _: what))
            return
        changed: dict[str, Any] = {key: getattr(read, key)}
        if key == "gpus":
            changed["gres"] = None
        if key == "mail_user" and not self.draft.resources.mail_type:
            changed["mail_type"] = "ALL"
        self.draft = replace(self.draft, resources=replace(self.draft.resources, **changed))
