"""Uploads of a pipeline: where to, what is tried again and when. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from onward.errors import InvalidInput

UPLOADABLE = ("summary", "results", "checkpoints", "logs")
_HINT = "write host:/folder for rsync, a URL such as s3://bucket/folder, or a folder that begins with /"
_FIRST_WAIT, _LONGEST_WAIT = 15.0, 3600.0  # seconds between tries
_URL = re.compile(r"^([a-z][a-z0-9+.-]*)://\S+$")
_REMOTE = re.compile(r"^(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?[A-Za-z0-9_\[][A-Za-z0-9_.:\]-]*:[^:\x00-\x1f][^\x00-\x1f]*$")


class UploadTargetKind(StrEnum):
    FOLDER = "folder"
    RSYNC = "rsync"
    URL = "url"


def upload_target_kind(to: str) -> UploadTargetKind:
    """InvalidInput where it is none of them, or has a password in it: it would lie in many files, for many eyes."""
    if match := _URL.match(to):
        if urlsplit(to).password:
            raise InvalidInput(
                f"the address {match[1]}://… contains a password", hint="keep it in the service's own configuration, such as ~/.aws"
            )
        return UploadTargetKind.RSYNC if match[1] == "rsync" else UploadTargetKind.URL
    if to.startswith(("/", "~/")) and not re.search(r"[\x00-\x1f]", to):
        return UploadTargetKind.FOLDER
    if _REMOTE.match(to):
        return UploadTargetKind.RSYNC
    raise InvalidInput(f"cannot upload to {to!r}", hint=_HINT)


@dataclass(frozen=True, kw_only=True)
class UploadTries:
    """What is known of something that did not arrive."""

    count: int
    at: float
    reason: str

    def wait(self) -> float:
        """Seconds until the next try: longer each time, an hour at most."""
        return float(min(_FIRST_WAIT * 2 ** min(self.count - 1, 20), _LONGEST_WAIT))


def is_due(tried: UploadTries | None, *, now: float, retries: int, stubborn: bool) -> bool:
    """Whether to try now. Jobs give up after so many retries; `stubborn` are those that have time, as `onward tend` has."""
    if tried is None:
        return True
    if has_failed(tried, retries=retries) and not stubborn:
        return False
    return now - tried.at >= tried.wait()


def has_failed(tried: UploadTries | None, *, retries: int) -> bool:
    """Whether a person should hear of it."""
    return tried is not None and tried.count > retries
