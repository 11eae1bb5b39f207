"""Names of W&B's module that scripts use beside init() and log(): done for the run of this process, or let be."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from onward.sdk.stderr import say
from onward.sdk.wandb.artifact import Artifact
from onward.sdk.wandb.media import Audio, Histogram, Html, Image, Media, Object3D, Plotly, Table, Unkept, Video

if TYPE_CHECKING:
    from collections.abc import Callable

    from onward.sdk.run import TrainingRun

    Words = dict[str, Any]
else:
    Words = dict

# fmt: off
__all__ = [
    "AlertLevel", "Artifact", "Audio", "Error", "Graph", "Histogram", "Html", "Image", "Molecule", "Object3D", "Plotly", "Settings",
    "Table", "Video", "define_metric", "ensure_configured", "log_artifact", "log_model", "login", "mark_preempting", "plot", "save",
    "setup", "teardown", "termerror", "termlog", "termwarn", "unwatch", "use_artifact", "util", "watch",
]
# fmt: on

ABSENT = {  # what people look for, and what to do instead
    "sweep": "submit one run per setting, or clone one: onward clone RUN --param lr=0.01",
    "agent": "submit one run per setting, or clone one: onward clone RUN --param lr=0.01",
    "Api": "use the tracker's HTTP API instead, see /docs of `onward up`",
}


class AlertLevel:
    INFO, WARN, ERROR = "INFO", "WARN", "ERROR"


class Error(Exception):
    """For scripts that catch W&B's; nothing here raises it."""


class WandbSettings(Words):
    """Accepted as they are; init() reads `mode` and `reinit`."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


Settings = WandbSettings  # W&B's name


class Graph(Unkept):
    def __init__(self, *given: Any, **others: Any) -> None:
        super().__init__("Graph")


class Molecule(Unkept):
    def __init__(self, *given: Any, **others: Any) -> None:
        super().__init__("Molecule")


class _Plots:
    """`wandb.plot.line(table, "x", "y")` keeps the table; charts that W&B reckons itself are not kept."""

    def __getattr__(self, name: str) -> Callable[..., Media]:
        if name.startswith("_"):
            raise AttributeError(name)

        def made(*given: Any, **others: Any) -> Media:
            tables = [one for one in (*given, *others.values()) if isinstance(one, Table)]
            return tables[0] if tables else Unkept(f"plot.{name}()")

        return made


class _Util:
    @staticmethod
    def generate_id(length: int = 8) -> str:
        return "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(length))


plot = _Plots()
util = _Util()


def login(*given: Any, **others: Any) -> bool:
    """No login is needed: a training writes to a folder."""
    return True


def setup(*given: Any, **others: Any) -> None: ...


def teardown(*given: Any, **others: Any) -> None: ...


def ensure_configured() -> None: ...


def termlog(string: str = "", *given: Any, **others: Any) -> None:
    say(string)


def termwarn(string: str = "", *given: Any, **others: Any) -> None:
    say(string)


def termerror(string: str = "", *given: Any, **others: Any) -> None:
    say(string)


def watch(*models: Any, **others: Any) -> tuple[()]:
    return _run().watch(*models, **others)


def unwatch(*models: Any) -> None: ...


def mark_preempting() -> None: ...


def define_metric(name: str, step_metric: Any = None, **others: Any) -> None:
    _run().define_metric(name, step_metric, **others)


def save(glob_str: Any = None, base_path: Any = None, policy: str = "live") -> list[str]:
    return _run().save(glob_str, base_path, policy)


def log_artifact(artifact_or_path: Any, name: str | None = None, type: str | None = None, aliases: Any = None, **others: Any) -> Artifact:
    return _run().log_artifact(artifact_or_path, name, type, aliases)


def log_model(path: Any, name: str | None = None, aliases: Any = None) -> Artifact:
    return _run().log_model(path, name, aliases)


def use_artifact(artifact_or_name: Any, type: str | None = None, **others: Any) -> Artifact:
    return _run().use_artifact(artifact_or_name, type)


def _run() -> TrainingRun:
    from onward.sdk.process_run import of_process

    return of_process()
