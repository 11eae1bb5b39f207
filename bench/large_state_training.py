"""A PyTorch training whose state is large: a stack of linear layers under AdamW, saved through the SDK by plain torch.save.

It is deterministic, on a GPU if there is one and else on the CPU. With its last step it prints the SHA-256 of its weights.
bench/large_state.py starts it; PyTorch must be installed for the Python that runs it.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time

import torch
from torch import nn

import onward

_WIDTH = 4096
_BYTES_PER_PARAMETER = 12  # 4 for the weight, 8 for AdamW's two moments


def build(size: float) -> nn.Sequential:
    """As many layers as make a state of `size` bytes."""
    layer = _WIDTH * _WIDTH + _WIDTH
    count = max(1, round(size / _BYTES_PER_PARAMETER / layer))
    return nn.Sequential(
        *(part for _ in range(count) for part in (nn.Linear(_WIDTH, _WIDTH), nn.LayerNorm(_WIDTH, elementwise_affine=False)))
    )


def weights_sha(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for _, value in sorted(model.state_dict().items()):
        digest.update(value.cpu().numpy().tobytes())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=float, required=True, help="of the state")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--every", type=int, required=True, help="steps between two checkpoints")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build(options.bytes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = onward.init(total_steps=options.steps)

    def save(step: int) -> None:
        began = time.time()
        with run.checkpoint(step) as folder:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, folder / "state.pt")
        print(f"rank 0 saved {step} at {began:.1f} in {time.time() - began:.1f} s", flush=True)

    first, saved = 0, run.resume()
    if saved:
        state = torch.load(saved / "state.pt", map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"] + 1
        print(f"rank 0 resumed {state['step']}", flush=True)
        del state
    for step in range(first, options.steps):
        generator = torch.Generator().manual_seed(step)
        inputs = torch.randn(8, _WIDTH, generator=generator).to(device)
        loss = (model(inputs) - inputs.roll(1, dims=1)).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        optimizer.step()
        run.log({"loss": loss.item()}, step=step)
        print(f"trained {step} at {time.time():.2f}", flush=True)
        if run.should_stop():
            save(step)
            return 75
        if (step + 1) % options.every == 0:
            save(step)
    print(f"weights {weights_sha(model)}", flush=True)
    run.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
