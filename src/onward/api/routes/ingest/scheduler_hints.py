"""Hints that a job has ended, from the epilogs that `onward epilog install` writes. They make the server look; they settle nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header
from pydantic import BaseModel, ConfigDict, Field

from onward.api.access.signed_hints import PATH, hint_id
from onward.api.dependencies import Svc, Who
from onward.api.schemas.base import Text
from onward.tracker.ingest.scheduler_hints import describe_hint

router = APIRouter(tags=["schedulers"])

JobText = Annotated[Text, Field(pattern=r"^[0-9]{1,20}$")]
Said = Annotated[Text, Field(max_length=200)]


class HintIn(BaseModel):
    model_config = ConfigDict(extra="ignore")

    scheduler: Literal["slurm", "gridengine"]
    job_id: JobText = Field(description="The scheduler's id of the job.")
    array_job_id: JobText | None = None
    array_task_id: Said | None = None
    cluster: Said = ""
    name: Said = ""
    user: Said = ""
    exit_code: Said = ""


class HintReceipt(BaseModel):
    received: bool = True
    known: bool = Field(description="The job is one of Onward's, so the server asks its scheduler soon.")


@router.post(PATH, summary="Hint that a job has ended", status_code=202)
def hint(
    svc: Svc,
    who: Who,
    asked: HintIn,
    webhook_id: Annotated[str | None, Header(max_length=128, description="The hint's own id: a repeated one is ignored.")] = None,
) -> HintReceipt:
    """By token, or signed with a webhook token as the headers `webhook-id`, `webhook-timestamp`, `webhook-signature` say.

    If the job is one of Onward's, the server asks its scheduler soon.
    Others are ignored, since an epilog reports every job of a cluster."""
    known = any(svc.tracker.runs.by_job(job) for job in job_names(asked))
    if webhook_id:
        hint = f"{asked.scheduler} {asked.name} {asked.user} {asked.exit_code}"
        describe_hint(
            svc.tracker, hint_id(who.token, webhook_id), job=asked.job_id, cluster=asked.cluster or asked.scheduler, text=hint, taken=known
        )
    if known:
        svc.hinted()
    return HintReceipt(known=known)


def job_names(asked: HintIn) -> list[str]:
    """A task of an array goes by its own number, or by its array's and its place there."""
    first, task = asked.array_job_id or asked.job_id, asked.array_task_id
    names = {asked.job_id, first}
    if task and task != "undefined":
        names |= {f"{first}_{task}", f"{first}.{task}"}
    return sorted(names)
