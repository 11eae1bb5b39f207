"""Onward runs a training to its end, through as many jobs as it takes.

In a training script:

    import onward

    run = onward.init()
    state = run.resume()                  # the folder of the newest good checkpoint, or None
    ...
    run.log({"loss": loss}, step=step)
    if run.should_stop():
        with run.checkpoint(step) as folder:
            save(folder / "weights.npz")
        sys.exit(75)                      # saved; run me again
    run.finish()

`import onward as wandb` works for scripts that use init, config, log, summary, alert and finish, and for most that use more:
what Onward does not keep is said once, and ends no training.

In a notebook `onward.Client()` reads runs and their series as tables; elsewhere `onward.Sender()` asks a gateway for trainings.

Nothing is loaded until it is used: importing this package costs no more than Python itself.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the constant type checkers know; importing typing for it would double the cost

__version__ = "0.1.0"
__all__ = ["Client", "Run", "Sender", "alert", "checkpoint", "finish", "init", "log", "resume", "should_stop"]
_OUTSIDE = ("Client", "Sender")  # for programs outside jobs
_OF_THE_RUN = ("config", "run", "summary")  # not above: `from onward import *` would begin a run

if TYPE_CHECKING:
    from onward.client import Client
    from onward.sdk.run import Run, alert, checkpoint, finish, init, log, resume, should_stop
    from onward.sdk.wandb.config import Config, Summary
    from onward.sdk.wandb.module_names import *  # noqa: F403
    from onward.sender import Sender

    config: Config
    summary: Summary
    run: Run | None


def __getattr__(name: str) -> object:
    if name in _OUTSIDE:
        from importlib import import_module

        try:
            return getattr(import_module(f"onward.{name.lower()}"), name)
        except ModuleNotFoundError as error:  # the archive that jobs import has the rest alone
            raise AttributeError(f"onward.{name} needs Onward installed in this environment: {error}") from error
    if name in __all__:
        from onward.sdk import run

        return getattr(run, name)
    if name in _OF_THE_RUN:
        from onward.sdk.run import current

        return current(name)
    if not name.startswith("_"):
        from onward.sdk.wandb import module_names

        if name in module_names.__all__:
            return getattr(module_names, name)
        if name in module_names.ABSENT:
            raise AttributeError(f"onward has no {name}: {module_names.ABSENT[name]}")
    raise AttributeError(f"module 'onward' has no attribute {name!r}")
