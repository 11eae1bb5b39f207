"""Record what a real client says to MLflow's own server: `python record.py URL FILE SCRIPT` runs SCRIPT with a relay between the two.

Each call is kept with its answer, since later calls carry ids that earlier answers gave. Run by hand, with a Python that has the
client; the tests replay the files against our server.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MOST = 2000  # bytes of an artifact's body that are kept

calls: list[dict[str, Any]] = []
lock = threading.Lock()


class Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        upstream = http.client.HTTPConnection(urlsplit(sys.argv[1]).netloc, timeout=60)
        headers = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "connection")}
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        data = answer.read()
        with lock:
            calls.append(
                {
                    "method": self.command,
                    "path": self.path,
                    "type": self.headers.get("Content-Type", ""),
                    "body": _text(body),
                    "status": answer.status,
                    "answer": _text(data),
                }
            )
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type") or "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _pass_on

    def log_message(self, *_: object) -> None:
        pass


def _text(data: bytes) -> str:
    try:
        return data.decode() if len(data) < 300_000 else data[:MOST].decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(data[:MOST]).decode()


server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
threading.Thread(target=server.serve_forever, daemon=True).start()
env = {**os.environ, "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{server.server_port}", "GIT_PYTHON_REFRESH": "quiet"}
done = subprocess.run([sys.executable, sys.argv[3]], env=env, check=False)
Path(sys.argv[2]).write_text(json.dumps(calls, indent=1, ensure_ascii=False))
print(
    f"{len(calls)} calls, exit code {done.returncode}, not 2xx: {[(c['method'], c['path'][:80], c['status']) for c in calls if c['status'] >= 300]}"
)
sys.exit(done.returncode)
