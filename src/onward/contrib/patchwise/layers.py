"""What a request gives: a page, a mask for each of its layers, and the regions of the page in which the masks are valid."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

OPAQUE = 255
PAGE, REGIONS, BACKGROUND = "Image", "Selected Regions", "Background"
NAMED = {  # input → its model's name; those but the first are of senders from before October 2020
    BACKGROUND: "Background Model",
    "Music Layer": "Music Symbol Model",
    "Staff Layer": "Staff Lines Model",
    "Text": "Text Model",
}
NUMBERED = re.compile(r"rgba PNG - Layer ([0-9]{1,3})\Z")


class InputError(Exception):
    """The training cannot begin, and no other try will change that: a sentence for who sent the request."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    key: str  # short: in metrics and file names
    source: str  # the input it came from
    model: str  # what the answer calls its model
    mask: np.ndarray  # height × width; True: the pixel is of this layer


@dataclass(frozen=True, kw_only=True)
class MaskedPage:
    pixels: np.ndarray  # height × width × (blue, green, red), 0 to 255
    believed: np.ndarray  # height × width; True: the masks say what is there
    layers: tuple[Layer, ...]


def read_request(path: Path) -> dict[str, Path]:
    """Inputs by name, from the file that ONWARD_REQUEST_FILE names. Paths are relative to that file."""
    try:
        found = json.loads(path.read_text())["inputs"]
        return {str(name): path.parent / str(where) for name, where in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f'{path} cannot be read: {error!r}; expected {{"inputs": {{NAME: PATH}}}}') from error


def read_page(inputs: Mapping[str, Path]) -> MaskedPage:
    if PAGE not in inputs:
        raise InputError(f"input {PAGE!r} is missing: the page to learn from")
    pixels = read_pixels(PAGE, inputs[PAGE])
    shape = pixels.shape[:2]
    believed = read_mask(REGIONS, inputs[REGIONS], shape) if REGIONS in inputs else np.ones(shape, bool)
    if not believed.any():
        raise InputError(f"input {REGIONS!r} selects nothing: it has no pixel with alpha 255")
    layers = tuple(_layer(name, path, believed) for name, path in sorted(inputs.items(), key=_order) if name not in (PAGE, REGIONS))
    if not layers:
        raise InputError("found no layer among the inputs, expected 'Background' and 'rgba PNG - Layer 0' to 9, or the older names")
    return MaskedPage(pixels=pixels, believed=believed, layers=layers)


def _layer(name: str, path: Path, believed: np.ndarray) -> Layer:
    number = NUMBERED.match(name)
    if not number and name not in NAMED:
        known = ", ".join(map(repr, (*NAMED, "rgba PNG - Layer N")))
        raise InputError(f"input {name!r} is unknown: expected {known}")
    mask = read_mask(name, path, believed.shape) & believed
    if not mask.any():
        raise InputError(f"input {name!r} is empty: no pixel of the selected regions has alpha 255, so there is nothing to learn")
    model = f"Model {int(number[1])}" if number else NAMED[name]
    return Layer(key=f"layer-{int(number[1])}" if number else name.split()[0].lower(), source=name, model=model, mask=mask)


def _order(entry: tuple[str, Path]) -> tuple[int, str]:
    """Background, then the named ones, then the numbered ones by number: whatever order a message had."""
    name = entry[0]
    number = NUMBERED.match(name)
    return (int(number[1]), name) if number else (list(NAMED).index(name) - len(NAMED) if name in NAMED else 0, name)


def read_pixels(name: str, path: Path) -> np.ndarray:
    pixels: np.ndarray = np.asarray(_opened(name, path).convert("RGB"))
    return pixels[:, :, ::-1]


def read_mask(name: str, path: Path, shape: tuple[int, ...]) -> np.ndarray:
    image = _opened(name, path)
    if image.size != shape[::-1]:
        found, page = (f"{width} × {height}" for width, height in (image.size, shape[::-1]))
        raise InputError(f"input {name!r} has {found} pixels, but the page has {page}: they must have the same size")
    if "A" not in image.getbands() and "transparency" not in image.info:
        raise InputError(f"input {name!r} has no alpha channel ({image.mode}): expected an RGBA image, opaque where the layer is")
    opaque: np.ndarray = np.asarray(image.convert("RGBA"))[:, :, 3] == OPAQUE
    return opaque


def _opened(name: str, path: Path) -> Image.Image:
    try:
        image = Image.open(path)
        image.load()
        return image
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"input {name!r} cannot be read as an image: {error}") from error
