"""Pages for those who come from elsewhere: their files are written and their commands run as they stand, on this machine's own queue."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onward.rundir.event_files.frames import read_frames
from onward.rundir.event_files.scalar_events import read_event

DOCS = Path(__file__).resolve().parents[2] / "docs" / "howto"
_FILE = re.compile(r"^```\w+ title=(\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMANDS = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


def run_page(page: str, folder: Path) -> dict[str, str]:
    """What each command of the page printed, both streams together."""
    text = (DOCS / page).read_text()
    for name, content in _FILE.findall(text):
        (folder / name).write_text(content)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "SLURM_"))}
    env |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "ONWARD_STATE_DIR": str(folder / "state")}
    said = {}
    for command in [line[2:] for block in _COMMANDS.findall(text) for line in block.splitlines() if line.startswith("$ ")]:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        said[command] = done.stdout + done.stderr
        assert done.returncode == 0, f"{command}\n{said[command]}"
    for run in (folder / "runs").glob("2*"):
        if not (run / "params" / "done.json").exists():
            cancel = [sys.executable, "-m", "onward", "cancel", str(run)]
            done = subprocess.run(cancel, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0 or "is finished" in done.stderr, done.stderr  # it may have ended meanwhile
    return said


def legs(folder: Path, name: str) -> int:
    [run] = (folder / "runs").glob(f"*_{name}")
    return len(list((run / "params" / "claims").iterdir()))


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def test_the_page_for_those_who_come_from_submitit_works(tmp_path: Path) -> None:
    needs("submitit")
    said = run_page("coming-from-submitit.md", tmp_path)
    assert "trained 60 steps\n" in said["onward logs callable"] and legs(tmp_path, "callable") >= 2
    assert "trained 60 steps with 0.1\n" in said["onward logs script"] and legs(tmp_path, "script") >= 2
    assert said["onward runs"].count("train ") == 2


def test_the_page_for_those_who_come_from_lightning_works(tmp_path: Path) -> None:
    needs("lightning")
    said = run_page("coming-from-lightning.md", tmp_path)
    assert "trained 400 steps\n" in said["onward logs line"] and legs(tmp_path, "line") >= 2


# The files that a Hugging Face Trainer reads and writes, from the same options, without the package.
RUN_CLM = """
import argparse, json, os, random, sys, time
from pathlib import Path
import event_files

words = argparse.ArgumentParser()
for name in ("output_dir", "resume_from_checkpoint"):
    words.add_argument(f"--{name}", type=Path)
for name in ("max_steps", "save_steps", "save_total_limit"):
    words.add_argument(f"--{name}", type=int)
args = words.parse_args()
step = 0
if args.resume_from_checkpoint:
    step = json.loads((args.resume_from_checkpoint / "trainer_state.json").read_text())["global_step"]
print("resumed at", step, "beside", sorted(path.name for path in args.output_dir.iterdir()), flush=True)
logging_dir = Path(os.environ.get("TENSORBOARD_LOGGING_DIR") or args.output_dir / "runs" / time.strftime("%b%d_%H-%M-%S_host"))
events = logging_dir / f"events.out.tfevents.{time.time():.0f}.{os.uname().nodename}.{os.getpid()}.0"
event_files.write(events, [event_files.version(time.time())])
while step < args.max_steps:
    time.sleep(0.4)
    step += 1
    event_files.write(events, [event_files.scalar(time.time(), step, "train/loss", 1 / step)])
    if step % args.save_steps == 0:
        folder = args.output_dir / f"checkpoint-{step}"
        folder.mkdir()
        for name in ("model.safetensors", "optimizer.pt", "scheduler.pt"):
            (folder / name).write_bytes(bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"{}" if name.endswith("tensors") else b"state")
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
        (folder / "rng_state.pth").write_bytes(b"state")
print("trained", step, "steps", flush=True)
"""


@pytest.mark.parametrize("message", ["by the variable", "beside its checkpoints"])
def test_the_page_for_those_who_come_from_the_hugging_face_trainer_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    """An older Trainer knows no variable and writes its events beside its checkpoints."""
    (tmp_path / "event_files.py").write_text((Path(__file__).parents[1] / "event_files.py").read_text())
    forget = 'import os\nos.environ.pop("TENSORBOARD_LOGGING_DIR")\n' if message == "beside its checkpoints" else ""
    (tmp_path / "run_clm.py").write_text(forget + RUN_CLM)
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR", raising=False)
    said = run_page("coming-from-hugging-face.md", tmp_path)["onward logs clm"]
    assert "resumed at 0 beside []" in said and "trained 40 steps\n" in said
    assert legs(tmp_path, "clm") >= 2
    [run] = (tmp_path / "runs").glob("*_clm")
    steps = logged_steps(run, "train/loss")
    assert steps == set(range(1, 41)), "no event is lost, whichever leg wrote it"


def logged_steps(run: Path, metric: str) -> set[int]:
    """As the server reads them from the run's folder."""
    files = (run / "results" / "tensorboard").rglob("*tfevents*")
    events = [event for path in files for _, event in read_frames(path.read_bytes(), 0, read_event).found]
    return {event.step for event in events if metric in dict(event.values)}
