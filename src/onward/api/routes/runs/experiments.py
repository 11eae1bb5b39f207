"""Experiments: named questions that group runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import ExperimentId, experiment_of
from onward.api.schemas.base import ExperimentOut, In, Key, TagValue, Text, experiment_record

router = APIRouter(prefix="/api/v1/experiments", tags=["experiments"])
Name = Annotated[Text, Field(min_length=1, max_length=500)]


class ExperimentIn(In):
    name: Name
    tags: dict[Key, TagValue] = Field(default_factory=dict, max_length=100)


class ExperimentChange(In):
    name: Name | None = None
    archived: bool | None = Field(default=None, description="Its runs are archived and restored with it.")
    tags: dict[Key, TagValue] = Field(default_factory=dict, max_length=100)


class ExperimentList(BaseModel):
    experiments: list[ExperimentOut]


@router.get("", summary="List experiments")
def listed(svc: Svc, archived: Annotated[bool, Query(description="The archived ones instead.")] = False) -> ExperimentList:
    """Newest first."""
    counts = svc.tracker.experiments.counts()
    found = svc.tracker.experiments.all(archived=archived)
    return ExperimentList(experiments=[experiment_record(one, counts.get(one.id, 0)) for one in found])


@router.post("", summary="Create an experiment", status_code=201)
def create(svc: Svc, asked: ExperimentIn) -> ExperimentOut:
    """409 if the name is taken."""
    return experiment_record(svc.tracker.experiments.create(asked.name, tags=asked.tags), 0)


@router.get("/{experiment}", summary="Show an experiment")
def show(svc: Svc, experiment: ExperimentId) -> ExperimentOut:
    """By number or name."""
    found = experiment_of(svc, experiment)
    return experiment_record(found, svc.tracker.experiments.counts().get(found.id, 0))


@router.patch("/{experiment}", summary="Rename, archive or tag an experiment")
def change(svc: Svc, experiment: ExperimentId, asked: ExperimentChange) -> ExperimentOut:
    """Only the given fields change."""
    id = experiment_of(svc, experiment).id
    changed = svc.tracker.experiments.update(id, name=asked.name, archived=asked.archived, tags=asked.tags)
    return experiment_record(changed, svc.tracker.experiments.counts().get(id, 0))
