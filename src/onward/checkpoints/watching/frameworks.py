"""How known frameworks end a save: each rule looks at the files of one step and says whether that last act has been done.

- Hugging Face's Trainer writes `training_args.bin` with the weights, then optimizer and `rng_state*.pth`, and
  `trainer_state.json` last; older versions write `rng_state*.pth` after it. Several processes write one `rng_state_K.pth` each.
- DeepSpeed's `latest` names the newest complete folder; Megatron's `latest_checkpointed_iteration.txt` its number.
- torch.distributed.checkpoint writes `.metadata` once every rank has written its `.distcp` files.
- Orbax works in a folder called `….orbax-checkpoint-tmp-…` and renames it; where it cannot, it adds `commit_success.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

POINTERS = ("latest", "latest_checkpointed_iteration.txt")

_DEEPSPEED = re.compile(r"/(mp_rank_\d+_model_states|.*optim_states|layer_\d+-model.*)\.pt$")
_MEGATRON = re.compile(r"^iter_\d{7}$")
_ONE_OF_MANY_RNG = re.compile(r"rng_state_(\d+)\.pth$")
_ALONE = re.compile(r"\.(ckpt|keras|weights\.h5)$")
_ORBAX_WORKING = ".orbax-checkpoint-tmp"


class FrameworkVerdict(Enum):
    COMPLETE = auto()
    NOT_YET = auto()
    DOUBTFUL = auto()  # its last act has not been seen, and may not be among its habits
    OVERTAKEN = auto()  # complete once, but what lies beside it speaks of a newer one by now
    NOT_MINE = auto()


@dataclass(frozen=True, kw_only=True)
class StepListing:
    """The files of one step as they lie there."""

    step: int | None
    files: Mapping[str, int]  # name relative to the checkpoint folder → time of the last write, in nanoseconds
    pointers: Mapping[str, str]  # what the files of POINTERS beside it say

    @property
    def tops(self) -> set[str]:
        return {name.split("/")[0] for name in self.files}


Rule = Callable[[StepListing], FrameworkVerdict]


def judge(listing: StepListing) -> FrameworkVerdict:
    """The first rule that knows these files; one that waits outweighs one that is content."""
    verdicts = [rule(listing) for rule in RULES]
    for verdict in (FrameworkVerdict.NOT_YET, FrameworkVerdict.OVERTAKEN, FrameworkVerdict.DOUBTFUL, FrameworkVerdict.COMPLETE):
        if verdict in verdicts:
            return verdict
    return FrameworkVerdict.NOT_MINE


def stands_alone(listing: StepListing) -> bool:
    """A single file that is a whole checkpoint by custom: Lightning's and Keras's."""
    return len(listing.files) == 1 and bool(_ALONE.search(next(iter(listing.files))))


def hugging_face(listing: StepListing) -> FrameworkVerdict:
    folders = {name.rpartition("/")[0] for name in listing.files if name.endswith(("/training_args.bin", "/trainer_state.json"))}
    if not folders:
        return FrameworkVerdict.NOT_MINE
    several = False
    for folder in folders:
        inside = {name.rpartition("/")[2] for name in listing.files if name.startswith(f"{folder}/")}
        ranks = {int(match[1]) for name in inside if (match := _ONE_OF_MANY_RNG.search(name))}
        has_optimizer = any(name.startswith(("optimizer", "scheduler")) for name in inside)
        if "trainer_state.json" not in inside or ranks != set(range(len(ranks))):
            return FrameworkVerdict.NOT_YET
        if has_optimizer and not ranks and "rng_state.pth" not in inside:
            return FrameworkVerdict.NOT_YET
        several = several or bool(ranks)
    return FrameworkVerdict.NOT_MINE if several else FrameworkVerdict.COMPLETE  # how many ranks there are, only earlier saves tell


def deepspeed(listing: StepListing) -> FrameworkVerdict:
    folders = {name.split("/")[0] for name in listing.files if _DEEPSPEED.search(name) and name.count("/") == 1}
    if not folders:
        return FrameworkVerdict.NOT_MINE
    named = listing.pointers.get("latest")
    if named is None:
        return FrameworkVerdict.DOUBTFUL  # save_latest=False exists
    if named in folders:
        return FrameworkVerdict.COMPLETE
    return _pointed_elsewhere(listing.step, named)


def megatron(listing: StepListing) -> FrameworkVerdict:
    if not any(_MEGATRON.match(top) for top in listing.tops):
        return FrameworkVerdict.NOT_MINE
    named = listing.pointers.get("latest_checkpointed_iteration.txt")
    if named is None:
        return FrameworkVerdict.DOUBTFUL
    if named.isdigit() and int(named) == listing.step:
        return FrameworkVerdict.COMPLETE
    return _pointed_elsewhere(listing.step, named)


def torch_distributed(listing: StepListing) -> FrameworkVerdict:
    shards: dict[str, int] = {}
    for name, time in listing.files.items():
        if name.endswith(".distcp"):
            folder = name.rpartition("/")[0]
            shards[folder] = max(time, shards.get(folder, 0))
    if not shards:
        return FrameworkVerdict.NOT_MINE
    for folder, newest in shards.items():
        mark = listing.files.get(f"{folder}/.metadata" if folder else ".metadata")
        if mark is None or mark < newest:
            return FrameworkVerdict.NOT_YET
    alone = len(shards) == 1 and all(name.rpartition("/")[0] in shards for name in listing.files)
    return FrameworkVerdict.COMPLETE if alone else FrameworkVerdict.NOT_MINE


def orbax(listing: StepListing) -> FrameworkVerdict:
    if any(_ORBAX_WORKING in name for name in listing.files):
        return FrameworkVerdict.NOT_YET
    marked = any(name.rpartition("/")[2] in ("_CHECKPOINT_METADATA", "commit_success.txt") for name in listing.files)
    return FrameworkVerdict.COMPLETE if marked else FrameworkVerdict.NOT_MINE


RULES: tuple[Rule, ...] = (hugging_face, deepspeed, megatron, torch_distributed, orbax)


def _pointed_elsewhere(step: int | None, named: str) -> FrameworkVerdict:
    numbers = re.findall(r"\d+", named)
    if not numbers or step is None:
        return FrameworkVerdict.DOUBTFUL
    return FrameworkVerdict.OVERTAKEN if int(numbers[-1]) > step else FrameworkVerdict.NOT_YET
