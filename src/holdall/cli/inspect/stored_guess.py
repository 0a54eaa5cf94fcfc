"""Guesses of stored forms: what ``field(stored=...)`` should be, from an attribute's name and sampled values.

Pure. A form is proposed only if every sampled value has it: read and written again, it is exactly the same. Numbers
need more evidence, because any number can be a time: a name such as ``created_at``, and values from 2000 to 2100.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from holdall import Model, field
from holdall.core import Attribute
from holdall.errors import HoldallError

REASONS = {
    "epoch": "all sampled numbers can be times in seconds since 1970",
    "epoch_ms": "all sampled numbers can be times in milliseconds since 1970",
    "iso": "all sampled texts are times as pydantic writes them",
    "iso_ms": "all sampled texts are times as JavaScript writes them",
    "pynamodb": "all sampled texts are times as PynamoDB writes them",
    "json": "all sampled texts are JSON",
    "number": "all sampled numbers are 0 or 1",
}
_UNORDERED = ("iso", "json")
_SECONDS = (946_684_800, 4_102_444_800)  # 2000 and 2100
_TIME_WORDS = {"at", "date", "time", "timestamp", "ts", "ttl", "until", "since"}
_TIME_WORDS |= {"created", "deleted", "ended", "expires", "expiry", "modified", "seen", "started", "updated"}
_FLAG_WORDS = {"can", "has", "is", "should", "was"}


def guess_form(
    name: str, attributes: Sequence[Attribute], *, is_key: bool, is_expiry: bool
) -> tuple[str, str] | None:
    """Return the type and the stored form of an attribute; None if the sample does not show one.

    ``is_key``: it is a key of the table or of an index, whose texts must sort as its values do. ``is_expiry``: items
    expire by it, so it has seconds since 1970.
    """
    values = [attribute for attribute in attributes if "NULL" not in attribute]
    if not values:
        return ("datetime", "epoch") if is_expiry and not attributes else None
    kinds = {kind for attribute in values for kind in attribute}
    found = None
    if kinds == {"N"}:
        found = _guess_number(name, [str(attribute["N"]) for attribute in values], is_expiry=is_expiry)
    elif kinds == {"S"}:
        found = _guess_text(values)
    if found is None or (is_key and found[1] in (*_UNORDERED, "number")):
        return None
    return found


def _guess_number(name: str, texts: Sequence[str], *, is_expiry: bool) -> tuple[str, str] | None:
    if not all(re.fullmatch(r"\d+", text) for text in texts):
        return None
    numbers = [int(text) for text in texts]
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)]
    if words[:1] and words[0] in _FLAG_WORDS and {*numbers} == {0, 1}:
        return "bool", "number"
    if not is_expiry and not (words and words[-1] in _TIME_WORDS):
        return None
    first, last = _SECONDS
    if all(first <= number < last for number in numbers):
        return "datetime", "epoch"
    if not is_expiry and all(first * 1000 <= number < last * 1000 for number in numbers):
        return "datetime", "epoch_ms"
    return None


def _guess_text(values: Sequence[Attribute]) -> tuple[str, str] | None:
    forms = _make_forms()
    for form in ("pynamodb", "iso_ms", "iso"):
        if all(_is_same(forms[form], attribute) for attribute in values):
            return "datetime", form
    for start, annotation, kind in (("{", "dict[str, Any]", dict), ("[", "list[Any]", list)):
        texts = [str(attribute["S"]) for attribute in values]
        if all(text.lstrip().startswith(start) and isinstance(_load(text), kind) for text in texts):
            return annotation, "json"
    return None


@cache
def _make_forms() -> dict[str, Any]:
    class Forms(Model, abstract=True):
        iso: datetime = field(stored="iso")
        iso_ms: datetime = field(stored="iso_ms")
        pynamodb: datetime = field(stored="pynamodb")

    return {"iso": Forms.iso, "iso_ms": Forms.iso_ms, "pynamodb": Forms.pynamodb}


def _is_same(form: Any, attribute: Attribute) -> bool:
    try:
        return bool(form.encode(form.decode(attribute)) == attribute)
    except HoldallError:
        return False


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
