"""Errors become answers here and nowhere else: RFC 9457 problems, and MLflow's own shape under MLflow's paths."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from onward import errors

MLFLOW = ("/api/2.0/", "/api/3.0/", "/ajax-api/", "/v1/traces")
RETRY_AFTER = "2"  # seconds; for what may be better soon

_STATUS: tuple[tuple[type[errors.OnwardError], int], ...] = (
    (errors.TooLarge, 413),
    (errors.InvalidInput, 400),
    (errors.NotFound, 404),
    (errors.NotAllowed, 403),
    (errors.Conflict, 409),
    (errors.RunFailed, 409),
    (errors.SubmitRefused, 422),
    (errors.TooMany, 429),
    (errors.NotOffered, 501),
)

_MLFLOW_CODES = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    405: "ENDPOINT_NOT_FOUND",
    409: "RESOURCE_ALREADY_EXISTS",
    413: "INVALID_PARAMETER_VALUE",
    421: "PERMISSION_DENIED",
    429: "REQUEST_LIMIT_EXCEEDED",
    503: "TEMPORARILY_UNAVAILABLE",
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What went wrong, and what to do about it."""

    status: int
    detail: str
    hint: str = ""
    errors: Sequence[Mapping[str, str]] = ()  # one a field that is wrong: `at` and `problem`
    code: str = ""  # MLflow's word, where the table's is not the right one
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, path: str) -> tuple[bytes, dict[str, str]]:
        """Body and headers, in the shape the path's clients read."""
        headers = dict(self.headers)
        if self.status in (429, 503):
            headers.setdefault("retry-after", RETRY_AFTER)
        if path.startswith(MLFLOW):
            code = self.code or _MLFLOW_CODES.get(self.status, "INTERNAL_ERROR" if self.status >= 500 else "BAD_REQUEST")
            words = f"{self.detail}; {self.hint}" if self.hint else self.detail
            return json.dumps({"error_code": code, "message": words}).encode(), {"content-type": "application/json", **headers}
        body: dict[str, Any] = {"type": "about:blank", "title": _title(self.status), "status": self.status, "detail": self.detail}
        if self.hint:
            body["hint"] = self.hint
        if self.errors:
            body["errors"] = [dict(error) for error in self.errors]
        return json.dumps(body).encode(), {"content-type": "application/problem+json", **headers}


def problem_of(error: errors.OnwardError) -> Problem:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 503 if error.transient else 500)
    lines = error.message.splitlines()
    matches = [match for match in map(_PLACED.fullmatch, lines) if match]
    wrong = [{"at": match["at"], "problem": match["problem"]} for match in matches] if isinstance(error, errors.InvalidInput) else []
    return Problem(status=status, detail=error.message, hint=error.hint, errors=wrong if len(matches) == len(lines) else ())


_PLACED = re.compile(r"(?P<at>(?:file:\d+: )?[\w.-]+): (?P<problem>.+)")  # as the params file's problems are told, a line each


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
