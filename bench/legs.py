"""What a change of legs costs: on real beds, as an ordinary user, beside the seed's shell chain and submitit's requeue.

    pause     a training's last act → the first step of the next leg, as a ratio to the same training in bare held jobs
    goodput   kept step time ÷ allocated time for 60 s legs, where the training saves by itself only every 15 s, and once more when asked
    kills     steps lost and repeated when the same seeded kill -9 hits each system

All of it takes about 11 minutes; `--part` and `--bed` choose, `--short` takes a third. Figures of one run belong together: trust ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.leg_systems import Chain, OnwardRun, Submitit, System, Work, allocated
from bench.people import BEDS, Person, alice_on, is_up
from bench.reckoning import account, lives, lost, median

PAUSE = Work(steps=180, pause=0.1, save_every=60, limit=600, links=9, leave_after=2.0)
GOODPUT = Work(steps=1500, pause=0.1, save_every=15, limit=60, links=4)
KILLS = Work(steps=700, pause=0.1, save_every=15, limit=600, links=4)
SEED = 20261115
PARTS = ("pause", "goodput", "kills")


@dataclass(frozen=True, kw_only=True)
class Watched:
    person: Person
    system: System
    kills: tuple[float, ...] = ()  # seconds after a life's first step


def read_trace(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:  # its writer was killed in the middle
            continue
    return found


def see_through(watched: Sequence[Watched], *, within: float) -> None:
    """Start all, wait for all, and kill those that are to be killed."""
    hit = [0] * len(watched)
    for one in watched:
        one.system.start()
    give_up = time.monotonic() + within
    while time.monotonic() < give_up:
        waiting = [one for one in watched if not one.system.over()]
        if not waiting:
            return
        for index, one in enumerate(watched):
            if hit[index] < len(one.kills):
                trained = [life for life in lives(read_trace(one.system.trace)) if life.steps]
                if len(trained) == hit[index] + 1 and time.time() >= trained[-1].steps[0][1] + one.kills[hit[index]]:
                    end_job(one.person.bed, trained[-1].job)
                    hit[index] += 1
        time.sleep(0.1 if any(one.kills for one in waiting) else 1.0)
    late = [f"{one.system.name} on {one.person.bed}" for one in watched if not one.system.over()]
    print(f"  not over within {within:.0f} s: {', '.join(late)}")


def end_job(bed: str, job: str) -> None:
    """kill -9 for every process of a job, all at once: what a machine that runs out of memory, or a careless neighbour, does."""
    mark = f"{'SLURM_JOB_ID' if bed == 'slurm' else 'JOB_ID'}={job}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue


def pause(beds: Sequence[str], work: Work) -> None:
    """The bare chain and Onward one after the other, so that neither waits for the other's processes."""
    for bed in beds:
        found = {}
        for make in (Chain, OnwardRun):
            with alice_on(bed) as person:
                system: System = make(person, work)
                try:
                    see_through([Watched(person=person, system=system)], within=180)
                    found[system.name] = account(read_trace(system.trace), total=work.steps).pauses
                finally:
                    system.stop()
        bare, ours = found["shell chain"], found["onward"]
        print(
            f"pause   {bed:12} onward {median(ours):5.2f} s, bare held job {median(bare):5.2f} s: {median(ours) / median(bare):4.2f} × "
            f"(goal ≤ 1.3; medians of {len(ours)} and {len(bare)})",
            flush=True,
        )
        print(f"        {'':12} onward {spread(ours)}; bare {spread(bare)}", flush=True)


def spread(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in sorted(values))


def everything_on(beds: Sequence[str], work: Work, stack: ExitStack, *, kills: tuple[float, ...] = ()) -> list[Watched]:
    watched = []
    for bed in beds:
        kinds: list[Callable[[Person, Work], System]] = [OnwardRun, Chain]
        if bed == "slurm" and has_submitit():
            kinds.append(Submitit)
        for kind in kinds:
            person = stack.enter_context(alice_on(bed))
            system = kind(person, work)
            stack.callback(system.stop)
            watched.append(Watched(person=person, system=system, kills=kills))
    return watched


def has_submitit() -> bool:
    try:
        import submitit  # noqa: F401
    except ImportError:
        return False
    return True


def goodput(beds: Sequence[str], work: Work) -> None:
    with ExitStack() as stack:
        watched = everything_on(beds, work, stack)
        see_through(watched, within=work.steps * work.pause * 2 + 150)
        for one in watched:
            trace = read_trace(one.system.trace)
            found = account(trace, total=work.steps)
            given = allocated(one.person, one.system.jobs())
            good = found.goodput(step_seconds=work.pause, allocated=given)
            said = f"{found.kept} steps kept, {found.repeated} done again, {given:.0f} s allocated, {found.wall:.0f} s from first to last"
            end = "" if found.finished else ", NOT FINISHED"
            print(f"goodput {one.person.bed:12} {one.system.name:12} {good:5.3f}: {said}, {found.lives} legs{end}", flush=True)


def kills(beds: Sequence[str], work: Work) -> None:
    chance = random.Random(SEED)
    when = tuple(round(chance.uniform(8, 28), 1) for _ in range(2))
    print(f"kills   {' and '.join(f'{seconds} s' for seconds in when)} after a leg's first step, in this order")
    with ExitStack() as stack:
        watched = everything_on(beds, work, stack, kills=when)
        see_through(watched, within=work.steps * work.pause + 180)
        for one in watched:
            trace = read_trace(one.system.trace)
            found, gone = account(trace, total=work.steps), lost(trace, total=work.steps)
            end = "finished" if found.finished else f"STOPPED with {found.kept} of {work.steps} steps saved"
            who = f"{one.person.bed:12} {one.system.name:12}"
            print(f"kills   {who} {gone:3} steps lost, {found.repeated:3} done again, {found.lives} legs, {end}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a change of legs costs, on real beds, beside its peers.")
    parser.add_argument("--bed", choices=BEDS, action="append", help="only this one; may be repeated")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be repeated")
    parser.add_argument("--short", action="store_true", help="fewer legs: to see that it works")
    options = parser.parse_args()
    beds = [bed for bed in options.bed or BEDS if is_up(bed)]
    for missing in set(options.bed or BEDS) - set(beds):
        print(f"{missing}: the bed is not wholly up, and left out (python3 -m beds status)")
    if not beds:
        raise SystemExit("no bed is up: python3 -m beds up")
    began = time.monotonic()
    for part in options.part or PARTS:
        match part:
            case "pause":
                pause(beds, replace(PAUSE, steps=80, links=4) if options.short else PAUSE)
            case "goodput":
                goodput(beds, replace(GOODPUT, steps=700, links=3) if options.short else GOODPUT)
            case _:
                kills(beds, replace(KILLS, steps=450) if options.short else KILLS)
    print(f"took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
