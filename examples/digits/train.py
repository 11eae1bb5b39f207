"""Train a small network on scikit-learn's digits, in plain NumPy: the demo's training, and a pattern for your own.

What makes it outlive its jobs is marked (1) to (5). Everything that the next step depends on is in the checkpoint:
weights, momentum, the position in the data and the random generator, so a cut training ends bit-identical to an
unbroken one.
"""

import argparse
import json
import sys
import time

import numpy as np
from sklearn.datasets import load_digits

import onward

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--save-every", type=int, default=50, help="steps between checkpoints")
parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait in each step: makes a small training long")
parser.add_argument("--out", help="write the final weights to this .npz file")
args = parser.parse_args()

images, labels = load_digits(return_X_y=True)
images = (images / 16.0).astype(np.float64)
held_out = slice(1500, None)
steps_per_epoch = 1500 // args.batch
total = args.epochs * steps_per_epoch

run = onward.init(total_steps=total, params=vars(args))  # (1)

rng = np.random.default_rng(args.seed)
weights = {
    "w1": rng.normal(0, 0.1, (64, args.hidden)),
    "b1": np.zeros(args.hidden),
    "w2": rng.normal(0, 0.1, (args.hidden, 10)),
    "b2": np.zeros(10),
}
momentum = {name: np.zeros_like(value) for name, value in weights.items()}
order = np.arange(1500)
first = 0

saved = run.resume()  # (2) the newest good checkpoint, or None
if saved:
    with np.load(saved / "state.npz", allow_pickle=False) as state:
        weights = {name: state[f"weight.{name}"] for name in weights}
        momentum = {name: state[f"momentum.{name}"] for name in momentum}
        order, first = state["order"], int(state["step"]) + 1
        rng.bit_generator.state = json.loads(str(state["rng"]))
    print(f"going on from step {first}", flush=True)


def save(step: int) -> None:
    with run.checkpoint(step) as folder:  # (3) whole or not at all
        np.savez(
            folder / "state.npz",
            step=step,
            order=order,
            rng=json.dumps(rng.bit_generator.state),
            **{f"weight.{name}": value for name, value in weights.items()},
            **{f"momentum.{name}": value for name, value in momentum.items()},
        )


def forward(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden = np.tanh(x @ weights["w1"] + weights["b1"])
    scores = hidden @ weights["w2"] + weights["b2"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


for step in range(first, total):
    if step % steps_per_epoch == 0:
        rng.shuffle(order)
    batch = order[(step % steps_per_epoch) * args.batch :][: args.batch]
    x, y = images[batch], labels[batch]
    hidden, chance = forward(x)
    loss = -np.log(chance[np.arange(len(y)), y] + 1e-12).mean()
    chance[np.arange(len(y)), y] -= 1
    back = (chance @ weights["w2"].T) * (1 - hidden**2)
    gradient = {"w2": hidden.T @ chance, "b2": chance.sum(0), "w1": x.T @ back, "b1": back.sum(0)}
    for name in weights:
        momentum[name] = 0.9 * momentum[name] - args.lr * gradient[name] / len(y)
        weights[name] = weights[name] + momentum[name]
    run.log({"loss": loss}, step=step)  # (4)
    if (step + 1) % steps_per_epoch == 0:
        accuracy = (forward(images[held_out])[1].argmax(1) == labels[held_out]).mean()
        run.log({"val_accuracy": accuracy}, step=step)
        print(f"epoch {(step + 1) // steps_per_epoch}: loss {loss:.4f}, accuracy {accuracy:.4f}", flush=True)
    if args.pause:
        time.sleep(args.pause)
    if run.should_stop():  # (5) the job is about to end: save and leave
        save(step)
        print(f"stopping after step {step}", flush=True)
        sys.exit(75)
    if (step + 1) % args.save_every == 0:
        save(step)

save(total - 1)
if args.out:
    np.savez(args.out, **weights)
run.finish()
