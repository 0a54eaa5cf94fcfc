"""Derived attributes: what is stored besides the fields because it follows from them.

Pure. Whoever writes a component of a derived attribute writes the attribute too, and depends on all its components:
they are locked together, so two that change different components cannot leave a value that belongs to neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from holdall.core.numbers import number_text
from holdall.core.schema import TTL
from holdall.core.values import Attribute
from holdall.models.fields import Field


class Derived(Protocol):
    """Attributes that follow from fields."""

    @property
    def components(self) -> tuple[Field[Any], ...]:
        """The fields it follows from."""

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """The attributes for these values of the components, None for one that is to be absent."""


class Expiry:
    """``_ttl``, the seconds since 1970 after which an item is gone, from the field that says so."""

    __slots__ = ("components",)

    def __init__(self, field: Field[Any]) -> None:
        self.components: tuple[Field[Any], ...] = (field,)

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """``_ttl``; absent for an item that does not expire."""
        moment = values[self.components[0].name]
        if moment is None:
            return {TTL: None}
        if isinstance(moment, datetime) and moment.utcoffset() is None:
            raise self.components[0].refusal(
                "it says when the item expires, and has no time zone", hint="use datetime.now(UTC)"
            )
        return {
            TTL: {"N": str(epoch_seconds(moment)) if isinstance(moment, datetime) else number_text(moment)}
        }


def epoch_seconds(moment: datetime) -> int:
    """Seconds since 1970, rounded up: nothing expires before its time."""
    return -int(-moment.timestamp() // 1)
