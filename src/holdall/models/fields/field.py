"""Fields: what a model's annotations become.

Pure. A field is a *non-data* descriptor: the first read of a loaded item's field decodes the stored attribute into
the instance's ``__dict__``, from where Python takes it for every later read. A name in the ``__dict__`` marks a field
that was read. Outside transactions, where reads are not tracked, reading a second field (for a row of a query, the
first) decodes all the others too. Assignments go through `Model.__setattr__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from holdall.core.internal import internal
from holdall.errors import InvalidFieldError, InvalidValueError
from holdall.models.fields.options import ABSENT, FieldOptions
from holdall.models.marks import DECODED, FROZEN, OPENED, Marks

if TYPE_CHECKING:
    from holdall.core.values import Attribute
    from holdall.models.codec.codec import Codec
    from holdall.models.fields.column import Column
    from holdall.models.fields.conditions import Term
    from holdall.models.model import Model

T = TypeVar("T")


def fold_case(value: Any, casing: str) -> Any:
    """Return text in lower or upper case; other values as they are."""
    if not isinstance(value, str):
        return value
    return value.lower() if casing == "lower" else value.upper()


_keep = object.__setattr__  # does not materialize the instance's __dict__, so later reads are faster


def _name_owner(item: Model) -> str:
    """Words that name an item, if its key can be read."""
    try:
        return f" of {item.key!r}"
    except InvalidFieldError:
        return ""


class Field(Generic[T]):
    """A field of a model, as an attribute of its class: ``Order.quantity``."""

    __slots__ = (
        *("_copies", "_quick", "codec", "description", "fixed", "foreign", "hidden"),
        *("model", "name", "now", "options", "shared_set", "stored", "unique"),
    )

    is_key = False
    is_sort_key = False
    is_computed = False

    @internal
    def __init__(self, model: str, name: str, codec: Codec, options: FieldOptions) -> None:
        self.model = model
        self.name = name
        self.stored = options.name or name
        self.codec = codec
        self.options = options
        self.now = options.now
        kept = options.version or options.now is not None or options.computed is not None
        self.fixed = self.is_key or options.read_only or kept
        self.foreign = False  # whether it is stored in a table that JavaScript programs also read
        self.shared_set = False  # whether it is a set in a table where other programs expect only sets
        self.unique = options.unique
        self.hidden = options.hidden
        self.description = options.description
        self._quick = codec.quick
        self._copies = options.default is not ABSENT and codec.mutable(options.default)

    if TYPE_CHECKING:

        @overload
        def __get__(self, item: None, model: type[Any]) -> Self: ...
        @overload
        def __get__(self, item: object, model: type[Any]) -> T: ...
        def __get__(self, item: Any, model: Any) -> Any: ...
        def __set__(self, item: Any, value: T) -> None: ...
    else:

        def __get__(self, item, model=None):
            """Return the field itself on the class; on an item the value, decoded once and kept."""
            if item is None:
                return self
            name, marks = self.name, item._marks
            if marks is OPENED:
                return self._read_all(item)
            try:
                value = self._quick(item._stored[self.stored])
            except KeyError:  # most often because an optional field has no value
                if type(marks) is not Marks or not self.codec.nullable or self.stored in item._stored:
                    return self._read(item)
                value = None
            except Exception:  # noqa: BLE001 - it is stored in an unusual form: read it thoroughly
                return self._read(item)
            if type(marks) is Marks:
                if name in (seen := marks.seen):
                    # super() leads here although there is a value; checking the __dict__ would materialize it
                    return self._read(item)
                if seen:
                    seen.add(name)
                else:
                    marks.seen = {name}
                if not marks.held:
                    marks.read(item, self, value)
            elif marks is FROZEN:
                _keep(item, "_marks", OPENED)
            elif marks is None:
                return self._read(item)
            _keep(item, name, value)
            return value

    def _read_all(self, item: Model) -> Any:
        """Return the value, and decode all other fields too; one by one, if the item has an unusual form."""
        _keep(item, "_marks", DECODED)
        try:
            values = type(item)._decode_all(item._stored)
            values |= item.__dict__  # values that the caller already holds stay the same objects
            _keep(item, "__dict__", values)  # quicker than copying them into it
            return values[self.name]
        except Exception:  # noqa: BLE001 - it is raised again when the invalid field is read
            return self._read(item)

    def _read(self, item: Model) -> Any:
        """Return the value, decoded thoroughly."""
        value = self.peek(item)
        if item._marks is not None:
            item._marks.read(item, self, value)
        item.__dict__[self.name] = value
        return value

    # --- values -------------------------------------------------------------------------------------------

    @property
    @internal
    def is_kept(self) -> bool:
        """Whether Holdall alone gives it its values, at each write."""
        return self.is_computed or self.now is not None

    @property
    def has_default(self) -> bool:
        """Whether an item can be created without a value."""
        options = self.options
        return options.default is not ABSENT or options.default_factory is not None or self.codec.nullable

    @internal
    def default(self) -> Any:
        """Return the value of a new item that was given none, or ABSENT. A new copy, so that items share nothing."""
        options = self.options
        if options.default_factory is not None:
            return self.validate(options.default_factory())
        if self._copies:
            from copy import deepcopy

            return deepcopy(options.default)
        if options.default is ABSENT and self.codec.nullable:
            return None
        return options.default

    @internal
    def absent_value(self) -> Any:
        """Return the value of a stored item that lacks the attribute, or ABSENT.

        It is None for a field that allows None, because None is stored as absence; otherwise the default.
        """
        return None if self.codec.nullable else self.default()

    @internal
    def peek(self, item: Model) -> Any:
        """Return the value of an item, without marking it as read."""
        values = item.__dict__
        if self.name in values:
            return values[self.name]
        stored = item._stored
        attribute = None if stored is None else stored.get(self.stored)
        if attribute is not None and not (self.options.version and "NULL" in attribute):
            return self.decode(attribute, item)
        if not self.was_fetched(item):
            raise self.refusal("it was not fetched", hint="fetch the whole item, or add the field to only=")
        value = ABSENT if stored is None else self.absent_value()
        if value is ABSENT:
            hint = "assign one" if self.now is None else "Holdall sets it when the item is written"
            raise self.refusal("it has no value", hint=hint)
        return value

    @internal
    def was_fetched(self, item: Model) -> bool:
        """Whether the item was read with this field; most items are read whole."""
        marks = item._marks
        return type(marks).__name__ != "Partial" or self.name in marks.fetched  # type: ignore[union-attr]

    @internal
    def validate(self, value: object) -> Any:
        """Return the value as the item keeps it, or raise `InvalidFieldError`."""
        try:
            return self.codec.validate(value)
        except InvalidValueError as error:
            raise self._from(error) from None

    @internal
    def fold(self, value: Any) -> Any:
        """Return text in the case in which it is stored; other values as they are."""
        return value if self.options.casing is None else fold_case(value, self.options.casing)

    @internal
    def comparable(self, value: object) -> Any:
        """Return a value that stored ones are compared with, or raise `InvalidFieldError`."""
        try:
            return self.codec.comparable(value)
        except InvalidValueError as error:
            raise self._from(error) from None

    @internal
    def decode(self, attribute: Attribute, item: Model | None = None) -> Any:
        """Return the value of a stored attribute; `InvalidFieldError` carries the attribute if it no longer fits."""
        try:
            return self.codec.decode(attribute)
        except InvalidValueError as error:
            raise self._from(
                error, attribute, "" if item is None or self.is_key else _name_owner(item)
            ) from None

    @internal
    def encode(self, value: object) -> Attribute | None:
        """Check the current value again and return its stored form; None for None, which is stored as absence."""
        attribute = self.form(value)
        if attribute is not None and self.foreign:
            from holdall.models.codec.foreign_values import check_safe

            try:
                check_safe(attribute)
            except InvalidValueError as error:
                raise self._from(error) from None
        return attribute

    @internal
    def form(self, value: object) -> Attribute | None:
        """Do the same, also for values that JavaScript cannot read: to compare them with what is stored."""
        if value is None and self.codec.nullable:
            return None
        try:
            attribute = self.codec.encode_checked(value)
            if self.foreign and self.codec.kind in ("M", "L", None):
                from holdall.models.codec.foreign_values import without_nulls

                return without_nulls(attribute, self.codec.decode)
            if self.shared_set and attribute.get("L") == []:
                self._check_absence()
                return None
            return attribute
        except InvalidValueError as error:
            raise self._from(error) from None

    def _check_absence(self) -> None:
        """Check that absence means an empty set, which DynamoDB does not have."""
        if self.absent_value() != set():
            raise self.refusal(
                "DynamoDB has no empty set, and other programs that use the table expect a set or nothing",
                hint="assign None" if self.codec.nullable else "declare it with default_factory=set",
            )

    @internal
    def refusal(self, problem: str, *, hint: str | None = None) -> InvalidFieldError:
        """Return an error that names this field."""
        return InvalidFieldError(self.model, self.name, problem, hint=hint)

    @internal
    def refuse_change(self) -> InvalidFieldError:
        """Return the error for a change of a field that is fixed."""
        if self.is_computed:
            return self.refusal("Holdall computes it from other fields, so it cannot be changed")
        if self.now is not None:
            return self.refusal("Holdall sets it when the item is written, so it cannot be changed")
        if self.is_key:
            return self.refusal("it is part of the key, so it cannot be changed")
        return self.refusal("it is read-only")

    def _from(
        self, error: InvalidValueError, stored: Attribute | None = None, owner: str = ""
    ) -> InvalidFieldError:
        if self.hidden:  # the error's own words contain the value
            what = "the value" if stored is None else f"the stored value{owner}"
            return self.refusal(f"{what} does not fit the type")
        place = "" if not error.place else f"{error.place}: "
        if stored is None:
            return InvalidFieldError(self.model, self.name, place + error.problem, hint=error.hint)
        shown = ""
        if "(stored as " not in error.problem:
            text = repr(dict(stored))
            shown = f" {text}" if len(text) <= 100 else f" {text[:100]}…"
        problem = f"the stored value{shown}{owner} does not fit the type: {place}{error.problem}"
        return InvalidFieldError(
            self.model,
            self.name,
            problem,
            stored=stored,
            hint="assign a value that fits, or change the field's type",
        )

    def __repr__(self) -> str:
        return f"{self.model}.{self.name}"

    # --- mistakes ------------------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # for type checkers, a plain field is its value

        def __getattr__(self, name):
            if name in ("absent", "begins_with", "between", "contains", "exists", "in_", "size"):
                raise AttributeError(
                    f"{self!r} has no {name}: to build a condition on a plain field, use col({self!r})"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def __lt__(self, other):
            raise self._needs_col("<", other)

        def __le__(self, other):
            raise self._needs_col("<=", other)

        def __gt__(self, other):
            raise self._needs_col(">", other)

        def __ge__(self, other):
            raise self._needs_col(">=", other)

    def _needs_col(self, operator: str, other: object) -> InvalidFieldError:
        return self.refusal(
            "a plain field cannot be compared directly",
            hint=f"use col(): col({self!r}) {operator} {other!r:.40}",
        )


class Key(Field[T]):
    """A component of a model's partition key: ``customer: Key[str]``. On the class, use it to build conditions."""

    __slots__ = ()

    is_key = True

    def __eq__(self, other: T) -> Term:  # type: ignore[override]
        return _column(self) == other

    def __ne__(self, other: T) -> Term:  # type: ignore[override]
        return _column(self) != other

    __hash__ = object.__hash__

    def __lt__(self, other: T) -> Term:
        return _column(self) < other

    def __le__(self, other: T) -> Term:
        return _column(self) <= other

    def __gt__(self, other: T) -> Term:
        return _column(self) > other

    def __ge__(self, other: T) -> Term:
        return _column(self) >= other

    def between(self, low: T, high: T) -> Term:
        """The condition that the value is from ``low`` to ``high``, both included."""
        return _column(self).between(low, high)

    def begins_with(self, prefix: str | bytes) -> Term:
        """The condition that the text or bytes begin with ``prefix``."""
        return _column(self).begins_with(prefix)


class SortKey(Key[T]):
    """A component of a model's sort key: ``number: SortKey[str]``."""

    __slots__ = ()

    is_sort_key = True


def _column(field: Key[T]) -> Column[T]:
    from holdall.models.fields.column import Column

    return Column(field)
