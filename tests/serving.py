"""Requests served at a desk on a fake scheduler: whoever asks, what comes back, and the runs between, played by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onward.errors import NotFound
from onward.inputs.recipes.definition import Recipe
from onward.model.requests.outcome import Outcome, OutcomeFile
from onward.model.requests.request import Outgoing, OutgoingKind, Request, RequestRecord
from onward.operations.requests.context import RequestSettings
from onward.operations.requests.service import RequestService, ServiceStep
from onward.rundir.layout import RunDir
from onward.tracker.requests.store import Requests
from tests.sandbox import PlayedRun, Sandbox


class Recipes(dict[str, Recipe]):
    def get(self, name: str) -> Recipe:  # type: ignore[override]
        if name not in self:
            raise NotFound(f"no recipe named {name!r}", hint="this site has others")
        return self[name]


def made_results(dir: RunDir, recipe: Recipe, inputs: Sequence[str]) -> list[OutcomeFile]:
    return [
        OutcomeFile(name=path.name, path=str(path), size=path.stat().st_size, sha256="ab" * 32) for path in sorted(dir.artifacts.iterdir())
    ]


class Gateway:
    """All of it but the broker."""

    def __init__(self, folder: Path, sandbox: Sandbox | None = None, **settings: Any) -> None:
        self.sandbox = sandbox or Sandbox(folder, {"ONWARD_STATE_DIR": str(folder / "state")})
        self.requests = Requests.open(folder / "onward.requests.db")
        self.recipes = Recipes(
            digits=Recipe(name="digits", folder=self.sandbox.project, draft=self.sandbox.draft(), most=1 << 20, seconds=60)
        )
        self.settings = RequestSettings(**{"collect": made_results, **settings})
        self.serve = self.another()

    def another(self) -> RequestService:
        return RequestService(context=self.sandbox.context, requests=self.requests, recipes=self.recipes, settings=self.settings)

    def close(self) -> None:
        self.serve.close()
        self.requests.close()

    def recipe(self, name: str = "digits", **changes: Any) -> None:
        """Change a recipe; `draft` changes what a run of it is."""
        draft = replace(self.recipes["digits"].draft, **changes.pop("draft", {}))
        self.recipes[name] = replace(self.recipes["digits"], name=name, draft=draft, **changes)

    def ask(self, id: str = "r1", **others: Any) -> None:
        usual: dict[str, Any] = {"sender": "rodan", "protocol": "v2", "recipe": "digits", "reply_to": "answers"}
        given = {"body_sha256": "1" * 64, "received": self.now(), **usual, **others}
        self.requests.accept(Request(id=id, **given))

    def step(self, seconds: float = 0.0, *, times: int = 1) -> ServiceStep:
        for _ in range(times):
            self.sandbox.clock.sleep(seconds)
            stepped = self.serve.step()
        return stepped

    def until(self, there: Callable[[], object], seconds: float = 31.0, times: int = 30) -> None:
        for _ in range(times):
            if there():
                return
            self.step(seconds)
        raise AssertionError(f"not after {times} steps of {seconds} s")

    def of(self, id: str = "r1") -> RequestRecord:
        return self.requests.of(id)

    def played(self, id: str = "r1") -> PlayedRun:
        folder = self.of(id).folder
        assert folder is not None, f"{id} has no run"
        return PlayedRun(self.sandbox, RunDir(Path(folder)))

    def sent(self, kind: OutgoingKind, id: str = "r1") -> list[Outgoing]:
        return [message for message in self.requests.outbox.of(id) if message.kind is kind]

    def answer(self, id: str = "r1") -> Outcome:
        """The one there is; and its reply says the same."""
        (reply,) = self.sent(OutgoingKind.REPLY, id)
        outcome = self.of(id).outcome
        assert outcome is not None
        assert reply.payload == {**outcome.to_json(), "run": reply.payload["run"]}
        return outcome

    def now(self) -> float:
        return self.sandbox.clock.now()
