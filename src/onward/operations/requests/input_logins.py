"""Logins for inputs: a token when a request is submitted, and another one when its job is refused with that."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from onward.errors import OnwardError
from onward.model.requests.request import Request, RequestRecord
from onward.operations.requests.context import InputLogin, RequestContext
from onward.rundir.layout import RunDir
from onward.rundir.request_inputs import answer_token, is_token_asked, read_inputs

log = logging.getLogger(__name__)

_SILENT_FOR = 5.0  # seconds in which an application that did not answer is left alone
_LOOK_EVERY = 5.0  # seconds between looks for jobs that ask


class InputLogins:
    def __init__(self, parts: RequestContext) -> None:
        self._parts = parts
        self._silent: dict[str, tuple[float, OnwardError]] = {}  # by protocol: until when its application is left alone
        self._looked = 0.0

    def login(self, asked: Request, *, refused: str = "") -> InputLogin | None:
        """An application that does not answer is left alone for a while, whoever asks: each question would wait for it again."""
        until, trouble = self._silent.get(asked.protocol, (0.0, None))
        if trouble and self._parts.now() < until:
            raise trouble
        try:
            return self._parts.settings.login(asked, refused=refused)
        except OnwardError as error:
            if error.transient:
                self._silent[asked.protocol] = (self._parts.now() + _SILENT_FOR, error)
            raise

    def renew(self, records: Sequence[RequestRecord]) -> None:
        """Give the jobs that ask for another token one, now and then."""
        if self._parts.now() - self._looked < _LOOK_EVERY:
            return
        self._looked = self._parts.now()
        for record in records:
            if record.folder and record.request.inputs:
                self._renew(record, RunDir(Path(record.folder)))

    def _renew(self, record: RequestRecord, dir: RunDir) -> None:
        try:
            order = read_inputs(dir) if is_token_asked(dir) else None
            if order is not None:
                answer_token(dir, self._another(record.request, order.token))
        except (OnwardError, OSError, ValueError) as error:  # the job waits for a while, and is looked at again
            log.warning("request %s: its job asks for another token: %s", record.id, error)

    def _another(self, asked: Request, refused: str) -> str:
        """The same one where there is no other."""
        try:
            login = self.login(asked, refused=refused)
        except OnwardError as error:
            if error.transient:
                raise
            log.warning("request %s: cannot log in again for its inputs: %s", asked.id, error)
            return refused
        return login.token if login else refused
