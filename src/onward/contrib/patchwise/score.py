"""How well a layer's network does on patches it has not learnt from, counted pixel by pixel where the masks are believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_LEAST = 1e-7  # smallest probability, so that its logarithm is finite


@dataclass(kw_only=True)
class PixelScore:
    pixels: float = 0.0
    right: float = 0.0
    both: float = 0.0  # of the layer, and found
    either: float = 0.0
    surprise: float = 0.0

    def add(self, chance: np.ndarray, target: np.ndarray, weight: np.ndarray) -> None:
        """Arrays of one shape: what the network says, what is so (0 or 1), and whether it counts (0 or 1)."""
        found, true = chance > 0.5, target > 0.5
        self.pixels += float(weight.sum())
        self.right += float(weight[found == true].sum())
        self.both += float(weight[found & true].sum())
        self.either += float(weight[found | true].sum())
        likely = np.where(true, chance, 1 - chance).astype(np.float64)
        self.surprise -= float((weight * np.log(likely.clip(_LEAST))).sum())

    @property
    def accuracy(self) -> float:
        return self.right / self.pixels if self.pixels else 0.0

    @property
    def overlap(self) -> float:
        """Intersection over union. Of a layer that is a hundredth of the page, accuracy is 0.99 for nothing; this is 0."""
        return self.both / self.either if self.either else 1.0

    @property
    def loss(self) -> float:
        return self.surprise / self.pixels if self.pixels else 0.0
