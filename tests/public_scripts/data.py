"""Small data in the formats that public scripts read: `python data.py FOLDER`, with a Python that has numpy and what each format needs."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

TRAIN, TEST = 1000, 200  # pictures


def pictures(count: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of 28 by 28 points; ten classes, each a bar at its own height, and noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count).astype(np.uint8)
    images = random.integers(0, 64, (count, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label + 4 : 2 * label + 7, 4:24] = 220
    return images, labels


def mnist(folder: Path) -> None:
    """As torchvision and Lightning read it (idx files), and as Keras does (npz)."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    arrays: dict[str, Any] = {}
    for name, short, count, seed in (("train", "train", TRAIN, 1), ("t10k", "test", TEST, 2)):
        images, labels = pictures(count, seed=seed)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, 28, 28) + images.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())
        arrays |= {f"x_{short}": images, f"y_{short}": labels}
    np.savez(folder / "mnist.npz", **arrays)


def image_folder(folder: Path) -> None:
    from PIL import Image

    for part, count, seed in (("train", 240, 3), ("val", 60, 4)):
        for number, (image, label) in enumerate(zip(*pictures(count, seed=seed), strict=True)):
            place = folder / part / f"n{label:08d}"
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.stack([image] * 3, axis=-1)).resize((96, 96)).save(place / f"{number}.png")


def text(folder: Path) -> None:
    """Lines of words, a tokenizer that knows them, and the configuration of a small GPT-2."""
    folder.mkdir()
    random = np.random.default_rng(5)
    words = [f"word{number}" for number in range(200)]
    for name, lines in (("train.txt", 4000), ("valid.txt", 100)):
        (folder / name).write_text("".join(" ".join(random.choice(words, 32)) + "\n" for _ in range(lines)))
    model = folder / "model"
    model.mkdir()
    vocabulary = {word: number for number, word in enumerate(["<unk>", "<eos>", *words])}
    tokenizer: dict[str, object] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>"}))
    size = {"n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 128, "vocab_size": len(vocabulary)}
    (model / "config.json").write_text(json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **size}))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    {"mnist": mnist, "imagenet": image_folder, "text": text}[sys.argv[2]](target)
