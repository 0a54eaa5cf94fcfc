"""Models: a list of them, what each declares, and a form that finds its items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from holdall.archive import find_archive
from holdall.errors import HoldallError, InvalidFieldError
from holdall.models import FieldFacts, ModelFacts, describe_model
from holdall.transactions import FoundItem
from holdall.web.console.change import confirm_deletion, delete_item, edit_item, save_item
from holdall.web.console.file import send_file, send_thumbnail
from holdall.web.console.item import find_model, format_key, link_items, show_item
from holdall.web.console.search import OPERATORS, SIZES, fetch_page, read_search
from holdall.web.console.section import Page, Section
from holdall.web.console.value_text import show_value
from holdall.web.console.visit import RefusedVisitError, Visit, explain_problem

_MOST_COLUMNS = 7
_NUMERIC = {"int", "float", "Decimal"}
"""The types whose values are aligned to the right."""
_ATTRIBUTES = Markup('data-label="{}" class="{}"')


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
    """A field of an item in a list, on one line. ``attributes`` are those of its element, the same in each row."""

    attributes: Markup
    text: str


class Row(NamedTuple):
    """An item in a list. Its first field is a link; the other fields of its key come before those that are not.

    ``is_cold``: the item is in the archive; None if its model has none. ``problem`` is why the item cannot be read, and
    then it has only its key. A tuple, because templates unpack it fast.
    """

    url: str
    key: str
    first: str
    look: str
    keys: list[Cell]
    rest: list[Cell]
    is_cold: bool | None
    problem: str | None


async def _show_rows(
    visit: Visit, name: str, facts: ModelFacts, items: Sequence[FoundItem], columns: Sequence[FieldFacts]
) -> list[Row]:
    has_archive = find_archive(visit.desk.models[name]) is not None
    cold = {each.key for each in items if each.archived}
    unknown = [each.key for each in items if each.archived is None]
    if has_archive and unknown:
        cold.update(await visit.db.archive.find_archived(*unknown))
    count = len(facts["key"]) + len(facts["sort_key"])
    looks = ["number" if each["type"] in _NUMERIC else "" for each in columns]
    attributes = [
        (_ATTRIBUTES.format(each["name"], f"{look} none"), _ATTRIBUTES.format(each["name"], look))
        for each, look in zip(columns, looks, strict=True)
    ]
    link = link_items(visit, name)
    found = []
    for key, item, error, _ in items:
        if item is None:
            texts = [_show_cell(key.components[each["name"]], each) for each in columns[:count]]
        else:
            texts = [_show_field(item, each) for each in columns]
        cells = [Cell(each[bool(text)], text) for each, text in zip(attributes, texts, strict=False)]
        parts = format_key(key)
        found.append(
            Row(
                link(parts),
                " · ".join(parts.values()),
                texts[0],
                looks[0],
                cells[1:count],
                cells[count:],
                key in cold if has_archive else None,
                None if error is None else error.message,
            )
        )
    return found


def _show_field(item: Any, field: FieldFacts) -> str:
    try:
        return _show_cell(getattr(item, field["name"]), field)
    except InvalidFieldError:
        return "(unreadable)"


def _show_cell(value: object, field: FieldFacts) -> str:
    if field["hidden"]:
        return "(hidden)"
    line = "" if value is None else " ".join(show_value(value)[:400].split())
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
