"""Checkpoints of a pipeline's trainings: each is noted when it is seen, and those that benchmarks ask for are kept for them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from onward.checkpoints.linked_copy import link_checkpoint
from onward.checkpoints.restoring.newest import published_checkpoints
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import Checkpoint
from onward.model.pipelines.plan import PipelinePlan
from onward.model.pipelines.task import PublishedCheckpoint, is_wanted, trainings
from onward.model.plain_data import value_from_json
from onward.model.spec import BestRule
from onward.rundir.claim import take_file
from onward.rundir.files.no_links import read_beneath
from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CheckpointNote:
    """What is remembered of a checkpoint for good: its training may let go of it."""

    number: int
    step: int
    name: str  # in the training's own folder
    value: float | None = None  # of the metric by which checkpoints are best
    metrics: Mapping[str, float] = field(default_factory=dict)


def note_checkpoints(
    dir: PipelineDir, plan: PipelinePlan, *, finished: Mapping[str, bool], note: bool = True
) -> dict[str, tuple[PublishedCheckpoint, ...]]:
    """Note what is new, keep what is wanted, and tell of all: by training. `finished`: whether one has done all it will.

    Without `note`, only what was noted before is told of: for those who only look.
    """
    found = {}
    for name in trainings(plan):
        run = run_of(dir, plan, name)
        if not run.is_run():
            continue
        rule = read_spec(run).checkpoints.best
        notes = _note_new(dir, name, run, rule) if note else _notes(dir, name)
        entries = _known_checkpoints(notes, rule, finished=finished.get(name, False))
        pairs = zip(entries, notes, strict=True)
        found[name] = tuple(
            one
            for one, note in pairs
            if not is_wanted(plan, name, one) or _kept(dir.checkpoint(name, one.step), run.checkpoints / note.name)
        )
    return found


def run_of(dir: PipelineDir, plan: PipelinePlan, stage: str) -> RunDir:
    """The run that did or does a stage: its own, or the earlier one by which it is skipped."""
    done_by = plan.stage(stage).done_by
    return RunDir(Path(done_by)) if done_by else dir.member(stage)


def _note_new(dir: PipelineDir, name: str, run: RunDir, rule: BestRule | None) -> list[CheckpointNote]:
    notes = _notes(dir, name)
    for checkpoint in published_checkpoints(run.checkpoints):
        while checkpoint.name.step not in {note.step for note in notes}:
            take_file(dir.seen(name, len(notes) + 1), _text(len(notes) + 1, checkpoint, rule))
            notes = _notes(dir, name)  # ours, or what another noted under this number
    return notes


def _text(number: int, checkpoint: Checkpoint, rule: BestRule | None) -> str:
    value = checkpoint.metrics.get(rule.metric) if rule else None
    entries = {
        "number": number,
        "step": checkpoint.name.step,
        "name": str(checkpoint.name),
        "value": value,
        "metrics": dict(checkpoint.metrics),
    }
    return json.dumps(entries)


def _notes(dir: PipelineDir, name: str) -> list[CheckpointNote]:
    """In the order of their numbers."""
    paths = sorted(dir.checkpoints.glob(f"{name}.seen-*.json"))
    return [value_from_json(CheckpointNote, json.loads(read_beneath(dir.path, path))) for path in paths]


def _known_checkpoints(notes: list[CheckpointNote], rule: BestRule | None, *, finished: bool) -> tuple[PublishedCheckpoint, ...]:
    entries, best = [], None
    newest = max((note.step for note in notes), default=None)
    for note in notes:
        better = note.value is not None and note.value == note.value and (best is None or _beats(note.value, best, rule))
        best = note.value if better else best
        entries.append(PublishedCheckpoint(step=note.step, number=note.number, best=better))
    return tuple(replace(one, last=finished and one.step == newest) for one in entries)


def _beats(value: float, best: float, rule: BestRule | None) -> bool:
    return value < best if rule and rule.mode == "min" else value > best


def _kept(target: Path, source: Path | None) -> bool:
    """Whether it is there for its benchmarks. One that its training let go of before anybody looked has none."""
    if source is None or target.exists():
        return target.exists()
    try:
        link_checkpoint(source, target)
    except (CheckpointDamaged, OSError) as error:
        log.warning("cannot keep %s for its benchmarks: %s", source.name, error)
    return target.exists()
