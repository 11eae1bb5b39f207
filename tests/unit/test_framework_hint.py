"""`onward submit` sees what a script is made with, and says once which two lines make it continue in the next leg."""

from __future__ import annotations

import ast

import pytest

from onward.cli.help_pages import help_topics
from onward.inputs.frameworks import FRAMEWORKS, Framework, framework_of
from tests.sandbox import Sandbox
from tests.unit.test_cli import Onward, onward, sandbox

__all__ = ["onward", "sandbox"]

SCRIPTS = {  # in each the calls that its framework's own first example has
    "a Hugging Face Trainer with command-line options": """
from transformers import HfArgumentParser, Trainer, TrainingArguments
training_args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=model, args=training_args).train()
""",
    "a Hugging Face Trainer": """
import torch
from trl import SFTTrainer
SFTTrainer("model", train_dataset=data).train()
torch.save(model, "last.pt")
""",
    "Lightning": """
import torch, lightning as L
class Model(L.LightningModule): pass
L.Trainer(max_epochs=10).fit(Model(), data)
""",
    "DeepSpeed": "import deepspeed, torch\nengine, *_ = deepspeed.initialize(args=args, model=model)\n",
    "Accelerate": "from accelerate import Accelerator\nimport torch\naccelerator = Accelerator()\ntorch.save(1, 'x')\n",
    "Keras": "import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit(x, y, epochs=10)\n",
    "JAX": "import jax\nimport jax.numpy as jnp\nprint(jax.grad(lambda x: x * x)(1.0))\n",
    "XGBoost": "import xgboost as xgb\nbooster = xgb.train({}, xgb.DMatrix('data'), 10)\n",
    "LightGBM": "import lightgbm as lgb\nbooster = lgb.train({}, lgb.Dataset('data'), 10)\n",
    "plain PyTorch": "def main():\n    import torch\n    torch.save({}, 'checkpoint.pth.tar')\n",
}


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.name)
def test_each_framework_is_seen_in_a_script_and_has_two_lines_and_a_page(framework: Framework) -> None:
    assert framework_of(SCRIPTS[framework.name]) is framework
    head, first, second, more = framework.hint()
    assert framework.name in head and (first.strip(), second.strip()) == framework.lines
    assert framework.page in help_topics() and f"onward help {framework.page};" in more
    for line in framework.lines:
        if "checkpoints." not in line:  # code, with a place for what the script has
            ast.parse(line.replace("=…", "=1").replace("…", "*rest"))


@pytest.mark.parametrize(
    "text",
    [
        "import numpy",
        "import torch\nprint(torch.ones(1))",
        "from .lightning import Trainer",
        "import torch, onward\ntorch.save(1, 'x')",
        "import torch\nfrom onward import init\ntorch.save(1, 'x')",
        "import os, torch\ntorch.save(1, os.environ['ONWARD_CHECKPOINT_DIR'])",
        "import os, torch\ntorch.save(1, os.getenv('ONWARD_RESUME_DIR'))",
        "import os, torch\ntorch.save(1, os.getenv('LOCAL_CHECKPOINTS_DIR'))",
        "import torch\ntorch.save(1, 'x'",
        "import torch\0",
        "",
    ],
)
def test_nothing_is_said_of_a_script_that_saves_nothing_knows_onward_or_cannot_be_read(text: str) -> None:
    assert framework_of(text) is None


def test_submit_says_it_once_and_quiet_or_json_not_at_all(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("lit.py", SCRIPTS["Lightning"])
    command = ("--", "python3", "lit.py")
    silent = [onward("submit", flag, *command).err for flag in ("--quiet", "-Q", "--json", "--dry-run")]
    assert not any("looks like" in said or "tend --install" in said for said in silent)
    first, second = (onward("submit", *command) for _ in range(2))
    assert first.err.count("this looks like Lightning.") == 1 and "ckpt_path=" in first.err and first.code == 0
    assert len(first.out.split()) == 1, "the run's id alone"
    assert "looks like" not in second.err
    sandbox.write("net.py", SCRIPTS["plain PyTorch"])
    assert "this looks like plain PyTorch." in onward("submit", "--", "python3", "net.py").err


@pytest.mark.parametrize(
    "words",
    [
        ("--", "python3", "lit.py", "--out", "{checkpoints.write}"),
        ("--", "python3", "lit.py", "{?checkpoints.read --resume}"),
        ("--checkpoints", "own", "--", "python3", "lit.py"),
        ("job.sh",),
        ("--", "python3", "-c", "import lightning; lightning.Trainer()"),
        ("--", "python3", "../lit.py"),
    ],
)
def test_nothing_is_said_where_the_command_says_where_checkpoints_are_or_the_script_is_not_in_the_code(
    onward: Onward, sandbox: Sandbox, words: tuple[str, ...]
) -> None:
    sandbox.write("lit.py", SCRIPTS["Lightning"])
    sandbox.write("../lit.py", SCRIPTS["Lightning"])
    sandbox.write("job.sh", "#!/bin/bash\npython3 lit.py\n")
    said = onward("submit", *words)
    assert said.code == 0 and "looks like" not in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("python3", "-u", "tools/train.py", "--lr", "0.1"),
        ("python3", "-m", "tools.train"),
        ("python3", "-m", "torch.distributed.run", "--nproc-per-node", "2", "tools/train.py"),
        ("env", "A=1", "python3", "tools/train.py"),
    ],
)
def test_the_script_is_found_however_it_is_started(onward: Onward, sandbox: Sandbox, words: tuple[str, ...]) -> None:
    sandbox.write("tools/train.py", SCRIPTS["Keras"])
    assert "this looks like Keras." in onward("submit", "--", *words).err


def test_a_script_of_megabytes_is_not_read(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("lit.py", SCRIPTS["Lightning"] + "#" * (1 << 20))
    said = onward("submit", "--", "python3", "lit.py")
    assert said.code == 0 and "looks like" not in said.err
