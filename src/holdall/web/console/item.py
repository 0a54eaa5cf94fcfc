"""Items: what one is made of, where it is stored, its files, and its raw form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from starlette.responses import Response

from holdall import Model, ModelKey
from holdall.attachments import Attachment, identify_owner
from holdall.core import Item
from holdall.errors import HoldallError, InvalidFieldError
from holdall.models import FieldFacts, ModelFacts, describe_model, format_text
from holdall.transactions import StoredItem
from holdall.web.console.value_text import read_text, show_value
from holdall.web.console.visit import RefusedVisitError, Visit

_HIDDEN = {"S": "(hidden)"}
_FILES = 24


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field of an item on a page. ``problem`` is why its stored value cannot be read."""

    facts: FieldFacts
    text: str | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ItemPage:
    """What the pages of one item share: the model, the key, and the item as it is stored."""

    name: str
    model: type[Model]
    facts: ModelFacts
    key: ModelKey[Any]
    stored: StoredItem


def find_model(visit: Visit) -> tuple[str, type[Model]]:
    """Return the model that the URL names, with that name."""
    name = str(visit.request.path_params["model"])
    found = visit.desk.models.get(name)
    if found is None:
        raise RefusedVisitError(404, f"The console has no model {name:.200}.")
    return name, found


def link_item(visit: Visit, name: str, key: ModelKey[Any], *parts: str) -> str:
    """Return the URL of an item's page."""
    return link_items(visit, name, *parts)(format_key(key))


def link_items(visit: Visit, name: str, *parts: str) -> Callable[[Mapping[str, str]], str]:
    """Return what makes the URL of an item's page of its key's texts, for many items of one model."""
    page = visit.url("models", name, "item", *parts)
    return lambda texts: (
        f"{page}?"
        + "&".join([f"key-{quote_plus(field)}={quote_plus(text)}" for field, text in texts.items()])
    )


def format_key(key: ModelKey[Any]) -> dict[str, str]:
    """Return the components of a key as texts."""
    return {name: format_text(getattr(key.model, name), value) for name, value in key.components.items()}


async def find_item(visit: Visit) -> ItemPage:
    """Return the item that the URL names; refuse one that does not exist."""
    name, model = find_model(visit)
    facts = describe_model(model)
    given = visit.request.query_params
    texts = {field: given.get(f"key-{field}") for field in (*facts["key"], *facts["sort_key"])}
    missing = [field for field, text in texts.items() if text is None]
    if missing:
        raise RefusedVisitError(400, f"The address lacks the key's {', '.join(missing)}.")
    components = {
        field: read_text(getattr(model, field), text) for field, text in texts.items() if text is not None
    }
    key = model.key(**components)
    stored = await visit.db.get_stored(key)
    if stored is None:
        raise RefusedVisitError(404, f"There is no {facts['name']} with this key.")
    return ItemPage(name, model, facts, key, stored)


async def show_item(visit: Visit) -> Response:
    """Show an item."""
    page = await find_item(visit)
    item: Model | None = None
    problem = None
    try:
        item = await visit.db.get(page.key)
    except HoldallError as error:
        problem = error.message
    owner = identify_owner(page.key)
    groups: list[tuple[str, list[Attachment]]] = []
    if item is not None:
        for name in page.facts["attachments"]:  # one more than a page shows, to know whether there are more
            files = [each async for each in visit.db.blobs.list(*owner, name, limit=_FILES + 1)]
            groups.append((name, files))
    return visit.render(
        "item.html",
        page=page,
        item=item,
        problem=problem,
        fields=[] if item is None else show_fields(item, page.facts["fields"]),
        groups=groups,
        most_files=_FILES,
        files_url=visit.url("blobs", type=owner[0], owner=owner[1]),
        raw=show_raw(page.stored.attributes, page.facts),
        edit_url=link_item(visit, page.name, page.key, "edit"),
        delete_url=link_item(visit, page.name, page.key, "delete"),
        title=f"{page.facts['name']} {show_key(page.key)}",
    )


def show_fields(item: Model, fields: Iterable[FieldFacts]) -> list[ShownField]:
    """Return fields of an item; one whose stored value does not fit is shown with the reason."""
    found = []
    for field in fields:
        if field["hidden"]:
            found.append(ShownField(field, "(hidden)"))
            continue
        try:
            value = getattr(item, field["name"])
        except InvalidFieldError as error:
            found.append(ShownField(field, None, error.message))
        else:
            found.append(ShownField(field, None if value is None else show_value(value)))
    return found


def show_key(key: ModelKey[Any]) -> str:
    """Return a key on one line."""
    return " · ".join(format_key(key).values())


def show_raw(attributes: Item, facts: ModelFacts) -> str:
    """Return an item in DynamoDB's JSON, without the values of hidden fields."""
    hidden = {
        name
        for field in facts["fields"]
        if field["hidden"]
        for name in (field["name"], field["attribute"], *field["aliases"])
    }
    shown = {name: _HIDDEN if name in hidden else value for name, value in sorted(attributes.items())}
    return show_attributes(shown)


def show_attributes(attributes: Item) -> str:
    """Return attributes in DynamoDB's JSON."""
    return json.dumps(attributes, ensure_ascii=False, indent=2, default=_show_bytes)


def _show_bytes(value: Any) -> str:
    from base64 import b64encode

    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
