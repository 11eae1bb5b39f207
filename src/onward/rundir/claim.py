"""The claim on a leg: one job takes it, for ever. What keeps two jobs from living the same leg."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onward.errors import AlreadyClaimed
from onward.model.event import Claimed
from onward.rundir.layout import RunDir, leg_of
from onward.sdk.files import sync_folder


def claim(run: RunDir, leg: int, *, job: str) -> None:
    """Take the leg or raise AlreadyClaimed."""
    told = json.dumps({"leg": leg, "job": job, "host": socket.gethostname(), "pid": os.getpid()})
    if not take(run.claim(leg), told):
        holder = claim_holder(run, leg)
        raise AlreadyClaimed(f"leg {leg} was claimed by job {holder.get('job')} on {holder.get('host')}")


def take(final: Path, text: str) -> bool:
    """Make `final` hold `text`, or leave it to whoever was first. By a hard link, which fails if the name exists, on network file
    systems too."""
    final.parent.mkdir(parents=True, exist_ok=True)
    own = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"  # in containers several may have the same number
    beside = final.with_name(f".{final.name}.{own}")
    with beside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(beside, final)
    except FileExistsError:
        if not _is_same_file(final, beside):  # else it is ours: a network file system tried again after its first answer was lost
            return False
    finally:
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
        found = json.loads(run.claim(leg).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def claimed_legs(run: RunDir) -> set[int]:
    try:
        return {leg for leg in map(leg_of, os.listdir(run.claims)) if leg}
    except FileNotFoundError:
        return set()


def newest_claim(run: RunDir) -> int:
    """The highest leg anybody has claimed, 0 if none. A supervisor that sees a higher one than its own is fenced off."""
    return max(claimed_legs(run), default=0)


def claim_event(run: RunDir, leg: int) -> Claimed:
    """The event of a claim whose job was killed before it could write it."""
    holder = claim_holder(run, leg)
    return Claimed(
        leg=leg, at=run.claim(leg).stat().st_mtime, job=str(holder.get("job", "")), hosts=[str(holder.get("host", ""))], deadline=None
    )
