"""Wrapper: the small shell around each job, so that its end is known whoever watched, and that it starts once only."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from onward.schedulers.local.job_queue import JobRecord, LocalJob
from onward.schedulers.local.processes import JOB_ID, JOB_STATE, JobProcess

JOB_NAME = "ONWARD_JOB_NAME"
JOB_HOST = "ONWARD_JOB_HOST"
JOB_DEADLINE = "ONWARD_JOB_DEADLINE"  # unix seconds; absent where the job has no limit
JOB_GPUS = "ONWARD_JOB_GPUS"

# $1 the job's folder, $2 where to start, $3 its output. A keeper may die between starting this and writing it down; then the
# next one starts it again, and the hard link lets only one of the two go on. Signals to the job's group must not end the
# wrapper before it has written the exit code, but must end the job: so the subshell resets the traps first.
_SHELL = """
asked=
trap 'asked=1' HUP INT QUIT USR1 USR2 ALRM TERM
{ read -r stat; } < "/proc/$$/stat"
{ read -r boot; } < /proc/sys/kernel/random/boot_id
printf '%s\\n%s\\n' "$stat" "$boot" > "$1/claim.$$" || exit 1
ln "$1/claim.$$" "$1/claim" 2> /dev/null || exit 0
rm -f "$1/claim.$$"
cd "$2" || cd /
(
    trap - HUP INT QUIT USR1 USR2 ALRM TERM
    [ -z "$asked" ] || exit 143
    exec bash "$1/script" >> "$3" 2>&1
)
code=$?
echo "$code" > "$1/.exit.partial" && mv "$1/.exit.partial" "$1/exit"
exit "$code"
"""


def start(
    job: LocalJob, record: JobRecord, folder: Path, *, state: Path, host: str, machine_gpus: tuple[str, ...]
) -> subprocess.Popen[bytes]:
    """Start a job in a session of its own. What the wrapper itself has to complain of goes to its folder."""
    own = folder / "output"
    old = os.umask(job.umask)
    try:
        with own.open("ab") as words:
            return subprocess.Popen(
                ["/bin/sh", "-c", _SHELL, f"onward-job-{job.id}", str(folder), job.folder, job.request.output or str(own)],
                env=job_environment(job, record, state=state, host=host, machine_gpus=machine_gpus),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
            )
    finally:
        os.umask(old)


def job_environment(job: LocalJob, record: JobRecord, *, state: Path, host: str, machine_gpus: tuple[str, ...]) -> dict[str, str]:
    """What the submitter passed on and what the queue adds: nothing of the keeper's own."""
    own = {JOB_ID: job.id, JOB_NAME: job.name, JOB_HOST: host, JOB_STATE: str(state), JOB_GPUS: ",".join(record.gpus)}
    if record.deadline is not None:
        own[JOB_DEADLINE] = f"{record.deadline:.3f}"
    if machine_gpus:
        own |= {"CUDA_VISIBLE_DEVICES": ",".join(record.gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # nvidia-smi's order, as our numbers
    return {**job.environment, **own}


def claimed_by(folder: Path) -> JobProcess | None:
    """The wrapper that runs this job, or ran it. Linked into place whole."""
    try:
        return JobProcess.parse((folder / "claim").read_text())
    except FileNotFoundError:
        return None


def exit_code(folder: Path) -> int | None:
    """What the job's script ended with, as shells count: 128 + the number of a signal."""
    try:
        return int((folder / "exit").read_text())
    except (FileNotFoundError, ValueError):
        return None


def exit_code_and_signal(code: int | None) -> tuple[int | None, int | None]:
    """Exit code and signal. A script that died of a signal and one that passed such a code on look alike to a shell."""
    if code is not None and code < 0:  # of the wrapper itself
        return None, -code
    if code is not None and 128 < code < 128 + signal.NSIG:
        return None, code - 128
    return code, None


def failure_reason(folder: Path, job: LocalJob) -> str:
    """Why the wrapper could not run the script, if it said so: an output file that cannot be opened, no bash."""
    if job.request.output is None:
        return ""  # then that file holds the job's own words
    try:
        words = (folder / "output").read_text(errors="replace").strip()
    except FileNotFoundError:
        return ""
    return words.splitlines()[-1].partition(": ")[2] if words else ""
