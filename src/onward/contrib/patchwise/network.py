"""The network of one layer: a small encoder-decoder that says for each pixel of a patch how likely it belongs to the layer."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from layers import InputError

BACKENDS = ("tensorflow", "torch", "jax")
HALVINGS = 3

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # else threads that wait spin, and hold up all others of a shared node
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def choose_backend() -> str:
    """The one that KERAS_BACKEND names, else the first that is installed. Keras reads the variable as it is imported."""
    if not importlib.util.find_spec("keras"):
        raise InputError("Keras is not installed in this environment: install keras, and TensorFlow, PyTorch or JAX")
    logging.getLogger("absl").setLevel(logging.ERROR)  # Keras's advice on formats, which would be the end of every log
    if not os.environ.get("KERAS_BACKEND"):
        installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
        if not installed:
            raise InputError("Keras needs TensorFlow, PyTorch or JAX, but this environment has none of them: install one")
        os.environ["KERAS_BACKEND"] = installed[0]
    return os.environ["KERAS_BACKEND"]


def build(height: int, width: int, *, filters: int) -> Any:
    """Of Keras's own layers alone, so that whoever gets the model can load it without this file. All have names, or files would differ."""
    from keras import Input, Model, layers

    def convolved(x: Any, name: str, depth: int) -> Any:
        x = layers.Conv2D(filters << depth, 3, padding="same", use_bias=False, kernel_initializer="he_normal", name=name)(x)
        x = layers.BatchNormalization(momentum=0.9, name=f"{name}_norm")(
            x
        )  # without it, small layers stay at "no pixel is" for many epochs
        return layers.Activation("relu", name=f"{name}_relu")(x)

    below, right = -height % 2**HALVINGS, -width % 2**HALVINGS  # what cannot be halved so often is padded, and cut off again
    inputs = Input((height, width, 3), name="page")
    x = layers.ZeroPadding2D(((0, below), (0, right)), name="pad")(inputs)
    beside = []
    for depth in range(HALVINGS):
        x = convolved(x, f"down_{depth}", depth)
        beside.append(x)
        x = layers.MaxPooling2D(name=f"halve_{depth}")(x)
    x = convolved(x, "middle", HALVINGS)
    for depth in reversed(range(HALVINGS)):
        x = layers.UpSampling2D(name=f"double_{depth}")(x)
        x = layers.Concatenate(name=f"join_{depth}")([x, beside[depth]])
        x = convolved(x, f"up_{depth}", depth)
    x = layers.Conv2D(1, 1, activation="sigmoid", name="chance")(x)
    return Model(inputs, layers.Cropping2D(((0, below), (0, right)), name="cut")(x), name="patchwise")


def to_train(height: int, width: int, *, filters: int, rate: float, seed: Sequence[int]) -> Any:
    """The same weights for the same seed: with no other chance in it, a training that is cut ends as one that is not."""
    import keras

    keras.utils.set_random_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
    model = build(height, width, filters=filters)
    model.compile(optimizer=keras.optimizers.Adam(rate), loss="binary_crossentropy")
    return model


def write_bare(path: Path, weights: Sequence[np.ndarray], *, height: int, width: int, filters: int) -> None:
    """A model as it is handed out: without the optimiser, which is two thirds of a file. HDF5 or Keras's own, by the name."""
    model = build(height, width, filters=filters)
    model.set_weights(weights)
    model.save(path)
