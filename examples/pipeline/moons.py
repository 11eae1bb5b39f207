"""Two half moons, a little noisy: points to tell apart, the same for the same seed."""

from __future__ import annotations

import math
import random

Point = tuple[float, float, int]


def moons(count: int, *, seed: int, noise: float = 0.1) -> list[Point]:
    chance = random.Random(seed)
    points: list[Point] = []
    for number in range(count):
        angle, upper = chance.random() * math.pi, number % 2 == 0
        x, y = (math.cos(angle), math.sin(angle)) if upper else (1 - math.cos(angle), 0.5 - math.sin(angle))
        points.append((x + chance.gauss(0, noise), y + chance.gauss(0, noise), int(upper)))
    return points


def features(x: float, y: float) -> list[float]:
    """Powers of both, so that a line through them can follow a curve."""
    return [x**i * y**j for i in range(4) for j in range(4 - i)]


def score(weights: list[float], x: float, y: float) -> float:
    """Above zero: the upper moon."""
    return sum(w * f for w, f in zip(weights, features(x, y), strict=True))
