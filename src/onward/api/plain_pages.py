"""Pages without a script: the login, and what is shown where the page is not built. Their style stands in them, and the CSP names its hash,
for nothing of this server's is reached before the login, not even a style."""

from __future__ import annotations

import base64
import hashlib
import html

from onward.api.transport.responses import CSP

_STYLE = """
:root {
  color-scheme: light dark;
  --text: #1a1d23; --muted: #59606d; --page: #fff; --line: #c9ced6; --sunken: #f6f7f9; --accent: #1f5fd6; --on: #fff
}
@media (prefers-color-scheme: dark) {
  :root { --text: #e5e8ed; --muted: #a3abb8; --page: #111318; --line: #3d434e; --sunken: #191c22; --accent: #6ea3ff; --on: #0b1220 }
}
body { margin: 0; background: var(--page); color: var(--text); font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
main { max-width: 400px; margin: 16vh auto; padding: 0 16px }
h1 { margin: 0 0 16px; font-size: 18px; letter-spacing: -0.01em }
p { margin: 0 0 8px; color: var(--muted) }
.note { padding: 8px 12px; border-left: 3px solid #bd2a1e; background: var(--sunken); color: var(--text) }
code, pre { font: 13px ui-monospace, Menlo, Consolas, monospace }
pre { margin: 0 0 24px; padding: 8px 12px; border-radius: 6px; background: var(--sunken); color: var(--text) }
label { display: block; margin-bottom: 4px; font-weight: 500 }
form div { display: flex; gap: 8px }
input, button { font: inherit; height: 32px; border-radius: 6px }
input { flex: 1; min-width: 0; padding: 0 8px; border: 1px solid var(--line); background: var(--page); color: inherit }
button { padding: 0 12px; border: 0; background: var(--accent); color: var(--on); font-weight: 500; cursor: pointer }
a { color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HTML = (b"content-type", b"text/html; charset=utf-8")
STYLED = (
    HTML,
    (b"content-security-policy", CSP.replace("style-src 'self'", f"style-src 'sha256-{_HASH}'").encode()),
    (b"referrer-policy", b"same-origin"),  # under no-referrer a browser says "Origin: null" of a form, even to its own server
)


def page_of(title: str, body: str) -> bytes:
    """A whole page; the body is HTML. To be sent with `STYLED`."""
    said = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{said} · Onward</title><style>{_STYLE}</style></head>\n<body><main><h1>Onward</h1>\n{body}</main></body></html>\n"
    ).encode()
