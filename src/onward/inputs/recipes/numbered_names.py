"""Names of inputs and outputs that may stand for a family: `rgba PNG - Layer {n}`."""

from __future__ import annotations

import re
from dataclasses import dataclass

NUMBER = "{n}"


@dataclass(frozen=True, kw_only=True)
class NumberedName:
    text: str
    first: int = 0
    last: int = 9

    @property
    def numbered(self) -> bool:
        return NUMBER in self.text

    def at(self, number: int) -> str:
        return self.fill(self.text, number)

    def match(self, name: str) -> int | None:
        """The number that a name has, 0 where it is the only one; None for another name. 03 is not accepted."""
        if not self.numbered:
            return 0 if name == self.text else None
        before, _, after = self.text.partition(NUMBER)
        found = re.fullmatch(rf"{re.escape(before)}(0|[1-9][0-9]{{0,2}}){re.escape(after)}", name, re.ASCII)
        return int(found[1]) if found and self.first <= int(found[1]) <= self.last else None

    @staticmethod
    def fill(text: str, number: int) -> str:
        return text.replace(NUMBER, str(number))
