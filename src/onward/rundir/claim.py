"""The claim on a leg: one job takes it, for ever. What keeps two jobs from living the same leg."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from onward.errors import AlreadyClaimed
from onward.model.events import Claimed
from onward.rundir.files.no_links import names_beneath, read_beneath, stat_beneath
from onward.rundir.layout import RunDir, leg_of
from onward.sdk.atomic_files import draft_name, sync_folder

_TOKEN = secrets.token_hex(8)  # of this process: a job that the scheduler starts again has the same id, and may have the same pid


def claim(run: RunDir, leg: int, *, job: str, repeated: bool = False) -> None:
    """Take the leg or raise AlreadyClaimed. `repeated`: an attempt of this process failed before, and may have succeeded all the same."""
    owner = {"leg": leg, "job": job, "host": socket.gethostname(), "pid": os.getpid(), "token": _TOKEN}
    if not take_file(run.claim(leg), json.dumps(owner)):
        holder = claim_holder(run, leg)
        if repeated and holder == owner:
            return
        raise AlreadyClaimed(f"leg {leg} was claimed by job {holder.get('job')} on {holder.get('host')}")


def take_file(final: Path, text: str) -> bool:
    """Make `final` hold `text`, or leave it to whoever was first. By a hard link, which fails if the name exists, on network file
    systems too."""
    final.parent.mkdir(exist_ok=True)  # not those above it: storage that is not mounted now gives no claims
    beside = final.with_name(draft_name(final.name))
    try:
        with beside.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, final)
    except FileExistsError:
        if not _is_same_file(final, beside):  # else it is ours: a network file system tried again after its first answer was lost
            return False
    finally:
        with suppress(OSError):  # a claim that stands is not undone by a draft that stays
            beside.unlink(missing_ok=True)
    sync_folder(final.parent)
    return True


def _is_same_file(one: Path, other: Path) -> bool:
    """By number, which never changes. A count of links may be an old one: NFS clients keep it for a minute, and opening asks anew."""
    try:
        with one.open("rb") as first, other.open("rb") as second:
            return os.path.samestat(os.fstat(first.fileno()), os.fstat(second.fileno()))
    except FileNotFoundError:
        return False


def claim_holder(run: RunDir, leg: int) -> Mapping[str, Any]:
    try:
        found = json.loads(read_beneath(run.root, run.claim(leg)))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def claimed_legs(run: RunDir) -> set[int]:
    try:
        return {leg for leg in map(leg_of, names_beneath(run.root, run.claims)) if leg}
    except FileNotFoundError:
        return set()


def newest_claim(run: RunDir) -> int:
    """The highest leg anybody has claimed, 0 if none. A supervisor that sees a higher one than its own is fenced off."""
    return max(claimed_legs(run), default=0)


def claim_event(run: RunDir, leg: int) -> Claimed:
    """The event of a claim whose job was killed before it could write it."""
    holder = claim_holder(run, leg)
    at = stat_beneath(run.root, run.claim(leg)).st_mtime
    return Claimed(leg=leg, at=at, job=str(holder.get("job", "")), hosts=[str(holder.get("host", ""))], deadline=None)
