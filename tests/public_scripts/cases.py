"""The scripts, how each is submitted, and by which of its own words it is seen how far a leg was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
ADDED = "# onward"  # ends each line that was added or changed for Onward


@dataclass(frozen=True, kw_only=True)
class Case:
    script: str
    needs: tuple[str, ...]  # modules of the Python that runs it
    data: tuple[tuple[str, str], ...] = ()  # format of `data.py`, and folder beside or in the project
    command: tuple[str, ...]  # after the interpreter and the script
    total: int  # units of work, at 30 seconds a leg
    unit: str  # one unit that begins or is done, in what it prints
    word: str  # what a unit is
    redone: int  # units at most that a cut costs, once there was a save
    metric: str = ""  # on the page
    every: int = 1  # unit with a value of it; 0: it has steps of its own
    kill: str = "training"  # or supervisor: what gets the kill -9
    flags: tuple[str, ...] = ()
    quick: bool = False  # part of `make test`

    @property
    def lines(self) -> int:
        return sum(line.rstrip().endswith(ADDED) for line in (SCRIPTS / self.script).read_text().splitlines())


CASES = (
    Case(
        script="mnist.py",
        quick=True,
        needs=("torch", "PIL"),
        data=(("mnist", "../data"),),
        command=("--epochs", "{total}", "--save-model"),
        total=30,
        unit=r"^Train Epoch: (\d+) ",
        word="epoch",
        redone=4,
        metric="test/loss",
    ),
    Case(
        script="imagenet.py",
        needs=("torch", "PIL"),
        data=(("imagenet", "../imagenet"),),
        command=("../imagenet", "--epochs", "{total}", "-b", "32", "-j", "1", "--resume", "checkpoint.pth.tar"),
        total=25,
        unit=r"^Epoch: \[(\d+)\]",
        word="epoch",
        redone=2,
        kill="supervisor",
    ),
    Case(
        script="run_clm.py",
        needs=("transformers", "datasets", "accelerate", "tensorboard"),
        data=(("text", "../text"),),
        command=(
            *("--config_name", "../text/model", "--tokenizer_name", "../text/model"),
            *("--train_file", "../text/train.txt", "--validation_file", "../text/valid.txt", "--do_train", "--do_eval"),
            *("--max_steps", "{total}", "--save_steps", "10", "--logging_steps", "5", "--report_to", "tensorboard"),
            *("--per_device_train_batch_size", "8", "--output_dir", "{{checkpoints.write}}"),
            "{{?checkpoints.read --resume_from_checkpoint {{checkpoints.newest}}}}",
        ),
        total=200,
        unit=r"[ |]([1-9]\d*)/{total} \[",
        word="step",
        redone=12,
        metric="train/loss",
        every=5,
        kill="supervisor",
    ),
    Case(
        script="autoencoder.py",
        needs=("lightning", "jsonargparse", "tensorboard"),
        data=(("mnist", "../data"),),
        command=("--trainer.max_epochs", "{total}", "--trainer.accelerator", "cpu", "--trainer.log_every_n_steps", "10"),
        total=30,
        unit=r"^Epoch (\d+):",
        word="epoch",
        redone=3,
        metric="train_loss",
        every=0,
    ),
    Case(
        script="mnist_convnet.py",
        needs=("keras", "torch"),
        data=(("mnist", "../data"),),
        command=(),
        flags=("--env", "KERAS_BACKEND=torch", "--env", "EPOCHS={total}"),
        total=25,
        unit=r"^Epoch (\d+)/",
        word="epoch",
        redone=2,
        metric="loss",
    ),
    Case(
        script="xgboost_grid.py",
        needs=("xgboost", "sklearn"),
        command=(),
        flags=("--env", "SECONDS={pace}"),
        total=24,
        unit=r"^combination (\d+) of \d+:",
        word="combination",
        redone=1,
        kill="supervisor",
    ),
    Case(
        script="simulate.sh",
        quick=True,
        needs=(),
        command=("{total}",),
        total=300,
        unit=r"^step (\d+) ",
        word="step",
        redone=1,
    ),
)
