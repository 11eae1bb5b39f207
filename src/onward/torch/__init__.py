"""Checkpoints of PyTorch trainings: saved in the background, with everything that a resumed training needs to continue exactly.

    from onward.torch import Checkpointer, ResumableSampler, capture, restore

    checkpoints = Checkpointer()
    state = checkpoints.load()
    if state:
        restore(state, model=model, optimizer=optimizer, sampler=sampler)
    ...
    checkpoints.save(step, capture(model=model, optimizer=optimizer, sampler=sampler))

Not here: the process that writes the files (checkpoints/save_writer), other frameworks.
"""

from onward.torch.capture import capture, restore
from onward.torch.checkpointer import Checkpointer
from onward.torch.sampler import ResumableSampler
from onward.torch.state_tree import StateNotStorable

__all__ = ["Checkpointer", "ResumableSampler", "StateNotStorable", "capture", "restore"]
