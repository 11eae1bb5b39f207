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
what Onward does not store causes one warning and never ends a training.

In a notebook `onward.Client()` reads runs and their series as tables; elsewhere `onward.Sender()` asks a gateway for trainings.

Nothing is loaded until it is used: importing this package costs no more than Python itself.

Any Python from 2.7 on must be able to read this file: it is what says that a Python is too old. So it has no annotations and no f-strings.
"""

import sys

if sys.version_info < (3, 8):
    raise ImportError(
        "onward needs Python 3.8 or newer in a training, and this is Python " + sys.version.split()[0] + " (" + sys.executable + "). "
        "Use a newer one; or leave `import onward` out, save into $ONWARD_CHECKPOINT_DIR and start from $ONWARD_RESUME_DIR."
    )

TYPE_CHECKING = False  # the constant type checkers know; importing typing for it would double the cost

__version__ = "0.2.0"
__all__ = ["Client", "Run", "Sender", "alert", "checkpoint", "finish", "init", "log", "resume", "should_stop"]
_OUTSIDE = ("Client", "Sender")  # for programs outside jobs
_OF_THE_RUN = ("config", "run", "summary")  # not above: `from onward import *` would begin a run

if TYPE_CHECKING:
    from typing import cast

    from onward.client import Client
    from onward.sdk.process_run import Run, alert, checkpoint, finish, init, log, resume, should_stop
    from onward.sdk.wandb.config import Config, Summary
    from onward.sdk.wandb.module_names import *  # noqa: F403
    from onward.sender import Sender

    config = cast("Config", None)
    summary = cast("Summary", None)
    run = cast("Run | None", None)


def __getattr__(name):  # type: (str) -> object
    if name in _OUTSIDE:
        from importlib import import_module

        try:
            return getattr(import_module("onward." + name.lower()), name)
        except (ImportError, SyntaxError) as error:  # a job's archive does not have it, and it needs Python 3.11
            why = str(error)
        raise AttributeError("onward." + name + " needs Onward installed in this environment: " + why)
    if name in __all__:
        from onward.sdk import process_run

        return getattr(process_run, name)
    if name in _OF_THE_RUN:
        from onward.sdk.process_run import current

        return current(name)
    if not name.startswith("_"):
        from onward.sdk.wandb import module_names

        if name in module_names.__all__:
            return getattr(module_names, name)
        if name in module_names.ABSENT:
            raise AttributeError("onward has no " + name + ": " + module_names.ABSENT[name])
    raise AttributeError("module 'onward' has no attribute " + repr(name))
