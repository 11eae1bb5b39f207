"""Large checkpoints on one machine: a slow store, a small node disk, a full store. Everything is real but the length of the legs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.crash.conftest import LocalRun, Machine
from tests.scale.conftest import GB, command, node_disk
from tests.scale.places import Ground, rate_of
from tests.scale.seen import Memory, finished, legs, legs_text, nothing_lost

pytestmark = pytest.mark.scale

_MOST_MEMORY = 150_000_000  # bytes: supervisor and publisher together
_PAUSE = 0.5  # seconds a step takes


def submit(machine: Machine, *flags: str, size: int, steps: int, every: int) -> LocalRun:
    argv = ("submit", "--json", "--cluster", "local", "--name", "scale", *flags, "--", *command(size, steps=steps, every=every))
    answer = json.loads(machine.onward(*argv).stdout)
    return LocalRun(machine=machine, id=answer["id"], folder=Path(answer["folder"]))


def events(run: LocalRun) -> list[dict[str, object]]:
    lines = (line for path in sorted((run.folder / "journal").glob("*.jsonl")) for line in path.read_text().splitlines())
    return sorted(map(json.loads, lines), key=lambda event: event["at"])


def in_steps(seconds: float) -> int:
    return max(2, round(seconds / _PAUSE))


def test_a_slow_store_loses_no_committed_step_and_the_request_to_stop_comes_in_time(machine: Machine, ground: Ground, size: int) -> None:
    """The store is a folder behind bindfs, with a limit on bytes a second. Legs have room for about six publishes."""
    store = ground.slow("store", checkpoint=size)
    machine.environment["ONWARD_ROOT"] = str(store / "runs")
    rate = rate_of(store, min(size // 8, GB))
    publish = size / rate
    save = size / rate_of(ground.folder / "node", min(size // 4, 2 * GB))
    limit = round(6 * publish + 4 * save + 40)
    print(f"\nslow store: {size / GB:g} GB at {rate / 1e6:.0f} MB/s is {publish:.0f} s; a save is {save:.0f} s; legs of {limit} s")
    every = in_steps(1.5 * publish + save)
    run = submit(machine, "--time", f"0:{limit}", "--keep", "2", size=size, steps=in_steps(2.2 * limit), every=every)
    with Memory(run.folder) as memory:
        shown = run.until_over(within=8 * limit + 300)
    found = legs(run.folder, events(run))
    print(legs_text(found))
    print(f"most memory of supervisor and publisher: {memory.most / 1e6:.0f} MB")
    finished(shown, run.folder)
    assert len(found) >= 3 and {leg.end for leg in found[:-1]} == {"time_limit"}
    nothing_lost(found)
    for leg in found[:-1]:
        [asked], [ended], [claimed] = leg.of("askedtostop"), leg.of("ended"), leg.of("claimed")
        assert ended["at"] <= claimed["deadline"], "it left by itself, before it was killed"
        assert "did not stop by itself" not in ended["reason"] and not ended["stop_cut"], "it had time to save"
        there = {event["step"] for event in leg.of("published")} | {event["step"] for event in leg.of("missed") if event["kept"]}
        assert leg.newest in there, f"step {leg.newest} was neither published nor kept on the node"
        assert asked["at"] > claimed["at"]
    in_time = [leg.number for leg in found[:-1] if not any(event["kept"] for event in leg.of("missed"))]
    print(f"planned ends whose last checkpoint was published in time: {len(in_time)} of {len(found) - 1}")
    assert in_time, "the request to stop always came too late"
    assert memory.most <= _MOST_MEMORY


def test_a_node_disk_of_one_and_a_half_checkpoints_is_enough_for_every_leg(machine: Machine, ground: Ground, size: int) -> None:
    disk = ground.disk("small-node", round(1.5 * size) + 64_000_000)
    node_disk(machine, disk.folder)
    save = size / rate_of(ground.folder / "node", min(size // 4, 2 * GB))
    limit = round(10 * save + 45)
    print(f"\nsmall node disk: a plain write of {size / GB:g} GB takes {save:.0f} s; legs of {limit} s")
    run = submit(machine, "--time", f"0:{limit}", "--keep", "2", size=size, steps=in_steps(2.2 * limit), every=in_steps(4 * save + 4))
    shown = run.until_over(within=8 * limit + 300)
    found = legs(run.folder, events(run))
    print(legs_text(found))
    print("skipped, by leg:", {leg.number: sorted(leg.skipped) for leg in found})
    finished(shown, run.folder)
    assert len(found) >= 3
    nothing_lost(found)
    for leg in found:
        assert leg.saved, f"leg {leg.number} saved nothing"
        if leg.skipped:
            warnings = [event["text"] for event in leg.of("warned")]
            assert any("skipped a checkpoint" in text and str(disk.folder) in text for text in warnings), warnings
    assert list((disk.folder / "onward-0").glob("*/*/checkpoints/step-*")) == [], "nothing is left there"


def test_a_full_store_is_not_written_to_again_and_again_and_is_used_once_there_is_room(machine: Machine, ground: Ground, size: int) -> None:
    """Two checkpoints fit into it. The third waits until somebody has deleted the first."""
    disk = ground.disk("small-store", round(2.5 * size) + 64_000_000)
    machine.environment["ONWARD_ROOT"] = str(disk.folder / "runs")
    save = size / rate_of(ground.folder / "node", min(size // 4, 2 * GB))
    run = submit(machine, "--time", "2:00:00", "--keep", "2", size=size, steps=100_000, every=in_steps(3 * save + 3))
    run.until(lambda r: [w for w in r["legs"][0]["warnings"] if str(disk.folder) in w], within=30 * save + 180)
    shown, before = run.show(), disk.written
    assert len(shown["checkpoints"]) == 2 and {c["state"] for c in shown["checkpoints"]} == {"published"}
    saved = len(legs(run.folder, events(run))[0].saved[0])
    run.until(lambda _: len(legs(run.folder, events(run))[0].saved[0]) >= saved + 1, within=20 * save + 120)
    vain = disk.written - before
    print(f"\nfull store: {vain / 1e6:.1f} MB written to it while another checkpoint of {size / GB:g} GB was saved on the node")
    assert vain <= size / 20, "what has no room is not written"
    warnings = shown["legs"][0]["warnings"]
    assert any("needs" in text for text in warnings), warnings
    oldest, newest = shown["checkpoints"][0], shown["checkpoints"][-1]["step"]
    shutil.rmtree(run.folder / "results" / "checkpoints" / f"leg-{oldest['leg']:04d}.step-{oldest['step']:08d}")
    run.until(lambda r: r["checkpoints"][-1]["step"] > newest, within=20 * save + 240)
    machine.onward("cancel", run.id)
