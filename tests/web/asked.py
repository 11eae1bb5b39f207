"""Requests to look at, as a gateway would have kept them: one of each kind of end, some still open, one whose answer cannot be sent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.model.requests.outcome import Outcome, OutcomeFile, OutcomeState
from onward.model.requests.request import Request, RequestInput
from onward.tracker.requests.store import Requests
from tests.web.story import AT_WORK, DEAD

DONE, RUNNING, FAILED, UNSENT = "page-0017", "page-0021", "v1-6f0c2f52-8f6e-4a43", "page-0014"
_SETTINGS = {"Maximum number of training epochs": 15, "Patch height": 256, "Patch width": 256, "Maximum time (D-HH:MM)": "0-06:00"}
_MEMORY = Outcome(
    state=OutcomeState.OUT_OF_MEMORY,
    reason="the training needed more than the 4 GiB that it was given, three times",
    next="send it again with a larger Maximum memory (MB)",
    log_tail="epoch 3/15\nlayer 1: sampling 10000 patches of 256 × 256\nslurmstepd: error: Detected 1 oom_kill event in step 0\n",
)
_REFUSED = Outcome(state=OutcomeState.REFUSED, reason="Patch height: 32 is less than 64; Patch width: 'wide' is no whole number")


@dataclass(kw_only=True)
class Told:
    """The requests of a folder, some minutes before `now`."""

    store: Requests
    now: float

    def came(self, id: str, minutes: float, **others: Any) -> Request:
        url = "https://rodan.lab.org/uploads/folio"
        inputs = [RequestInput(name=name, url=f"{url}/{file}.png", size=size) for name, file, size in _INPUTS]
        usual = {"sender": "rodan", "protocol": "v2", "recipe": "patchwise", "reply_to": f"rodan.answers.{id}", "correlation_id": id}
        given = {"inputs": tuple(inputs), "settings": _SETTINGS, "resources": {"mem": "16G"}, "body_sha256": "0" * 64}
        return Request(**{"id": id, "received": self.now - 60 * minutes, **usual, **given, **others})

    def began(self, request: Request, run: str) -> None:
        self.store.accept(request)
        self.store.plan_run(request.id, run)
        self.store.set_run(request.id, run=run, folder=f"/runs/{run}", at=request.received + 2)

    def ended(self, request: Request, outcome: Outcome, after: float) -> None:
        self.store.settle(self.store.of(request.id), outcome, at=request.received + after)


_INPUTS = (("Image", "page", 4_812_003), ("rgba PNG - Layer 0", "staves", 812_113), ("rgba PNG - Layer 1", "neumes", 640_927))


def ask(folder: Path, now: float) -> None:
    """Beside the tracker of a folder."""
    told = Told(store=Requests.open(folder / "tracker.requests.db"), now=now)
    store = told.store
    model = folder / "model.keras"
    model.write_bytes(b"weights" * 90_000)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    names = ("Background Model", "Model 0", "Model 1")
    models = tuple(OutcomeFile(name=name, path=str(model), size=model.stat().st_size, sha256=digest) for name in names)
    done = Outcome(
        state=OutcomeState.DONE, reason="the training finished", metrics={"layer 0/val_accuracy": 0.981, "loss": 0.061}, results=models
    )
    unsent = told.came(UNSENT, 400, reply_to="gone")
    told.began(unsent, "m8v2c4ya")
    told.ended(unsent, done, 7300)
    told.began(failed := told.came(FAILED, 200, protocol="v1", reply_to="hpc-results"), DEAD)
    told.ended(failed, _MEMORY, 3900)
    told.began(answered := told.came(DONE, 180), "k3x9q2m7")
    told.ended(answered, done, 5400)
    store.refuse(told.came("page-0019", 60, sender="scribe"), _REFUSED.reason)
    store.outbox.sent([message.id for id in (DONE, FAILED, "page-0019") for message in store.outbox.of(id)], now=now - 3000)
    for _ in range(3):
        store.outbox.failed(store.outbox.of(UNSENT)[-1], "the broker has no queue 'gone'", now=now - 60)
    cancelled = told.came("page-0020", 50, sender="scribe")
    told.began(cancelled, "t5h7w1pb")
    told.ended(cancelled, Outcome(state=OutcomeState.CANCELLED, reason="its sender cancelled it"), 600)
    going = told.came(RUNNING, 35, deadline=now + 7200)
    told.began(going, AT_WORK)
    store.running(going.id)
    progress = {"state": "running", "leg": 1, "percent": 42.0, "metrics": {"layer 0/loss": 0.213, "layer 0/val_accuracy": 0.93}}
    store.tell(store.of(going.id), progress, at=now - 12, send=True)
    store.accept(told.came("page-0022", 0.2))
    store.close()
