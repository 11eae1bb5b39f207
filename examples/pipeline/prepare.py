"""The data, made once: a stage before the training. What it leaves is among its run's artifacts."""

from __future__ import annotations

import json
import os
from pathlib import Path

from moons import moons

folder = Path(os.environ["ONWARD_ARTIFACTS_DIR"])
part = folder / "moons.json.part"  # beside it first: what has its name is whole
part.write_text(json.dumps(moons(400, seed=1)))
part.rename(folder / "moons.json")
