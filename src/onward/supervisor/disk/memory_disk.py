"""A node without a disk: what is saved there is held in memory, and the job pays for it."""

from __future__ import annotations

from onward.model import events as ev
from onward.model.quantity import format_bytes
from onward.rundir.journal import read_run
from onward.rundir.layout import LegLocal
from onward.supervisor.leg.context import LegContext

_MIB = 1 << 20
_BEGINS = "checkpoints are saved to memory on these nodes"


def warn_of_memory_disk(context: LegContext, local: LegLocal, size: int | None) -> None:
    """Once in a run, and once more when the size of a checkpoint is known."""
    run = read_run(context.dir)
    earlier = [words for leg in run.legs.values() for words in leg.warnings if words.startswith(_BEGINS)]
    if len(earlier) > (size is not None):
        return
    text = memory_words(str(local.path), size, mem=run.resources.mem)
    context.journal.write(ev.Warned(leg=context.leg, at=context.clock.now(), text=text))


def memory_words(folder: str, size: int | None, *, mem: int | None) -> str:
    """`mem`: MiB that the job asked for."""
    each = f"a checkpoint takes {format_bytes(size)}" if size is not None else "each takes its size"
    whole = f" of the job's {format_bytes(mem * _MIB)}" if mem else " of the job's memory"
    advice = "name a disk with local-disk in the cluster's profile, or ask for that much more mem"
    return f"{_BEGINS} ({folder} is a tmpfs): {each}{whole}; {advice}"
