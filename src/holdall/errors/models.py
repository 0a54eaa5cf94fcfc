"""Errors of models, their fields and their items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.errors.core import ConfigurationError, InvalidRequestError

__all__ = [
    "ModelDefinitionError",
    "InvalidFieldError",
    "FrozenItemError",
]


class ModelDefinitionError(ConfigurationError, TypeError):
    """A model class cannot work as it is written; the message names the class and the field."""

    code = "model-definition"


class InvalidFieldError(InvalidRequestError):
    """A value does not fit its field, a field is unknown or cannot be changed, or a required value is missing.

    ``model`` and ``field`` name the field. ``stored`` is the stored attribute, if that is the value that does not fit.
    """

    code = "invalid-field"

    def __init__(
        self,
        model: str,
        field: str,
        problem: str,
        *,
        stored: Mapping[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{model}.{field}: {problem}", hint=hint)
        self.model = model
        self.field = field
        self.problem = problem
        self.stored = stored

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), (self.model, self.field, self.problem), dict(vars(self)))


def _rebuilt(kind: type[InvalidFieldError], arguments: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """Rebuild an error from a pickle. Pickles refer to this function by its name."""
    error = kind(*arguments)
    vars(error).update(state)
    return error


class FrozenItemError(InvalidRequestError):
    """No transaction would write this change: the item was read outside a transaction, or its transaction has ended."""

    code = "frozen-item"
