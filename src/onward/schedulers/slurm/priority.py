"""What decides when a waiting job's turn comes: `sprio` for one job or all that wait, and this user's own lines of `sshare`."""

from __future__ import annotations

from onward.schedulers.command import run_command

_TIMEOUT = 10.0
_FACTORS = (("fair share", "%F"), ("age", "%A"), ("size", "%J"), ("partition", "%P"), ("QOS", "%Q"))  # as weighted by the site
_COLUMNS = "|".join(["%i", "%Y", "%N", *(column for _, column in _FACTORS)])
_MOST_ACCOUNTS = 3

Priorities = dict[str, tuple[str, str]]  # of each job: its priority, and what that is made of, in words


def priority_words(job: str) -> str:
    """Nothing where the site orders jobs by age alone, or the job does not wait."""
    found = parse_priorities(run_command(["sprio", "-h", "-j", job, "-o", _COLUMNS], timeout=_TIMEOUT).out).get(job)
    if found is None:
        return ""
    total, factors = found
    return "; ".join([f"{total} ({factors})" if factors else total, *_shares()])


def all_priorities() -> Priorities:
    """Of all jobs that wait, in one call; none where the site orders jobs by age alone."""
    return parse_priorities(run_command(["sprio", "-h", "-o", _COLUMNS], timeout=_TIMEOUT).out)


def parse_priorities(text: str) -> Priorities:
    """A job that waits for several partitions has a line for each: the highest counts."""
    found: Priorities = {}
    for line in text.splitlines():
        values = [value.strip() for value in line.split("|")]
        if len(values) != len(_FACTORS) + 3 or not values[1].isdigit():
            continue
        job, total, nice, *parts = values
        factors = [f"{name} {value}" for (name, _), value in zip(_FACTORS, parts, strict=True) if value not in ("", "0")]
        factors += [f"nice {nice}"] if nice not in ("", "0") else []
        if job not in found or int(found[job][0]) < int(total):
            found[job] = total, ", ".join(factors)
    return found


def _shares() -> list[str]:
    """From 1, unused, to 0."""
    output = run_command(["sshare", "-U", "-n", "-P", "-o", "Account,FairShare"], timeout=_TIMEOUT).out
    rows = [line.strip().split("|") for line in output.splitlines()]
    return [f"your fair share in {row[0].strip()} is {row[1]}" for row in rows if len(row) == 2 and row[1]][:_MOST_ACCOUNTS]
