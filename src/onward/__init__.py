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

Nothing is loaded until it is used: importing this package costs no more than Python itself.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the constant type checkers know; importing typing for it would double the cost

__version__ = "0.1.0"
__all__ = ["Run", "checkpoint", "finish", "init", "log", "resume", "should_stop"]

if TYPE_CHECKING:
    from onward.sdk.run import Run, checkpoint, finish, init, log, resume, should_stop


def __getattr__(name: str) -> object:
    if name in __all__:
        from onward.sdk import run

        return getattr(run, name)
    raise AttributeError(f"module 'onward' has no attribute {name!r}")
