"""`onward doctor`: what a run needs, checked before it is needed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from onward.cli.context import JsonOption, open_hosts, repair_seen_runs
from onward.cli.output import json_to_stdout, to_stdout

if TYPE_CHECKING:
    from onward.operations.admin.doctor import Finding
    from onward.operations.hosts.all_hosts import HostReply, Hosts
    from onward.operations.hosts.answers import HostFindings

_UNUSED = "not used: "  # its programs are here, but no profile names it and it is not what runs go to
_PROGRAMS = {"slurm": "sbatch", "gridengine": "qconf"}  # Torque and PBS have a qsub too


def doctor(json: JsonOption = False) -> None:
    """Check this machine and its clusters for what a run needs."""
    from onward.operations.admin.doctor import ENDS_SOON

    findings = list(_examine(open_hosts()))
    if json:
        json_to_stdout({"schema": 1, "findings": [{"fine": fine, "what": what, "words": words} for fine, what, words in findings]})
    else:
        for fine, what, words in findings:
            mark = ("note" if words.startswith((_UNUSED, ENDS_SOON)) else "ok") if fine else "BAD"
            to_stdout(f"{mark.ljust(4)} {what.ljust(12)}  {' '.join(words.split())}")
    repair_seen_runs()
    if not all(fine for fine, _, _ in findings):
        raise typer.Exit(1)


def _examine(hosts: Hosts) -> Iterator[Finding]:
    from onward.operations.admin.doctor import examine_state, examine_tokens

    settings = hosts.context.settings
    names = [name for name in settings.names() if name != "auto"]
    wanted = {host.hostname: [name for name in names if _concerns(hosts, name, host.hostname)] for host in hosts.all}
    replies = hosts.ask(hosts.all, lambda host: host.examine(clusters=wanted[host.hostname]))
    chosen = settings.cluster("auto")[0].name
    assert replies[0].answer is not None
    python, root, disk = replies[0].answer.machine
    yield python
    yield True, "settings", f"{settings.source}" if settings.source else "no file: defaults"
    yield root
    yield examine_state(hosts.context.env)
    for reply in replies:
        for fine, name, words in _clusters(reply, wanted[reply.host.hostname], chosen):
            used = name == chosen or name in settings.clusters
            yield (fine, name, words) if fine or used else (True, name, _UNUSED + words)
    for reply in replies:
        if reply.answer and reply.answer.runs:
            fine, what, words = reply.answer.runs
            yield fine, what, f"{reply.host.hostname}: {words}" if reply.host.hostname else words
    yield disk
    for reply in replies:
        host = f"{reply.host.hostname}: " if reply.host.hostname else ""
        for fine, what, words in reply.answer.folders if reply.answer else ():
            yield fine, what, host + words
    yield from examine_tokens(hosts.context.env, hosts.context.clock.now())
    yield True, "git", shutil.which("git") or "not found: code is frozen as a plain copy"


def _clusters(reply: HostReply[HostFindings], names: list[str], chosen: str) -> Iterator[Finding]:
    """Of a host, also what Python runs there, and whether runs can be kept in each profile's folder."""
    auto = {name: " (auto)" if name == chosen else "" for name in names}
    if reply.answer is None:
        assert reply.error is not None
        hint = f" → {reply.error.hint}" if reply.error.hint else ""
        yield from ((False, name, f"{reply.error.message}{hint}{auto[name]}") for name in names)
        return
    for name in names:
        fine, _, words = reply.answer.clusters[name]
        if reply.host.hostname is None:
            yield fine, name, words + auto[name]
            continue
        python = reply.answer.machine[0][2]
        roomy, _, room, _ = reply.answer.roots[name]
        also = f"; python {python}; root {room}" if room else ""  # else no Python was there to look
        yield fine and roomy, name, f"{reply.host.hostname}: {words}{also}{auto[name]}"


def _concerns(hosts: Hosts, name: str, host: str | None) -> bool:
    """Schedulers that nobody named are looked at only where their programs are."""
    cluster = hosts.context.settings.cluster(name)[0]
    return cluster.ssh == host and (host is not None or name not in _PROGRAMS or shutil.which(_PROGRAMS[name]) is not None)
