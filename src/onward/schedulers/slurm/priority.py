"""What decides when a waiting job's turn comes: `sprio` for this job alone, and this user's own lines of `sshare`."""

from __future__ import annotations

from onward.schedulers.command import run_command

_TIMEOUT = 10.0
_FACTORS = (("fair share", "%F"), ("age", "%A"), ("size", "%J"), ("partition", "%P"), ("QOS", "%Q"))  # as weighted by the site
_MOST_ACCOUNTS = 3


def priority_words(job: str) -> str:
    """Nothing where the site orders jobs by age alone, or the job does not wait."""
    columns = "|".join(["%i", "%Y", "%N", *(column for _, column in _FACTORS)])
    rows = [line.split("|") for line in run_command(["sprio", "-h", "-j", job, "-o", columns], timeout=_TIMEOUT).out.splitlines()]
    found = next((row for row in rows if row[0].strip() == job and len(row) == len(_FACTORS) + 3), None)
    if found is None:
        return ""
    _, total, nice, *values = (value.strip() for value in found)
    factors = [f"{name} {value}" for (name, _), value in zip(_FACTORS, values, strict=True) if value not in ("", "0")]
    factors += [f"nice {nice}"] if nice not in ("", "0") else []
    made_of = f" ({', '.join(factors)})" if factors else ""
    return "; ".join([f"{total}{made_of}", *_shares()])


def _shares() -> list[str]:
    """From 1, unused, to 0."""
    output = run_command(["sshare", "-U", "-n", "-P", "-o", "Account,FairShare"], timeout=_TIMEOUT).out
    rows = [line.strip().split("|") for line in output.splitlines()]
    return [f"your fair share in {row[0].strip()} is {row[1]}" for row in rows if len(row) == 2 and row[1]][:_MOST_ACCOUNTS]
