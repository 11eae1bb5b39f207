"""Whether the files of a save are whole: pure rules over what was seen, of this save and of those before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from onward.checkpoints.watching import file_names
from onward.checkpoints.watching.frameworks import FrameworkVerdict, StepListing, judge, stands_alone
from onward.checkpoints.watching.save_pattern import LONGEST, SavePattern
from onward.checkpoints.watching.save_rounds import SaveRounds


@dataclass(frozen=True, kw_only=True)
class Completeness:
    ready: bool
    lacks: str = ""  # where the training has gone and this is no whole checkpoint: what is missing


_WAIT = Completeness(ready=False)
_READY = Completeness(ready=True)


@dataclass(frozen=True, kw_only=True)
class SaveObservation:
    """What is seen of one save now."""

    listing: StepListing
    age: float  # seconds since its newest write
    closed: bool  # the training has gone: nothing more comes
    part: bool  # on another node than the first: the frameworks' last act is done elsewhere
    busy: Callable[[], str]  # a file that is open, or cut off: asked last, since it costs most
    killed: bool = False  # the training has gone, but not by itself: it may have been in the middle of this save
    proven: Callable[[], bool] = lambda: False  # each file's format says that it is whole
    overdue: bool = False  # nothing was complete for a while: one that is proven is not waited for, the next save may replace it


def numbered(sight: SaveObservation, kinds: Counter[str], habits: SavePattern, *, newer: bool, rewritten: bool) -> Completeness:
    """Files with a number in their names. `newer`: a later save has begun; `rewritten`: files that were published have changed."""
    verdict = FrameworkVerdict.NOT_MINE if sight.part else judge(sight.listing)
    lacking = [*habits.lacking(kinds), *(name for name in sight.listing.files if file_names.half_written(name))]
    if verdict is FrameworkVerdict.OVERTAKEN:
        return _WAIT
    if verdict is FrameworkVerdict.NOT_YET:
        return _no(sight, "its framework had not finished writing it")
    if verdict is FrameworkVerdict.COMPLETE and not rewritten:
        quiet = habits.base
    elif verdict is FrameworkVerdict.DOUBTFUL or lacking:
        if sight.closed and not newer and lacking and not habits.seen_before(kinds):
            return _no(sight, f"{_some(lacking, sight.listing.step)}, which earlier checkpoints have, had not been written")
        if sight.closed and verdict is FrameworkVerdict.DOUBTFUL and not habits.known:
            return _no(sight, "its framework had not named it as the latest")
        quiet = habits.base if newer else _patience(sight, habits)
    elif newer:
        quiet = habits.base
    elif rewritten or not (habits.known or stands_alone(sight.listing)):
        quiet = habits.unsure_quiet
    else:
        quiet = habits.quiet
    return _if_still(sight, quiet, habits)


def unnumbered(sight: SaveObservation, rounds: SaveRounds, habits: SavePattern) -> Completeness:
    """Files with fixed names, written again by each save."""
    if not sight.part and judge(sight.listing) is FrameworkVerdict.NOT_YET:
        return _no(sight, "its framework had not finished writing it")
    lacking = rounds.lacking()
    if not sight.closed and not rounds.known and all(file_names.is_setting(name) for name in sight.listing.files):
        return _WAIT  # settings that were written at the start; a training that keeps its state so writes it again
    if continues(rounds):
        quiet = habits.quiet
    elif lacking:
        if sight.closed and not rounds.seen_before() and (sight.killed or not rounds.only_resumed):
            return _no(sight, f"{_some(lacking)} had not been written again, as earlier saves did")
        quiet = _patience(sight, habits)
    elif not rounds.known and not stands_alone(sight.listing):
        quiet = habits.unsure_quiet
    else:
        quiet = habits.unsure_quiet if rounds.may_lack() else habits.base
    return _if_still(sight, quiet, habits)


def continues(rounds: SaveRounds) -> bool:
    """What was written since the last round was published belongs to that round: it makes a later version of it."""
    return rounds.pause is not None and rounds.pause <= LONGEST


def _patience(sight: SaveObservation, habits: SavePattern) -> float:
    """For what may still be written. After a kill nothing is, and as long a rest as that of an unknown save says that it was over."""
    return habits.unsure_quiet if sight.killed else LONGEST


def _if_still(sight: SaveObservation, quiet: float, habits: SavePattern) -> Completeness:
    all_there = quiet < habits.unsure_quiet
    if sight.killed and sight.age < quiet and not (all_there and sight.proven()):
        return _no(sight, "the training was killed or failed while it was being written, or right after")
    if not sight.closed and sight.age < quiet and not (sight.overdue and quiet <= habits.base and sight.proven()):
        return _WAIT
    busy = sight.busy()
    return _no(sight, f"{busy} is not complete") if busy else _READY


def _no(sight: SaveObservation, why: str) -> Completeness:
    return Completeness(ready=False, lacks=why if sight.closed else "")


def _some(files: list[str], step: int | None = None) -> str:
    """`#` in a kind of file stands for its number."""
    first = files[0].replace("#", str(step)) if files[0].count("#") == 1 else files[0].replace("#", "*")
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"
