"""Files without a number beside numbered checkpoints: which of them go with one, and which it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from onward.checkpoints.watching import file_names
from onward.checkpoints.watching.candidate import Candidate
from onward.checkpoints.watching.folder_look import FolderLook
from onward.checkpoints.watching.listing import FileVersion

_RESTLESS_QUIET = 60.0  # seconds: a file that never rests is carried only after so long a rest


class UnnumberedFiles:
    """Carried if they are closed and quiet now. One that is just being written, or that came anew with each of the last ones,
    is waited for, for a while; one that does not rest in that time is never waited for again."""

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._last: dict[str, FileVersion] = {}  # as they went with the last one
        self._renewed: Counter[str] = Counter()  # for how many in a row
        self._restless: set[str] = set()
        self._held_since: dict[int, float] = {}

    def begin_with(self, files: Iterable[FileVersion]) -> None:
        self._last = {seen[0]: seen for seen in files}

    def lasting(self, plain: list[FileVersion]) -> list[FileVersion]:
        """All but files that grow all the time; all, where there is nothing else."""
        return [seen for seen in plain if not self._grows(seen[0])] or plain

    def going_with(self, look: FolderLook, step: int, *, patience: float) -> list[FileVersion] | None:
        """What goes with this one. None: something that may belong to it is still to be written."""
        still = [seen for seen in look.plain if look.rests(seen, _RESTLESS_QUIET if seen[0] in self._restless else self._quiet)]
        resting = {seen[0] for seen in still}
        awaited = [seen[0] for seen in look.plain if not self._grows(seen[0]) and (seen[0] not in resting or self._is_due(seen))]
        if not awaited or look.closed:
            return still
        if look.now - self._held_since.setdefault(step, look.now) < patience:
            return None
        self._restless |= {name for name in awaited if name not in resting}
        return still

    def went_with(self, candidate: Candidate) -> None:
        own = {seen[0] for seen in candidate.fingerprint}
        now = {seen[0]: seen for seen in candidate.whole if seen[0] not in own}
        if not candidate.again:
            for name, seen in now.items():
                self._renewed[name] = self._renewed[name] + 1 if name in self._last and self._last[name] != seen else 0
        self._last = now
        if candidate.step is not None:
            self._held_since.pop(candidate.step, None)

    def moved(self, candidate: Candidate, plain: list[FileVersion]) -> None:
        """The candidate could not be copied in peace: those that changed meanwhile are not to be in the way again."""
        own = {seen[0] for seen in candidate.fingerprint}
        now = {seen[0]: seen for seen in plain}
        self._restless |= {seen[0] for seen in candidate.whole if seen[0] not in own and now.get(seen[0]) != seen}

    def new(self, look: FolderLook) -> list[str]:
        """Those written after the last checkpoint that they went with."""
        return [seen[0] for seen in look.plain if not self._grows(seen[0]) and self._last.get(seen[0]) != seen]

    def _is_due(self, seen: FileVersion) -> bool:
        return self._renewed[seen[0]] > 1 and self._last.get(seen[0]) == seen and not file_names.may_stay(seen[0])

    def _grows(self, name: str) -> bool:
        return file_names.is_record(name) or name in self._restless
