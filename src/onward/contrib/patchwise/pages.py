"""Make pages that look a little like a manuscript of chant, with the masks a person would have drawn: for tests and the example.

    python pages.py --out page --seed 1

writes the page, an RGBA mask for each layer (opaque where the layer is), and `request.json`, which train.py takes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

NOTES, STAFF, TEXT = "notes", "staff", "text"
LAYERS = (NOTES, STAFF, TEXT)
INKS = {NOTES: (40, 32, 28), STAFF: (164, 60, 48), TEXT: (64, 44, 30)}
NAMES = {  # inputs as senders of 2020-10 and later call them, and as those before did
    2: {NOTES: "rgba PNG - Layer 0", STAFF: "rgba PNG - Layer 1", TEXT: "rgba PNG - Layer 2"},
    1: {NOTES: "Music Layer", STAFF: "Staff Layer", TEXT: "Text"},
}
SYLLABLES = (
    "al",
    "le",
    "lu",
    "ia",
    "ky",
    "ri",
    "e",
    "i",
    "son",
    "glo",
    "a",
    "sanc",
    "tus",
    "ag",
    "nus",
    "de",
    "be",
    "ne",
    "dic",
    "do",
    "mi",
)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Each layer's ink, in grey: 255 where it is thick."""

    width: int
    height: int
    inks: dict[str, Image.Image] = field(default_factory=dict)

    def pen(self, layer: str) -> ImageDraw.ImageDraw:
        image = self.inks.setdefault(layer, Image.new("L", (self.width, self.height)))
        return ImageDraw.Draw(image)


def draw(*, width: int = 320, height: int = 256, seed: int = 1) -> dict[str, Image.Image]:
    """`page` in RGB, and masks in RGBA: each layer, `background` and `regions`."""
    random = np.random.default_rng(seed)
    drawing = Drawing(width=width, height=height)
    for layer in LAYERS:
        drawing.pen(layer)
    gap = 6
    for top in range(14, height - 8 * gap, 10 * gap):
        _staff(drawing, random, top, gap)
        _notes(drawing, random, top, gap)
        _text(drawing, random, top + 5 * gap, 2 * gap)
    return _inked(drawing, random)


def _staff(drawing: Drawing, random: np.random.Generator, top: int, gap: int) -> None:
    pen, lean = drawing.pen(STAFF), random.uniform(-2, 2)
    for line in range(4):
        y = top + line * gap + random.uniform(-0.5, 0.5)
        pen.line([(8, y), (drawing.width - 8, y + lean)], fill=255, width=1)


def _notes(drawing: Drawing, random: np.random.Generator, top: int, gap: int) -> None:
    pen, x = drawing.pen(NOTES), 12.0
    while x < drawing.width - 20:
        begin, size = int(random.integers(-1, 7)), gap - 1
        y = top + begin * gap / 2
        pen.rectangle([x, y - size / 2, x + size, y + size / 2], fill=255)
        if random.random() < 0.3:
            pen.line([(x + size, y), (x + size, y + 2.5 * gap)], fill=255, width=1)
        x += random.uniform(1.6, 4) * gap


def _text(drawing: Drawing, random: np.random.Generator, top: int, size: int) -> None:
    pen, x, font = drawing.pen(TEXT), 12.0, ImageFont.load_default(size)
    while x < drawing.width - 30:
        word = str(random.choice(SYLLABLES))
        pen.text((x, top), word, fill=255, font=font)
        x += pen.textlength(word, font=font) + random.uniform(0.3, 1.2) * size


def _inked(drawing: Drawing, random: np.random.Generator) -> dict[str, Image.Image]:
    """Ink on stained paper. A pixel belongs to the layer whose ink is uppermost: notes lie over the staff."""
    shape = (drawing.height, drawing.width)
    stains = Image.fromarray(random.integers(0, 256, (shape[0] // 16 + 1, shape[1] // 16 + 1), np.uint8)).resize(
        shape[::-1], Image.Resampling.BICUBIC
    )
    page = np.array((222, 205, 170)) + (np.asarray(stains, float)[..., None] - 128) * 0.12
    free = np.ones(shape, bool)
    masks: dict[str, Image.Image] = {}
    for layer in (STAFF, TEXT, NOTES):
        ink = np.asarray(drawing.inks[layer], float)[..., None] / 255 * random.uniform(0.75, 0.95)
        page = page * (1 - ink) + np.array(INKS[layer]) * ink
    page += random.normal(0, 5, (*shape, 3))
    for layer in LAYERS:
        there = (np.asarray(drawing.inks[layer]) > 96) & free
        free &= ~there
        masks[layer] = _mask(there, INKS[layer])
    regions = np.zeros(shape, bool)
    regions[4:-4, 4:-4] = True
    masks["background"] = _mask(free & regions, (255, 255, 255))
    masks["regions"] = _mask(regions, (0, 0, 255))
    soft = Image.fromarray(page.clip(0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.4))
    return {"page": soft, **masks}


def _mask(there: np.ndarray, colour: Sequence[int]) -> Image.Image:
    return Image.fromarray(np.where(there[..., None], np.array([*colour, 255]), 0).astype(np.uint8))


def write(folder: Path, images: dict[str, Image.Image], *, generation: int = 2, without: Sequence[str] = ()) -> dict[str, Path]:
    """PNG files and `request.json`; returns inputs by name. `without`: layers to leave out."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {"page": "Image", "background": "Background", "regions": "Selected Regions", **NAMES[generation]}
    inputs: dict[str, Path] = {}
    for key, image in images.items():
        if key not in without:
            inputs[names[key]] = folder / f"{key}.png"
            image.save(folder / f"{key}.png")
    (folder / "request.json").write_text(json.dumps({"inputs": {name: path.name for name, path in inputs.items()}}, indent=1))
    return inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--height", type=int, default=256)
    parser.add_argument("--generation", type=int, choices=(1, 2), default=2, help="names of the inputs: 1 as before October 2020")
    parser.add_argument("--without", action="append", default=[], choices=LAYERS, help="a layer to leave out")
    args = parser.parse_args()
    write(args.out, draw(width=args.width, height=args.height, seed=args.seed), generation=args.generation, without=args.without)


if __name__ == "__main__":
    main()
