"""Clusters: which there are, and each as it is now. All who look share one question to its scheduler."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from onward.api.dependencies import Svc
from onward.api.schemas.clusters import ClusterList, ClusterPicture
from onward.model.plain_data import value_to_json
from onward.operations.clusters.snapshot_cache import snapshot_record

router = APIRouter(prefix="/api/v1/clusters", tags=["clusters"])

Name = Annotated[str, Path(description="A name from the list, or `auto`.", max_length=250)]
Jobs = Annotated[Literal["mine", "all"], Query(description="Whose jobs: those of the user who asks the scheduler, or everyone's.")]
Limit = Annotated[int, Query(ge=0, le=20_000, description="The most jobs to return.")]


@router.get("", summary="List clusters")
def clusters(svc: Svc) -> ClusterList:
    """Those in the settings, this machine, and the schedulers whose programs are installed here. No scheduler is asked."""
    return ClusterList.model_validate({"clusters": [value_to_json(one) for one in svc.clusters.known()]})


@router.get("/{name}", summary="Show a cluster as it is now")
def cluster(svc: Svc, name: Name, jobs: Jobs = "all", limit: Limit = 2000) -> ClusterPicture:
    """Nodes, queues, jobs with why they wait and when they are expected to start, and what could start now.

    A scheduler is asked at most every 30 s (this machine's own queue: 5 s), whatever the number of readers. While it does not answer, the
    last snapshot is returned with its `age` and, in `trouble`, the reason; it is empty if the scheduler never answered, or its adapter
    does not support this.
    """
    return ClusterPicture.model_validate(snapshot_record(svc.clusters.look(name), jobs=jobs, limit=limit))
