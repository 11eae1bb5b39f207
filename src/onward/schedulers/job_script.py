"""The job script: directives by the scheduler, then a fixed body. No text of the user's is ever shell source.

The body waits until the run's folder can be used: storage that is full, read-only or away for a moment must not end a job. It
opens the log itself, since a scheduler that cannot open a job's output ends the job before a line of it has run. Then it looks for a
Python that the supervisor can run on, and becomes it; what Python starts with is in the script, and waits for the archive once more,
since Python ends at once where its program cannot be opened. Where there is none, nobody else could say so: the script itself takes the leg
and writes its end into the run's journal, as events like any other.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

OLDEST = (3, 11)
_NEWEST = 14
STORAGE_PATIENCE = "ONWARD_STORAGE_PATIENCE"  # seconds that the supervisor may wait for the run's folder
STORAGE_WAITED = "ONWARD_STORAGE_WAITED"  # seconds that jobs before this one have waited for it, for the same leg
NAMES = (*(f"python3.{minor}" for minor in range(_NEWEST, OLDEST[1] - 1, -1)), "python3", "python")  # tried last, on the PATH

# No `{}` but the ones to fill in: braces of the shell's own and of JSON are doubled.
_BODY = """\
# Written by Onward: one leg of a run. What to run, and how, is in the run's folder; change nothing here.
run={run}
archive="$run/params/{archive}"
log={log}
export {patience_variable}={patience} {waited_variable}={waited}
deleted() {{
    [ ! -e "$run" ] || return 1
    set -- "${{run%/*}}"/*
    [ -e "$1" ]
}}
front='import sys, time, zipimport
sys.argv = sys.argv[1:]
sys.path[0] = archive = sys.argv[0]
left = {patience}
while True:
    try:
        code = zipimport.zipimporter(archive).get_code("__main__")
        break
    except (ImportError, OSError):
        if left == 0:
            raise
        left -= 1
        time.sleep(1)
exec(code)'
SECONDS=0
until {{ : <"$archive" >>"$log"; }} 2>/dev/null || [ "$SECONDS" -ge {patience} ]; do
    ! deleted || exit 1
    sleep 1
done
if {{ : >>"$log"; }} 2>/dev/null; then
    exec >>"$log" 2>&1
fi
found=
for python in {pythons}; do
    command -v "$python" >/dev/null 2>&1 || continue
    if "$python" -ES -c 'import sys; sys.exit(sys.version_info < ({oldest}))' </dev/null >/dev/null 2>&1; then
        exec "$python" -E -c "$front" "$archive" leg "$run" {leg}
    fi
    version=$("$python" -ES -c 'import sys; sys.stdout.write("%d.%d.%d" % sys.version_info[:3])' </dev/null 2>/dev/null)
    case "$version" in
        "" | *[!0-9.]*) found="$found${{found:+, }}$python does not start" ;;
        *) found="$found${{found:+, }}$python is $version" ;;
    esac
done

# No suitable Python here. Claim the leg, as the supervisor would, and record how it ended.
clean() {{ tr -cd 'A-Za-z0-9 ._/,:+=@~()-'; }}
host=$(uname -n | clean)
job=$(printf %s "${{SLURM_JOB_ID:-${{JOB_ID:-}}}}" | clean)
found=$(printf %s "${{found:-none was found}}" | clean)
reason="Onward needs Python {needed} or newer on the node, and $host has none: $found"
echo "leg {leg}: $reason" >&2
[ ! -e "$run/params/done.json" ] || exit 0
claim="$run/params/claims/{claim}"
mine="$run/params/claims/.{claim}.$host.$$"
printf '{{"leg": {leg}, "job": "%s", "host": "%s", "pid": %d}}' "$job" "$host" "$$" >"$mine"
ln "$mine" "$claim" 2>/dev/null
taken=$?
rm -f "$mine"
[ "$taken" -eq 0 ] || exit 0
now=$(date +%s)
advice="install Python {needed} or newer on the nodes, or set python in the cluster profile to one that they have"
{{
    printf '{{"kind":"claimed","leg":{leg},"at":%s,"job":"%s","hosts":["%s"],"deadline":null}}\\n' "$now" "$job" "$host"
    printf '{{"kind":"ended","leg":{leg},"at":%s,"end":"crashed","reason":"%s","evidence":"%s"}}\\n' "$now" "$reason" "$advice"
{closing}}} >>"$run/journal/{journal}"
exit 1
"""

# A run whose very first leg cannot begin would fail the same way again. Later ones may find a better node.
_CLOSING = """\
    printf '{{"kind":"closed","leg":{leg},"at":%s,"state":"failed","cause":"%s","next":"%s"}}\\n' \\
        "$now" "$reason" "$advice; then submit again"
"""


def job_script(
    directives: Sequence[str],
    *,
    run: Path,
    archive: str,
    log: Path,
    leg: int,
    pythons: Sequence[str],
    patience: float = 0.0,
    waited: float = 0.0,
) -> str:
    """`pythons`: programs to try first, in this order; then whatever the PATH of the node has.

    `patience`: seconds to wait for the run's folder. `waited`: those that jobs before this one have waited, for the same leg.
    """
    body = _BODY.format(
        run=shlex.quote(str(run)),
        pythons=" ".join(shlex.quote(python) for python in dict.fromkeys((*pythons, *NAMES))),
        oldest=", ".join(map(str, OLDEST)),
        needed=".".join(map(str, OLDEST)),
        archive=archive,
        log=shlex.quote(str(log)),
        patience=math.ceil(patience),
        waited=math.ceil(waited),
        patience_variable=STORAGE_PATIENCE,
        waited_variable=STORAGE_WAITED,
        leg=leg,
        claim=f"leg-{leg:04d}.json",
        journal=f"leg-{leg:04d}.jsonl",
        closing=_CLOSING.format(leg=leg) if leg == 1 else "",
    )
    return "\n".join(["#!/bin/bash", *directives, body])
