"""Changes of items: editing and deleting one, each after a page that asks, and only if the console may write."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from starlette.responses import Response

from holdall import AsyncTransaction, Model
from holdall.errors import HoldallError
from holdall.models import FieldFacts, ModelFacts, format_text
from holdall.web.console.item import ItemPage, find_item, link_item, show_key
from holdall.web.console.value_text import read_text
from holdall.web.console.visit import RefusedVisitError, Visit, explain_problem

_NOTHING = "none-"


def _is_editable(field: FieldFacts) -> bool:
    kept = field["version"] or field["now"] is not None or field["computed"] is not None
    return not (field["key"] or field["read_only"] or field["hidden"] or kept)


def _list_editable(facts: ModelFacts) -> list[FieldFacts]:
    return [field for field in facts["fields"] if _is_editable(field)]


async def edit_item(visit: Visit) -> Response:
    """Show the form with an item's fields."""
    visit.require_writing()
    page = await find_item(visit)
    item = await visit.db.get_one(page.key)
    return _show_form(visit, page, _write_fields(item, page.facts), None)


def _show_form(
    visit: Visit,
    page: ItemPage,
    before: dict[str, str | None],
    problem: str | None,
    typed: dict[str, str | None] | None = None,
) -> Response:
    """Show the form; ``before`` has the texts of the stored values, ``typed`` those of the person."""
    fields = [
        (field, (typed or before)[field["name"]], _is_optional(getattr(page.model, field["name"])))
        for field in _list_editable(page.facts)
        if field["name"] in before
    ]
    return visit.render(
        "item_form.html",
        page=page,
        fields=fields,
        before=json.dumps(before),
        problem=problem,
        item_url=link_item(visit, page.name, page.key),
        action=link_item(visit, page.name, page.key, "edit"),
        key_text=show_key(page.key),
        title=f"Edit {page.facts['name']}",
        status=200 if problem is None else 422,
    )


def _is_optional(field: Any) -> bool:
    try:
        field.codec.adapter.validate_python(None)
    except ValueError:
        return False
    return True


def _write_fields(item: Model, facts: ModelFacts) -> dict[str, str | None]:
    """Return the texts of the fields that can be edited; None for no value. Others are left out."""
    found: dict[str, str | None] = {}
    for field in _list_editable(facts):
        declared = getattr(type(item), field["name"])
        with suppress(HoldallError, ValueError):  # the stored value does not fit, or has no form in JSON
            value = getattr(item, field["name"])
            found[field["name"]] = None if value is None else format_text(declared, value)
    return found


async def save_item(visit: Visit) -> Response:
    """Write the fields that were changed in the form, unless another program changed them meanwhile."""
    page = await find_item(visit)
    before = _read_before(visit.form.get("before", ""), page.facts)
    typed = {name: _read_typed(visit, name, was) for name, was in before.items()}
    changed = {name: text for name, text in typed.items() if text != before[name]}

    async def change(tx: AsyncTransaction) -> None:
        item: Model = await tx.get_one(page.key)
        now = _write_fields(item, page.facts)
        for name in changed:
            if now.get(name) != before[name]:
                raise RefusedVisitError(
                    409, f"Another program changed {name} meanwhile, so nothing was saved."
                )
        item.assign(values)

    try:
        values = {
            name: None if text is None else read_text(getattr(page.model, name), text)
            for name, text in changed.items()
        }
        if values:
            await visit.db.run(change)
    except (HoldallError, RefusedVisitError) as error:
        return _show_form(visit, page, before, explain_problem(error), typed)
    names = ", ".join(changed)
    notice = f"Saved: {names}." if changed else "Nothing was changed."
    return visit.redirect(link_item(visit, page.name, page.key), notice=notice)


def _read_typed(visit: Visit, name: str, was: str | None) -> str | None:
    """Return what a person typed. Browsers change line ends, which is not a change; new text counts as a value."""
    shown = (was or "").replace("\r\n", "\n").replace("\r", "\n")
    text = visit.form.get(name, shown)
    if text != shown:
        return text
    return None if f"{_NOTHING}{name}" in visit.form else was or ""


def _read_before(text: str, facts: ModelFacts) -> dict[str, str | None]:
    names = {field["name"] for field in _list_editable(facts)}
    try:
        found = json.loads(text)
        valid = isinstance(found, dict) and all(
            name in names and (value is None or isinstance(value, str)) for name, value in found.items()
        )
    except ValueError:
        valid = False
    if not valid:
        raise RefusedVisitError(400, "The form cannot be read.")
    return found  # type: ignore[no-any-return]


async def confirm_deletion(visit: Visit) -> Response:
    """Ask whether to delete an item."""
    visit.require_writing()
    page = await find_item(visit)
    return visit.render(
        "confirm.html",
        heading=f"Delete this {page.facts['name']}?",
        subject=show_key(page.key),
        consequence=_explain_deletion(page),
        verb="Delete",
        action=link_item(visit, page.name, page.key, "delete"),
        back=link_item(visit, page.name, page.key),
        title=f"Delete {page.facts['name']}",
    )


def _explain_deletion(page: ItemPage) -> str:
    also = []
    if page.facts["attachments"]:
        also.append("its attachments")
    if page.stored.archived:
        also.append("its copy in the archive")
    return f"The item is deleted{' with ' + ' and '.join(also) if also else ''}. This cannot be undone."


async def delete_item(visit: Visit) -> Response:
    """Delete an item, with what belongs to it."""
    page = await find_item(visit)

    await visit.db.delete(page.key)
    return visit.redirect(
        visit.url("models", page.name), notice=f"Deleted {page.facts['name']} {show_key(page.key)[:200]}."
    )
