"""What must hold of every run that finished, whatever happened to it on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.cluster.conftest import RunOnBed


def assert_whole(run: RunOnBed, *, out: Path, unbroken: Path) -> dict[str, object]:
    """Finished, with the unbroken run's weights; nothing lost beyond the last checkpoint; no leg twice; no job left."""
    shown = run.show()
    assert shown["state"] == "finished", (shown["reason"], run.log())
    with np.load(out) as ours, np.load(unbroken) as theirs:
        assert sorted(ours) == sorted(theirs)
        for name in theirs:
            assert ours[name].tobytes() == theirs[name].tobytes(), f"{name} differs from the unbroken training"

    published: list[tuple[int, int]] = []
    for event in run.events():
        if event["kind"] == "restored":
            # one that was published in the moment before a kill may be there without a word of it
            assert event["step"] >= max(published)[1], f"leg {event['leg']} began behind the last published checkpoint"
        if event["kind"] == "published":
            published.append((event["leg"], event["step"]))
    for leg in shown["legs"]:
        if leg["first_step"] is not None and leg["resumed_step"] is not None:
            assert leg["first_step"] == leg["resumed_step"] + 1

    for kind in ("claimed", "started"):
        numbers = [event["leg"] for event in run.events() if event["kind"] == kind]
        assert sorted(numbers) == sorted(set(numbers)), f"a leg {kind} twice"
    left = run.jobs_left()
    assert left == [], f"jobs are left: {left}\n{run.log()}"
    return shown
