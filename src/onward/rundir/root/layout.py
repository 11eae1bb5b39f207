"""The layout of `<root>/.onward`: what Onward keeps beside the run folders of a root.

<root>/.onward/
├── requests/      <digest of the request's id>.json: its one run; <digest>.answer.json: its one answer
└── supervisors/   <user>-<digest>.pyz: the archive that the runs of one version have alike
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

OWN = ".onward"


@dataclass(frozen=True)
class RootDir:
    path: Path

    @property
    def own(self) -> Path:
        return self.path / OWN

    @property
    def requests(self) -> Path:
        return self.own / "requests"

    @property
    def supervisors(self) -> Path:
        return self.own / "supervisors"

    def request(self, id: str) -> Path:
        return self.requests / f"{_digest(id)}.json"

    def answer(self, id: str) -> Path:
        return self.requests / f"{_digest(id)}.answer.json"

    def make(self) -> None:
        self.own.mkdir(parents=True, exist_ok=True)


def _digest(id: str) -> str:
    """A request's id is any text, also one that is no file name."""
    return hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()
