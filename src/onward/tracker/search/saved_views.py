"""Named views: a page and what its address says after it, kept for their owner; others see those that are shared."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, func, or_, select

from onward.errors import InvalidInput, NotAllowed, NotFound
from onward.model.storable_text import check_text
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.runs.legs import upsert

MOST = 1000  # views of one owner

_views = schema.views


@dataclass(frozen=True, kw_only=True)
class SavedView:
    id: int
    owner: str
    page: str
    name: str
    query: str
    shared: bool
    created: float
    updated: float


class SavedViews:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def of(self, owner: str, *, page: str | None = None) -> list[SavedView]:
        """One's own, and those that others share; by page and name."""
        c = _views.c
        query = select(_views).where(or_(c.owner == owner, c.shared), *([c.page == page] if page is not None else []))
        with self._database.reading() as connection:
            return [SavedView(**row) for row in connection.execute(query.order_by(c.page, c.name, c.owner)).mappings()]

    def get(self, owner: str, view: int) -> SavedView:
        """NotFound also where it is another's and not shared."""
        c = _views.c
        with self._database.reading() as connection:
            row = connection.execute(select(_views).where(c.id == view, or_(c.owner == owner, c.shared))).mappings().first()
        if row is None:
            raise _no_view(view)
        return SavedView(**row)

    def save(self, owner: str, *, page: str, name: str, query: str, shared: bool) -> SavedView:
        """Make it, or replace one's own of that page and name."""
        check_text(owner, page, name, query)
        c = _views.c

        def job(batch: Batch) -> int:
            row = {"owner": owner, "page": page, "name": name, "query": query, "shared": shared, "created": batch.now, "updated": batch.now}
            upsert(batch, _views, [row], keys=("owner", "page", "name"), change=("query", "shared", "updated"))
            if batch.connection.execute(select(func.count()).where(c.owner == owner)).scalar_one() > MOST:
                raise InvalidInput(f"{owner} already has {MOST} views", hint="delete some first")
            return int(batch.connection.execute(select(c.id).where(c.owner == owner, c.page == page, c.name == name)).scalar_one())

        return self.get(owner, self._writer.do(job))

    def delete(self, owner: str, view: int) -> None:
        """One's own alone."""
        found = self.get(owner, view)
        if found.owner != owner:
            raise NotAllowed(f"view {found.name!r} belongs to {found.owner}", hint="only its owner can delete it")
        self._writer.do(lambda batch: batch.connection.execute(delete(_views).where(_views.c.id == view)))


def _no_view(view: int) -> NotFound:
    return NotFound(f"there is no view number {view}", hint="GET /api/v1/views lists those that you can see")
