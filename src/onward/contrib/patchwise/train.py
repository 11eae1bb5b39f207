"""Learn to tell the layers of a page apart, pixel by pixel: one small network for each layer, from one page and its masks.

In a job of Onward the inputs are those of the request. By hand:

    python pages.py --out page
    python train.py --request page/request.json --epochs 5 --samples 400 --patch-height 64 --patch-width 64

It goes on where it was cut, at the batch, through as many jobs as it takes; and ends as if it had not been.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from layers import InputError, MaskedPage, read_page, read_request
from network import choose_backend, to_train, write_bare
from patches import BATCH, Patches, batches_of, sample
from score import PixelScore
from state import State

import onward

PATIENCE = 3  # epochs without a better network: the layer is done


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    request_file = os.environ.get("ONWARD_REQUEST_FILE")
    parser.add_argument(
        "--request", type=Path, default=request_file, metavar="FILE", help="JSON file with the inputs; gateway jobs have one"
    )
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=PATH", help="an input, such as Image=page.png; more than once"
    )
    parser.add_argument("--epochs", type=int, default=15, help="maximum, per layer")
    parser.add_argument("--samples", type=int, default=10000, help="maximum number of patches per layer")
    parser.add_argument("--patch-height", type=int, default=256)
    parser.add_argument("--patch-width", type=int, default=256)
    parser.add_argument("--filters", type=int, default=16, help="size of the network: filters in its first level")
    parser.add_argument("--rate", type=float, default=0.005, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=("hdf5", "keras"), default="hdf5", help="of the models")
    return parser.parse_args(words)


def inputs_of(args: argparse.Namespace) -> dict[str, Path]:
    found = read_request(args.request) if args.request else {}
    for text in args.input:
        name, equals, path = text.partition("=")
        if not equals:
            raise InputError(f"--input {text!r}: expected NAME=PATH")
        found[name] = Path(path)
    return found


class PatchwiseTraining:
    def __init__(self, args: argparse.Namespace, page: MaskedPage, run: onward.Run, done: Path) -> None:
        self.args = args
        self.page = page
        self.run = run
        self.saved = run.resume()
        self.state = State.load(self.saved, done=done) if self.saved else State(done=done)
        self.shape = {"height": args.patch_height, "width": args.patch_width, "filters": args.filters}

    @property
    def step(self) -> int:
        """Batches before the next one. Those that a layer did without, as more would not help, count: so this tells how far it is."""
        whole: int = batches_of(self.args.samples)
        epochs: int = self.args.epochs
        return (self.state.layer * epochs + self.state.epoch) * whole + self.state.batch

    def all_layers(self) -> bool:
        """Whether it came to the end: no, when it was asked to stop."""
        self.hand_over()
        while self.state.layer < len(self.page.layers):
            if not self.one_layer():
                return False
        return True

    def one_layer(self) -> bool:
        state, args, number = self.state, self.args, self.state.layer
        layer = self.page.layers[number]
        size = {"height": args.patch_height, "width": args.patch_width}
        patches = sample(self.page, number, most=args.samples, seed=(args.seed, number), **size)
        if state.model is None:
            state.model = to_train(**self.shape, rate=args.rate, seed=(args.seed, number))
        print(f"{layer.source}: {len(patches.train)} patches to learn from, {len(patches.held_out)} held out", flush=True)
        while state.epoch < args.epochs and state.waited < PATIENCE:
            if not self.one_epoch(patches):
                return False
        write_bare(state.done / f"{layer.model}.{args.format}", state.weights, **self.shape)
        print(f"{layer.source}: {layer.model} is the best of {state.epoch} epochs, accuracy {state.accuracy:.4f}", flush=True)
        state.next_layer()
        self.hand_over()
        self.save()
        return True

    def one_epoch(self, patches: Patches) -> bool:
        state, key = self.state, self.page.layers[self.state.layer].key
        order = patches.order((self.args.seed, state.layer, state.epoch))
        while state.batch < patches.batches:
            pixels, target, weight = patches.cut(order[state.batch * BATCH :][:BATCH])
            state.model.reset_metrics()
            loss = state.model.train_on_batch(pixels, target, sample_weight=weight)
            self.run.log({f"{key}.loss": float(loss)}, step=self.step)
            state.batch += 1
            if self.run.should_stop():
                self.save()
                return False
            if self.run.should_checkpoint():
                self.save()
        score = PixelScore()
        for pixels, target, weight in patches.held_out_batches():
            score.add(np.asarray(state.model.predict_on_batch(pixels))[..., 0], target[..., 0], weight)
        last = self.step - 1
        state.after_epoch(score.accuracy, score.loss)
        metrics = {"val_loss": score.loss, "val_accuracy": score.accuracy, "val_overlap": score.overlap}
        self.run.log({f"{key}.{name}": value for name, value in metrics.items()}, step=last)
        print(f"  epoch {state.epoch}: " + ", ".join(f"{name} {value:.4f}" for name, value in metrics.items()), flush=True)
        return True

    def hand_over(self) -> None:
        """Models of finished layers become the run's artifacts: each as soon as it is there, and again in a later leg."""
        for path in sorted(self.state.done.iterdir()):
            self.run.save(path, base_path=self.state.done)

    def save(self) -> None:
        with self.run.checkpoint(self.step - 1) as folder:
            self.state.save(folder)


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        page = read_page(inputs_of(args))
        backend = choose_backend()
    except InputError as error:
        print(f"patchwise: {error}", file=sys.stderr)
        return 1
    params = {name: value for name, value in vars(args).items() if name not in ("request", "input")}
    total = len(page.layers) * args.epochs * batches_of(args.samples)
    run = onward.init(name="patchwise", total_steps=total, params={**params, "backend": backend})
    with tempfile.TemporaryDirectory(prefix="patchwise-") as done:
        training = PatchwiseTraining(args, page, run, Path(done))
        if not training.all_layers():
            print("stopping; the next leg continues", flush=True)
            return 75
        run.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
