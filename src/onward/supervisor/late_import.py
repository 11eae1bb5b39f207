"""Import a module from the run's own archive, which lies in the run's folder: its storage may be away for a moment, just now."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

_PATIENCE = 300  # seconds, where the job script does not say


def late_import(module: str, *, sleep: Callable[[float], None] = time.sleep) -> Any:
    text = os.environ.get("ONWARD_STORAGE_PATIENCE", "")
    seconds = int(text) if text.isdecimal() else _PATIENCE
    while True:
        try:
            return import_module(module)
        except (ImportError, OSError):
            if seconds <= 0:
                raise
            seconds -= 1
            sleep(1.0)
