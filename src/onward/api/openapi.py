"""The OpenAPI as it really is: errors as they are sent, the ways to show a token, and MLflow's bodies. Made once, when it is asked for."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from onward.api.access.credentials import COOKIE
from onward.api.mlflow import openapi as mlflow
from onward.api.transport.problems import MLFLOW

Schema = dict[str, Any]

_PROBLEM: Schema = {
    "type": "object",
    "description": "RFC 9457: what went wrong, and what to do about it.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, and to what."},
        "hint": {"type": "string", "description": "What to do next."},
        "errors": {
            "type": "array",
            "description": "Everything that is wrong with the request, if that is more than one thing or has a place.",
            "items": {"type": "object", "properties": {"at": {"type": "string"}, "problem": {"type": "string"}}},
        },
    },
}
_MLFLOW_ERROR: Schema = {
    "type": "object",
    "description": "As MLflow's clients read it.",
    "required": ["error_code", "message"],
    "properties": {"error_code": {"type": "string"}, "message": {"type": "string"}},
}
_SECURITY: Schema = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token. Also at the start of the address: `/t/TOKEN/…`."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same token."},
    "basic": {"type": "http", "scheme": "basic", "description": "The token as the password, under any name."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "The cookie that a login sets; `_` and the store's key follow the name.",
    },
}


def complete_openapi(api: FastAPI) -> None:
    """From now on `api.openapi()` answers the whole description."""
    plain = api.openapi

    def openapi() -> Schema:
        schema = plain()
        if "Problem" not in schema["components"]["schemas"]:  # the first time
            _complete(schema)
        return schema

    api.openapi = openapi  # type: ignore[method-assign]


def _complete(schema: Schema) -> None:
    parts = schema["components"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's, which are never sent
        parts["schemas"].pop(name, None)
    parts["schemas"] |= {"Problem": _PROBLEM, "MLflowError": _MLFLOW_ERROR}
    parts["securitySchemes"] = _SECURITY
    schema["security"] = [{name: []} for name in _SECURITY]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            _errors(path, operation)
            if path.startswith(MLFLOW):
                _mlflow(method, path, operation)


def _errors(path: str, operation: Schema) -> None:
    kind, media = ("MLflowError", "application/json") if path.startswith(MLFLOW) else ("Problem", "application/problem+json")
    operation["responses"].pop("422", None)
    shape = {"schema": {"$ref": f"#/components/schemas/{kind}"}}
    operation["responses"]["default"] = {"description": "It failed, and why.", "content": {media: shape}}


def _mlflow(method: str, path: str, operation: Schema) -> None:
    body = mlflow.body_of(method, path)
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    for parameter in operation.get("parameters", ()):
        words = mlflow.words_for(parameter["name"])
        if words:
            parameter.setdefault("description", words)
