"""The key of a model that declares no key: ``id``, a random UUID as text."""

from __future__ import annotations

import re
from typing import Any

from holdall.models.codec import codec_for
from holdall.models.fields import FieldOptions, Key
from holdall.models.stored_form import show

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class IdKey(Key[str]):
    """An ``id: Key[str]`` that must look like a UUID; if it is not given, a random one is used."""

    __slots__ = ()

    def __init__(
        self, model: str, name: str = "id", codec: Any = None, options: FieldOptions | None = None
    ) -> None:
        super().__init__(model, name, codec or codec_for(str), options or _OPTIONS)

    def validate(self, value: object) -> str:
        """Return the text of a UUID; a `uuid.UUID` is accepted too."""
        if isinstance(value, str) and _UUID.fullmatch(value):
            return value
        if type(value).__name__ == "UUID":
            return str(value)
        raise self.refusal(
            f"{show(value)} is not a UUID", hint="to use other ids, declare the key yourself: id: Key[str]"
        )


def _new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


_OPTIONS = FieldOptions(default_factory=_new_id)
