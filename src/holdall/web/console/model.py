"""Models: a list of them, what each declares, and a form that finds its items."""

from __future__ import annotations

from starlette.responses import Response

from holdall import Model
from holdall.errors import HoldallError
from holdall.models import ModelFacts, describe_model
from holdall.web.console.change import confirm_deletion, delete_item, edit_item, save_item
from holdall.web.console.file import send_file, send_thumbnail
from holdall.web.console.item import find_model, link_item, show_fields, show_item
from holdall.web.console.search import OPERATORS, SIZES, explain_problem, fetch_page, read_search
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import RefusedVisitError, Visit

_MOST_COLUMNS = 7


async def _list(visit: Visit) -> Response:
    facts = [describe_model(model) for model in visit.desk.models.values()]
    return visit.render("models.html", models=facts, title="Models")


async def _show(visit: Visit) -> Response:
    name, model = find_model(visit)
    facts = describe_model(model)
    search = read_search(visit, facts)
    found, problem = None, None
    try:
        found = await fetch_page(visit, model, search)
        rows = [] if found is None else [_show_row(visit, name, item, facts) for item in found.items]
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
        columns=_choose_columns(facts, search.index),
        rows=rows,
        operators=OPERATORS,
        sizes=SIZES,
        first_url=visit.url("models", name, **again),
        next_url=None
        if found is None or found.next is None
        else visit.url("models", name, **again, after=found.next),
        title=facts["name"],
        status=200 if problem is None else 422,
    )


def _choose_columns(facts: ModelFacts, index: str | None) -> list[str]:
    """Return the fields that a list of items shows: the keys, then others, as many as fit."""
    keys = [*facts["key"], *facts["sort_key"]]
    for each in facts["indexes"]:
        if each["name"] == index:
            keys += [*each["key"], *each["sort_key"]]
    others = [field["name"] for field in facts["fields"] if not field["hidden"]]
    return list(dict.fromkeys([*keys, *others]))[: max(_MOST_COLUMNS, len(set(keys)))]


def _show_row(visit: Visit, name: str, item: Model, facts: ModelFacts) -> tuple[str, dict[str, str]]:
    """Return the URL of an item, and its fields on one line each."""
    texts = {each.facts["name"]: _shorten(each.text, each.problem) for each in show_fields(item, facts)}
    return link_item(visit, name, item), texts


def _shorten(text: str | None, problem: str | None) -> str:
    if problem is not None:
        return "(unreadable)"
    line = " ".join((text or "")[:400].split())
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
