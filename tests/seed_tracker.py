"""A training script that posts to a tracker: the text of the study note that asked for one, but for its torch parts."""

from __future__ import annotations

# From the note, as it stands. Around it: what the note leaves out (arguments, the loop's two functions), and resuming.
FROM_THE_NOTE = """
# train.py - runs on HPC node
import os
import requests

TRACKER_API = os.environ.get("TRACKER_API", "http://tracker.internal")
EXPERIMENT_ID = os.environ["EXPERIMENT_ID"]
SLURM_JOB_ID = os.environ.get("SLURM_JOB_ID")

def create_run():
    response = requests.post(
        f"{TRACKER_API}/experiments/{EXPERIMENT_ID}/runs",
        json={
            "slurm_job_id": SLURM_JOB_ID,
            "seed": args.seed,
            "config": vars(args)
        }
    )
    return response.json()["run_id"]

def log_metric(run_id, name, value, step):
    requests.post(
        f"{TRACKER_API}/runs/{run_id}/metrics",
        json={"name": name, "value": value, "step": step}
    )
"""

BEFORE = """
import argparse, json, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--pause", type=float, default=0.2)
args = parser.parse_args()
num_epochs = args.epochs
"""

# In place of torch.load and torch.save: a number, by hand or in a run.
STATE = """
try:
    import onward
    run = onward.init()
except ImportError:
    run = None
saved = run.resume() if run else None
first = json.loads((saved / "state.json").read_text())["epoch"] + 1 if saved else 0
def train_epoch():
    time.sleep(args.pause)
    return 1.0 / (epoch + 1)
def validate():
    return epoch / num_epochs
def save():
    if run:
        with run.checkpoint(epoch) as folder:
            (folder / "state.json").write_text(json.dumps({"epoch": epoch}))
        if run.should_stop():
            sys.exit(75)
"""

# The note's loop, begun where the last checkpoint ended.
LOOP = """
# Training loop
run_id = create_run()
for epoch in range(first, num_epochs):
    train_loss = train_epoch()
    val_acc = validate()

    log_metric(run_id, "train_loss", train_loss, epoch)
    log_metric(run_id, "val_accuracy", val_acc, epoch)
    print("epoch", epoch, flush=True)
    save()
if run:
    run.finish()
"""

TRAIN = BEFORE + FROM_THE_NOTE + STATE + LOOP
