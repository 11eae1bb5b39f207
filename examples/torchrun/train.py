"""Train a small network with PyTorch's DistributedDataParallel, on CPUs (gloo) or GPUs (nccl). Made to be interrupted.

The state that makes a training exact again is small: weights, optimizer, and the step. Which samples a rank takes at a
step follows from seed, rank and step alone, so a resumed training does what an unbroken one does, bit for bit.

    onward submit --launcher torchrun --nodes 2 --ntasks-per-node 2 --time 24:00:00 -- python train.py --steps 1000
    torchrun --nproc-per-node 4 train.py --steps 1000          # by hand, for comparison
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import onward


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--save-every", type=int, default=50, help="steps")
    parser.add_argument("--save-from", choices=("first", "all"), default="first", help="who writes checkpoints")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds added to each step: to make a short training long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where rank 0 puts the final weights")
    return parser.parse_args()


def batch(seed: int, rank: int, step: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's samples of this step: noisy points of a fixed function."""
    source = torch.Generator().manual_seed(((seed * 1009 + rank) << 32) + step)
    x = torch.rand(32, 8, generator=source)
    y = torch.sin(x.sum(dim=1, keepdim=True)) + 0.01 * torch.randn(32, 1, generator=source)
    return x.to(device), y.to(device)


def main() -> int:
    options = parse()
    torch.set_num_threads(1)
    run = onward.init(total_steps=options.steps, params=vars(options))
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", run.local_rank) if gpu else torch.device("cpu")
    dist.init_process_group("nccl" if gpu else "gloo")

    torch.manual_seed(options.seed)
    network = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    first = restore(run, network, optimizer, options.save_from) + 1

    for step in range(first, options.steps):
        x, y = batch(options.seed, run.rank, step, device)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        time.sleep(options.pause)
        run.log({"loss": loss.item()}, step=step)
        stop = run.should_stop()  # says the same to all ranks
        if stop or step % options.save_every == options.save_every - 1:
            save(run, step, network, optimizer, options.save_from)
        if stop:
            print(f"rank {run.rank} stopped at step {step}", flush=True)
            dist.destroy_process_group()
            return 75

    if run.rank == 0 and options.out:
        torch.save(network.state_dict(), options.out)
    run.finish()
    dist.destroy_process_group()
    return 0


def save(run: onward.Run, step: int, network: torch.nn.Module, optimizer: torch.optim.Optimizer, who: str) -> None:
    """Rank 0 writes all of it; or rank 0 the weights, and every rank a share of the optimizer's state."""
    if who == "first":
        if run.rank == 0:
            with run.checkpoint(step) as folder:
                torch.save({"step": step, "network": network.state_dict(), "optimizer": optimizer.state_dict()}, folder / "state.pt")
        return
    with run.checkpoint(step, written_by="all") as folder:
        if run.rank == 0:
            torch.save({"step": step, "world": run.world_size, "network": network.state_dict()}, folder / "network.pt")
        moments = optimizer.state_dict()["state"]
        mine = {key: value for key, value in moments.items() if key % run.world_size == run.rank}
        torch.save(mine, folder / f"optimizer-{run.rank}.pt")


def restore(run: onward.Run, network: torch.nn.Module, optimizer: torch.optim.Optimizer, who: str) -> int:
    """The step of the checkpoint, or -1. Every rank reads it: it is there on every node, whole."""
    folder = run.resume()
    if folder is None:
        return -1
    if who == "first":
        state = torch.load(folder / "state.pt", weights_only=True)
        optimizer.load_state_dict(state["optimizer"])
    else:
        state = torch.load(folder / "network.pt", weights_only=True)
        moments: dict[int, object] = {}
        for rank in range(state["world"]):
            moments.update(torch.load(folder / f"optimizer-{rank}.pt", weights_only=True))
        optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    network.load_state_dict(state["network"])
    return int(state["step"])


if __name__ == "__main__":
    sys.exit(main())
