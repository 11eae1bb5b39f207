"""What the server says of itself: JSON lines on stderr, with nothing in them that opens a door.

Addresses are logged without their token, without the query, and every line passes a filter that blots out whatever still looks like a
token.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

from onward.tracker.access.tokens import redact

log = logging.getLogger("onward.server")

LONGEST = 1 << 16  # characters of a line; ours are ASCII
_BRIEF = ("at", "level", "action")


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "action": getattr(record, "action", record.name),
            "message": record.getMessage(),
            **getattr(record, "said", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = redact(json.dumps({key: value for key, value in line.items() if value is not None}, default=str))
        return text if len(text) <= LONGEST else json.dumps({**{key: line[key] for key in _BRIEF}, "cut": text[: LONGEST // 2]})


def note(level: int, action: str, message: str, **said: object) -> None:
    """One line with its facts beside the sentence."""
    log.log(level, message, extra={"action": action, "said": said})


def set_up(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Everything that logs in this process, uvicorn too, in one form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    log.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        theirs = logging.getLogger(name)
        theirs.handlers[:] = []
        theirs.propagate = True
        theirs.setLevel(logging.WARNING)
