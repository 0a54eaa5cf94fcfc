"""Locators: texts that stand for keys, items and other stored things in the arguments of a job.

``key:Order app.models.Order:{…}`` is a key and stays one; ``item:…`` is an item, which is fetched when the job runs: it
may have changed since, or no longer exist. The model is found by its name; the place of its class only distinguishes
two models of one name. A feature whose values can be arguments gives their class a method ``_holdall_locator``, which
returns the text, and fetches what a text stands for (`FIND_FETCH`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from holdall.core.context import Context, Hook
from holdall.errors import ConfigurationError
from holdall.models.keys.key import ModelKey
from holdall.models.model import Model
from holdall.models.schema import ModelSchema, list_derived
from holdall.transactions.binding import Bindings
from holdall.transactions.unit import Unit

Fetch: TypeAlias = Callable[[Context, "Unit | None", str], Coroutine[Any, Any, Any]]
"""The flow that fetches what a text of one kind stands for; raises `Gone`."""
FindFetch: TypeAlias = Callable[[str], "Fetch | None"]
"""Finds the flow for a kind of locator; None for an unknown kind."""
FIND_FETCH: Hook[FindFetch] = Hook("find_fetch")


class Gone(Exception):
    """Raised when the thing that a locator stands for no longer exists."""


def find_locator(value: object) -> str | None:
    """The text that stands for a value; None if the value has no locator."""
    if isinstance(value, ModelKey):
        return f"key:{_format_key(value)}"
    if isinstance(value, Model):
        return f"item:{_format_key(value.key)}"
    locate: Callable[[object], str] | None = getattr(type(value), "_holdall_locator", None)
    return None if locate is None else locate(value)


async def fetch_located(context: Context, unit: Unit | None, text: str) -> Any:
    """Fetch what a text stands for, in the unit if there is one; raises `Gone` if it no longer exists."""
    kind, _, rest = text.partition(":")
    if kind == "key":
        return _parse_key(context, rest)
    fetch = _fetch_item if kind == "item" else context.hook(FIND_FETCH)(kind)
    if fetch is None:
        raise ConfigurationError(
            f"an argument of the job is of the kind {kind!r}, which this version does not know"
        )
    return await fetch(context, unit, rest)


# --- keys and items of models -----------------------------------------------------------------------------


def _format_key(key: ModelKey[Any]) -> str:
    fields = key.schema.key_fields
    components = {name: fields[name].encode(value) for name, value in key.components.items()}
    return f"{key.schema.name} {key.schema.place}:{json.dumps(components, separators=(',', ':'))}"


def _parse_key(context: Context, text: str) -> ModelKey[Any]:
    name, _, rest = text.partition(" ")
    place, _, components = rest.partition(":")
    schema = _find_model(context, name, place)
    stored = json.loads(components)
    fields = schema.key_fields
    if stored.keys() != fields.keys():
        raise ConfigurationError(f"the key of {name} has other fields than when the job was enqueued")
    return ModelKey(schema, {name: fields[name].decode(attribute) for name, attribute in stored.items()})


def _find_model(context: Context, name: str, place: str) -> ModelSchema:
    """The model of this name; of several, the one at this place, else one that this database uses, else the last."""
    bound = tuple(context.state.of(Bindings).of_models)
    named = [
        schema for schema in (*bound, *list_derived(Model)) if schema.name == name and not schema.abstract
    ]
    for schema in named:
        if schema.place == place:
            return schema
    if named:
        return named[0]
    raise ConfigurationError(
        f"an argument of the job is of the model {name}, which this process does not define",
        hint="import the module that defines it in the worker",
    )


async def _fetch_item(context: Context, unit: Unit | None, text: str) -> Any:
    from holdall.transactions.read.flow import fetch

    key = _parse_key(context, text)
    item = await fetch(context, unit, key)
    if item is None:
        raise Gone(f"{key.schema.name} item")
    return item
