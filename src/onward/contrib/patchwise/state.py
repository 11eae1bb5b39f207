"""Where a training stands: all that its next batch depends on, as it lies in a checkpoint."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_MODEL, _BEST, _STATE, _DONE = "model.keras", "best.npz", "state.json", "done"


@dataclass(kw_only=True)
class State:
    done: Path  # folder of the models that are finished
    layer: int = 0
    epoch: int = 0
    batch: int = 0  # of the epoch: the next one
    accuracy: float = -1.0  # of the best epoch
    loss: float = 0.0
    waited: int = 0  # epochs since then
    model: Any = None  # with its optimiser; None: the layer has not begun
    weights: list[np.ndarray] = field(default_factory=list)  # of the best

    def after_epoch(self, accuracy: float, loss: float) -> None:
        """Of two that are equally accurate, the surer is better: a network that finds nothing yet may still be learning."""
        self.epoch, self.batch = self.epoch + 1, 0
        if (accuracy, -loss) > (self.accuracy, -self.loss):
            self.accuracy, self.loss, self.waited = accuracy, loss, 0
            self.weights = [np.array(one) for one in self.model.get_weights()]
        else:
            self.waited += 1

    def next_layer(self) -> None:
        self.layer += 1
        self.epoch = self.batch = self.waited = 0
        self.accuracy, self.loss, self.model, self.weights = -1.0, 0.0, None, []

    def save(self, folder: Path) -> None:
        if self.model is not None:
            self.model.save(folder / _MODEL)
        np.savez(folder / _BEST, *self.weights)
        shutil.copytree(self.done, folder / _DONE)
        numbers = {key: value for key, value in vars(self).items() if isinstance(value, int | float)}
        (folder / _STATE).write_text(json.dumps(numbers))

    @classmethod
    def load(cls, folder: Path, *, done: Path) -> State:
        import keras

        if (folder / _DONE).exists():  # a checkpoint keeps no empty folder
            shutil.copytree(folder / _DONE, done, dirs_exist_ok=True)
        with np.load(folder / _BEST) as best:
            weights = [best[f"arr_{n}"] for n in range(len(best.files))]
        model = keras.saving.load_model(folder / _MODEL) if (folder / _MODEL).exists() else None
        return cls(done=done, model=model, weights=weights, **json.loads((folder / _STATE).read_text()))
