"""A pipeline's file: YAML in, plan out. An error tells everything that is wrong at once, a line each, with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from onward.errors import InvalidInput
from onward.inputs.pipeline.expansion import Expansion
from onward.inputs.pipeline.sections import PipelineIn
from onward.inputs.pipeline.source import PipelineSource, read_source
from onward.inputs.problems import problems_of
from onward.model.pipelines.plan import PipelinePlan
from onward.model.spec import ParamValue

_REFERENCE = "`onward help pipeline` describes every key"


@dataclass(frozen=True, kw_only=True)
class ParsedPipeline:
    plan: PipelinePlan
    notes: tuple[str, ...] = ()


def read_pipeline(
    path: Path, *, folder: Path, given: Mapping[str, ParamValue] | None = None, programs: str | None = None
) -> ParsedPipeline:
    """The pipeline at `path`. What its stages read is looked for in `folder`, where they start; `given` are values for its variables.

    `programs` is a PATH: with it, what the commands start is looked for too.
    """
    source = read_source(path, given or {})
    _raise(source)
    try:
        read = PipelineIn.model_validate(source.whole.data)
    except ValidationError as error:
        for keys, sentence in problems_of(error, PipelineIn, lambda keys: ""):
            source.complain(keys, sentence.removeprefix(": "))
        _raise(source)
    expansion = Expansion(read, folder=folder, complain=source.complain, programs=programs)
    plan = expansion.plan()
    _raise(source)
    return ParsedPipeline(plan=plan, notes=tuple(expansion.notes()))


def _raise(source: PipelineSource) -> None:
    """One key of `defaults` is looked at once for each stage, and told once."""
    if source.problems:
        ordered = sorted(source.problems, key=lambda problem: (problem[0].source != source.path, problem[0].source, problem[0].line))
        lines = dict.fromkeys(f"{position}: {sentence}" if position.keys else f"{position}{sentence}" for position, sentence in ordered)
        raise InvalidInput("\n".join(lines), hint=_REFERENCE)
