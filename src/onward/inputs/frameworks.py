"""What a training script is made with, by its imports, and the two lines that make it continue in the next leg."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_USES_ONWARD = re.compile(r"\bONWARD_(CHECKPOINT|RESUME)_|\b(LOCAL|PERSISTENT)_CHECKPOINTS_DIR\b")
_SAVE, _LOAD = 'os.environ["ONWARD_CHECKPOINT_DIR"]', 'os.environ.get("ONWARD_RESUME_NEWEST")'
_IF_SAVED = 'if path := os.environ.get("ONWARD_RESUME_NEWEST"): '


@dataclass(frozen=True, kw_only=True)
class Framework:
    name: str
    modules: tuple[str, ...]  # it imports one of them
    sign: str  # and names this, as a pattern
    lines: tuple[str, str]
    page: str  # of `onward help`

    def hint(self) -> tuple[str, ...]:
        head = f"this looks like {self.name}. To continue where the previous leg stopped, it saves and loads like this (shown once):"
        return (head, *(f"  {line}" for line in self.lines), f"  more: onward help {self.page}; --quiet prints no hints")


FRAMEWORKS = (  # the first that matches: what is built on others comes before them
    Framework(
        name="a Hugging Face Trainer with command-line options",
        modules=("transformers", "trl"),
        sign="HfArgumentParser|TrlParser",
        lines=("--output_dir {checkpoints.write}", "'{?checkpoints.read --resume_from_checkpoint {checkpoints.newest}}'"),
        page="coming-from-hugging-face",
    ),
    Framework(
        name="a Hugging Face Trainer",
        modules=("transformers", "trl"),
        sign=r"\w*(Trainer|TrainingArguments)",
        lines=(f"TrainingArguments(output_dir={_SAVE}, save_steps=…)", f"trainer.train(resume_from_checkpoint={_LOAD})"),
        page="hugging-face",
    ),
    Framework(
        name="Lightning",
        modules=("lightning", "pytorch_lightning"),
        sign=r"Trainer|LightningCLI|\w+\.Trainer",
        lines=(f"ModelCheckpoint(dirpath={_SAVE}, every_n_train_steps=…)", f"trainer.fit(model, data, ckpt_path={_LOAD})"),
        page="lightning",
    ),
    Framework(
        name="DeepSpeed",
        modules=("deepspeed",),
        sign="initialize",
        lines=(
            f"engine.save_checkpoint({_SAVE})",
            'if path := os.environ.get("ONWARD_RESUME_DIR"): engine.load_checkpoint(path)',
        ),
        page="deepspeed",
    ),
    Framework(
        name="Accelerate",
        modules=("accelerate",),
        sign="Accelerator",
        lines=(
            f'accelerator.save_state({_SAVE} + f"/step_{{step}}")',
            f"{_IF_SAVED}accelerator.load_state(path)",
        ),
        page="hugging-face",
    ),
    Framework(
        name="Keras",
        modules=("keras", "tf_keras", "tensorflow"),
        sign="fit",
        lines=(
            f'keras.callbacks.ModelCheckpoint({_SAVE} + "/model_{{epoch}}.keras")',
            f'{_IF_SAVED}model, first = keras.models.load_model(path), int(os.environ["ONWARD_RESUME_STEP"])  # fit(initial_epoch=first)',
        ),
        page="keras",
    ),
    Framework(
        name="JAX",
        modules=("jax", "flax", "optax", "orbax"),
        sign=r"\w+",
        lines=(
            f"manager = orbax.checkpoint.CheckpointManager({_SAVE})",
            "if manager.latest_step() is not None: state = manager.restore(manager.latest_step())",
        ),
        page="jax",
    ),
    Framework(
        name="XGBoost",
        modules=("xgboost",),
        sign="train",
        lines=(
            f"xgboost.callback.TrainingCheckPoint({_SAVE}, interval=…)",
            f"xgboost.train(params, data, rounds - done, xgb_model={_LOAD})  # done: rounds in that model",
        ),
        page="xgboost",
    ),
    Framework(
        name="LightGBM",
        modules=("lightgbm",),
        sign="train",
        lines=(
            f'callbacks=[lambda now: now.model.save_model({_SAVE} + f"/model_{{now.model.current_iteration()}}.txt")]',
            f"lightgbm.train(params, data, rounds - done, init_model={_LOAD})  # done: rounds in that model",
        ),
        page="xgboost",
    ),
    Framework(
        name="plain PyTorch",
        modules=("torch",),
        sign=r"torch\.save",
        lines=(
            f'torch.save(state, {_SAVE} + f"/state_{{step}}.pt")',
            f"{_IF_SAVED}state = torch.load(path)",
        ),
        page="pytorch",
    ),
)


def framework_of(text: str) -> Framework | None:
    """Of a script's text. None where none is seen, Onward is used already, or it is no Python that can be read here."""
    if _USES_ONWARD.search(text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        modules, names = set(_modules(tree)), set(_names(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if "onward" in modules:
        return None
    return next((one for one in FRAMEWORKS if modules.intersection(one.modules) and _any(one.sign, names)), None)


def _any(sign: str, names: set[str]) -> bool:
    return any(re.fullmatch(sign, name) for name in names)


def _modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
            if isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
