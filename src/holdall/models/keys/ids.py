"""The key of a model that declares no key: ``id``, a random UUID as text."""

from __future__ import annotations

import re
from copy import copy
from typing import Any

from holdall.errors import InvalidValueError
from holdall.models.codec.codec import Codec, codec_for
from holdall.models.codec.stored_form import show
from holdall.models.fields.field import Key
from holdall.models.fields.options import FieldOptions

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class IdKey(Key[str]):
    """An ``id: Key[str]`` that must look like a UUID; if it is not given, a random one is used."""

    __slots__ = ()

    def __init__(
        self, model: str, name: str = "id", codec: Any = None, options: FieldOptions | None = None
    ) -> None:
        super().__init__(model, name, codec or _make_codec(), options or _OPTIONS)


def _make_codec() -> Codec:
    codec = copy(codec_for(str))
    codec.validate = _check_id
    return codec


def _check_id(value: object) -> str:
    """Return the text of a UUID; a `uuid.UUID` is accepted too."""
    if isinstance(value, str) and _UUID.fullmatch(value):
        return value
    if type(value).__name__ == "UUID":
        return str(value)
    raise InvalidValueError(
        f"{show(value)} is not a UUID", hint="to use other ids, declare the key yourself: id: Key[str]"
    )


def _new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


_OPTIONS = FieldOptions(default_factory=_new_id)
