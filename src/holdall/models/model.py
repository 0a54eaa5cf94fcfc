"""The base class of all models.

Pure: a model class is a schema, an instance is values and marks; neither does I/O, so both serve sync and async code.
An instance has ``_stored``, the item as it was read (None for a new one), and ``_marks``, what was done to it for the
transaction that writes it. Everything else is in its ``__dict__``, by field name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from holdall.core.nearest_name import suggest_name
from holdall.errors import InvalidFieldError, InvalidFieldsError, ModelDefinitionError
from holdall.models.fields.field import Field
from holdall.models.fields.handle import FieldHandle
from holdall.models.fields.options import field
from holdall.models.item_values import current_values, fill, initial_values, unknown_field
from holdall.models.keys.key import KeyAccess, ModelKey, item_key, show_components
from holdall.models.marks import Partial
from holdall.models.schema import ModelSchema

if TYPE_CHECKING:
    from holdall.core.schema import TableNeeds
    from holdall.core.values import Item
    from holdall.models.hydrator import Hydrator
    from holdall.models.indexes import Index
    from holdall.models.keys.form import Layout
    from holdall.models.marks import Frozen, Marks
    from holdall.models.migrations import Conversion


class _DataclassFields:
    """The fields in the form of `dataclasses`, from which FastAPI knows that a model is a body, not a parameter."""

    def __get__(self, item: object, model: type[Declared]) -> dict[str, Any]:
        from holdall.models.json_form import dataclass_fields

        return dataclass_fields(model._fields)


def _declare_id(*, init: bool) -> Any:
    """Declare, for type checkers, the ``id`` of a model without a key: an attribute, but not an argument.

    If it were an argument with a default, pyright would require a default for every ``id`` that a model declares.
    """


def _check_options(define: Callable[..., None]) -> Callable[..., None]:
    """Refuse an unknown option of a class statement, with the most similar one."""
    known = define.__kwdefaults__ or {}

    def __init_subclass__(cls: type, **options: Any) -> None:  # noqa: N807 - `_names_in_sight` knows it by this name
        for name in options:
            if name not in known:
                raise ModelDefinitionError(
                    f"{cls.__name__}: a model has no option {name!r}",
                    hint=suggest_name(name, known, "options"),
                )
        define(cls, **options)

    return __init_subclass__


@dataclass_transform(kw_only_default=True, field_specifiers=(field, _declare_id))
class Declared:
    """The implementation of `Model`; separate only because type checkers ignore the fields of the decorated class."""

    __slots__ = ("__dict__", "__weakref__", "_kept", "_key", "_marks", "_stored")

    _schema: ClassVar[ModelSchema]
    _fields: ClassVar[Mapping[str, Field[Any]]] = {}
    _decode_all: ClassVar[Callable[[Any], dict[str, Any]]]
    _stored: Item | None
    _marks: Marks | Frozen | None
    _key: ModelKey[Any] | None
    _kept: dict[str, Any]

    key = KeyAccess()
    """``Order.key(...)`` makes a key from its components; ``order.key`` is an item's key."""

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        table: str | None = None,
        abstract: bool = False,
        ttl: str | None = None,
        record_type: str | None = None,
        indexes: Sequence[Index] = (),
        migrations: Sequence[Conversion] = (),
        archive: Hydrator | None = None,
        layout: Layout | None = None,
        collection: str | None = None,
    ) -> None:
        super().__init_subclass__()
        if cls.__module__ != __name__:
            from holdall.models.definition.definition import (
                define,
            )  # loads the codecs too, so only when a model is defined

            define(
                cls,  # type: ignore[arg-type]
                name=name,
                table=table,
                layout=layout,
                collection=collection,
                abstract=abstract,
                ttl=ttl,
                record_type=record_type,
                hydrator=archive,
                indexes=indexes,
                migrations=migrations,
                names=_names_in_sight(),
            )

    if not TYPE_CHECKING:  # type checkers refuse unknown options by the signature above
        __init_subclass__ = _check_options(__init_subclass__)

    def __init__(self, /, *args: Any, **values: Any) -> None:
        if args:
            raise TypeError(
                f"{type(self).__name__} takes the values of its fields by name, as in field=value"
            )
        _blank(self)
        fill(self, values)

    # --- fields -------------------------------------------------------------------------------------------

    def _assign(self, name: str, value: Any) -> None:
        found = self._fields.get(name)
        if found is None:
            self._set_other(name, value)
            return
        if found.fixed:
            raise found.refuse_change()
        valid = found.validate(value)  # first, so that a refused value changes nothing
        marks = self._marks
        if marks is not None:
            marks.change(self)  # type: ignore[arg-type]
            marks.wrote(name)
        self.__dict__[name] = valid

    def _set_other(self, name: str, value: Any) -> None:
        """Set a property with a setter, or a name with an underscore, which is not stored; others are misspelt."""
        own = name.startswith("_") and name not in _OURS and not name.startswith("__")
        if own or hasattr(getattr(type(self), name, None), "__set__"):
            object.__setattr__(self, name, value)
            return
        raise unknown_field(type(self)._schema, name)

    def _refuse_delete(self, name: str) -> None:
        raise InvalidFieldError(
            type(self).__name__,
            name,
            "a field cannot be deleted",
            hint="assign None if the field is optional",
        )

    if not TYPE_CHECKING:  # otherwise type checkers would allow assignments to any name
        __setattr__ = _assign
        __delattr__ = _refuse_delete

    def assign(self, values: Mapping[str, Any]) -> None:
        """Assign several fields at once, as a PATCH request does: all of them, or none if any value does not fit.

        Raises `InvalidFieldError`, or `InvalidFieldsError` with an error for each value that does not fit.
        """
        errors: list[InvalidFieldError] = []
        for name, value in values.items():
            try:
                self._check(name, value)
            except InvalidFieldError as error:
                errors.append(error)
        if len(errors) > 1:
            raise InvalidFieldsError(errors)
        if errors:
            raise errors[0]
        for name, value in values.items():
            setattr(self, name, value)

    def _check(self, name: str, value: Any) -> None:
        """Refuse a value that could not be assigned."""
        found = self._fields.get(name)
        if found is None:
            raise unknown_field(self._schema, name)
        if found.fixed:
            raise found.refuse_change()
        found.validate(value)

    def field(self, name: str) -> FieldHandle:
        """Return a handle on a field, to increment it, to validate it, or to see whether it was read or changed."""
        found = self._fields.get(name)
        if found is None:
            raise unknown_field(self._schema, name)
        return FieldHandle(self, found)  # type: ignore[arg-type]

    # --- what it is ---------------------------------------------------------------------------------------

    @property
    def is_new(self) -> bool:
        """Whether the item is new rather than read from the database."""
        return self._stored is None

    def to_dict(self, *, initial: bool = False, hidden: bool = False) -> dict[str, Any]:
        """Return the values by field name, without marking any field as read. Fields without a value are omitted.

        ``initial``: the values as they were loaded; a new item has none. ``hidden``: also the values of hidden fields.
        """
        if initial:
            return {} if self._stored is None else initial_values(self, hidden)
        return current_values(self, hidden)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Iterate over names and values as in `to_dict`: ``dict(order)``. FastAPI does so without a response type."""
        return iter(self.to_dict().items())

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the model's values."""
        from holdall.models.json_form import json_schema

        return json_schema(cls._schema)

    def before_commit(self, tx: Any) -> Any:
        """Override this method to do something just before the item is written or deleted; ``tx`` is the transaction.

        Changes that it makes to the item are written too. With `AsyncDatabase`, it can be ``async def``. Blind writes
        have no item to call it on, so a model with this method refuses ``tx.update``, ``tx.create_or_put`` and deletes
        by key.
        """

    def before_create(self, tx: Any) -> Any:
        """Override this method to do something just before a new item is written; otherwise like `before_commit`."""

    def before_update(self, tx: Any) -> Any:
        """Override this method to do something just before changes to an item that was read are written; otherwise like
        `before_commit`. It is not called for an item without changes."""

    def before_delete(self, tx: Any) -> Any:
        """Override this method to do something just before an item that was read is deleted; otherwise like
        `before_commit`."""

    def after_load(self) -> None:
        """Override this method to prepare an item that was read, such as to set attributes that are not stored.

        It is called once for each instance that is made of a whole stored item, after migrations, and not for new items
        and for items that were fetched in part. A field that it reads counts as read. Assigning a stored field is an
        ordinary change, so outside a transaction it is refused.
        """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return item_key(self) == item_key(other)  # type: ignore[type-var]

    def __hash__(self) -> int:
        return hash(item_key(self))  # type: ignore[type-var]

    def __repr__(self) -> str:
        values: dict[str, Any] = {}
        for name, known in self._fields.items():
            if known.hidden:
                continue
            try:
                values[name] = known.peek(self)  # type: ignore[arg-type]
            except InvalidFieldError as error:
                if error.stored is not None:
                    values[name] = _Unreadable()
            except Exception:
                if not known.is_computed:
                    raise
                values[name] = _Unreadable()
        text = show_components(values)
        return f"{type(self).__name__}({text if len(text) <= 300 else f'{text[:300]}…'})"

    # --- copies -------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        fetched = self._marks.fetched if isinstance(self._marks, Partial) else None
        return restored, (type(self), self._stored, dict(self.__dict__), fetched)

    def __copy__(self) -> Self:
        """Return a copy that belongs to no transaction."""
        from copy import deepcopy

        _, (model, stored, values, fetched) = self.__reduce__()
        twin: Self = restored(model, stored, deepcopy(values), fetched)
        return twin

    def __deepcopy__(self, memory: dict[int, Any]) -> Self:
        return self.__copy__()

    # --- its table ----------------------------------------------------------------------------------------

    @classmethod
    def __table_needs__(cls) -> TableNeeds:
        from holdall.models.needs import table_needs

        return table_needs(cls)  # type: ignore[arg-type]

    # --- pydantic, and with it FastAPI ----------------------------------------------------------------------

    if not TYPE_CHECKING:
        __dataclass_fields__ = _DataclassFields()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from holdall.models.json_form import core_schema

        return core_schema(cls._schema, handler)


class Model(Declared):
    """The base class of your models: annotate fields, and mark the key with ``Key[...]`` and ``SortKey[...]``.

    ``class Order(Model): ...`` is stored in the database's table, ``class Order(Model, table="Orders")`` in a table of
    its own. A model that declares no key has ``id``, a random UUID as text. Options of the class:

    - ``name=`` is the model's stored name, if it differs from the name of the class;
    - ``abstract=True`` is for a class without items, from which models derive;
    - ``ttl="field"`` names the field with the time at which an item expires;
    - ``indexes=[Index(...)]`` declares other keys by which items can be queried;
    - ``migrations=[function, ...]`` converts items that older versions of the program wrote.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        id: Any = _declare_id(init=False)


class _Unreadable:
    def __repr__(self) -> str:
        return "<unreadable>"


_OURS = frozenset({*Declared.__slots__, "_schema", "_fields", "_decode_all"})
_set_stored = Declared.__dict__["_stored"].__set__
_set_marks = Declared.__dict__["_marks"].__set__
_set_key = Declared.__dict__["_key"].__set__


def _blank(item: Declared) -> None:
    _set_stored(item, None)
    _set_marks(item, None)
    _set_key(item, None)


def build_instance(
    model: type[Model], stored: Item | None, marks: Marks | Frozen | None, key: ModelKey[Any] | None
) -> Any:
    """Make an instance of a stored item, which decodes its fields when they are read; with None, a blank instance."""
    item = object.__new__(model)
    _set_stored(item, stored)
    _set_marks(item, marks)
    _set_key(item, key)
    return item


def restored(
    model: type[Any], stored: Item | None, values: dict[str, Any], fetched: frozenset[str] | None = None
) -> Any:
    """Make an instance from a copy or a pickle; it belongs to no transaction. What was not fetched stays unknown."""
    item = build_instance(model, stored, None if fetched is None else Partial(fetched), None)
    item.__dict__.update(values)
    return item


def find_kept(item: Any) -> dict[str, Any]:
    """Return what class attributes keep with an item, by their names; it is not part of its values, nor copied.

    Each has ``pending``, which is recorded but not written yet, and ``restore(pending)``; None clears it.
    """
    kept: dict[str, Any] | None = getattr(item, "_kept", None)
    if kept is None:
        object.__setattr__(item, "_kept", kept := {})
    return kept


def adopt(item: Model, marks: Marks) -> None:
    """Make an item that was created outside a transaction part of one."""
    _set_marks(item, marks)


def list_pending(item: Model) -> dict[str, Any]:
    """Return what class attributes have recorded for an item, by their names."""
    kept: dict[str, Any] = getattr(item, "_kept", {})
    return {name: each.pending for name, each in kept.items()}


def release(item: Model, values: dict[str, Any], pending: Mapping[str, Any]) -> None:
    """Detach an item from its transaction, with these values, and with what was recorded before."""
    _set_marks(item, None)
    item.__dict__.clear()
    item.__dict__.update(values)
    for name, each in getattr(item, "_kept", {}).items():
        each.restore(pending.get(name))


def _names_in_sight() -> Mapping[str, Any]:
    """Return the local names around the class statement, so that annotations in functions can use them."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "__init_subclass__":
        frame = frame.f_back  # type: ignore[assignment]
    return {} if frame is None else frame.f_locals
