"""What init() is asked for in W&B's words: which of them count, and whether they name another run than the one at hand."""

from __future__ import annotations

import os
from collections.abc import Mapping

from onward.sdk import contract
from onward.sdk.stderr import say, say_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from onward.sdk.run import TrainingRun

KNOWN = ("project", "name", "id", "group", "job_type", "entity", "tags", "notes", "mode", "resume", "reinit")
_NAMING = KNOWN[:5]  # those that tell one run from another
_ANEW = (True, "finish_previous", "create_new")
_SAME = (False, "return_previous")
_MODES = (None, "disabled", "offline", "dryrun")  # no run sends anything anywhere: offline is what they are


def known_arguments(given: Mapping[str, object]) -> dict[str, object]:
    """The arguments that count; others are named once and ignored."""
    asked = {word: value for word, value in given.items() if word in KNOWN and value is not None}
    settings = given.get("settings")
    for word in ("mode", "reinit"):
        setting = settings.get(word) if isinstance(settings, Mapping) else getattr(settings, word, None)
        if setting is not None:
            asked.setdefault(word, setting)
    others = [word for word, value in given.items() if word not in KNOWN and value is not None and word != "settings"]
    others += [word for word in ("entity",) if asked.get(word)]
    others += [] if asked.get("mode") in _MODES else ["mode"]
    if others:
        say_once(f"init() ignores {', '.join(sorted(others))}")
    if asked.get("resume") and not asked.get("id") and contract.CHECKPOINT_DIR not in os.environ:  # in a job it is resumed anyway
        say_once("init(resume=…) without an id is ignored: ONWARD_RUN_DIR names the folder to continue from")
    return asked


def names_another_run(run: TrainingRun, asked: Mapping[str, object], config: object) -> bool:
    """Whether this is another training than `run`. In a job there is only one."""
    if not run.by_hand:
        return False
    if run.finished or asked.get("reinit") in _ANEW:
        return True
    other = [word for word in _NAMING if word in asked and asked[word] != run.asked.get(word)]
    if not other and _contradicts(run, config):
        other = ["config"]
    if other and asked.get("reinit") in _SAME:
        say(f"init(reinit={asked['reinit']!r}): the run {run.name} continues; other {', '.join(other)} ignored")
        return False
    if other:
        say(f"init() with other {', '.join(other)}: the run {run.name} is finished, and another starts")
    return bool(other)


def _contradicts(run: TrainingRun, config: object) -> bool:
    """Other values for what the run's config says already; more of them are no other training."""
    if config is None:
        return False
    from onward.sdk.wandb.config import as_mapping

    held = run.config.as_dict()
    return any(key in held and repr(held[key]) != repr(value) for key, value in as_mapping(config).items())
