"""The last picture of a cluster, kept in the user's state folder for those who look without asking the scheduler."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from onward.model.cluster import ClusterSnapshot
from onward.model.plain_data import value_from_json, value_to_json
from onward.schedulers.state_folder import state_folder
from onward.sdk.atomic_files import write_whole


def save_snapshot(env: Mapping[str, str], cluster: str, snapshot: ClusterSnapshot) -> None:
    """As well as can be: a full disk keeps nobody from looking."""
    with contextlib.suppress(OSError):
        path = _path(env, cluster)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, json.dumps(value_to_json(snapshot)), mode=0o600)


def saved_snapshot(env: Mapping[str, str], cluster: str) -> ClusterSnapshot | None:
    """None: nobody has looked yet, or what is there is of another version."""
    try:
        return value_from_json(ClusterSnapshot, json.loads(_path(env, cluster).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _path(env: Mapping[str, str], cluster: str) -> Path:
    """One a machine, since homes are shared."""
    name = re.sub(r"[^\w.-]", "_", cluster)[:100]
    return state_folder(env) / "clusters" / f"{name}-{socket.gethostname()}.json"
