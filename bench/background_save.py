"""How long a save holds a training up: `onward.torch.Checkpointer` beside PyTorch's own ways, in one training loop on the CPU.

Each way saves a state of `--mib` MiB (weights and Adam's two moments) several times, with a training step between. Reported is
the best of `--repeats`: seconds for which the training's thread is blocked, and seconds until the file is on the disk (flushed).
The limits are one copy of the same memory and one raw write with fsync. Reading is measured with a warm page cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

warnings.filterwarnings("ignore")


class Training:
    def __init__(self, mib: int) -> None:
        width = 1024
        layers = max(1, (mib << 20) // (3 * 4 * width * width))
        self.model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers)))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.step()

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.randn(8, 1024)).square().mean().backward()
        self.optimizer.step()

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    @property
    def bytes(self) -> int:
        return 3 * sum(parameter.numel() * 4 for parameter in self.model.parameters())


def flush(path: Path) -> None:
    for file in [path] if path.is_file() else [found for found in path.rglob("*") if found.is_file()]:
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


class TorchSave:
    name = "torch.save"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "torch.pt"

    def save(self, training: Training, step: int) -> None:
        torch.save(training.state(), self.path)

    def wait(self) -> None:
        flush(self.path)

    def load(self) -> object:
        return torch.load(self.path)


class ThreadedSave(TorchSave):
    name = "torch.save of a copy, in a thread"

    def save(self, training: Training, step: int) -> None:
        state = torch.utils._pytree.tree_map(lambda value: value.clone() if isinstance(value, torch.Tensor) else value, training.state())
        self._thread = threading.Thread(target=torch.save, args=(state, self.path))
        self._thread.start()

    def wait(self) -> None:
        self._thread.join()
        flush(self.path)


class Distributed:
    name = "DCP async_save"

    def __init__(self, folder: Path) -> None:
        import torch.distributed as dist

        if not dist.is_initialized():
            dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)
        self.folder = folder / "dcp"

    def save(self, training: Training, step: int) -> None:
        import torch.distributed.checkpoint as dcp

        self._future: Any = dcp.async_save(training.state(), checkpoint_id=str(self.folder / str(step)))  # type: ignore[attr-defined]
        self._newest = self.folder / str(step)
        self._training = training

    def wait(self) -> None:
        self._future.result()
        flush(self._newest)

    def load(self) -> object:
        import torch.distributed.checkpoint as dcp

        state = self._training.state()
        dcp.load(state, checkpoint_id=str(self._newest))  # type: ignore[attr-defined]
        return state


class Ours:
    name = "onward.torch.Checkpointer"

    def __init__(self, folder: Path) -> None:
        os.environ["ONWARD_RUN_DIR"] = str(folder / "run")
        import onward
        from onward.torch import Checkpointer

        self._run = onward.init()
        self._checkpoints = Checkpointer(self._run)
        self.folder = folder / "run" / "checkpoints"

    def save(self, training: Training, step: int) -> None:
        self._checkpoints.save(step, training.state())

    def wait(self) -> None:
        self._checkpoints.wait()

    def load(self) -> object:
        from onward.torch.reading import read_state

        return read_state(max(self.folder.glob("step-*")) / "state.safetensors")


def seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def limits(training: Training, folder: Path) -> tuple[float, float]:
    source, target = torch.ones(training.bytes, dtype=torch.uint8), torch.zeros(training.bytes, dtype=torch.uint8)
    data: Any = memoryview(source.numpy())  # type: ignore[arg-type]

    def write() -> None:
        with (folder / "raw").open("wb", buffering=0) as file:
            for at in range(0, len(data), 16 << 20):
                file.write(data[at : at + (16 << 20)])
            os.fsync(file.fileno())

    return min(seconds(lambda: target.copy_(source)) for _ in range(3)), min(seconds(write) for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; default: a temporary one")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        training = Training(options.mib)
        plain = min(seconds(training.step) for _ in range(3))
        copy, write = limits(training, folder)
        state = f"{training.bytes >> 20} MiB"
        print(f"PyTorch {torch.__version__}, {os.cpu_count()} processors, a state of {state}, {plain:.3f} s per step without saves")
        print(f"{'limits: one copy; write and fsync':36} {copy:8.3f} {write:8.3f}")
        print(f"{'':36} {'blocked':>8} {'durable':>8} {'load':>8}   blocked/copy  durable/write")
        for kind in (TorchSave, ThreadedSave, Distributed, Ours):
            way: Any = kind(folder)
            blocked, durable = [], []
            for step in range(1, options.repeats + 2):
                began = time.perf_counter()
                way.save(training, step)
                blocked.append(time.perf_counter() - began)
                training.step()
                way.wait()
                durable.append(time.perf_counter() - began)
            load = min(seconds(way.load) for _ in range(2))
            best, done = min(blocked[1:]), min(durable[1:])  # the first one allocates
            print(f"{way.name:36} {best:8.3f} {done:8.3f} {load:8.3f} {best / copy:14.2f} {done / write:14.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
