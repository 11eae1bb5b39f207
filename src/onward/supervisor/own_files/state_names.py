"""Whether a file looks like a training's state, by its name: all but what is known to be something else."""

from __future__ import annotations

import re

from onward.checkpoints.watching import file_names

_SKIPPED_FOLDERS = re.compile(
    r"^(\.|__pycache__$|node_modules$|wandb$|mlruns$|(logs?|tensorboard|runs|plots|figures|images|samples)$)", re.IGNORECASE
)
_NO_STATE = re.compile(
    r"\.(py[cdo]?|ipynb|sh|bash|c|cc|cpp|cu|cuh|h|hpp|o|so|a|rs|go|jl|m|r"  # code
    r"|png|jpe?g|gif|svg|pdf|eps|html?|css|js|mp4|wav"  # what people look at
    r"|ya?ml|toml|ini|cfg|conf|md|rst|tex|lock|pid|sock|prof|trace)$",
    re.IGNORECASE,
)
_EITHER = re.compile(r"\.(json|txt|xml)$", re.IGNORECASE)  # a model of XGBoost's or LightGBM's, or a report
_NAMED_AS_STATE = re.compile(r"model|booster|check|ckpt|state|snapshot|resume|restart|save|epoch|iter|weights", re.IGNORECASE)


def is_skipped(folder: str) -> bool:
    """By the name of one folder: hidden, or of caches, logs and pictures."""
    return bool(_SKIPPED_FOLDERS.search(folder))


def looks_like_state(path: str) -> bool:
    """`path` is relative to the working folder, or absolute."""
    name = path.rpartition("/")[2]
    if file_names.unfinished(name) or file_names.is_log(name) or file_names.is_record(name) or _NO_STATE.search(name):
        return False
    return not _EITHER.search(name) or bool(_NAMED_AS_STATE.search(path if not path.startswith("/") else name))
