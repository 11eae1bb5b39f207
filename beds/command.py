"""Running a program to its end: argument lists, a timeout, and one door."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from beds.errors import BedError

_TAIL_LINES = 12


@dataclass(frozen=True)
class Outcome:
    """How a program ended and what it said; code 124 stands for "did not answer in time"."""

    code: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        return self.code == 0


def attempt(
    argv: Sequence[str],
    *,
    timeout: float = 30,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Outcome:
    """Run a program whose failure is an answer. `env` is added to this process's own."""
    surroundings = {**os.environ, **env} if env else None
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env=surroundings,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(124, "", f"no answer within {timeout:.0f} s")
    except OSError as error:
        return Outcome(127, "", str(error))
    return Outcome(done.returncode, done.stdout, done.stderr)


def run(
    argv: Sequence[str],
    *,
    timeout: float = 30,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    hint: str = "",
) -> str:
    """Run a program that has to succeed, and give back what it printed."""
    outcome = attempt(argv, timeout=timeout, env=env, stdin=stdin)
    if not outcome.ok:
        said = (outcome.err.strip() or outcome.out.strip()).splitlines()[-_TAIL_LINES:]
        raise BedError(
            "\n  ".join([f"'{' '.join(argv)}' failed with code {outcome.code}:", *said]),
            hint=hint,
        )
    return outcome.out
