"""The arguments of a job as one JSON text, and back.

Writing is pure, reading is a flow. JSON values stay as they are; a key, an item or another value with a locator becomes
an object with the single key ``$holdall``. Any other value is refused when the job is enqueued, where the caller can
still correct it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from holdall.core.context import Context
from holdall.core.json_text import encode_json
from holdall.errors import InvalidJobArgumentsError
from holdall.jobs.locator import fetch_located, find_locator
from holdall.transactions.unit import Unit

_LOCATOR = "$holdall"
_LONGEST = 300_000
_PLAIN = frozenset({str, bool, int, type(None)})


def format_arguments(arguments: Sequence[object]) -> str:
    """The arguments as text; `InvalidJobArgumentsError` names the one that cannot be stored."""
    if not arguments:
        return "[]"
    try:
        encoded: Sequence[object] = arguments
        if not _PLAIN.issuperset(map(type, arguments)):
            encoded = [_encode_value(each, f"argument {number}") for number, each in enumerate(arguments, 1)]
        text = encode_json(encoded)
        size = len(text.encode())
    except InvalidJobArgumentsError:
        raise
    except RecursionError:
        raise InvalidJobArgumentsError("an argument contains itself, or is nested too deeply") from None
    except UnicodeEncodeError:
        raise InvalidJobArgumentsError(
            "the arguments contain text with a lone surrogate, which cannot be stored"
        ) from None
    except ValueError as error:  # a number of thousands of digits
        raise InvalidJobArgumentsError(f"the arguments cannot be written as JSON: {error}") from None
    if size > _LONGEST:
        raise InvalidJobArgumentsError(
            f"the arguments of the job take {size:,} bytes; the limit is {_LONGEST:,}",
            hint="store the data in an item, and pass the item or its key",
        )
    return text


def _encode_value(value: object, where: str) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise InvalidJobArgumentsError(f"{where} is {value!r}, which JSON cannot represent")
        return value
    if isinstance(value, list | tuple):
        return [_encode_value(member, f"{where}[{position}]") for position, member in enumerate(value)]
    if isinstance(value, dict):
        return _encode_mapping(value, where)
    locator = find_locator(value)
    if locator is None:
        raise InvalidJobArgumentsError(
            f"{where} is of type {kind.__name__}, which cannot be stored with a job",
            hint="pass JSON values, keys or items of models; for a date, its isoformat()",
        )
    return {_LOCATOR: locator}


def _encode_mapping(value: dict[Any, Any], where: str) -> dict[str, Any]:
    for name in value:
        if type(name) is not str or name == _LOCATOR:
            raise InvalidJobArgumentsError(
                f"{where} has the key {name!r:.60}, which cannot be stored with a job",
                hint=f"use text as keys, and not {_LOCATOR!r}",
            )
    return {name: _encode_value(member, f"{where}[{name!r:.60}]") for name, member in value.items()}


async def load_arguments(context: Context, unit: Unit | None, text: str) -> list[Any]:
    """The arguments, with locators resolved; raises `Gone` if one of them refers to something that no longer exists."""
    if _LOCATOR not in text:
        return json.loads(text)  # type: ignore[no-any-return]
    return [await _load(context, unit, stored) for stored in json.loads(text)]


async def _load(context: Context, unit: Unit | None, stored: Any) -> Any:
    if isinstance(stored, list):
        return [await _load(context, unit, member) for member in stored]
    if isinstance(stored, dict):
        if stored.keys() == {_LOCATOR}:
            return await fetch_located(context, unit, stored[_LOCATOR])
        return {name: await _load(context, unit, member) for name, member in stored.items()}
    return stored
