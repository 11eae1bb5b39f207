"""How far a training is, told from the end of a spool whose lines are long."""

from __future__ import annotations

import json
from pathlib import Path

from onward.rundir.progress import leg_progress


def test_the_progress_of_a_training_that_logs_thousands_of_metrics_is_told(tmp_path: Path) -> None:
    with (tmp_path / "leg-0001.train-7.jsonl").open("w") as file:
        for n in range(20):
            metrics = {f"layers/{i:05d}/grad_norm": n + i / 7 for i in range(5000)}
            file.write(json.dumps({"n": n, "t": 1.7e9 + n, "s": n, "m": metrics}) + "\n")
    found = leg_progress(tmp_path, 1)
    assert (found.last_step, found.steps_per_second) == (19, 1.0)
