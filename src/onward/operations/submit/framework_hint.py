"""Said once to each user and framework: how its scripts continue in the next leg."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onward.inputs.command_line import python_script
from onward.inputs.frameworks import framework_of
from onward.model.spec import RunDraft
from onward.operations.context import OperationsContext
from onward.schedulers.state_folder import first_time

_LARGEST = 1 << 20  # bytes; nobody writes a larger script by hand


def framework_hint(context: OperationsContext, draft: RunDraft, *, cwd: Path) -> Sequence[str]:
    """Nothing where the command or the params file says already where checkpoints are, or nothing can be seen. Never an error."""
    rule = draft.checkpoints
    if draft.script or rule.own or rule.paths or any("{checkpoints." in word or "{?checkpoints." in word for word in draft.command):
        return ()
    try:
        script = python_script(draft.command, cwd / (draft.folder or ""))
        if script is None or script.stat().st_size > _LARGEST:
            return ()
        framework = framework_of(script.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ()
    if framework is None or not first_time(context.env, f"hint-said-{framework.name.replace(' ', '-').lower()}"):
        return ()
    return framework.hint()
