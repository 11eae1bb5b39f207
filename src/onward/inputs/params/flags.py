"""The flag line: the same rules as the params file, with errors that name the flag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from onward.errors import InvalidInput
from onward.inputs.command_line import name_from_command
from onward.inputs.params.sections import LimitsIn, ParamsIn, ResourcesIn
from onward.inputs.problems import problems_of
from onward.inputs.values import did_you_mean
from onward.inputs.yaml_lines import KeyPath, parse_scalar
from onward.model.quantity import format_duration
from onward.model.spec import RunDraft

FLAGS: Mapping[str, KeyPath] = {
    **{key.replace("_", "-"): ("train", "resources", key) for key in ResourcesIn.model_fields if key != "extra"},
    **{key.replace("_", "-"): ("train", "limits", key) for key in LimitsIn.model_fields},
    "conda": ("train", "environment", "conda"),
    "venv": ("train", "environment", "venv"),
    "launcher": ("train", "launcher"),
    "stop-signal": ("train", "stop", "signal"),
    "stop-lead": ("train", "stop", "lead"),
    "checkpoints": ("train", "checkpoints", "own"),
    "checkpoint-every": ("train", "checkpoints", "every"),
    "keep": ("train", "checkpoints", "keep"),
    "keep-every": ("train", "checkpoints", "keep_every"),
    "best-metric": ("train", "checkpoints", "best", "metric"),
    "best-mode": ("train", "checkpoints", "best", "mode"),
}


def draft_from_flags(
    name: str | None,
    experiment: str | None,
    cluster: str | None,
    command: Sequence[str],
    flags: Mapping[str, str | None],
    params: Sequence[str] = (),
    variables: Sequence[str] = (),
    freeze: bool = True,
    exclude: Sequence[str] = (),
    modules: Sequence[str] = (),
    setup: Sequence[str] = (),
) -> RunDraft:
    """The same run from a flag line. `flags` holds the ones of FLAGS; `params` and `variables` are `NAME=VALUE` each."""
    data: dict[str, Any] = {"experiment": experiment, "cluster": cluster, "train": {"command": list(command)}}
    train = data["train"]
    train["code"] = {"freeze": freeze, "exclude": list(exclude)}
    train["params"] = {key: parse_scalar(value) for key, value in name_value_pairs("--param", params)}
    train["environment"] = {"variables": dict(name_value_pairs("--env", variables)), "modules": list(modules), "setup": list(setup)}
    for flag, value in flags.items():
        if flag not in FLAGS:
            raise InvalidInput(f"--{flag}: unknown flag{did_you_mean(flag, FLAGS)}")
        if value is not None:
            *above, last = FLAGS[flag]
            section = data
            for key in above:
                section = section.setdefault(key, {})
            section[last] = value
    data["name"] = name if name is not None else name_from_command(command) if command else "run"
    try:
        return ParamsIn.model_validate(data).to_draft()
    except ValidationError as error:
        raise InvalidInput("\n".join(sentence for _, sentence in problems_of(error, ParamsIn, _flag))) from error


def override(draft: RunDraft, *, flags: Mapping[str, str | None], **others: Any) -> RunDraft:
    """A draft from a file, with what the flag line says instead. Only what was given counts."""
    given = {flag: value for flag, value in flags.items() if value is not None}
    line = draft_from_flags(**{**others, "name": others.get("name") or draft.name, "command": ("true",)}, flags=given)
    changes: dict[str, Any] = {key: getattr(line, key) for key in ("name", "experiment", "cluster") if others.get(key)}
    for section in ("resources", "limits", "checkpoints"):
        keys = {FLAGS[flag][2] for flag in given if FLAGS[flag][1] == section}
        changes[section] = replace(getattr(draft, section), **{key: getattr(getattr(line, section), key) for key in keys})
    environment = {key: getattr(line.environment, key) for key in ("modules", "conda", "venv", "setup") if getattr(line.environment, key)}
    changes["environment"] = replace(draft.environment, **environment)
    if "launcher" in given:
        changes["launcher"] = line.launcher
    if "stop-signal" in given:
        changes["stop_signal"] = line.stop_signal
    if "stop-lead" in given:
        changes["stop_lead"] = line.stop_lead
    changes["params"] = {**draft.params, **line.params}
    changes["variables"] = {**draft.variables, **line.variables}
    changes["freeze"] = draft.freeze and line.freeze
    changes["exclude"] = (*draft.exclude, *line.exclude)
    changed = replace(draft, **changes)
    if {"stop-lead", "time"} & given.keys():
        _check_lead(changed, script_sets_it="stop-lead" not in given and draft.script is not None)
    return changed


def _check_lead(draft: RunDraft, *, script_sets_it: bool) -> None:
    """As in a params file. A script's own `--signal=…@SECONDS` may be longer than its limit: the scheduler takes that, too."""
    lead, limit = draft.stop_lead, draft.resources.time
    if lead and limit and lead >= limit and not script_sets_it:
        raise InvalidInput(
            f"--stop-lead: found {format_duration(lead)}, expected less than the leg's time, {format_duration(limit)}",
            hint="a number without a unit is minutes; the leg would have no time to train",
        )


def changes_from_flags(flags: Mapping[str, str | None]) -> dict[str, Any]:
    """What `resume` changes: the fields of Resources and Limits that the flags name, checked as at submit."""
    given = {flag: value for flag, value in flags.items() if value is not None}
    line = draft_from_flags("run", None, None, ("true",), given)
    return {FLAGS[flag][2]: getattr(getattr(line, FLAGS[flag][1]), FLAGS[flag][2]) for flag in given}


def name_value_pairs(flag: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """What a flag that may stand several times says, each as NAME=VALUE."""
    for text in texts:
        if "=" not in text:
            raise InvalidInput(f"{flag} {text}: found no =, expected NAME=VALUE")
    pairs = [(text.split("=", 1)[0], text.split("=", 1)[1]) for text in texts]
    for index, (key, _) in enumerate(pairs):
        if key in [earlier for earlier, _ in pairs[:index]]:
            raise InvalidInput(f"{flag} {key}: appears twice, expected once")
    return pairs


def _flag(keys: KeyPath) -> str:
    for flag, path in FLAGS.items():
        if path == keys:
            return f"--{flag}"
    match keys:
        case ("train", "params", name):
            return f"--param {name}"
        case ("train", "environment", "variables", name):
            return f"--env {name}"
        case ("train", "environment", "modules", *_):
            return "--module"
        case ("train", "environment", "setup", *_):
            return "--setup"
        case ("train", "command"):
            return "the command"
    return f"--{keys[-1]}" if len(keys) == 1 else f"--{'-'.join(keys[1:])}"
