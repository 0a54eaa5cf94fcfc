"""``@dataclass(frozen=True, slots=True)`` and `replace`, which are faster to load than the standard library's.

To type checkers and to users of the classes, they look like the standard library's. The standard library loads
`inspect` and compiles six methods for every class; with the many small classes of this package, that was a third of a
cold start. This module loads `dataclasses` only when its metadata is read, compiles only ``__init__``, when it is first
called, and shares the other methods between all classes. It does not support what this package does not use: inherited
fields, default factories, ``__post_init__`` and other flags.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast

__all__ = ["dataclass", "replace"]

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:

    def dataclass(*, frozen: Literal[True], slots: Literal[True]) -> Callable[[type[T]], type[T]]:
        """Turn the annotations of a class into fields. Its instances cannot be changed, and have no ``__dict__``."""
        return _freeze

    def replace(value: T, /, **changes: Any) -> T:
        """Return a copy of the value with some fields changed."""
        return type(value)(**{name: getattr(value, name) for name in value.__match_args__} | changes)


def _freeze(cls: type[Any]) -> type[Any]:
    own = dict(vars(cls))
    names = tuple(
        name for name, kind in own.get("__annotations__", {}).items() if not kind.startswith("ClassVar[")
    )
    defaults = {name: own.pop(name) for name in names if name in own}
    for name in ("__dict__", "__weakref__"):
        own.pop(name, None)
    content = attrgetter(*names) if names else lambda value: ()
    marks = {"__slots__": names, "__match_args__": names}
    notes = {name: _Description(name, defaults) for name in ("__dataclass_fields__", "__dataclass_params__")}
    body = {"_content": content, **_METHODS, **own, **marks, **notes}
    kind: Any = type(cls)
    made = kind(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    made.__init__ = _Init(made, names, defaults)
    return cast("type[Any]", made)


class _Init:
    """The method ``__init__`` of a class until it is first used; many programs use few of the classes."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        self._parts[0].__init__ = init = _compile_init(*self._parts)
        return init.__get__(instance, owner)


def _compile_init(
    made: type[Any], names: tuple[str, ...], defaults: Mapping[str, Any]
) -> Callable[..., None]:
    """Compile the one method that differs between classes: it fills each slot through its descriptor."""
    outer = {f"_set_{name}": vars(made)[name].__set__ for name in names}
    outer |= {f"_default_{name}": default for name, default in defaults.items()}
    taken = [f"{name}=_default_{name}" if name in defaults else name for name in names]
    steps = [f"  _set_{name}(self, {name})" for name in names] or ["  pass"]
    lines = [f"def make({', '.join(outer)}):", f" def __init__({', '.join(['self', *taken])}):", *steps]
    found: dict[str, Any] = {}
    exec("\n".join([*lines, " return __init__"]), vars(sys.modules[made.__module__]), found)
    init: Callable[..., None] = found["make"](**outer)
    init.__qualname__ = f"{made.__qualname__}.__init__"
    init.__annotations__ = {**{name: made.__annotations__[name] for name in names}, "return": None}
    return init


class _Description:
    """An attribute that `dataclasses` would have set on the class; computed when it is first read."""

    def __init__(self, name: str, defaults: Mapping[str, Any]) -> None:
        self._name = name
        self._defaults = defaults

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        import dataclasses

        noted = {
            "__annotations__": vars(owner).get("__annotations__", {}),
            "__module__": owner.__module__,
            **self._defaults,
        }
        twin: type[Any] = dataclasses.dataclass(frozen=True)(type(owner.__name__, (), noted))
        setattr(owner, self._name, getattr(twin, self._name))
        return getattr(twin, self._name)


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    content = self.__class__._content
    return content(self) == content(other)


def _hash(self: Any) -> int:
    return hash(self.__class__._content(self))


def _repr(self: Any) -> str:
    content = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{self.__class__.__qualname__}({content})"


def _refuse_change(self: Any, name: str, value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _reduce(self: Any) -> tuple[type[Any], tuple[Any, ...]]:
    return self.__class__, tuple(getattr(self, name) for name in self.__match_args__)


_METHODS: dict[str, Callable[..., Any]] = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_deletion,
    "__reduce__": _reduce,
}
