"""Histories of runs, told leg by leg and written as the supervisor and the desks write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from onward.model import events as ev
from onward.model.policy.lifecycle import RunAction, decide
from onward.model.run import LegEnd, Run, fold
from onward.model.spec import Cluster, Limits, Resources, RunSpec

HOUR = 3600.0


def make_spec(*, resources: Resources | None = None, limits: Limits | None = None, **others: Any) -> RunSpec:
    spec = RunSpec(
        id="k3x9q2m7",
        name="digits",
        experiment="digits",
        cluster=Cluster(name="local", scheduler="local"),
        command=("python", "train.py"),
        workdir=".",
        created=1_000_000.0,
        user="ada",
        resources=resources or Resources(),
        limits=limits or Limits(),
    )
    return replace(spec, **others)


class History:
    """Time goes on by itself, so that no two events share a moment."""

    def __init__(self, *, resources: Resources | None = None, limits: Limits | None = None) -> None:
        self.spec = make_spec(resources=resources, limits=limits)
        self.events: list[ev.Event] = []
        self.at = self.spec.created
        self._next = 1
        self._newest: int | None = None

    @property
    def run(self) -> Run:
        return fold(self.spec, self.events)

    @property
    def action(self) -> RunAction:
        return decide(self.run)

    def tick(self, seconds: float = 1.0) -> float:
        self.at += seconds
        return self.at

    def submitted(self, leg: int, *, mem: int | None = None, exclude: str | None = None, job: str | None = None) -> History:
        name = f"digits.{leg}.{len(self.events):08x}"
        mem = mem if mem is not None else self.spec.resources.mem
        self.events.append(ev.Submitting(leg=leg, at=self.tick(), name=name, mem=mem, time=self.spec.resources.time, exclude=exclude))
        self.events.append(ev.Submitted(leg=leg, at=self.tick(), name=name, job=job or f"{100 + leg}"))
        return self

    def leg(
        self,
        end: LegEnd | None,
        *,
        steps: Sequence[int] = (),
        host: str = "node1",
        mem: int | None = None,
        reason: str = "",
        evidence: str = "",
        ran: float = HOUR,
        peak: int | None = None,
        last_step: int | None = None,
        silent: bool = False,
        limit: float | None = None,
    ) -> History:
        """One leg, submitted, claimed, restored from the newest checkpoint and ended. `silent`: the scheduler told its end."""
        number, self._next = self._next, self._next + 1
        self.submitted(number, mem=mem)
        began = self.tick()
        deadline = None if limit is None else began + limit
        self.events.append(ev.Claimed(leg=number, at=began, job=f"{100 + number}", hosts=[host], deadline=deadline))
        if self._newest is not None:
            self.events.append(ev.Restored(leg=number, at=self.tick(), step=self._newest, checkpoint=f"step {self._newest}"))
        for step in steps:
            self.events.append(ev.Published(leg=number, at=self.tick(), step=step, bytes=1, save_seconds=1.0, stage_seconds=1.0))
        self._newest = max([*steps, *([] if self._newest is None else [self._newest])], default=None)
        self.tick(ran)
        if end is not None and silent:
            self.events.append(ev.EndFound(leg=number, at=self.tick(), end=end, reason=reason or str(end), evidence=evidence))
        elif end is not None:
            self.events.append(
                ev.Ended(
                    leg=number, at=self.tick(), end=end, reason=reason or str(end), evidence=evidence, peak_mem=peak, last_step=last_step
                )
            )
        return self

    def cancelled(self, by: str = "ada") -> History:
        self.events.append(ev.CancelRequested(leg=max(self._next - 1, 1), at=self.tick(), by=by))
        return self

    def stopped(self, by: str = "ada") -> History:
        self.events.append(ev.StopRequested(leg=max(self._next - 1, 1), at=self.tick(), by=by))
        return self

    def closed(self, state: str = "failed") -> History:
        self.events.append(ev.Closed(leg=max(self._next - 1, 1), at=self.tick(), state=state, cause="it was over"))
        return self

    def resumed(self, **changes: Any) -> History:
        """As `operations.resume` does it: from the next leg on."""
        self.events.append(ev.Resumed(leg=self._next, at=self.tick(), by="ada", changes=changes))
        return self
