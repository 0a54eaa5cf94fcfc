"""The key of a model that declares none: ``id``, a random UUID as text."""

from __future__ import annotations

import re
from typing import Any

from holdall.models.codec import codec_for
from holdall.models.fields import FieldOptions, Key
from holdall.models.stored_form import show

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class IdKey(Key[str]):
    """``id: Key[str]`` that has to look like a UUID, and is made up when it is not given."""

    __slots__ = ()

    def __init__(
        self, model: str, name: str = "id", codec: Any = None, options: FieldOptions | None = None
    ) -> None:
        super().__init__(model, name, codec or codec_for(str), options or _OPTIONS)

    def validate(self, value: object) -> str:
        """The text of a UUID; a `uuid.UUID` is taken too."""
        if isinstance(value, str) and _UUID.fullmatch(value):
            return value
        if type(value).__name__ == "UUID":
            return str(value)
        raise self.refusal(
            f"{show(value)} is not a UUID", hint="declare a key of your own for other ids: id: Key[str]"
        )


def _new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


_OPTIONS = FieldOptions(default_factory=_new_id)
