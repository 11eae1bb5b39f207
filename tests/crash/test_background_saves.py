"""A PyTorch training that saves at every step in the background: killed and cut off, it ends with the unbroken training's weights."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.crash.conftest import PRELUDE, LocalRun, Machine

SCRIPT = """\
import hashlib, signal
import torch
from torch.utils.data import DataLoader, TensorDataset
from onward.torch import Checkpointer, ResumableSampler, capture, restore

torch.set_num_threads(1)
torch.manual_seed(7)
run = onward.init()
data = TensorDataset(torch.randn(120, 8))
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
sampler = ResumableSampler(data, batch_size=8)
loader = DataLoader(data, batch_sampler=sampler)
checkpoints = Checkpointer()
step, state = 0, checkpoints.load()
if state:
    step = state["step"]
    restore(state, model=model, optimizer=optimizer, sampler=sampler)
print("resumed", step, flush=True)
pause, kills = float(sys.argv[1]), [int(found) for found in sys.argv[2].split(",") if found]
first = step
for epoch in sampler.epochs(8):
    for (batch,) in sampler.count(loader):
        optimizer.zero_grad()
        loss = (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        step += 1
        run.log({"loss": loss.item()}, step=step)
        checkpoints.save(step, capture(model=model, optimizer=optimizer, sampler=sampler, step=step))
        if step in kills and first < step:
            os.kill(os.getpid(), signal.SIGKILL)
        if run.should_stop():
            print("stopped", step, flush=True)
            sys.exit(75)
        time.sleep(pause)
weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
print("trained", step, hashlib.sha256(weights).hexdigest(), flush=True)
"""


def unbroken(machine: Machine) -> str:
    (machine.home / "unbroken.py").write_text(PRELUDE + SCRIPT)
    command = [sys.executable, "unbroken.py", "0", ""]
    env = {**machine.environment, "ONWARD_RUN_DIR": str(machine.home / "unbroken")}
    done = subprocess.run(command, cwd=machine.home, env=env, capture_output=True, text=True, timeout=300, check=True)
    [weights] = re.findall(r"trained 120 (\w+)", done.stdout)
    return str(weights)


def said(run: LocalRun, leg: int, word: str) -> list[int]:
    return [int(step) for step in re.findall(rf"^{word} (\d+)", (run.folder / "logs" / f"leg-{leg:04d}.out").read_text(), re.MULTILINE)]


def test_no_step_is_lost_by_a_crash_or_a_time_limit_and_the_weights_are_those_of_the_unbroken_training(machine: Machine) -> None:
    run = machine.submit(SCRIPT, "--time", "0:50", name="saves", arguments=("0.7", "23,40"))
    shown = run.until_over(within=400)
    assert shown["state"] == "finished", shown["reason"]
    ends = [leg["end"] for leg in shown["legs"]]
    assert ends.count("crashed") == 2 and "time_limit" in ends
    for leg, end in enumerate(ends[:-1], start=1):
        resumed = said(run, leg + 1, "resumed")
        if end == "crashed":
            assert resumed == [[23, 40][ends[:leg].count("crashed") - 1]]
        elif stopped := said(run, leg, "stopped"):
            assert resumed == stopped
    assert re.findall(r"trained 120 (\w+)", run.output()) == [unbroken(machine)]
