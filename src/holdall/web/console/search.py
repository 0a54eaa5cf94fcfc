"""A search for items: from the values of a query form to one page of items.

Everything is in the URL, so a search can be bookmarked and shared. The names of its values begin with ``key-`` for
the partition key; ``op-``, ``from-`` and ``to-`` are a range of the sort key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from holdall import Model, col
from holdall.models import Clause, FieldFacts, ModelFacts
from holdall.transactions import FoundItem, ScanProgress
from holdall.web.console.value_text import read_text
from holdall.web.console.visit import RefusedVisitError, Visit

OPERATORS = {
    "": "any",
    "eq": "is",
    "lt": "less than",
    "le": "at most",
    "gt": "more than",
    "ge": "at least",
    "begins": "begins with",
    "between": "between",
}
SIZES = (25, 50, 100)
_MOST_BROWSED = 3_000


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for. ``key`` and ``sort`` are the fields by which the table or the chosen index finds items.

    ``browses``: without a key, the first items of the table.
    """

    facts: ModelFacts
    index: str | None
    key: tuple[FieldFacts, ...]
    sort: tuple[FieldFacts, ...]
    reverse: bool
    size: int
    after: str | None
    browses: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A page of items, some perhaps unreadable, and the token of the next one.

    ``read`` is how many items a browsing search had to read; ``ended`` is false if it stopped before the end of the
    table.
    """

    items: Sequence[FoundItem]
    next: str | None = None
    read: int | None = None
    ended: bool = True


def read_search(visit: Visit, facts: ModelFacts) -> Search:
    """Return the search that the URL describes."""
    name = visit.query("index")
    index = next((each for each in facts["indexes"] if each["name"] == name), None)
    if name and index is None:
        raise RefusedVisitError(404, f"{facts['name']} has no index {name:.100}.")
    fields = {field["name"]: field for field in facts["fields"]}
    keys, sorts = (facts["key"], facts["sort_key"]) if index is None else (index["key"], index["sort_key"])
    size = visit.query("size", str(SIZES[0]))
    return Search(
        facts=facts,
        index=name or None,
        key=tuple(fields[each] for each in keys),
        sort=tuple(fields[each] for each in sorts),
        reverse=visit.query("order") == "reverse",
        size=int(size) if size in map(str, SIZES) else SIZES[0],
        after=visit.query("after") or None,
        browses=visit.query("browse") == "1",
    )


async def fetch_page(visit: Visit, model: type[Model], search: Search) -> Found | None:
    """Return the items of a search; None if the form is not filled in."""
    if search.browses:
        return await _browse(visit, model, search)
    given = {field["name"]: visit.query(f"key-{field['name']}") for field in search.key}
    if not all(given.values()):
        return None
    components = {name: read_text(getattr(model, name), text) for name, text in given.items()}
    sort = _read_range(visit, model, search)
    options: dict[str, Any] = {"index": search.index, "sort": sort, "reverse": search.reverse, **components}
    secret = visit.desk.sessions.seal("secret", "pages")  # a database needs no secret for its console
    query = visit.db.query(model, **options)
    return Found(*await query.list_page(search.size, after=search.after, secret=secret))


def _read_range(visit: Visit, model: type[Model], search: Search) -> Clause | None:
    """Return the condition on the sort key."""
    clauses = [
        clause
        for field in search.sort
        if (clause := _read_clause(visit, getattr(model, field["name"]), field["name"])) is not None
    ]
    return reduce(and_, clauses) if clauses else None


def _read_clause(visit: Visit, field: Any, name: str) -> Clause | None:
    operator, text = visit.query(f"op-{name}"), visit.query(f"from-{name}")
    if not operator or not text:
        return None
    column: Any = col(field)
    value = text if operator == "begins" else read_text(field, text)
    match operator:
        case "eq":
            return column == value  # type: ignore[no-any-return]
        case "lt":
            return column < value  # type: ignore[no-any-return]
        case "le":
            return column <= value  # type: ignore[no-any-return]
        case "gt":
            return column > value  # type: ignore[no-any-return]
        case "ge":
            return column >= value  # type: ignore[no-any-return]
        case "begins":
            return column.begins_with(value)  # type: ignore[no-any-return]
        case "between":
            return column.between(value, read_text(field, visit.query(f"to-{name}")))  # type: ignore[no-any-return]
        case _:
            raise RefusedVisitError(400, f"There is no comparison {operator:.100}.")


# --- browsing -------------------------------------------------------------------------------------------------


class _ReadEnoughError(Exception):
    """Ends a scan that has read as much as a page may cost."""


async def _browse(visit: Visit, model: type[Model], search: Search) -> Found:
    """Return the first items that a scan finds; it stops after some thousand items of other models."""
    items: list[FoundItem] = []
    read = 0

    def note(progress: ScanProgress) -> None:
        nonlocal read
        read = progress.scanned
        if read >= _MOST_BROWSED and progress.found < search.size:
            raise _ReadEnoughError

    try:
        async for item in visit.db.scan(model, segments=1, limit=search.size, progress=note).list_found():
            items.append(item)  # noqa: PERF401 - those that were found before the scan is stopped count
    except _ReadEnoughError:
        return Found(items, read=read, ended=False)
    return Found(items, read=read, ended=len(items) < search.size)
