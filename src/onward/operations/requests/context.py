"""What serving requests works with: the desk, the store, the recipes, and how much of it there may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from onward.inputs.recipes.definition import Recipe
from onward.model.requests.outcome import OutcomeFile
from onward.model.requests.request import Request
from onward.operations.context import OperationsContext
from onward.operations.requests.result_files import collect
from onward.rundir.layout import RunDir
from onward.tracker.requests.store import Requests


class RecipeLookup(Protocol):
    def get(self, name: str) -> Recipe:
        """NotFound or InvalidInput where there is none that can be used."""
        ...


@dataclass(frozen=True, kw_only=True)
class InputLogin:
    """What lets a job fetch a request's inputs."""

    token: str
    origin: str  # the one place that gets to see it, such as https://rodan.example.org


class LogsIn(Protocol):
    def __call__(self, request: Request, *, refused: str = "") -> InputLogin | None:
        """`refused`: a token that the application no longer accepts, so that this must be another one, if there is one."""
        ...


def no_login(request: Request, *, refused: str = "") -> InputLogin | None:
    return None


@dataclass(frozen=True, kw_only=True)
class RequestSettings:
    runs: int = 100  # of requests, that may be open at once; the others wait their turn
    submits: int = 5  # in one step: a step should not take long
    deadline: float | None = 30 * 86_400.0  # seconds, for requests whose recipe and sender set none
    hosts: tuple[str, ...] = ()  # from which inputs may be fetched
    login: LogsIn = no_login
    tends: Callable[[], bool] = lambda: True  # False while a server does
    collect: Callable[[RunDir, Recipe, Sequence[str]], Iterable[OutcomeFile]] = (
        collect  # results of a run that is done, by its inputs' names
    )


@dataclass(frozen=True, kw_only=True)
class RequestContext:
    context: OperationsContext
    requests: Requests
    recipes: RecipeLookup
    settings: RequestSettings

    def now(self) -> float:
        return self.context.clock.now()

    def root_for(self, cluster: str) -> Path:
        """Where runs on this cluster are kept."""
        settings = self.context.settings
        return settings.root(self.context.env, settings.cluster(cluster)[1]).absolute()
