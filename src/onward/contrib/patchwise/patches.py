"""Patches of a page, for one layer: where they lie, and their pixels only as they are needed, or a page would fill a node's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from layers import MaskedPage

BATCH = 16
HELD_OUT = 0.2  # of the patches, to tell how well it goes

Seed = Sequence[int]
Batch = tuple[np.ndarray, np.ndarray, np.ndarray]  # pixels, target, weight


def as_seen(pixels: np.ndarray) -> np.ndarray:
    """Pixels as the network takes them: ink is 1 and paper 0, blue first. Who classifies with the model must do the same."""
    return (np.float32(255) - pixels) / np.float32(255)


@dataclass(frozen=True, kw_only=True)
class Patches:
    """The places are the patches' upper left corners."""

    pixels: np.ndarray
    mask: np.ndarray
    believed: np.ndarray
    height: int
    width: int
    train: np.ndarray
    held_out: np.ndarray

    @property
    def batches(self) -> int:
        """Of one epoch."""
        return -(-len(self.train) // BATCH)

    def order(self, seed: Seed) -> np.ndarray:
        """An epoch's places, shuffled; the first once more where the last batch would not be full."""
        return np.resize(np.random.default_rng(seed).permutation(self.train), (self.batches * BATCH, 2))

    def cut(self, places: np.ndarray) -> Batch:
        rows, columns = places[:, :1] + np.arange(self.height), places[:, 1:] + np.arange(self.width)
        at = rows[:, :, None], columns[:, None, :]
        return as_seen(self.pixels[at]), self.mask[at][..., None].astype(np.float32), self.believed[at].astype(np.float32)

    def held_out_batches(self) -> Iterator[Batch]:
        """All of one size, which spares some backends a compilation; what fills the last one up has no weight."""
        for first in range(0, len(self.held_out), BATCH):
            places = self.held_out[first : first + BATCH]
            pixels, target, weight = self.cut(np.resize(places, (BATCH, 2)))
            weight[len(places) :] = 0
            yield pixels, target, weight


def sample(page: MaskedPage, layer: int, *, most: int, height: int, width: int, seed: Seed) -> Patches:
    """At most `most` patches: half of them have one of the layer's own pixels in them, half one of the others that were selected."""
    random = np.random.default_rng(seed)
    pixels, believed, mask = (_at_least(array, height, width) for array in (page.pixels, page.believed, page.layers[layer].mask))
    own = _some(mask, -(-most // 2), random)
    chosen = np.concatenate([own, _some(believed & ~mask, most - len(own), random)])
    corners = chosen - random.integers(0, (height, width), chosen.shape)  # the pixel is anywhere in its patch
    corners = random.permutation(corners.clip(0, np.subtract(mask.shape, (height, width))))
    held_out = held_out_of(len(corners))
    return Patches(
        pixels=pixels,
        mask=mask,
        believed=believed,
        height=height,
        width=width,
        train=corners[held_out:] if len(corners) > held_out else corners,
        held_out=corners[:held_out],
    )


def held_out_of(samples: int) -> int:
    return min(samples - 1, max(1, round(samples * HELD_OUT)))


def batches_of(samples: int) -> int:
    """Of one epoch, where there are so many samples: at most."""
    return -(-(samples - held_out_of(samples)) // BATCH)


def _some(mask: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """Rows and columns of pixels in it, none of them twice."""
    there = np.flatnonzero(mask)
    chosen = random.choice(there, min(most, len(there)), replace=False)
    return np.stack(np.unravel_index(chosen, mask.shape), axis=1)


def _at_least(array: np.ndarray, height: int, width: int) -> np.ndarray:
    """A page smaller than a patch goes on with nothing that is believed."""
    missing = [(0, max(0, wanted - there)) for wanted, there in zip((height, width), array.shape, strict=False)]
    return np.pad(array, [*missing, *[(0, 0)] * (array.ndim - 2)])
