"""A training that saves by itself after each epoch, as Grid Engine chains want it. Python alone, so that it runs anywhere.

The checkpoint has the epoch, the model's state and the optimizer's; it is written beside and then put in place, so that
a job that is killed while it saves leaves the one before. Started again, the training goes on from there.
"""

import json
import os
import time

EPOCHS = 60
pause = float(os.environ.get("EPOCH_SECONDS", "0"))  # makes a small training long
checkpoint_directory = "checkpoints"
checkpoint_file = f"{checkpoint_directory}/checkpoint.json"
os.makedirs(checkpoint_directory, exist_ok=True)

rows = [[((7 * i + 13 * j) % 31) / 31 - 0.5 for j in range(6)] for i in range(200)]
labels = [sum((j - 2) * value for j, value in enumerate(row)) for row in rows]
model_state, optimizer_state, first = [0.0] * 6, [0.0] * 6, 0

if os.path.exists(checkpoint_file):
    with open(checkpoint_file) as file:
        saved = json.load(file)
    model_state, optimizer_state, first = saved["model_state"], saved["optimizer_state"], saved["epoch"] + 1
    print(f"Resuming from epoch {first}", flush=True)

for epoch in range(first, EPOCHS):
    loss = 0.0
    for row, label in zip(rows, labels, strict=True):
        error = sum(w * x for w, x in zip(model_state, row, strict=True)) - label
        optimizer_state = [0.9 * v + error * x for v, x in zip(optimizer_state, row, strict=True)]
        model_state = [w - 0.005 * v for w, v in zip(model_state, optimizer_state, strict=True)]
        loss += error * error
    time.sleep(pause)
    temp_file = f"{checkpoint_directory}/temp.json"
    with open(temp_file, "w") as file:
        json.dump({"epoch": epoch, "model_state": model_state, "optimizer_state": optimizer_state}, file)
    os.replace(temp_file, checkpoint_file)  # Replace old checkpoint only after new one is fully saved
    print(f"Epoch {epoch}, loss {loss / len(rows):.6f}", flush=True)
