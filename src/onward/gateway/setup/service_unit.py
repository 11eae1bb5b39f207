"""The gateway as a service of systemd: the unit, and the file with its secrets. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from onward.errors import InvalidInput
from onward.operations.systemd_units import command_line, environment_lines, plain_value

UNIT = "onward-gateway.service"
SECRETS = (
    "ONWARD_DB",
    "SSL_CERT_FILE",
    "RODAN_URL",
    "RODAN_HOST",
    "RODAN_USER",
    "RODAN_USERNAME",
    "RODAN_EMAIL",
    "RODAN_PASSWORD",
    "RODAN_PASSWORD_FILE",
)
_HEAD = "# Read by systemd for the gateway; mode 600. A shell can read it too: set -a; . FILE; set +a\n"
_LOGIN = '# The login at the application whose v1 messages are served:\n# RODAN_USER="…"\n# RODAN_PASSWORD="…"\n'


def unit_text(env: Mapping[str, str], *, folder: Path, secrets: Path, user: str | None) -> str:
    """`user`: as whom one of the machine's units runs; None for a user's own unit, which knows."""
    return (
        "[Unit]\nDescription=Onward: the gateway to RabbitMQ\n"
        f"{'Wants=network-online.target' + chr(10) + 'After=network-online.target' + chr(10) if user else ''}"
        "StartLimitIntervalSec=0\n\n"
        f"[Service]\n{f'User={user}{chr(10)}' if user else ''}WorkingDirectory={plain_value(folder)}\n"
        f"{environment_lines(env)}EnvironmentFile={plain_value(secrets)}\n"
        f"ExecStart={command_line(sys.executable, '-m', 'onward', 'gateway')}\n"
        "Restart=on-failure\nRestartSec=10\nTimeoutStopSec=60\nUMask=0077\n\n"
        f"[Install]\nWantedBy={'multi-user' if user else 'default'}.target\n"
    )


def secrets_text(env: Mapping[str, str], *, v1: bool) -> str:
    """What this shell has of them, and the authority that it trusts, so that a service finds it too."""
    lines = "".join(f"{name}={_quoted(name, env[name])}\n" for name in SECRETS if env.get(name))
    return _HEAD + (_LOGIN if v1 and "RODAN_" not in lines else "") + lines


def _quoted(name: str, value: str) -> str:
    """As both systemd and a shell read it."""
    if any(ord(character) < 32 for character in value):
        raise InvalidInput(f"{name} has a control character in it", hint="set it to one line of text")
    for special in ("\\", '"', "$", "`"):
        value = value.replace(special, f"\\{special}")
    return f'"{value}"'
