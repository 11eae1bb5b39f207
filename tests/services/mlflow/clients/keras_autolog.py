"""Keras with mlflow.keras.autolog(): parameters, metrics and the model, by themselves."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import mlflow
import numpy as np

mlflow.set_experiment("keras")
mlflow.keras.autolog()
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"])
model.fit(np.random.rand(32, 4), np.random.rand(32), epochs=3, batch_size=8, validation_split=0.25, verbose=0)
