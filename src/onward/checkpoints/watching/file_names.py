"""What the names of files in a checkpoint folder say: the step, one of several shards, a log, a file beside the checkpoints."""

from __future__ import annotations

import re
from functools import lru_cache

_EXTENSION = re.compile(r"(\.[A-Za-z][A-Za-z0-9]{0,10})+$")
_SHARD = re.compile(r"[._-]?(\d+[._-]of[._-]\d+|(?<![a-z])(rank|shard|part)[._-]?\d+)", re.IGNORECASE)  # one of several
_DCP_SHARD = re.compile(r"^__\d+_\d+\.distcp$")
_FRACTION = re.compile(r"\d+\.\d+")  # a loss or an accuracy
_NUMBER = re.compile(r"(\d+)(?!.*\d)")
_DIGITS = re.compile(r"\d+")
_VARYING = re.compile(rf"(?P<shard>{_SHARD.pattern})|\d+\.\d+|\d+", re.IGNORECASE)
_UNFINISHED = re.compile(r"^(\.(?!metadata$)|tmp[-_])|\.(tmp|part|incomplete)$|~$|\.orbax-checkpoint-tmp")
_HALF = re.compile(r"\.(tmp|part|incomplete)$|~$")
_LOG = re.compile(r"tfevents|\.(log|out|err)$")
_RECORD = re.compile(r"\.(jsonl|ndjson|csv|tsv|wandb)$|(log|history|metrics|loss)[^/]*\.txt$", re.IGNORECASE)
_SETTING = re.compile(r"\.(json|ya?ml|toml|ini|cfg|txt|md|py|model|vocab|jinja)$", re.IGNORECASE)
_BEST = re.compile(r"(^|[._/-])best([._/-]|$)", re.IGNORECASE)


@lru_cache(maxsize=1 << 18)
def number(name: str) -> int | None:
    """The step a name speaks of: its last whole number, its file extension aside (`model.h5` has none)."""
    if _DCP_SHARD.match(name):
        return None
    match = _NUMBER.search(_FRACTION.sub("", _EXTENSION.sub("", _SHARD.sub("", name))))
    return int(match[1]) if match else None


def kind(name: str, step: int) -> str:
    """The same file in another save has the same kind: `model-epoch=03-step=1200.ckpt` and `model-epoch=04-step=1600.ckpt`.

    Shards and ranks stay apart, and so do numbered files inside a folder, unless their number is the step.
    """
    top, *below = name.split("/")
    extension = _EXTENSION.search(top)
    stem = top[: extension.start()] if extension else top
    stem = _VARYING.sub(lambda found: found["shard"] or "#", stem)
    inner = [_DIGITS.sub(lambda run: "#" if int(run[0]) == step else run[0], part) for part in below]
    return "/".join([stem + (extension[0] if extension else ""), *inner])


def unfinished(name: str) -> bool:
    """Hidden, or named as what is still being written."""
    return bool(_UNFINISHED.search(name))


def half_written(name: str) -> bool:
    """Inside a folder: named as what is still being written."""
    return bool(_HALF.search(name))


def is_log(name: str) -> bool:
    """Never part of a checkpoint."""
    return bool(_LOG.search(name))


def is_record(name: str) -> bool:
    """Grows as long as the training lives (`metrics.jsonl`): never waited for."""
    return bool(_RECORD.search(name))


def may_stay(name: str) -> bool:
    """Not necessarily written with each save: settings, and the best so far."""
    return is_setting(name) or is_best(name)


def is_setting(name: str) -> bool:
    return bool(_SETTING.search(name))


def is_best(name: str) -> bool:
    return bool(_BEST.search(name))
