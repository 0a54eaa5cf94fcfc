"""A class made by our decorator behaves like one made by the standard decorator."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.frozen import _Init, dataclass, replace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ours:
    """A value."""

    kind: ClassVar[str] = "shared"
    first: Any
    second: Any = 2
    third: tuple[int, ...] = ()

    def total(self) -> Any:
        return self.first + self.second


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    """A value."""

    kind: ClassVar[str] = "shared"
    first: Any
    second: Any = 2
    third: tuple[int, ...] = ()

    def total(self) -> Any:
        return self.first + self.second


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Box(Generic[T]):
    """Something."""

    content: T


contents = st.none() | st.integers() | st.text() | st.lists(st.integers()).map(tuple)
arguments = st.tuples(contents, contents, st.lists(st.integers()).map(tuple))


def describe_outcome(act: Callable[[], object]) -> str:
    try:
        outcome = repr(act())
    except (TypeError, AttributeError) as error:
        outcome = repr(error)
    return outcome.replace("Theirs", "Ours")


@given(arguments, arguments)
def test_values_are_equal_by_their_content(one: Any, other: Any) -> None:
    assert (Ours(*one) == Ours(*other)) == (Theirs(*one) == Theirs(*other))
    unlike: object = Theirs(*one)
    assert Ours(*one) != unlike
    assert hash(Ours(*one)) == hash(Ours(*one))
    assert len({Ours(*one), Ours(*other)}) == len({Theirs(*one), Theirs(*other)})


@given(arguments)
def test_a_value_shows_its_content(content: Any) -> None:
    assert repr(Ours(*content)) == repr(Theirs(*content)).replace("Theirs", "Ours")


@given(arguments)
def test_a_value_survives_copying_pickling_and_replacing(content: Any) -> None:
    value = Ours(*content)
    assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    assert replace(value, second="new") == Ours(content[0], "new", content[2])
    assert dataclasses.replace(value, second="new") == replace(value, second="new")


@pytest.mark.parametrize(
    "act",
    [
        lambda kind: kind(),
        lambda kind: kind(1, 2, (), 4),
        lambda kind: kind(1, fourth=4),
        lambda kind: kind(1, first=1),
        lambda kind: kind(first=1, third=(3,)),
        lambda kind: setattr(kind(1), "first", 2),
        lambda kind: delattr(kind(1), "first"),
        lambda kind: hash(kind([])),
        lambda kind: kind(1).total(),
        lambda kind: kind.kind,
        lambda kind: hasattr(kind(1), "__dict__"),
        lambda kind: [(field.name, field.type) for field in dataclasses.fields(kind)],
        lambda kind: dataclasses.asdict(kind(1)),
        lambda kind: dataclasses.is_dataclass(kind),
        lambda kind: kind.__dataclass_params__.frozen,
        lambda kind: kind.__match_args__,
        lambda kind: kind.__doc__,
        lambda kind: get_type_hints(kind.__init__),
    ],
)
def test_everything_else_behaves_as_with_the_standard_decorator(act: Callable[[Any], object]) -> None:
    assert describe_outcome(lambda: act(Ours)) == describe_outcome(lambda: act(Theirs))


def test_a_value_can_be_matched_by_a_pattern() -> None:
    match Ours(1, 5):
        case Ours(first, 5):
            assert first == 1
        case _:
            raise AssertionError


def test_a_class_can_be_generic_or_have_no_fields() -> None:
    assert Empty() == Empty()
    assert repr(Empty()) == "Empty()"
    assert {Empty(), Empty()} == {Empty()}
    assert Box[int](5).content == 5


def test_a_class_has_its_signature_before_init_is_compiled_and_a_subclass_shares_it() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        first: Any
        second: int = 2

    class Derived(Fresh):
        __slots__ = ()

    assert isinstance(vars(Fresh)["__init__"], _Init), "__init__ must not be compiled yet"
    assert Derived(1).second == 2
    assert str(inspect.signature(Fresh)) == "(first: 'Any', second: 'int' = 2) -> None"
    assert inspect.isfunction(vars(Fresh)["__init__"])
    assert "__init__" not in vars(Derived)


def test_the_requests_do_not_load_the_standard_decorator() -> None:
    program = "import sys, holdall.core.requests; sys.exit('dataclasses' in sys.modules or 'inspect' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
