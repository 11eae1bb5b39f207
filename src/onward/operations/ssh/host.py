"""A host that is reached through ssh: every verb is asked of the agent there, in one call."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from onward.errors import HostUnreachable, InvalidInput, NoPython, OnwardError, SubmitUnclear
from onward.model.cluster import ClusterSnapshot
from onward.model.identity import new_id
from onward.model.plain_data import value_from_json, value_to_json
from onward.model.spec import RunDraft, RunSpec
from onward.operations.context import OperationsContext
from onward.operations.fetch.result_files import from_json
from onward.operations.hosts.answers import (
    ArrivalFolder,
    CancelResults,
    EntrustedRun,
    HostFindings,
    OpenRuns,
    PreviewedRun,
    ResumedRun,
    RunAfterAct,
    RunMatches,
    RunRecord,
    RunRecords,
    SubmittedRun,
)
from onward.operations.hosts.local import Data
from onward.operations.ssh.call import LOOK, PATIENCE, SshCaller
from onward.operations.ssh.code_transfer import carry_code, drop_links
from onward.operations.submit.code_snapshot import CodeSnapshot, freeze_code
from onward.operations.submit.missing_paths import named_words, note_on_missing
from onward.operations.tracker_access.server import register_run, tracker_settings
from onward.schedulers.cluster_settings import ClusterSettings

_PYTHON = "python3"
_SUBMIT = 300.0
_TRIES = 3
_LONGEST_PAUSE = 30.0

if TYPE_CHECKING:
    from onward.operations.repair.tend import TendReport

Say = Callable[[str], None]
T = TypeVar("T")


class RemoteHost:
    """`profiles` are those of this host: the agent there knows no other. `say` gets the words that are no answer."""

    def __init__(self, context: OperationsContext, host: str, profiles: list[ClusterSettings], *, say: Say) -> None:
        self.hostname = host
        self._context = context
        self._profiles = profiles
        self._say = say
        self._callers: dict[str, SshCaller] = {}  # by Python, those that a profile names first
        for profile in sorted(profiles, key=lambda profile: profile.python is None):
            setting = f"clusters.{profile.name}.python" if profile.python else ""
            python = profile.python or _PYTHON
            self._callers.setdefault(python, SshCaller(host, python=python, env=context.env, setting=setting))

    @property
    def names(self) -> list[str]:
        """Of its profiles."""
        return [profile.name for profile in self._profiles]

    # ── look and act ──────────────────────────────────────────────────────────

    def runs(self, *, state: str | None, newest: int | None, fold: bool = False) -> RunRecords:
        answer = self._value(RunRecords, "runs", within=LOOK, state=state, newest=newest, fold=fold)
        return replace(answer, roots=self._named(answer.roots))

    def matches(self, *, text: str) -> RunMatches:
        answer = self._value(RunMatches, "matches", within=LOOK, text=text)
        return replace(
            answer, matches=tuple(replace(match, host=self.hostname) for match in answer.matches), roots=self._named(answer.roots)
        )

    def _named(self, roots: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{self.hostname}:{root}" for root in roots)

    def show(self, *, run: str) -> RunRecord:
        record: RunRecord = self._ask("show", run=run)
        return record

    def cancel(self, *, run: str) -> RunAfterAct:
        return self._value(RunAfterAct, "cancel", run=run)

    def open_runs(self, *, words: str) -> OpenRuns:
        return self._value(OpenRuns, "open_runs", within=LOOK, words=words)

    def cancel_many(self, *, folders: list[str], silent: list[str]) -> CancelResults:
        return self._value(CancelResults, "cancel_many", within=_SUBMIT, folders=folders, silent=silent)

    def stop(self, *, run: str) -> RunAfterAct:
        return self._value(RunAfterAct, "stop", run=run)

    def resume(self, *, run: str, changes: Mapping[str, Any]) -> ResumedRun:
        resumed = self._value(ResumedRun, "resume", run=run, changes=dict(changes))
        self._entrust(run, None)
        return resumed

    def adopt(self, *, run: str) -> RunAfterAct:
        return self._value(RunAfterAct, "adopt", run=run)

    def checkpoints(self, *, run: str, verify: bool) -> Sequence[RunRecord]:
        records: list[RunRecord] = self._ask("checkpoints", within=24 * 3600.0 if verify else PATIENCE, run=run, verify=verify)
        return records

    def own_files(self, *, run: str) -> Sequence[RunRecord]:
        records: list[RunRecord] = self._ask("own_files", run=run)
        return records

    def tend(self) -> TendReport:
        from onward.operations.repair.tend import TendReport

        return self._value(TendReport, "tend", within=_SUBMIT)

    def snapshot(self, *, cluster: str) -> ClusterSnapshot:
        return self._value(ClusterSnapshot, "snapshot", of=cluster, cluster=cluster)

    def examine(self, *, clusters: list[str]) -> HostFindings:
        """Each profile by its own Python: one that is not there is said of it alone."""
        findings = HostFindings(clusters={}, roots={})
        failed: dict[str, OnwardError] = {}
        for python in dict.fromkeys(profile.python for profile in self._profiles if profile.name in clusters):
            mine = [profile.name for profile in self._profiles if profile.name in clusters and profile.python == python]
            try:
                answer = self._value(HostFindings, "examine", of=mine[0], clusters=mine)
            except NoPython as error:
                failed |= dict.fromkeys(mine, error)
                continue
            findings = replace(answer, clusters={**findings.clusters, **answer.clusters}, roots={**findings.roots, **answer.roots})
        if failed and not findings.clusters:
            raise next(iter(failed.values()))
        return replace(
            findings,
            clusters={**findings.clusters, **{name: (False, name, f"{why.message} → {why.hint}") for name, why in failed.items()}},
            roots={**findings.roots, **dict.fromkeys(failed, (False, "root", "", ""))},
        )

    # ── follow ────────────────────────────────────────────────────────────────

    def watch(self, *, run: str) -> Iterator[Data]:
        last: Data = {}
        for piece in self._follow("watch", {"run": run}):
            last = piece or last
            if last:
                yield last
            if last.get("closed"):
                return

    def logs(self, *, run: str, streams: list[str], leg: int | None, supervisor: bool, lines: int | None, follow: bool) -> Iterator[Data]:
        """From where the last piece ended, after a connection that broke."""
        given: Data = {"run": run, "streams": streams, "leg": leg, "supervisor": supervisor, "follow": follow}
        given |= {"lines": lines, "offsets": {}}
        for piece in self._follow("logs", given, again=follow):
            if piece and "offsets" in piece:
                given |= {"offsets": {**given["offsets"], **piece["offsets"]}, "lines": None}
            yield piece or {}

    def result_files(self, *, run: str, checkpoints: str | None) -> Iterator[Data]:
        for piece in self._follow("result_files", {"run": run, "checkpoints": checkpoints}, again=False):
            yield piece or {}

    def file_pieces(self, *, run: str, files: list[list[Any]]) -> Iterator[Data]:
        """From the byte where the last piece ended, after a connection that broke."""
        left = list(files)
        for piece in self._follow("file_pieces", {"run": run, "files": left}):
            yield from_json(piece or {})
            if piece and ("end" in piece or "problem" in piece):
                del left[0]
            elif piece and "data" in piece:
                left[0] = [left[0][0], piece["to"], *left[0][2:]]
            elif piece:
                left[0] = [piece["path"], piece["at"], piece["size"], piece["modified"]]

    def _follow(self, verb: str, given: Data, *, again: bool = True) -> Iterator[Data | None]:
        """The pieces of one long call; of another, where that broke. Only what a person has to see to ends it."""
        pause, problem = 1.0, ""
        while True:
            try:
                for piece in self._stream(self._request(verb, given)):
                    if problem:
                        self._say(f"{self.hostname} answers again")
                    pause, problem = 1.0, ""
                    yield piece
                return
            except HostUnreachable as error:
                if not again:
                    raise
                if error.message != problem:
                    self._say(f"{error.message}; retrying; the run continues meanwhile")
                problem = error.message
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    # ── submit ────────────────────────────────────────────────────────────────

    def preview(self, draft: RunDraft, *, cwd: Path) -> PreviewedRun:
        return self._value(PreviewedRun, "preview", of=draft.cluster, draft=self._sent(draft), workdir=str(cwd))

    def submit(self, draft: RunDraft, *, cwd: Path) -> SubmittedRun:
        """The code is frozen here and carried there; the run is made there, with nothing of this machine's environment."""
        id, sent = new_id(), self._sent(draft)
        if not draft.freeze:
            frozen = CodeSnapshot(workdir=str(cwd), facts={"frozen": False}, diff="")
            return self._entrusted(self._make(id, sent, of=draft.cluster, folder="", frozen=frozen), draft.cluster)
        folder = self._value(ArrivalFolder, "arrive", of=draft.cluster, id=id, draft=sent).folder
        try:
            frozen = self._carry(draft, cwd, folder)
            submitted = self._make(id, sent, of=draft.cluster, folder=folder, frozen=frozen)
        except (HostUnreachable, SubmitUnclear):  # the agent may be at it
            raise
        except BaseException:
            with suppress(OnwardError):
                self._value(ArrivalFolder, "discard", folder=folder)
            raise
        return self._entrusted(submitted, draft.cluster)

    def draft(self, *, run: str) -> RunDraft:
        return self._value(RunDraft, "draft", run=run)

    def clone_preview(self, draft: RunDraft, *, run: str) -> PreviewedRun:
        return self._value(PreviewedRun, "clone_preview", of=draft.cluster, draft=self._sent(draft), run=run)

    def clone(self, draft: RunDraft, *, run: str) -> SubmittedRun:
        """Asked once: there is nothing by which a second asking would be known as the same."""
        try:
            submitted = self._value(SubmittedRun, "clone", of=draft.cluster, within=_SUBMIT, draft=self._sent(draft), run=run)
        except HostUnreachable as error:
            hint = f"run onward runs when {self.hostname} answers again"
            raise SubmitUnclear(f"it is unknown whether a clone of {run} was queued: {error.message}", hint=hint) from error
        return self._entrusted(submitted, draft.cluster)

    def _carry(self, draft: RunDraft, cwd: Path, folder: str) -> CodeSnapshot:
        with tempfile.TemporaryDirectory(prefix="onward-") as scratch:
            code = Path(scratch) / "code"
            alone, words = draft.inputs is not None, named_words(draft)
            frozen = freeze_code(cwd, code, exclude=draft.exclude, runs=self._context.root, alone=alone, words=words)
            left = drop_links(code)
            missing = () if alone else note_on_missing(cwd, code / frozen.workdir, words, host=self.hostname)
            if left:
                named = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
                self._say(f"not copied to {self.hostname}, because it is data or excluded: {named}")
            way = carry_code(self._caller_of(draft.cluster), code, folder, request=self._request("unpack", {"folder": folder}))
            if way:
                self._say(way)
        facts = {**frozen.facts, "from": f"{socket.gethostname()}:{frozen.facts['from']}"}
        return replace(frozen, facts=facts, notes=(*frozen.notes, *missing))

    def _entrusted(self, submitted: SubmittedRun, of: str) -> SubmittedRun:
        self._entrust(submitted.folder, of)
        return submitted

    def _entrust(self, folder: str, of: str | None) -> None:
        """Give a run's jobs a token of the tracker's where one is named: the user's own stays here."""
        named = tracker_settings(self._context)
        if named:
            try:
                secret = register_run(named, self._value(RunSpec, "spec", of=of, run=folder))
                self._value(EntrustedRun, "entrust", of=of, run=folder, secret=secret)
            except (OnwardError, OSError) as error:
                self._say(f"the run starts, but its jobs cannot send to {named.url}: {error}")

    def _make(self, id: str, sent: Data, *, of: str, folder: str, frozen: CodeSnapshot) -> SubmittedRun:
        """Asked again after a connection that broke: the agent knows the run by its id, and makes it once."""
        for attempt in range(_TRIES):
            try:
                return self._value(
                    SubmittedRun, "submit", of=of, within=_SUBMIT, id=id, draft=sent, folder=folder, frozen=value_to_json(frozen)
                )
            except HostUnreachable as error:
                if attempt == _TRIES - 1:
                    raise SubmitUnclear(
                        f"it is unknown whether the run {id} was queued: {error.message}",
                        hint=f"run onward show {id} when {self.hostname} answers again",
                    ) from error
                self._say(f"{error.message}; retrying")
                time.sleep(1 + attempt)
        raise AssertionError("unreachable")

    def _sent(self, draft: RunDraft) -> Data:
        environment = draft.environment
        for kind, folder in (("venv", environment.venv), ("conda", environment.conda if "/" in (environment.conda or "") else None)):
            if folder and not folder.startswith(("/", "~", "$")):
                raise InvalidInput(
                    f"environment.{kind}: {folder} is relative to this machine's folder", hint=f"write its full path on {self.hostname}"
                )
        return dict(value_to_json(draft))

    # ── ask ───────────────────────────────────────────────────────────────────

    def _value(self, kind: type[T], verb: str, *, of: str | None = None, within: float = PATIENCE, **given: Any) -> T:
        return value_from_json(kind, self._ask(verb, of=of, within=within, **given))

    def _ask(self, verb: str, *, of: str | None = None, within: float = PATIENCE, **given: Any) -> Any:
        """`of`: what concerns one profile is asked by the Python it names; the rest by the first that is there."""
        request = self._request(verb, given)
        if self._python_of(of):
            return self._caller_of(of).call(request, within=within)
        return self._by_any(lambda caller: caller.call(request, within=within))

    def _stream(self, request: Data) -> Iterator[Data | None]:
        def begin(caller: SshCaller) -> Iterator[Data | None]:
            pieces = caller.stream(request)
            return chain([next(pieces, None)], pieces)

        return self._by_any(begin)

    def _by_any(self, ask: Callable[[SshCaller], T]) -> T:
        first: NoPython | None = None
        for python, caller in list(self._callers.items()):
            try:
                answer = ask(caller)
            except NoPython as error:
                first = first or error
                continue
            if first:
                self._callers = {python: caller} | {
                    p: c for p, c in self._callers.items() if p != python
                }  # the next question goes the way that works
            return answer
        assert first
        raise first

    def _caller_of(self, cluster: str | None) -> SshCaller:
        return self._callers[self._python_of(cluster) or next(iter(self._callers))]

    def _python_of(self, cluster: str | None) -> str | None:
        return next((profile.python for profile in self._profiles if profile.name == cluster), None)

    def _request(self, verb: str, given: Data) -> Data:
        named = tracker_settings(self._context)
        profiles = [value_to_json(profile) for profile in self._profiles]
        return {"profiles": profiles, "tracker": named.url if named else None, "verb": verb, "with": given}
