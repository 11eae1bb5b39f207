"""When Slurm would start a job if it were submitted now: `sbatch --test-only`, which queues nothing."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from onward.schedulers.base import ExpectedStart
from onward.schedulers.command import run_command

_TIMEOUT = 90.0
_STARTS = re.compile(r"Job \d+ to start at (\d+)(?: using \d+ processors)?(?: on nodes (\S+))?(?: in partition (\S+))?")
_NOISE = re.compile(r"^(?:sbatch: )?(?:error: )?(?:allocation failure: )?")


def expected_start(script: str) -> ExpectedStart | None:
    """The script's own options count, as at submit. None: no answer that we can read."""
    with tempfile.TemporaryDirectory(prefix="onward-") as folder:
        file = Path(folder, "job.sh")
        file.write_text(script)
        argv = ["sbatch", "--test-only", f"--chdir={folder}", str(file)]
        answer = run_command(argv, timeout=_TIMEOUT, extra={"SLURM_TIME_FORMAT": "%s"})
    return parse_test(answer.err or answer.out, refused=answer.code != 0)


def parse_test(text: str, *, refused: bool) -> ExpectedStart | None:
    found = _STARTS.search(text)
    if found:
        return ExpectedStart(at=float(found[1]), nodes=found[2] or "", queue=found[3] or "")
    lines = [_NOISE.sub("", line.strip()) for line in text.splitlines() if line.strip()]
    return ExpectedStart(refused="; ".join(dict.fromkeys(lines))) if refused and lines else None
