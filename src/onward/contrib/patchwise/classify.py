"""Use a model that train.py made: which pixels of a page are of its layer.

    python classify.py --model "Model 0.hdf5" --image page.png --out found.png [--truth notes.png] [--regions regions.png]

With the layer's true mask it also says how good that is: in the selected regions, where there are some.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from layers import PAGE, InputError, read_mask, read_pixels
from network import choose_backend
from patches import BATCH, as_seen
from PIL import Image
from score import PixelScore


def chances(model: Any, pixels: np.ndarray) -> np.ndarray:
    """For each pixel, from patches that lie side by side; the last ones reach back over those before."""
    height, width = model.input_shape[1:3]
    below, right = (max(0, wanted - there) for wanted, there in zip((height, width), pixels.shape, strict=False))
    seen = as_seen(np.pad(pixels, ((0, below), (0, right), (0, 0)), mode="edge"))
    places = [(row, column) for row in _begins(seen.shape[0], height) for column in _begins(seen.shape[1], width)]
    found = np.zeros(seen.shape[:2], np.float32)
    for first in range(0, len(places), BATCH):
        some = places[first : first + BATCH]
        patches = np.stack([seen[row : row + height, column : column + width] for row, column in some])
        for (row, column), chance in zip(some, np.asarray(model.predict_on_batch(patches)), strict=True):
            found[row : row + height, column : column + width] = chance[..., 0]
    return found[: pixels.shape[0], : pixels.shape[1]]


def _begins(there: int, size: int) -> list[int]:
    return sorted({*range(0, there - size, size), there - size})


def _loaded(path: Path) -> Any:
    import keras

    try:
        return keras.saving.load_model(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be loaded as a model: {error}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--image", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="write the result as an RGBA mask")
    parser.add_argument("--truth", type=Path, help="RGBA mask to compare with")
    parser.add_argument("--regions", type=Path, help="RGBA mask: where to compare")
    args = parser.parse_args()
    try:
        choose_backend()
        pixels = read_pixels(PAGE, args.image)
        truth = read_mask("--truth", args.truth, pixels.shape[:2]) if args.truth else None
        believed = read_mask("--regions", args.regions, pixels.shape[:2]) if args.regions else np.ones(pixels.shape[:2], bool)
        model = _loaded(args.model)
    except InputError as error:
        print(f"patchwise: {error}", file=sys.stderr)
        return 1
    chance = chances(model, pixels)
    if args.out:
        Image.fromarray(np.where(chance[..., None] > 0.5, np.array([0, 0, 0, 255]), 0).astype(np.uint8)).save(args.out)
    if truth is not None:
        score = PixelScore()
        score.add(chance, truth.astype(np.float32), believed.astype(np.float32))
        print(f"accuracy {score.accuracy:.4f}, overlap {score.overlap:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
