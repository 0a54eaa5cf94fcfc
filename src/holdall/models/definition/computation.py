"""Computed fields: stored fields whose values a method computes from other fields, at each write.

Pure. A computed field is a derived attribute: a write that changes one of its sources also writes it, and locks all
its sources. On an item it is never kept, but computed whenever it is read, so it always fits the other fields. Its
method sees only the fields that the declaration names, because a write without a read must know them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

from holdall.core.generator import is_generator_function
from holdall.core.internal import internal
from holdall.core.nearest_name import suggest_name
from holdall.core.values import Attribute
from holdall.errors import InvalidFieldError, ModelDefinitionError
from holdall.models.definition.derived import Derived
from holdall.models.fields.field import Field
from holdall.models.fields.options import ABSENT, FieldOptions
from holdall.models.marks import Partial

if TYPE_CHECKING:
    from holdall.models.model import Model

T = TypeVar("T")


class Computed(Generic[T]):
    """The declaration of a computed field, until its class is defined."""

    @internal
    def __init__(self, function: Callable[[Any], T], options: FieldOptions) -> None:
        self.function = function
        self.options = options

    if TYPE_CHECKING:

        def __get__(self, item: object, model: type[Any]) -> T: ...
        def __set__(self, item: Any, value: Never) -> None: ...


def computed(
    *sources: str, name: str | None = None, description: str | None = None, hidden: bool = False
) -> Callable[[Callable[[Any], T]], Computed[T]]:
    """Decorate a method that computes a stored field from other fields, the ``sources``.

    Every write that changes a source stores the new value, so indexes and conditions can use it. The method must have
    the field's type as return type, depend on nothing but its sources, and change nothing. The options are as in
    `field`.
    """

    def declare(function: Callable[[Any], T]) -> Computed[T]:
        made = function, sources
        return Computed(
            function, FieldOptions(name=name, description=description, hidden=hidden, computed=made)
        )

    if not sources or not all(isinstance(source, str) for source in sources):
        raise ModelDefinitionError(
            "computed needs the names of the fields that the value is computed from",
            hint='write @computed("price", "quantity")',
        )
    return declare


class ComputedField(Field[T]):
    """A field that is computed from others."""

    __slots__ = ("components", "owner")

    is_computed = True

    def bind(self, owner: type[Model], fields: Mapping[str, Field[Any]]) -> None:
        """Find the fields that it is computed from; those of another computed field instead of that field."""
        assert self.options.computed is not None
        function, _ = self.options.computed
        if is_generator_function(function) or getattr(function, "__code__", None) is None:
            raise self._wrong("it must be a plain method")
        if function.__code__.co_flags & 0x80:  # a coroutine function
            raise self._wrong("its method is async, and a value is computed without waiting")
        self.owner = owner
        self.components: tuple[Field[Any], ...] = tuple(dict.fromkeys(self._find_sources(fields, ())))

    def _find_sources(self, fields: Mapping[str, Field[Any]], outer: tuple[str, ...]) -> list[Field[Any]]:
        assert self.options.computed is not None
        found: list[Field[Any]] = []
        for name in self.options.computed[1]:
            field = fields.get(name)
            if field is None:
                raise self._wrong(
                    f"it is computed from {name!r}, which is not a field",
                    hint=suggest_name(name, fields, "fields"),
                )
            if name == self.name or name in outer:
                raise self._wrong(f"it is computed from {name!r}, which is computed from it")
            if field.options.version:
                raise self._wrong(f"it cannot be computed from {name!r}, which counts the item's writes")
            if isinstance(field, ComputedField):
                found += field._find_sources(fields, (*outer, self.name))
            else:
                found.append(field)
        return found

    def _wrong(self, problem: str, *, hint: str | None = None) -> ModelDefinitionError:
        return ModelDefinitionError(f"{self!r}: {problem}", hint=hint)

    # --- values -----------------------------------------------------------------------------------------------

    if not TYPE_CHECKING:

        def __get__(self, item, model=None):
            """Return the field itself on the class; on an item, its value for the item's present fields."""
            if item is None:
                return self
            return self._find(item, lambda field: getattr(item, field.name))

    def peek(self, item: Model) -> Any:
        """Return the value for an item, without marking its sources as read."""
        return self._find(item, lambda field: field.peek(item))

    def _find(self, item: Model, read: Callable[[Field[Any]], Any]) -> Any:
        stored = item._stored
        if stored is not None and isinstance(item._marks, Partial):
            if self.name in item.__dict__:  # a row of an index, whose key contains it
                return item.__dict__[self.name]
            if self.was_fetched(item) and self.stored in stored:
                # kept, as a field that was read
                return item.__dict__.setdefault(self.name, self.decode(stored[self.stored]))
            if not self.was_fetched(item) and not all(field.was_fetched(item) for field in self.components):
                raise self.refusal(
                    "it was not fetched", hint="fetch the whole item, or add the field to only="
                )
        return self.compute({field.name: read(field) for field in self.components})

    @internal
    def compute(self, values: Mapping[str, Any]) -> Any:
        """Return the value for these values of its components."""
        from holdall.models.model import restored

        assert self.options.computed is not None
        function, sources = self.options.computed
        names = [field.name for field in self.components]
        view = restored(self.owner, None, {name: values.get(name) for name in names})
        try:
            value = function(view)
        except InvalidFieldError as error:
            if error.model != self.model or error.field in names:
                raise
            raise self.refusal(
                f"its method reads {error.field}, which @computed does not name",
                hint=f"write @computed({', '.join(map(repr, (*sources, error.field)))})",
            ) from None
        return self.validate(value)

    def default(self) -> Any:
        """Return ABSENT: an item never keeps a value."""
        return ABSENT


class ComputedAttribute:
    """The stored attribute of a computed field, and other attributes that depend on computed fields."""

    __slots__ = ("_computed", "_inner", "components")

    def __init__(self, computed: Sequence[ComputedField[Any]], inner: Derived | None = None) -> None:
        self._computed = tuple(computed)
        self._inner = inner
        others = () if inner is None else inner.components
        self.components: tuple[Field[Any], ...] = tuple(
            dict.fromkeys(
                part
                for field in (*others, *computed)
                for part in (field.components if isinstance(field, ComputedField) else (field,))
            )
        )

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Return the attributes for these values of the fields that nothing computes."""
        found = {field: field.compute(values) for field in self._computed}
        if self._inner is not None:
            return self._inner.attributes({**values, **{field.name: found[field] for field in found}})
        return {field.stored: field.encode(value) for field, value in found.items()}


def derive_computed(fields: Mapping[str, Field[Any]], derived: Sequence[Derived]) -> tuple[Derived, ...]:
    """Return all derived attributes: those of computed fields, and the others, which may use computed ones."""
    own = [field for field in fields.values() if isinstance(field, ComputedField)]
    if not own:
        return tuple(derived)
    found: list[Derived] = [ComputedAttribute([field]) for field in own]
    for each in derived:
        used = [field for field in each.components if isinstance(field, ComputedField)]
        found.append(ComputedAttribute(used, each) if used else each)
    return tuple(found)
