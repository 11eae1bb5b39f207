"""How a process that was started by hand ends: no supervisor sees its exit code, so it says itself what Python tells it at the end.

What dies without Python's knowledge (kill -9, a power cut) says nothing; whoever reads the run's folder notices that the process is gone.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading

from onward.sdk import contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Tell = Callable[[str, str], None]  # the run's state, and why

_watched: dict[int, tuple[int, Tell]] = {}
_seen: dict[str, object] = {}
_hooked = False


def watch_exit(run: object, tell: Tell) -> None:
    """Call `tell` at the end of this process, unless it was forgotten before."""
    global _hooked
    _watched[id(run)] = (os.getpid(), tell)
    if not _hooked:
        _hooked = True
        _hook()


def forget_exit(run: object) -> None:
    _watched.pop(id(run), None)


def exit_state(error: BaseException | None, code: object) -> tuple[str, str]:
    """State and reason, from an uncaught exception or the argument of sys.exit()."""
    if isinstance(error, KeyboardInterrupt):
        return "cancelled", "interrupted"
    if error is not None:
        text = str(error).strip()
        return "failed", f"{type(error).__name__}: {text.splitlines()[-1]}" if text else type(error).__name__
    if code is None or code is False or code == contract.EXIT_DONE:
        return "finished", ""
    if code == contract.EXIT_AGAIN:
        return "waiting", "saved; start it again to continue"
    return "failed", f"exit code {code}" if isinstance(code, int) else str(code)


def _hook() -> None:
    before, leave = sys.excepthook, sys.exit

    def on_error(kind: type[BaseException], error: BaseException, trace: object) -> None:
        _seen["error"] = error
        before(kind, error, trace)  # type: ignore[arg-type]

    def on_exit(code: object = None, /) -> None:
        if threading.current_thread() is threading.main_thread():
            _seen["code"] = code
        leave(code)  # type: ignore[arg-type]

    sys.excepthook = on_error
    sys.exit = on_exit  # type: ignore[assignment]
    atexit.register(_at_exit)


def _at_exit() -> None:
    error = _seen.get("error")
    state, reason = exit_state(error if isinstance(error, BaseException) else None, _seen.get("code"))
    for owner, tell in list(_watched.values()):
        if owner == os.getpid():  # a forked child that leaves is not the training
            tell(state, reason)
    _watched.clear()
