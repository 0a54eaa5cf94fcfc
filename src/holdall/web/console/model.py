"""Models: a list of them, what each declares, and a form that finds its items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from starlette.responses import Response

from holdall import Model
from holdall.archive import find_archive
from holdall.errors import HoldallError
from holdall.models import FieldFacts, ModelFacts, describe_model
from holdall.web.console.change import confirm_deletion, delete_item, edit_item, save_item
from holdall.web.console.file import send_file, send_thumbnail
from holdall.web.console.item import ShownField, find_model, link_item, show_fields, show_item, show_key
from holdall.web.console.search import OPERATORS, SIZES, explain_problem, fetch_page, read_search
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import RefusedVisitError, Visit

_MOST_COLUMNS = 7
_NUMERIC = {"int", "float", "Decimal"}
"""The types whose values are aligned to the right."""


async def _list(visit: Visit) -> Response:
    facts = [describe_model(model) for model in visit.desk.models.values()]
    return visit.render("models.html", models=facts, title="Models")


async def _show(visit: Visit) -> Response:
    name, model = find_model(visit)
    facts = describe_model(model)
    search = read_search(visit, facts)
    found, problem = None, None
    columns = _choose_columns(facts, search.index)
    try:
        found = await fetch_page(visit, model, search)
        rows = [] if found is None else await _show_rows(visit, name, facts, found.items, columns)
    except (HoldallError, RefusedVisitError) as error:
        found, rows, problem = None, [], explain_problem(error)
    again = {
        key: value
        for key, value in visit.request.query_params.items()
        if key not in ("after", "notice", "seal")
    }
    return visit.render(
        "model.html",
        name=name,
        facts=facts,
        search=search,
        found=found,
        problem=problem,
        columns=columns,
        rows=rows,
        numeric=_NUMERIC,
        operators=OPERATORS,
        sizes=SIZES,
        first_url=visit.url("models", name, **again),
        next_url=None
        if found is None or found.next is None
        else visit.url("models", name, **again, after=found.next),
        title=facts["name"],
        status=200 if problem is None else 422,
    )


def _choose_columns(facts: ModelFacts, index: str | None) -> list[FieldFacts]:
    """Return the fields that a list of items shows: the keys, then others, as many as fit."""
    fields = {field["name"]: field for field in facts["fields"] if not field["hidden"] or field["key"]}
    keys = [*facts["key"], *facts["sort_key"]]
    for each in facts["indexes"]:
        if each["name"] == index:
            keys += [*each["key"], *each["sort_key"]]
    most = _MOST_COLUMNS - bool(facts["archive"])  # which has a column of its own
    names = list(dict.fromkeys([*keys, *fields]))[: max(most, len(set(keys)))]
    return [fields[name] for name in names if name in fields]


class Cell(NamedTuple):
    """A field of an item in a list, on one line. ``look`` are the classes of its style."""

    label: str
    look: str
    text: str


class Row(NamedTuple):
    """An item in a list. Its first field is a link; the other fields of its key come before those that are not.

    ``is_cold``: the item is in the archive; None if its model has none. A tuple, because templates unpack it fast.
    """

    url: str
    key: str
    first: str
    look: str
    keys: list[Cell]
    rest: list[Cell]
    is_cold: bool | None


async def _show_rows(
    visit: Visit, name: str, facts: ModelFacts, items: Sequence[Model], columns: Sequence[FieldFacts]
) -> list[Row]:
    has_archive = find_archive(visit.desk.models[name]) is not None
    cold = set(await visit.db.archive.find_archived(*items)) if has_archive else set()
    count = len(facts["key"]) + len(facts["sort_key"])
    looks = ["number" if each["type"] in _NUMERIC else "" for each in columns]
    found = []
    for item in items:
        texts = map(_shorten, show_fields(item, columns))
        cells = [
            Cell(each["name"], look if text else f"{look} none", text)
            for each, look, text in zip(columns, looks, texts, strict=True)
        ]
        is_cold = item.key in cold if has_archive else None
        url, key = link_item(visit, name, item), show_key(item.key)
        found.append(Row(url, key, cells[0].text, looks[0], cells[1:count], cells[count:], is_cold))
    return found


def _shorten(field: ShownField) -> str:
    if field.problem is not None:
        return "(unreadable)"
    line = " ".join((field.text or "")[:400].split())
    return line if len(line) <= 120 else f"{line[:120]}…"


SECTION = Section(
    "models",
    "Models",
    "layers",
    (
        Page("/models", _list),
        Page("/models/{model}", _show),
        Page("/models/{model}/item", show_item),
        Page("/models/{model}/item/edit", edit_item),
        Page("/models/{model}/item/edit", save_item, changes=True),
        Page("/models/{model}/item/delete", confirm_deletion),
        Page("/models/{model}/item/delete", delete_item, changes=True),
        Page("/files/{id}", send_file),
        Page("/files/{id}/thumbnail", send_thumbnail),
    ),
)
