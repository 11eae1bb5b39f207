"""Messages whose properties cannot be read. To the library one such message is the end of the connection, again and again, for ever: the
broker delivers it first each time. So they are let through, without their properties and with a mark, to be put aside like any other."""

from __future__ import annotations

from functools import cache

MARK = "x-onward-unreadable"
_FIXED = 12  # bytes of a content header before its properties: class, weight and size of the body


@cache
def tolerate_unreadable() -> None:
    """From now on, in this process."""
    from pamqp.commands import Basic
    from pamqp.header import ContentHeader

    read = ContentHeader.unmarshal

    def unmarshal(self: ContentHeader, data: bytes) -> None:
        try:
            read(self, data)
        except Exception as error:  # texts that are not UTF-8, times beyond all calendars, tables in tables in tables
            if len(data) < _FIXED:
                raise
            self.properties = Basic.Properties(headers={MARK: str(error)[:200] or type(error).__name__})

    ContentHeader.unmarshal = unmarshal  # type: ignore[method-assign]
