"""The names that a training process and its supervisor share: variables, files, exit codes."""

from __future__ import annotations

# ── environment of the training process ───────────────────────────────────────
RUN_ID = "ONWARD_RUN_ID"
RUN_DIR = "ONWARD_RUN_DIR"
LEG = "ONWARD_LEG"
DEADLINE = "ONWARD_DEADLINE"  # unix seconds; absent where the job has no limit
STOP_FILE = "ONWARD_STOP_FILE"  # appears: stop at the next safe point
CHECKPOINT_DIR = "ONWARD_CHECKPOINT_DIR"  # node-local: write here
CHECKPOINT_EVERY = "ONWARD_CHECKPOINT_EVERY"  # seconds between checkpoints, or "auto"
RESUME_DIR = "ONWARD_RESUME_DIR"  # a verified checkpoint, or absent
RESUME_STEP = "ONWARD_RESUME_STEP"
RESUME_NEWEST = "ONWARD_RESUME_NEWEST"  # the file or folder in it to load, where there is only one such
SAVE_SOCKET = "ONWARD_SAVE_SOCKET"  # node-local: the save writer's, for saves in the background
SPOOL_DIR = "ONWARD_SPOOL_DIR"  # node-local: metric records wait here
TENSORBOARD_DIR = "ONWARD_TENSORBOARD_DIR"
ARTIFACTS_DIR = "ONWARD_ARTIFACTS_DIR"  # node-local: whole files laid here become the run's artifacts
INPUTS_DIR = "ONWARD_INPUTS_DIR"  # of a request's run: its files, by their names
REQUEST_FILE = "ONWARD_REQUEST_FILE"  # and its settings, as JSON
TRACKER_URL = "ONWARD_TRACKER_URL"  # in a job: its relay's
TOKEN_FILE = "ONWARD_TOKEN_FILE"  # with the token for it
ROOT = "ONWARD_ROOT"
RANK = "ONWARD_RANK"  # of a training of several processes: which of them this is
WORLD_SIZE = "ONWARD_WORLD_SIZE"  # and how many they are
LOCAL_RANK = "ONWARD_LOCAL_RANK"  # which of those on this node
RANKS_DIR = "ONWARD_RANKS_DIR"  # node-local: where ranks and supervisor leave notes for each other
TASK = "ONWARD_TASK"  # of a benchmark: the task it is to do
ITEMS_DONE = "ONWARD_ITEMS_DONE"  # a file with the items of it that are done, a line each
ATTEMPT = "ONWARD_ATTEMPT"  # the folder of the task and the attempt: what was left running by one that is over is found by it

UNMANAGED_FOLDER = "by-hand"  # the folder, under ONWARD_ROOT, of trainings that nobody submitted

# ── exit codes of the training process ────────────────────────────────────────
EXIT_DONE = 0
EXIT_AGAIN = 75  # saved; run me again

# ── files inside ONWARD_CHECKPOINT_DIR ────────────────────────────────────────
COMMIT_FILE = ".onward-checkpoint.json"  # marks a folder that run.checkpoint() committed
PARTIAL_PREFIX = ".partial-"  # hidden from the publisher until it is renamed
SHARES = ".shares"  # where each rank commits its part of a checkpoint that all of them write

# ── files inside ONWARD_SPOOL_DIR ─────────────────────────────────────────────
RELAY_WRITER = "train-relay"  # the supervisor's own, of what other clients tell it; "train-": steps in it are progress


def rank_name(rank: int) -> str:
    return f"rank-{rank:05d}"


def step_folder(step: int) -> str:
    return f"step-{step:08d}"
