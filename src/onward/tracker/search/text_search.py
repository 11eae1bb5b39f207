"""Words that are no filter: runs that mention all of them, in their name, id, experiment, user or tags."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, exists, func, or_, select

from onward.errors import InvalidInput
from onward.model.storable_text import is_plain
from onward.tracker import schema

_runs, _tags, _experiments = schema.runs, schema.tags, schema.experiments
_MOST_WORDS = 20


def mentions(text: str) -> ColumnElement[bool] | None:
    """The condition on `runs`; None where there is no word. Case does not matter."""
    if not is_plain(text):
        raise InvalidInput("the words contain NUL or an incomplete character", hint="write them in UTF-8")
    words = [word.strip("\"'`") for word in text.lower().split()][:_MOST_WORDS]
    found = [_mentions(word) for word in words if word]
    return and_(*found) if found else None


def _mentions(word: str) -> ColumnElement[bool]:
    pattern = "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"

    def has(column: ColumnElement[str]) -> ColumnElement[bool]:
        return func.lower(column).like(pattern, escape="\\")

    named = select(_experiments.c.id).where(has(_experiments.c.name))
    tagged = exists().where(_tags.c.run == _runs.c.id, or_(has(_tags.c.value), has(_tags.c.key))).correlate(_runs)
    return or_(has(_runs.c.name), has(_runs.c.run_id), has(_runs.c.user), _runs.c.experiment.in_(named), tagged)
