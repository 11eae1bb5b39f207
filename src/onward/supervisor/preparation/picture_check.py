"""Whether a file that should be a picture is one, and all there: by its first and last bytes, while it is fetched.

A picture of a kind that is not known here passes: only the training can say.
"""

from __future__ import annotations

from collections.abc import Sequence

_HEAD, _TAIL = 64, 1 << 16
_JPEG, _PNG, _GIF = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a")
_ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND\xaeB`\x82", "GIF": b"\x3b"}


class PictureCheck:
    def __init__(self, types: Sequence[str]) -> None:
        self._wanted = bool(types) and all(one.startswith("image/") for one in types)
        self._head = self._tail = b""

    def take(self, chunk: bytes) -> None:
        if self._wanted:
            self._head = (self._head + chunk[:_HEAD])[:_HEAD]
            self._tail = (self._tail + chunk[-_TAIL:])[-_TAIL:]

    def trouble(self) -> str:
        """Empty where there is none."""
        if not self._wanted:
            return ""
        if not self._head:
            return "is empty"
        if self._head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"<", b"{"):
            return "is a text such as HTML, not a picture"
        kind = self._kind()
        return f"is a {kind} that is cut off" if kind and _ENDS[kind] not in self._tail else ""

    def _kind(self) -> str:
        if self._head.startswith(_PNG):
            return "PNG"
        if self._head.startswith(_JPEG):
            return "JPEG"
        return "GIF" if self._head.startswith(_GIF) else ""
