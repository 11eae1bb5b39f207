"""The job script: directives by the scheduler, then a fixed body. No text of the user's is ever shell source."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

_BODY = """\
# Written by Onward: one leg of a run. What to run, and how, is in the run's folder; nothing here needs to be changed.
run={run}
python={python}
command -v "$python" >/dev/null 2>&1 || python=python3
exec "$python" -E "$run/params/{archive}" leg "$run" {leg}
"""


def job_script(directives: Sequence[str], *, run: Path, archive: str, leg: int, python: str) -> str:
    body = _BODY.format(run=shlex.quote(str(run)), python=shlex.quote(python), archive=archive, leg=leg)
    return "\n".join(["#!/bin/bash", *directives, body])
