"""An equivalent of the shape of keras-io's examples/vision/mnist_convnet.py, written for this test. It reads its data from a file
beside the project, since the original fetches it; `EPOCHS` stands for its constant.

The lines that were added for Onward end in `# onward`.
"""

import os
import time

import keras
import numpy as np
from keras import layers

import onward  # onward

num_classes = 10
input_shape = (28, 28, 1)

with np.load("../data/mnist.npz") as data:
    (x_train, y_train), (x_test, y_test) = (data["x_train"], data["y_train"]), (data["x_test"], data["y_test"])
x_train = np.expand_dims(x_train.astype("float32") / 255, -1)
x_test = np.expand_dims(x_test.astype("float32") / 255, -1)
print("x_train shape:", x_train.shape)
print(x_train.shape[0], "train samples")
print(x_test.shape[0], "test samples")
y_train = keras.utils.to_categorical(y_train, num_classes)
y_test = keras.utils.to_categorical(y_test, num_classes)

model = keras.Sequential(
    [
        keras.Input(shape=input_shape),
        layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Conv2D(64, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(num_classes, activation="softmax"),
    ]
)
model.summary()

batch_size = 128
epochs = int(os.environ.get("EPOCHS", 15))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
slow = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: time.sleep(1.0))  # a larger model
first = int(os.environ.get("ONWARD_RESUME_STEP", 0))  # onward
if path := os.environ.get("ONWARD_RESUME_NEWEST"):  # onward
    model = keras.models.load_model(path)  # onward
save = keras.callbacks.ModelCheckpoint(os.environ["ONWARD_CHECKPOINT_DIR"] + "/model_{epoch}.keras")  # onward
log = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: onward.log(logs, step=epoch + 1))  # onward
more = {"initial_epoch": first, "callbacks": [slow, save, log]}  # onward
model.fit(x_train, y_train, batch_size=batch_size, epochs=epochs, validation_split=0.1, verbose=2, **more)  # onward

score = model.evaluate(x_test, y_test, verbose=0)
print("Test loss:", score[0])
print("Test accuracy:", score[1])
