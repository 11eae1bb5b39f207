"""Grid Engine's words for why a job waits (`scheduling info`), in plain ones. What is not listed is shown as it was written."""

from __future__ import annotations

import re
from collections.abc import Sequence

ERROR = "in the error state: qstat -j shows why, qmod -cj retries it"
DEPENDENCY = "waits for the previous job"
HOLD = "on hold; qrls releases it"
QUEUED = "waits in the queue"

# The first that fits one of the lines is said; {1}, {2} are what its brackets found.
_WORDS: tuple[tuple[str, str], ...] = (
    (r"Job is in error state", ERROR),
    (r"job dropped because of job dependencies", DEPENDENCY),
    (r"Job is in hold state", HOLD),
    (r"execution time not reached", "may not start before a set time"),
    (r"exceeds limit \"([^\"]*)\" in rule \"([^\"]*)\"", "a quota of the site is reached: rule {2}, limit {1}"),
    (r"job dropped because of user limitations", "its owner runs as many jobs as allowed"),
    (r"job array.* concurrently running|not run because of array task.*limit", "its array already runs its maximum number of tasks"),
    (r"no access to project|not have access.*project", "its project may not run jobs here"),
    (r"has no permission for (?:cluster )?queue \"([^\"]*)\"", "its owner may not use queue {1}"),
    (r"cannot run in PE \"([^\"]*)\" because it only offers (-?\d+) slots", "not enough slots are free in {1}: {2} now"),
    (r"cannot run until clean up of an earlier run", "its last start is being cleaned up"),
    (r"Collecting of scheduler job information is turned off", QUEUED + " (this site does not say why)"),
)
_OFFERS = re.compile(
    r"(?:\(-l ([^)]*)\) )?cannot run (?:at host|in queue instance|in queue) \"([^\"]*)\" because it offers only \w+:(\w+)=(\S+)"
)
_LEFT_OUT = (
    (r"not contained in its hard queue list|not contained in its master hard queue list", ""),  # it asked for another
    (r"dropped because it is full", "all queues that it may use are full"),
    (r"dropped because it is (?:disabled|suspended|in error state)", "a queue that it could use is closed"),
    (r"dropped because it is overloaded", "hosts that it could use are too busy"),
    (r"dropped because it is temporarily not available", "hosts that it could use do not answer"),
)
_MOST = 3


def plain_reason(lines: Sequence[str]) -> str:
    """Why a job waits, in plain words; empty if there is no reason."""
    for pattern, words in _WORDS:
        for line in lines:
            if found := re.search(pattern, line):
                return words.format("", *found.groups())
    if short := _offers(lines):
        return short
    rest = [line for line in lines if line.strip()]
    for pattern, words in _LEFT_OUT:
        matching = [line for line in rest if re.search(pattern, line)]
        rest = [line for line in rest if line not in matching]
        if matching and words and not rest:
            return words
    return f"Grid Engine says: {rest[0]}" if rest else QUEUED


def _offers(lines: Sequence[str]) -> str:
    """`cannot run at host "e3" because it offers only hc:gpus=2.000000`, a line a host: what is short, and what the best of them have."""
    left: dict[str, dict[str, str]] = {}
    asked: dict[str, str] = {}
    for found in filter(None, map(_OFFERS.search, lines)):
        request, node, resource, amount = found.groups()
        left.setdefault(resource, {})[node] = re.sub(r"\.?0+$", "", amount) if "." in amount else amount
        asked |= dict(part.split("=", 1) for part in (request or "").split(",") if "=" in part)
    if not left:
        return ""
    reasons = []
    for resource, places in left.items():
        wanted = f" (requests {asked[resource]})" if resource in asked else ""
        some = ", ".join(f"{node} {amount or 0}" for node, amount in list(places.items())[:_MOST])
        more = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
        reasons.append(f"{resource}{wanted}: {some}{more}")
    return "not enough free: " + "; ".join(reasons)
