"""The one answer of a request: also where several gateways, each with its own store, have the same request.

Before a store settles a request, it marks the answer in the root. Whoever finds the mark of another store settles the request as that one
did, and sends nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from onward.errors import OnwardError, StorageError
from onward.model.requests.outcome import Outcome
from onward.model.requests.request import RequestRecord
from onward.operations.requests.context import RequestContext
from onward.rundir.root.once_per_request import AnswerMark, find_answer, mark_answer
from onward.rundir.root.presence import is_seen

log = logging.getLogger(__name__)


class RequestAnswers:
    def __init__(self, parts: RequestContext) -> None:
        self._parts = parts

    def settle(self, record: RequestRecord, outcome: Outcome) -> bool:
        """False: it had its answer already."""
        return self._settle_as(record, self._marked(record, self._without_places(record, outcome)))

    def settled_elsewhere(self, record: RequestRecord) -> bool:
        """Whether it was answered before, by another gateway or by this one just before it died; then it is settled here too."""
        found = find_answer(self._parts.context.roots, record.id)
        return found is not None and _is_of(found, record) and self._settle_as(record, found)

    def is_of_another(self, record: RequestRecord) -> bool:
        """Whether another request with its id was answered before."""
        found = find_answer(self._parts.context.roots, record.id)
        return found is not None and not _is_of(found, record)

    def _without_places(self, record: RequestRecord, outcome: Outcome) -> Outcome:
        """Senders need not know where things are on this site."""
        context = self._parts.context
        known = [(record.folder or "", "RUN"), *((str(root), "RUNS") for root in context.roots), (context.env.get("HOME", ""), "~")]
        places = [(place, name) for place, name in known if len(place) > 1]

        def told(text: str) -> str:
            for place, name in places:
                text = text.replace(place, name)
            return text

        return replace(outcome, reason=told(outcome.reason), next=told(outcome.next), log_tail=told(outcome.log_tail))

    def _settle_as(self, record: RequestRecord, mark: AnswerMark) -> bool:
        outcome, own = Outcome.from_json(mark.outcome), mark.store == self._parts.requests.id
        if not own:
            log.info("request %s was answered by another gateway (%s)", record.id, outcome.state)
        return self._parts.requests.settle(record, outcome, at=self._parts.now(), send=own)

    def _marked(self, record: RequestRecord, outcome: Outcome) -> AnswerMark:
        """A root that is away or full keeps nobody from an answer: then it is only not known to other gateways."""
        body, store = record.request.body_sha256, self._parts.requests.id
        mark = AnswerMark(request=record.id, body_sha256=body, store=store, outcome=outcome.to_json())
        try:
            found = find_answer(self._parts.context.roots, record.id)
            if found and not _is_of(found, record):
                return mark
            root = next((root for root in self._roots(record) if is_seen(root)), None)
            return found or (mark_answer(root, mark) if root else mark)
        except (OSError, StorageError) as error:
            log.warning("cannot mark the answer of request %s for other gateways: %s", record.id, error)
            return mark

    def _roots(self, record: RequestRecord) -> Iterator[Path]:
        """Where its run is, or would have been: the same for every gateway with these settings."""
        if record.folder:
            yield Path(record.folder).parent
            return
        try:
            cluster = self._parts.recipes.get(record.request.recipe).draft.cluster
            yield self._parts.root_for(cluster)
        except OnwardError:
            yield self._parts.context.root


def _is_of(mark: AnswerMark, record: RequestRecord) -> bool:
    return mark.body_sha256 == record.request.body_sha256
