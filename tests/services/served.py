"""A server of a test's own: `onward up` as a process on a free port, with a token, ended with the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen


@dataclass(frozen=True, kw_only=True)
class Served:
    url: str
    token: str
    db: str
    pid: int

    def call(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        fields = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        try:
            with urlopen(Request(self.url + path, data=body, method=method, headers=fields), timeout=60) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()


@contextmanager
def served(folder: Path, *more: str, db: str | None = None) -> Iterator[Served]:
    folder.mkdir(parents=True, exist_ok=True)
    db = db or str(folder / "onward.db")
    env = {**os.environ, "ONWARD_ROOT": str(folder / "runs"), "XDG_CONFIG_HOME": str(folder / "config"), "HOME": str(folder)}
    onward = [sys.executable, "-m", "onward"]
    made = subprocess.run(
        [*onward, "token", "create", "--db", db, "--json", "--rights", "admin"], env=env, capture_output=True, text=True, check=True
    )
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*onward, "up", "--port", "0", "--db", db, *more], env=env, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        link = urlsplit(process.stdout.readline().strip())
        assert link.netloc, (folder / "server.log").read_text()
        yield Served(url=f"{link.scheme}://{link.netloc}", token=json.loads(made.stdout)["secret"], db=db, pid=process.pid)
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
