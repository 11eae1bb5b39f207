"""Asking MLflow's client many things from tables, and keeping the answers: what `further.py` and `logged_models.py` begin and end with.

Ids are replaced by words, so that two servers can be compared line by line.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["MLFLOW_TRACKING_URI"] = sys.argv[1]
os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"
os.environ["GIT_PYTHON_REFRESH"] = "quiet"
os.environ["MLFLOW_ENABLE_ASYNC_LOGGING"] = "false"

import mlflow
from mlflow.exceptions import MlflowException

client = mlflow.MlflowClient()
fields: dict[str, Any] = {}
names: dict[str, str] = {}  # ids → a word
T = 1_700_000_000_000


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    for known, word in names.items():
        text = re.sub(rf"\b{known}\b", word, text)
    return text


def ask(table: dict[str, Callable[[], Any]]) -> None:
    """Keep what each call gives, or the error code that it raises."""
    for name, call in table.items():
        try:
            answer = plain(call())
        except MlflowException as error:
            answer = {"error": error.error_code}
        except Exception as error:
            answer = {"raised": type(error).__name__}
        assert name not in fields, name
        fields[name] = answer


def both(*calls: Callable[[], Any]) -> Any:
    """What the last of several calls gives."""
    return [call() for call in calls][-1]


def new_run(name: str, *, experiment: str, **more: Any) -> str:
    id: str = client.create_run(experiment, run_name=name, **more).info.run_id
    names[id] = name.upper()
    return id


def keep() -> None:
    """All that was told, into the file that the command line names."""
    Path(sys.argv[2]).write_text(json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False))
