"""Units of systemd: where a user's are, which variables of this shell they keep, and how a text is quoted in one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# What Onward needs to find runs and schedulers. No token and no password is among them.
_KEPT = (
    *("PATH", "ONWARD_ROOT", "ONWARD_SETTINGS", "ONWARD_STATE_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"),
    *("SLURM_CONF", "SGE_ROOT", "SGE_CELL", "SGE_QMASTER_PORT", "SGE_EXECD_PORT", "SGE_CLUSTER_NAME"),
)


def user_units(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_CONFIG_HOME", "")
    return (Path(home) if home.startswith("/") else Path(env.get("HOME") or Path.home()) / ".config") / "systemd" / "user"


def environment_lines(env: Mapping[str, str]) -> str:
    return "".join(f"Environment={_quoted(f'{name}={env[name]}')}\n" for name in _KEPT if env.get(name))


def kept_variables(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in _KEPT if env.get(name)}


def command_line(*words: str) -> str:
    """For ExecStart."""
    return " ".join(_quoted(word).replace("$", "$$") for word in words)


def plain_value(path: os.PathLike[str]) -> str:
    """For a setting that takes the rest of its line."""
    return str(path).replace("%", "%%")


def _quoted(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner.replace("%", "%%")}"'
