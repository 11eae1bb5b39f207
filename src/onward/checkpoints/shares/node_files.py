"""A checkpoint whose files the ranks write by themselves on several nodes: the files of each node become its share.

A share is made of hard links, so it costs no copy, and is gathered like those of `run.checkpoint(written_by="all")`: rank is
the number of the node, world the number of nodes. Each node but the first leaves a note in the store once it writes files of
its own; with no such note, what the first node has is the whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from onward.checkpoints.publishing.publish import partial_of
from onward.checkpoints.watching import file_names
from onward.checkpoints.watching.candidate import Candidate
from onward.model.checkpoint import CheckpointName
from onward.sdk import contract
from onward.sdk.atomic_files import make_folder_in, same_file, write_whole
from onward.sdk.rank_shares import commit_share, partial_share
from onward.sdk.ranks import Ranks

_FOLDER = ".nodes-leg-"


@dataclass(frozen=True, kw_only=True)
class NodeFiles:
    """What a node other than the first says of the files that its ranks write by themselves."""

    node: int  # 1 is the second node of the job
    host: str
    numbered: bool = False
    plain: tuple[str, ...] = ()  # without a number, and no settings or records: nobody knows to which step they belong


def write_node_note(store: Path, leg: int, said: NodeFiles) -> None:
    folder = store / f"{_FOLDER}{leg:04d}"
    make_folder_in(store.parent, folder)
    write_whole(folder / f"node-{said.node:05d}.json", json.dumps(asdict(said)))


def read_node_notes(store: Path, leg: int) -> list[NodeFiles]:
    """By every node that writes files of its own."""
    folder = store / f"{_FOLDER}{leg:04d}"
    if not folder.is_dir():
        return []
    with contextlib.suppress(OSError):
        (folder / ".looked").write_bytes(b"")  # a network file system that has to write here shows what others wrote
    found = []
    for path in sorted(folder.glob("node-*.json")):
        try:
            note = json.loads(path.read_bytes())
            found.append(NodeFiles(node=int(note["node"]), host=note["host"], numbered=note["numbered"], plain=tuple(note["plain"])))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def remove_node_notes(store: Path, *, before_leg: int) -> None:
    """Notes of earlier legs."""
    for folder in store.glob(f"{_FOLDER}*"):
        number = folder.name.removeprefix(_FOLDER)
        if number.isdigit() and int(number) < before_leg:
            shutil.rmtree(folder, ignore_errors=True)


def state_files(plain: Iterable[str]) -> tuple[str, ...]:
    """Those that may be part of a checkpoint, and not only lie beside it."""
    return tuple(sorted(name for name in plain if not file_names.is_record(name) and not file_names.may_stay(name)))


def why_unmatched(others: Iterable[NodeFiles], candidate: Candidate) -> str:
    """Why the files of all nodes cannot be put together by their names; empty where they can."""
    for said in others:
        missing = [name for name in said.plain if name not in candidate.sources]
        if missing:
            return f"node {said.host} writes {missing[0]}, and its name does not contain the step; {_ADVICE}"
        if said.numbered and candidate.step is None:
            return f"the names of the files on the first node do not contain the step, but those on node {said.host} do; {_ADVICE}"
    return ""


_ADVICE = 'put the step into the names of all files, or save with run.checkpoint(step, written_by="all")'


def make_share(
    candidate: Candidate, step: int, checkpoints: Path, *, node: int, nodes: int, metrics: Mapping[str, float] | None = None
) -> None:
    """The files of a complete checkpoint on this node, as its share of the step."""
    sources = candidate.sources if node == 0 else {name: candidate.sources[name] for name, _, _ in candidate.fingerprint}
    _commit(sources, step, checkpoints, node=node, nodes=nodes, metrics=metrics or {})


def make_empty_shares(step: int, checkpoints: Path, without: Sequence[int], *, nodes: int) -> None:
    """For nodes that have nothing of this step."""
    for node in without:
        _commit({}, step, checkpoints, node=node, nodes=nodes, metrics={})


def _commit(sources: Mapping[str, Path], step: int, checkpoints: Path, *, node: int, nodes: int, metrics: Mapping[str, float]) -> None:
    partial = partial_share(checkpoints, step, node)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for name, source in sources.items():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            if source.is_file():  # links to folders beside it are not carried by shares
                same_file(Path(os.path.realpath(source)), partial / name)
        note = {"seconds": 0.0, "metrics": dict(metrics), "made_by": "files"}
        commit_share(partial, checkpoints, step, Ranks(node, nodes), note)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class WaitingStep:
    """A step of which some nodes have put their files into the store."""

    step: int
    there: frozenset[int]  # their numbers
    since: float  # the last was put, unix seconds


def waiting_steps(store: Path, leg: int) -> list[WaitingStep]:
    found = []
    for notes in store.glob(f".leg-{leg:04d}.step-*/{contract.SHARES}"):
        name = CheckpointName.parse(notes.parent.name[1:].rsplit(".", 1)[0])
        there, since = set(), 0.0
        for path in notes.glob("rank-*.json") if name and notes.parent.name == partial_of(name) else ():
            try:
                if json.loads(path.read_bytes()).get("made_by") == "files":
                    there.add(int(path.stem.removeprefix("rank-")))
                    since = max(since, path.stat().st_mtime)
            except (OSError, ValueError):
                continue
        if name and there:
            found.append(WaitingStep(step=name.step, there=frozenset(there), since=since))
    return found
