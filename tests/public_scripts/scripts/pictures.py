"""The two data sets of torchvision that the scripts beside this file read, from the same files on the disk: torchvision's own wheel
needs the large build of PyTorch. Written for this test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset


class MNIST(Dataset):
    def __init__(self, root: str, train: bool = True) -> None:
        raw, name = Path(root, "MNIST", "raw"), "train" if train else "t10k"
        images = np.frombuffer((raw / f"{name}-images-idx3-ubyte").read_bytes(), np.uint8, offset=16)
        labels = np.frombuffer((raw / f"{name}-labels-idx1-ubyte").read_bytes(), np.uint8, offset=8)
        self.images = (torch.tensor(images).reshape(-1, 1, 28, 28).float() / 255 - 0.1307) / 0.3081
        self.labels = torch.tensor(labels).long()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.labels[index]


class ImageFolder(Dataset):
    """A folder for each class; `crop`: points of a side, taken at random while training."""

    def __init__(self, root: str, *, crop: int, random: bool) -> None:
        self.classes = sorted(path.name for path in Path(root).iterdir())
        self.samples = [(path, number) for number, name in enumerate(self.classes) for path in sorted(Path(root, name).iterdir())]
        self.crop, self.random = crop, random

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.samples[index]
        image = torch.tensor(np.asarray(Image.open(path))).permute(2, 0, 1).float() / 255
        room = image.shape[1] - self.crop
        x, y = torch.randint(room, (2,)).tolist() if self.random else (room // 2, room // 2)
        return image[:, y : y + self.crop, x : x + self.crop], label
