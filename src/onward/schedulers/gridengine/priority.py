"""What decides when a waiting job's turn comes: this user's own lines of `qstat -pri`."""

from __future__ import annotations

_WORDS = (("ntckts", "tickets"), ("nurg", "urgency"), ("npprior", "-p"))  # each from 0 to 1, as weighted by the site


def priority_words(listed: str, job: str) -> str:
    """Of what `qstat -pri` printed. Nothing where the job is not in it."""
    header, *rows = [line.split() for line in listed.splitlines() if line.strip()] or [[]]
    found = next((dict(zip(header, row, strict=False)) for row in rows if row[0] == job), None)
    if found is None or "prior" not in found:
        return ""
    factors = [f"{word} {found[name]}" for name, word in _WORDS if name in found]
    return f"{found['prior']} ({', '.join(factors)}; each 0 to 1)" if factors else found["prior"]
