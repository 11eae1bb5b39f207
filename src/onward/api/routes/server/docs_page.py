"""The front page and the list of all calls, made on the server: they work offline and need no script."""

from __future__ import annotations

import html
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    '<meta name="viewport" content="width=device-width"></head><body>'
)


@router.get("/")
def home(request: Request) -> HTMLResponse:
    root = html.escape(request.scope.get("root_path", ""), quote=True)
    return HTMLResponse(
        f"{_HEAD.format(title='Onward')}<h1>Onward</h1><p>You are logged in. "
        f'<a href="{root}/docs">The API of this server</a>; <a href="{root}/api/v1/runs">its runs</a>.</p></body></html>'
    )


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    schema = request.app.openapi()
    parts = [
        _HEAD.format(title="Onward: the API"),
        f"<h1>{html.escape(schema['info']['title'])} {html.escape(schema['info']['version'])}</h1>",
        f"<p>{html.escape(schema['info']['description'])}</p>",
        f'<p>As JSON: <a href="{html.escape(request.scope.get("root_path", ""), quote=True)}/api/openapi.json">openapi.json</a>.</p><dl>',
    ]
    for path, operations in schema["paths"].items():
        parts += [_operation(method, path, operation) for method, operation in operations.items()]
    return HTMLResponse("".join([*parts, "</dl></body></html>"]))


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    described = operation.get("description", operation.get("summary", ""))
    given = "".join(
        f"<li><code>{html.escape(one['name'])}</code> ({html.escape(one['in'])}) {html.escape(one.get('description', ''))}</li>"
        for one in operation.get("parameters", ())
    )
    return f"<dt><code>{method.upper()} {html.escape(path)}</code></dt><dd><p>{html.escape(described)}</p><ul>{given}</ul></dd>"
