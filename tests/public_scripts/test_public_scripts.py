"""Scripts of the shapes that people have already, through legs that end at their time limits and one kill -9.

With ONWARD_SCRIPTS_PYTHON they run in that Python, which has the frameworks (`make public-scripts`); else in that of the tests, if it has
them. ONWARD_SCRIPTS_LEG is the length of a leg in seconds.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.crash.conftest import LocalRun, Machine
from tests.public_scripts.cases import CASES, SCRIPTS, Case
from tests.servers import Running

pytestmark = pytest.mark.slow

NIGHTLY = os.environ.get("ONWARD_SCRIPTS_PYTHON")
PYTHON = NIGHTLY or sys.executable
LEG = int(os.environ.get("ONWARD_SCRIPTS_LEG") or 30)
PATIENCE = 20 * LEG + 120


@functools.cache
def has(module: str) -> bool:
    words = f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({module!r}))"
    return not subprocess.run([PYTHON, "-c", words], check=False).returncode


def start(case: Case, machine: Machine, *, total: int) -> LocalRun:
    for kind, folder in case.data:
        subprocess.run([PYTHON, str(SCRIPTS.parent / "data.py"), folder, kind], cwd=machine.home, check=True, timeout=120)
    for name in (case.script, "pictures.py"):
        (machine.home / name).write_text((SCRIPTS / name).read_text())
    entries = [word.format(total=total, pace=LEG / 10) for word in (*case.flags, "\0", *case.command)]
    flags, arguments = entries[: entries.index("\0")], entries[entries.index("\0") + 1 :]
    interpreter = "bash" if case.script.endswith(".sh") else PYTHON
    limit = f"{LEG // 60}:{LEG % 60:02d}"
    flags = ["--quiet", "--cluster", "local", "--time", limit, "--env", "OMP_NUM_THREADS=1", *flags]
    answer = json.loads(machine.onward("submit", "--json", *flags, "--", interpreter, case.script, *arguments).stdout)
    return LocalRun(machine=machine, id=answer["id"], folder=Path(answer["folder"]))


def units(case: Case, run: LocalRun, leg: int, *, total: int) -> list[int]:
    """What the leg worked on, by its own words."""
    said = "".join(path.read_text() for path in sorted((run.folder / "logs").glob(f"leg-{leg:04d}.[eo][ru][rt]")))
    return [int(found) for found in re.findall(case.unit.replace("{total}", str(total)), said.replace("\r", "\n"), re.MULTILINE)]


def kill_in_mid_leg(case: Case, run: LocalRun, *, total: int) -> int:
    """In the second leg, or a later one if that was over too soon: once more is done in it than in those before. Returns the leg."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        assert not (run.folder / "params" / "done.json").exists(), f"it was over too soon: {run.show()['reason']}"
        leg = len(list((run.folder / "params" / "claims").glob("leg-*.json")))
        seen = set(units(case, run, leg, total=total))
        before = max((unit for earlier in range(1, leg) for unit in units(case, run, earlier, total=total)), default=0)
        started = [event for event in run.events("started") if event["leg"] == leg]
        if leg > 1 and started and len(seen) > 1 + case.redone and max(seen) > before:
            try:
                claim = json.loads((run.folder / "params" / "claims" / f"leg-{leg:04d}.json").read_text())
                os.kill(started[0]["pid"] if case.kill == "training" else claim["pid"], signal.SIGKILL)
            except ProcessLookupError:
                continue
            return leg
        time.sleep(0.2)
    pytest.fail(f"no leg was in its middle within {PATIENCE} s")


@pytest.mark.parametrize("case", CASES, ids=[case.script for case in CASES])
def test_a_public_script_comes_through_time_limits_and_a_kill(case: Case, machine: Machine, tmp_path: Path) -> None:
    if lacking := [module for module in case.needs if not has(module)]:
        pytest.skip(f"{PYTHON} has no {', '.join(lacking)}: `make public-scripts` installs what all of them need")
    if not (NIGHTLY or case.quick):
        pytest.skip("takes minutes: `make public-scripts` runs it")
    scaled = "{total}" in " ".join((*case.command, *case.flags))
    total = case.total * LEG // 30 if scaled else case.total
    run = start(case, machine, total=total)

    killed = kill_in_mid_leg(case, run, total=total)
    shown = run.until_over(within=PATIENCE)
    ends = [leg["end"] for leg in shown["legs"] if leg["started"]]
    assert shown["state"] == "finished", shown["reason"]
    assert ends[0] == "time_limit" and ends[-1] == "done", ends
    assert ends[killed - 1] in ("crashed", "lost", "time_limit")  # the last, if it had been asked to stop just before

    worked = [sorted(set(units(case, run, leg, total=total))) for leg in range(1, len(ends) + 1)]
    redone = [len(set(before) & set(after)) for before, after in pairwise(worked)]
    print(f"\n{case.script}: {case.lines} lines, {len(ends)} legs ({', '.join(ends)}), {case.word}s begun again after each: {redone}")
    assert max(redone) <= case.redone
    assert all(after[0] > before[0] for before, after in pairwise([leg for leg in worked if leg])), "each leg goes on"
    if case.every == 1:  # a progress bar does not show each
        assert set().union(*worked) >= set(range(worked[0][0], worked[0][0] + total)), "none is left out"
    for leg, seen in zip(shown["legs"], worked, strict=False):
        if leg["resumed_step"] is not None and case.word == "epoch" and case.every:
            assert seen[0] == leg["resumed_step"] + 1, "what it says of the leg is what the leg did"
    assert shown["effort"]["goodput"] is not None and shown["effort"]["lost"] < shown["effort"]["kept"]
    assert (shown["checkpoints"] or shown["own_files"]) and shown["risk"] is None
    if case.metric:
        charted = steps_on_the_page(case, run, tmp_path / "server")
        assert charted == sorted(set(charted)) and shown["progress"]["step"] >= charted[-1]
        if case.every:
            assert charted == list(range(case.every, total + 1, case.every))


def steps_on_the_page(case: Case, run: LocalRun, folder: Path) -> list[int]:
    with Running(folder, root=run.folder.parent) as server:
        token = server.token()
        [chart] = server.json("GET", f"/api/v1/series?run={run.id}&metric={case.metric}&buckets=1000", token)["series"]
        return list(chart["steps"])
