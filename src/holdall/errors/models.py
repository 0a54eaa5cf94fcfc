"""Errors of models, their fields and their items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdall.errors.core import ConfigurationError, InvalidRequestError

__all__ = [
    "ModelDefinitionError",
    "InvalidFieldError",
    "InvalidFieldsError",
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


class InvalidFieldsError(InvalidFieldError):
    """Several values of a mapping do not fit their fields, so none of them was assigned.

    ``errors`` has an `InvalidFieldError` for each; ``model``, ``field`` and ``problem`` are those of the first.
    """

    code = "invalid-fields"

    def __init__(self, errors: Sequence[InvalidFieldError]) -> None:
        first = errors[0]
        hint = first.hint
        if any(error.hint != hint for error in errors):
            hint = "; ".join(f"{error.field}: {error.hint}" for error in errors if error.hint)
        super().__init__(first.model, first.field, first.problem, hint=hint)
        self.message = "; ".join(error.message for error in errors)
        self._errors = tuple((error.model, error.field, error.problem, error.hint) for error in errors)

    @property
    def errors(self) -> tuple[InvalidFieldError, ...]:
        """The error of each value."""
        return tuple(
            InvalidFieldError(model, field, problem, hint=hint)
            for model, field, problem, hint in self._errors
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidFieldsError, (self.errors,), dict(vars(self))


class FrozenItemError(InvalidRequestError):
    """No transaction would write this change: the item was read outside a transaction, or its transaction has ended."""

    code = "frozen-item"
