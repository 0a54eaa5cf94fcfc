"""From class statement to schema: accepted declarations, and refused ones with the names of class and field."""

from __future__ import annotations
import __future__

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from enum import Enum
from functools import cached_property
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Optional
from uuid import UUID

import pytest
from annotated_types import Ge
from pydantic import BaseModel

from holdall import Index, Key, Model, SortKey, field
from holdall.errors import InvalidFieldError, ModelDefinitionError
from holdall.models.fields.options import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence


class Colour(Enum):
    RED = "red"
    ONE = 1


class Parent(Model):
    region: Key[str]
    number: SortKey[int]
    name: str = "unnamed"

    def shout(self) -> str:
        return self.name.upper()


class Shared(Model, abstract=True):
    made: datetime = field(default_factory=lambda: datetime.now(UTC))


class Known(BaseModel):
    x: int = 0


class Strange:
    """A class that pydantic cannot validate."""


# names that the class statements below can use
USED = (Annotated, Any, Callable, ClassVar, Ge, Index, Literal, Optional, datetime)


def define(statement: str, *, as_text: bool = False) -> dict[str, Any]:
    """Run a class statement, with its annotations evaluated at once or kept as text."""
    flags = __future__.annotations.compiler_flag if as_text else 0
    names = dict(globals())
    exec(compile(statement, "<class>", "exec", flags=flags, dont_inherit=True), names)
    return names


def statement(body: str, *, head: str = "Model") -> str:
    return f"class Thing({head}):\n{indent(body, '    ')}\n"


@contextmanager
def expect_refusal(message: str) -> Iterator[None]:
    with pytest.raises(ModelDefinitionError, match=f"^{re.escape(message)}"):
        yield


# --- refused declarations -------------------------------------------------------------------------------

FIELDS = [
    ("x: int = 'a'", "Thing.x: its default does not fit its type: Input should be a valid integer"),
    ("x: list[int] = ['a']", "Thing.x: its default does not fit its type: "),
    ("x: int = None", "Thing.x: its default does not fit its type: "),
    ("x: Callable[[], int]", "Thing.x: "),
    ("x: Strange", "Thing.x: Strange cannot be the type of a field: "),
    ("x: list[Strange] = []", "Thing.x: "),
    ("x = field(default=1)", "Thing.x: it has no type"),
    (
        "x: int = field(default=1, default_factory=int)",
        "Thing.x: it has both a default and a default_factory",
    ),
    ("x: int = field(default_factory=3)", "Thing.x: its default_factory is not callable"),
    ("x: Key", "Thing.x: Key needs a type"),
    ("x: SortKey", "Thing.x: SortKey needs a type"),
    ("x: Key[int] = 3", "Thing.x: part of a partition key cannot have a default"),
    ("x: Key[int | None]", "Thing.x: part of a key cannot be None"),
    ("x: SortKey[Optional[str]]", "Thing.x: part of a key cannot be None"),
    ("x: Key[Any]", "Thing.x: part of a key cannot be None"),
    ("x: Key[str] = field(unique=True)", "Thing.x: part of a key cannot be unique"),
    (
        "x: list[int] = field(unique=True)",
        "Thing.x: only a string, number, boolean or bytes field can be unique",
    ),
    ("k: Key[str]\nx: SortKey[list[int]]", "Thing.x: "),
    ("k: Key[str]\nx: SortKey[dict[str, int]]", "Thing.x: "),
    ("k: Key[str]\nx: SortKey[Known]", "Thing.x: "),
    ("id: str", "Thing.id: the model has no key, and its id is not declared as one"),
    ("_x: int", "Thing._x: the name of a field cannot begin with an underscore"),
    ("x: int = field(name='_x')", "Thing.x: its stored name '_x' cannot begin with an underscore"),
    ("x: int = field(name='y')\ny: int", "Thing.y: its stored name 'y' is already that of x"),
    ("x: int\ny: int = field(name='x')", "Thing.y: its stored name 'x' is already that of x"),
    ("gsi1_pk: str", "Thing.gsi1_pk: its stored name gsi1_pk is reserved for indexes"),
    ("x: str = field(name='gsi12_sk')", "Thing.x: its stored name gsi12_sk is reserved for indexes"),
]


@pytest.mark.parametrize("as_text", [False, True], ids=["evaluated", "text"])
@pytest.mark.parametrize(("body", "message"), FIELDS, ids=[body for body, _ in FIELDS])
def test_a_field_that_cannot_work_is_refused_by_name(body: str, message: str, as_text: bool) -> None:
    with expect_refusal(message):
        define(statement(body), as_text=as_text)


@pytest.mark.parametrize("as_text", [False, True], ids=["evaluated", "text"])
@pytest.mark.parametrize(
    "annotation",
    ["Annotated[Key[int], Ge(0)]", "Optional[Key[int]]", "list[Key[int]]", "Annotated[SortKey[str], 'note']"],
)
def test_a_key_that_is_not_outermost_is_refused(annotation: str, as_text: bool) -> None:
    # as a plain field it would leave the model with a random id in place of its key
    kind = "SortKey" if "SortKey" in annotation else "Key"
    with expect_refusal(f"Thing.x: {kind} must be the outermost part of the annotation"):
        define(statement(f"x: {annotation}"), as_text=as_text)


@pytest.mark.parametrize(
    "annotation",
    ["int | str", "bool | int", "Literal[1, '1']", "Colour", "set[int]", "str | list[str]"],
)
@pytest.mark.parametrize("kind", ["Key", "SortKey"])
def test_a_key_whose_values_are_stored_in_several_ways_is_refused(kind: str, annotation: str) -> None:
    # 1 and "1" have the same text
    with expect_refusal("Thing.x: its values have different stored types, so it cannot be part of a key"):
        define(statement(f"k: Key[str]\nx: {kind}[{annotation}]"))


def test_an_index_over_values_that_are_stored_in_several_ways_is_refused() -> None:
    with expect_refusal("Thing: the index 'by_x': the values of x have different stored types"):
        define(statement("x: int | str", head="Model, indexes=[Index('by_x', key=['x'])]"))


def test_an_own_table_distinguishes_a_number_from_its_text() -> None:
    thing = define(statement("k: Key[int | str]", head="Model, table='Things'"))["Thing"]
    assert thing.key(1).encoded != thing.key("1").encoded


@pytest.mark.parametrize(
    "annotation", ["Parent", "list[Parent]", "Parent | None", "dict[str, Parent]", "'Thing'"]
)
def test_a_model_inside_another_is_refused(annotation: str) -> None:
    with expect_refusal("Thing.x: a field cannot hold another model, such as "):
        define(statement(f"x: {annotation}"))


@pytest.mark.parametrize("annotation", ["'Nowhere'", "'Nowhere.more'", "'int['", "'list[Nowhere]'"])
def test_an_annotation_that_cannot_be_evaluated_is_refused(annotation: str) -> None:
    with expect_refusal("Thing.x: its annotation"):
        define(statement(f"x: {annotation}"))


@pytest.mark.parametrize("as_text", [False, True], ids=["evaluated", "text"])
@pytest.mark.parametrize("name", ["key", "is_new", "to_dict", "json_schema", "field", "before_commit"])
def test_a_field_cannot_have_a_name_that_every_model_has(name: str, as_text: bool) -> None:
    with expect_refusal(f"Thing.{name}: a field cannot have this name, because every model has"):
        define(statement(f"{name}: int"), as_text=as_text)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            "def before_create(self): ...",
            "before_create: Holdall cannot call it: it is defined as before_create(self)",
        ),
        ("def before_update(self, tx, more): ...", "before_update: Holdall cannot call it"),
        ("@staticmethod\ndef before_delete(self, tx): ...", "before_delete: Holdall cannot call it"),
        ("def before_commit(self, *, tx): ...", "before_commit: Holdall cannot call it"),
        ("before_commit = 5", "before_commit: it is the name of a hook, so it must be a method"),
        ("def after_load(self, tx): ...", "after_load: Holdall cannot call it"),
    ],
)
def test_a_hook_that_cannot_be_called_is_refused(body: str, problem: str) -> None:
    with expect_refusal(f"Thing.{problem}"):
        define(statement(body))


@pytest.mark.parametrize(
    "body",
    [
        "def before_create(self, transaction, note=''): ...",
        "def before_update(*args, **options): ...",
        "@classmethod\ndef before_delete(cls, tx): ...",
        "@staticmethod\ndef before_commit(tx): ...",
        "before_commit = print",
    ],
)
def test_a_hook_can_have_any_signature_that_fits(body: str) -> None:
    define(statement(body))


def test_a_field_cannot_hide_a_method_of_a_base() -> None:
    with expect_refusal("Thing.shout: it hides an attribute of Parent"):
        define(statement("shout: str", head="Parent"))


@pytest.mark.parametrize(
    "body", ["def name(self): ...", "@property\ndef name(self): ...", "@classmethod\ndef name(cls): ..."]
)
def test_a_method_cannot_have_the_name_of_an_inherited_field(body: str) -> None:
    with expect_refusal("Thing.name: a method or property has the same name as a field"):
        define(statement(body, head="Parent"))


HEADS = [
    ("Model, name='two words'", "x: int", "Thing: 'two words' cannot be the name of a model"),
    ("Model, name='lower'", "x: int", "Thing: 'lower' cannot be the name of a model"),
    ("Model, name='A#B'", "x: int", "Thing: 'A#B' cannot be the name of a model"),
    ("Model, name=''", "x: int", "Thing: '' cannot be the name of a model"),
    ("Model, table='a b'", "x: int", "Thing: 'a b' cannot be the name of a table"),
    ("Model, ttl='when'", "x: int", "Thing.when: ttl= names a field that does not exist"),
    ("Model, ttl='x'", "x: str", "Thing.x: the field of ttl= must be a datetime, an int or a float"),
    (
        "Model, ttl='x'",
        "x: int\ny: str = field(unique=True)",
        "Thing.y: a model whose items expire (ttl=) cannot",
    ),
    (
        "Model, table='Things'",
        "x: int = field(unique=True)",
        "Thing.x: a model with its own table (table=) cannot have a unique field",
    ),
    ("Parent, table='Things'", "x: int", "Thing: a subclass of Parent is stored in the same table as Parent"),
]


@pytest.mark.parametrize(
    ("head", "body", "message"), HEADS, ids=[f"{head}: {body}" for head, body, _ in HEADS]
)
def test_a_class_that_cannot_work_is_refused_by_name(head: str, body: str, message: str) -> None:
    with expect_refusal(message):
        define(statement(body, head=head))


def test_a_class_whose_name_does_not_suit_a_model_needs_another() -> None:
    with expect_refusal("_Hidden: '_Hidden' cannot be the name of a model"):
        define("class _Hidden(Model):\n    x: int")
    hidden = define("class _Hidden(Model, name='Hidden'):\n    x: int")["_Hidden"]
    assert hidden._schema.name == "Hidden"


def test_an_abstract_class_can_have_any_name() -> None:
    class _Base(Model, abstract=True):
        x: int = 1

    class Thing(_Base):
        pass

    assert Thing().x == 1


SUBCLASSES = [
    ("town: Key[str]", "Thing.town: a subclass of Parent must have exactly the key of Parent"),
    ("town: SortKey[str] = 'x'", "Thing.town: a subclass of Parent must have exactly the key of Parent"),
    ("region: str", "Thing.region: a subclass of Parent must have exactly the key of Parent"),
    ("region: SortKey[str]", "Thing.region: "),
    ("number: Key[int]", "Thing.number: it must be a SortKey, as in Parent"),
    ("region: Key[int]", "Thing.region: it must have the same type as in Parent"),
    ("number: SortKey[str] = 'x'", "Thing.number: it must have the same type as in Parent"),
    ("number = 'x'", "Thing.number: its default does not fit its type: "),
    ("region = 'x'", "Thing.region: part of a partition key cannot have a default"),
    ("name = 3", "Thing.name: its default does not fit its type: "),
]


@pytest.mark.parametrize(("body", "message"), SUBCLASSES, ids=[body for body, _ in SUBCLASSES])
def test_a_subclass_of_a_model_cannot_change_its_key(body: str, message: str) -> None:
    with expect_refusal(message):
        define(statement(body, head="Parent"))


def test_an_unknown_class_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="tabel"):
        define(statement("x: int", head="Model, tabel='Things'"))


# --- accepted declarations ------------------------------------------------------------------------------


def test_fields_are_in_the_order_of_their_annotations() -> None:
    class Thing(Model):
        b: int
        a: str
        c: float = 1.5

    assert list(Thing._schema.fields) == ["id", "b", "a", "c"]


def test_a_model_without_a_key_has_a_random_id() -> None:
    class Thing(Model):
        x: int = 0

    first, second = Thing(), Thing()
    assert isinstance(first.id, str)
    assert str(UUID(first.id)) == first.id
    assert first.id != second.id
    assert [key.name for key in Thing._schema.keys] == ["id"]


def test_a_sort_key_alone_comes_with_a_random_id() -> None:
    class Thing(Model):
        at: SortKey[int]

    assert [key.name for key in Thing._schema.keys] == ["id"]
    assert Thing(at=1).id != Thing(at=1).id


def test_an_id_that_is_not_a_uuid_is_refused() -> None:
    class Thing(Model):
        x: int = 0

    given = UUID("12345678-1234-4234-8234-123456789abc")
    assert Thing(id=str(given)).id == Thing(id=given).id == str(given)  # type: ignore[call-arg]
    for wrong in ("", "42", 42, 10**9999, None, f"{given}\n", given.hex):
        with pytest.raises(InvalidFieldError, match=r"^Thing\.id: .* is not a UUID"):
            Thing(id=wrong)  # type: ignore[call-arg]


def test_a_declared_id_can_have_any_type() -> None:
    class Thing(Model):
        id: Key[int] = field()

    assert Thing(id=42).key.encoded == ("Thing#42", "#")


def test_class_variables_are_not_fields() -> None:
    class Thing(Model):
        limit: ClassVar[int] = 3
        other: ClassVar = 4
        x: int = 0

    assert list(Thing._schema.fields) == ["id", "x"]
    assert (Thing.limit, Thing().limit, Thing.other) == (3, 3, 4)
    with pytest.raises(InvalidFieldError, match=r"Thing\.limit"):
        Thing(limit=4)  # type: ignore[call-arg]


@pytest.mark.parametrize("as_text", [False, True], ids=["evaluated", "text"])
def test_annotations_are_the_same_evaluated_and_as_text(as_text: bool) -> None:
    lines = (
        "k: Key[str]",
        "s: SortKey[int] = 3",
        "x: Annotated[int, Ge(0)] = 1",
        "z: ClassVar[int] = 2",
        "y: Colour | None",
    )
    body = "\n".join(lines)
    thing = define(statement(body), as_text=as_text)["Thing"]
    assert list(thing._schema.fields) == ["k", "s", "x", "y"]
    with pytest.raises(InvalidFieldError, match=r"Thing\.x: .*greater than or equal to 0"):
        thing(k="a", x=-1)


def test_annotations_find_names_of_the_function_around_the_class() -> None:
    class Size(Enum):
        SMALL = "s"

    class Thing(Model):
        size: Size
        sizes: list[Size] = field(default_factory=list)

    assert Thing(size=Size.SMALL, sizes=[Size.SMALL]).sizes == [Size.SMALL]


def test_annotations_find_names_of_the_class_itself_and_of_the_one_around_it() -> None:
    class Shop:
        class Size(Enum):
            SMALL = "s"

        class Thing(Model):
            class Shape(Enum):
                ROUND = "r"

            size: Size  # type: ignore[name-defined]  # noqa: F821 - a name of Shop
            shape: Shape

    thing = Shop.Thing(size=Shop.Size.SMALL, shape=Shop.Thing.Shape.ROUND)
    assert (thing.size, thing.shape) == (Shop.Size.SMALL, Shop.Thing.Shape.ROUND)


def test_a_field_can_have_the_name_of_its_type() -> None:
    class Thing(Model):
        date: date | None = None
        field_: int = field(default=1)

    assert Thing(date=date(2026, 1, 31)).date == date(2026, 1, 31)


def test_a_name_that_only_type_checkers_see_is_explained() -> None:
    with expect_refusal(
        "Thing.x: its annotation 'Sequence[int]' cannot be evaluated: name 'Sequence' is not defined"
    ):

        class Thing(Model):
            x: Sequence[int]


def test_fields_can_have_the_names_of_our_arguments() -> None:
    class Thing(Model):
        model: str
        self: int
        item: int
        values: list[int]
        cls: int
        name: str
        table: str
        keys: int
        schema: int

    given: dict[str, Any] = {
        "model": "m",
        "self": 1,
        "item": 2,
        "values": [3],
        "cls": 4,
        "name": "n",
        "table": "t",
        "keys": 5,
        "schema": 6,
    }
    thing = Thing(**given)
    assert {name: value for name, value in thing.to_dict().items() if name != "id"} == given


def test_a_model_has_the_name_of_its_class_unless_it_is_given_another() -> None:
    class Thing(Model):
        x: int = 0

    class Renamed(Model, name="Thing2"):
        x: int = 0

    assert (Thing._schema.name, Thing._schema.root) == ("Thing", "Thing")
    assert (Renamed._schema.name, Renamed._schema.root) == ("Thing2", "Thing2")


# --- inheritance ----------------------------------------------------------------------------------------


def test_a_subclass_has_the_fields_of_its_base_and_shares_its_keys() -> None:
    class Child(Parent):
        age: int = 0

    assert list(Child._schema.fields) == ["region", "number", "name", "age"]
    assert (Child._schema.name, Child._schema.root) == ("Child", "Parent")
    assert Child.key(region="eu", number=1).encoded == Parent.key(region="eu", number=1).encoded
    assert Child(region="eu", number=1, name="Ada").shout() == "ADA"
    assert list(Parent._schema.fields) == ["region", "number", "name"]


def test_a_grandchild_shares_the_keys_of_the_root() -> None:
    class Child(Parent):
        age: int = 0

    class Grandchild(Child):
        toys: int = 0

    assert Grandchild._schema.root == "Parent"
    assert list(Grandchild._schema.family()) == [Grandchild._schema]
    assert [schema.name for schema in Child._schema.family()] == ["Grandchild", "Child"]


def test_an_abstract_base_shares_fields_and_nothing_else() -> None:
    class One(Shared):
        x: int = 0

    class Two(Shared):
        k: Key[str]

    assert (One._schema.root, Two._schema.root) == ("One", "Two")
    assert list(One._schema.fields) == ["id", "made", "x"]
    assert [key.name for key in Two._schema.keys] == ["k"]
    assert One().made.tzinfo is not None


def test_a_model_can_extend_the_key_of_an_abstract_base() -> None:
    class Tenant(Model, abstract=True):
        tenant: Key[str]

    class Bill(Tenant):
        year: Key[int]
        number: SortKey[int]

    assert Bill.key(tenant="a", year=2026, number=1).encoded[0] == "Bill#a#2026"


def test_several_abstract_bases_can_be_mixed() -> None:
    class Named(Model, abstract=True):
        name: str

    class Thing(Named, Shared):
        x: int = 0

    assert {*Thing._schema.fields} == {"id", "name", "made", "x"}


def test_an_abstract_model_has_no_items() -> None:
    with pytest.raises(TypeError, match="Shared is abstract"):
        Shared()
    with pytest.raises(TypeError, match="Model is abstract"):
        Model()


def test_abstract_is_not_inherited() -> None:
    class Thing(Shared):
        pass

    assert not Thing._schema.abstract
    assert Thing().is_new


@pytest.mark.parametrize(
    "body",
    [
        "number = 8",
        "number: SortKey[int] = 8",
        "number = field(default=8)",
        "number: SortKey[int] = field(default=8)",
    ],
)
def test_a_subclass_can_have_another_default_for_a_sort_key(body: str) -> None:
    child = define(statement(body, head="Parent"))["Thing"]
    assert child(region="eu").number == 8
    assert child.key("eu").encoded == Parent.key(region="eu", number=8).encoded
    with pytest.raises(InvalidFieldError, match=r"Parent\.number: the value is missing"):
        Parent(region="eu")  # type: ignore[call-arg]


def test_a_new_default_keeps_the_other_options_of_the_field() -> None:
    class Base(Model):
        x: int = field(default=1, read_only=True, name="ex", description="an x")

    class Child(Base):
        x = 2

    class Other(Base):
        x = field(description="another x")

    assert (Child().x, Child._schema.fields["x"].stored, Child._schema.fields["x"].description) == (
        2,
        "ex",
        "an x",
    )
    assert (Other().x, Other._schema.fields["x"].stored, Other._schema.fields["x"].description) == (
        1,
        "ex",
        "another x",
    )
    with pytest.raises(InvalidFieldError, match=r"Child\.x: it is read-only"):
        Child().x = 3
    assert Base().x == 1


def test_an_annotation_in_a_subclass_replaces_the_field() -> None:
    class Base(Model):
        x: int = field(default=1, read_only=True)

    class Child(Base):
        x: str = "a"  # type: ignore[assignment]

    child = Child()
    child.x = "b"
    assert (child.x, Base().x) == ("b", 1)


def test_errors_name_the_class_that_was_called() -> None:
    class Child(Parent):
        pass

    with pytest.raises(InvalidFieldError, match=r"^Child\.name: "):
        Child(region="eu", number=1, name=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidFieldError, match=r"^Parent\.name: "):
        Parent(region="eu", number=1, name=3)  # type: ignore[arg-type]


# --- methods and properties -----------------------------------------------------------------------------


def test_methods_properties_and_cached_properties_work() -> None:
    class Thing(Model):
        x: int = 2

        @property
        def double(self) -> int:
            return 2 * self.x

        @double.setter
        def double(self, value: int) -> None:
            self.x = value // 2

        @cached_property
        def squared(self) -> int:
            return self.x**2

        @classmethod
        def of(cls, x: int) -> Thing:
            return cls(x=x)

        @staticmethod
        def zero() -> int:
            return 0

    thing = Thing.of(3)
    assert (thing.double, thing.squared, Thing.zero()) == (6, 9, 0)
    thing.double = 10
    assert (thing.x, thing.squared) == (5, 9)
    assert list(thing.to_dict()) == ["id", "x"]
    assert "squared" not in repr(thing)


def test_a_property_without_a_setter_cannot_be_assigned() -> None:
    class Thing(Model):
        @property
        def fixed(self) -> int:
            return 1

    with pytest.raises(AttributeError):
        Thing().fixed = 2  # type: ignore[misc]


def test_a_description_is_kept() -> None:
    class Thing(Model):
        x: int = field(default=1, description="how many")

    assert Thing._schema.fields["x"].description == "how many"


def test_a_field_without_a_default_has_none() -> None:
    assert Parent._schema.fields["region"].default() is ABSENT
    assert not Parent._schema.fields["region"].has_default
    assert Parent._schema.fields["name"].has_default
