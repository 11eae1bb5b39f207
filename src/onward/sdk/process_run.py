"""The run of this process: init() begins it or returns it; the functions of `import onward` act on it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from onward.sdk.run import TrainingRun

Run = TrainingRun  # the public name: onward.Run

_run: TrainingRun | None = None
_early: dict[str, object] = {}  # config that was set before there was a run


def init(
    *,
    name: str | None = None,
    project: str | None = None,
    config: object = None,
    total_steps: int | None = None,
    params: Mapping[str, object] | None = None,
    log_from: str = "first",
    agree: bool = True,
    **others: object,
) -> TrainingRun:
    """The run this process belongs to. Called again, it returns the same one.

    `config` (a mapping, or argparse's namespace) also sets params, and `project` is the experiment of an unmanaged run, as in W&B.
    `tags`, `notes`, `group`, `job_type`, `id`, `resume`, `mode` and `reinit` work as there; W&B's other arguments are ignored.

    In a training of several processes only rank 0 logs, unless `log_from` is "all". All stop at the same call of
    `should_stop()`; `agree=False` is for processes that do not train in step and may stop at different times.

    Inside a job of Onward the supervisor sets everything. Without one, the script gets its own folder
    under ONWARD_ROOT (default `./runs`); set ONWARD_RUN_DIR to that folder to continue from its newest checkpoint. There, what
    names another run (project, name, id, group, job_type, other values in `config`) finishes this run and starts that one.
    """
    global _run
    from onward.sdk.wandb.init_arguments import known_arguments, names_another_run

    asked = known_arguments({"name": name, "project": project, **others})
    if _run is not None and names_another_run(_run, asked, config):
        _run.finish()
        _run = None  # the next training of this process
    if _run is None:
        if log_from not in ("first", "all"):
            raise ValueError(f"init(log_from={log_from!r}): expected 'first' (only rank 0) or 'all'")
        _run = TrainingRun.of_environment(name=name, log_from=log_from, agree=agree, asked=asked)
        _run.listen_for_term()
        if config is not None or _early:
            params = {**(params or {}), **_run.configure(config, _early)}
            _early.clear()
        _run.announce(total_steps=total_steps, params=params, project=project)
        return _run
    _run.reopen()
    if config is not None:
        _run.config.update(config)
    return _run


def of_process() -> TrainingRun:
    return _run or init()


def log(metrics: Mapping[str, object], step: int | None = None, commit: bool | None = None, sync: object = None) -> None:
    of_process().log(metrics, step, commit)


def resume() -> Path | None:
    return of_process().resume()


def checkpoint(step: int, *, written_by: str = "first") -> contextlib.AbstractContextManager[Path]:
    return of_process().checkpoint(step, written_by=written_by)


def should_stop() -> bool:
    return of_process().should_stop()


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    of_process().finish(exit_code)


def alert(title: str, text: str = "", level: object = "INFO", wait_duration: object = None) -> None:
    of_process().alert(title, text, level)


def current(name: str) -> object:
    """`run`, `config` or `summary` of this process: names of a module whose value changes."""
    if name == "run":
        return None if _run is None or _run.finished else _run
    if name == "config" and _run is None:
        from onward.sdk.wandb.config import early_config

        return early_config(_early)
    return getattr(of_process(), name)
