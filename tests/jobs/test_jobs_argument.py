"""Arguments as text: they come back as they were passed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall import Database, Key, Model, ModelKey, SortKey
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.port import run
from holdall.errors import ConfigurationError, InvalidJobArgumentsError, ModelMismatchError
from holdall.jobs.argument import format_arguments, load_arguments
from holdall.jobs.locator import Gone, fetch_located, find_locator


class Box(Model):
    shelf: Key[str]
    number: SortKey[int]
    weight: int = 0


class Mixed(Model):
    whole: Key[int]
    decimal: Key[Decimal]
    moment: Key[datetime]
    token: Key[UUID]
    raw: Key[bytes]
    flag: Key[bool]
    text: Key[str]


class Pet(Model):
    name: Key[str]


class Cat(Pet):
    lives: int = 9


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with Database("memory:") as db:
        yield db


@pytest.fixture(scope="module")
def context(db: Database) -> Context:
    return db._context


def round_trip(context: Context, *arguments: Any) -> list[Any]:
    return run(load_arguments(context, None, format_arguments(arguments)))


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
NAMES = TEXT.filter(lambda name: name != "$holdall")


def nest(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=12,
    )


@given(arguments=st.lists(nest(SIMPLE), max_size=4))
def test_json_comes_back_unchanged(context: Context, arguments: list[Any]) -> None:
    assert repr(round_trip(context, *arguments)) == repr(arguments)


KEYS = st.builds(
    lambda whole, decimal, moment, token, raw, flag, text: Mixed.key(
        whole=whole, decimal=decimal, moment=moment, token=token, raw=raw, flag=flag, text=text
    ),
    st.integers(-(10**30), 10**30),
    st.decimals(-(10**9), 10**9, allow_nan=False, places=3),
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    st.uuids(),
    st.binary(min_size=1, max_size=20),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)


@given(arguments=st.lists(nest(SIMPLE | KEYS), max_size=3))
def test_keys_come_back_wherever_they_are(context: Context, arguments: list[Any]) -> None:
    assert round_trip(context, *arguments) == arguments


@given(key=KEYS)
def test_a_key_that_comes_back_leads_to_the_same_item(context: Context, key: ModelKey[Any]) -> None:
    (found,) = round_trip(context, key)
    assert found.encoded == key.encoded
    assert found.components == key.components


def test_the_text_is_compact_json(context: Context) -> None:
    assert format_arguments([]) == "[]"
    assert format_arguments(["é", 1, None, {"a": [True]}]) == '["é",1,null,{"a":[true]}]'
    text = format_arguments([Box.key(shelf="a", number=1)])
    place = f"{Box.__module__}.{Box.__qualname__}"
    key = r"{\"shelf\":{\"S\":\"a\"},\"number\":{\"N\":\"1\"}}"
    assert text == f'[{{"$holdall":"key:Box {place}:{key}"}}]'


def test_a_key_comes_back_with_its_own_model_even_if_another_has_the_same_name(context: Context) -> None:
    class Crate(Model):
        shelf: Key[str]

    meant, text = Crate, format_arguments([Crate.key("a")])

    def another() -> type[Model]:
        class Crate(Model):
            row: Key[int]

        return Crate

    later = another()
    (found,) = run(load_arguments(context, None, text))
    assert (found.model, found.components) == (meant, {"shelf": "a"})
    assert later is not meant


def test_an_item_is_read_again(db: Database, context: Context) -> None:
    with db.transaction() as tx:
        box = tx.create(Box, shelf="read", number=1)
        cat = tx.create(Cat, name="tom")
    text = format_arguments([box, [cat]])
    with db.transaction() as tx:
        tx.get_one(Box, shelf="read", number=1).weight = 5
    found, (pet,) = run(load_arguments(context, None, text))
    assert (type(found), found.weight) == (Box, 5)
    assert (type(pet), pet.lives) == (Cat, 9)


def test_the_error_for_a_deleted_item_does_not_contain_its_key(context: Context) -> None:
    text = format_arguments([Box(shelf="secret", number=1)])
    with pytest.raises(Gone) as caught:
        run(load_arguments(context, None, text))
    assert "Box" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_item_that_is_now_of_another_model_is_refused(db: Database, context: Context) -> None:
    with db.transaction() as tx:
        tx.create(Pet, name="any")
    with pytest.raises(ModelMismatchError):
        run(load_arguments(context, None, format_arguments([Cat(name="any")])))


# --- locators that this process cannot read --------------------------------------------------------------

UNKNOWN = [
    ("thing:x", "the kind 'thing'"),
    ("nothing", "the kind 'nothing'"),
    ('key:NoSuchModel app.NoSuchModel:{"a":{"S":"b"}}', "the model NoSuchModel"),
    ('item:NoSuchModel app.NoSuchModel:{"a":{"S":"b"}}', "the model NoSuchModel"),
    ('key:Box app.Box:{"shelf":{"S":"a"}}', "the key of Box"),
    ('key:Box app.Box:{"shelf":{"S":"a"},"number":{"N":"1"},"more":{"N":"1"}}', "the key of Box"),
]


@pytest.mark.parametrize(("text", "message"), UNKNOWN)
def test_unknown_kinds_and_models_are_configuration_errors(context: Context, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        run(load_arguments(context, None, json.dumps([{"$holdall": text}])))


# --- kinds that a feature defines ------------------------------------------------------------------------


class Star:
    def __init__(self, name: str) -> None:
        self.name = name

    def _holdall_locator(self) -> str:
        return f"star:{self.name}"


async def load_star(context: Context, unit: Any, text: str) -> Star:
    if text == "gone":
        raise Gone("star")
    return Star(text)


class Shop:
    """A user's class that happens to have a similar method."""

    def _locate(self) -> str:
        return "item:nowhere"


def test_an_instance_of_any_other_class_is_refused() -> None:
    with pytest.raises(InvalidJobArgumentsError, match="argument 1 is of type Shop"):
        format_arguments([Shop()])


def test_a_feature_can_define_its_own_kinds(context: Context) -> None:
    hooks: Any = lambda _: {"star": load_star}.get  # noqa: E731
    context = replace(context, hook=hooks)
    assert find_locator(Star("a:b")) == "star:a:b"
    assert run(fetch_located(context, None, "star:a:b")).name == "a:b"
    first, second = round_trip(context, Star("sirius"), {"deep": [Star("vega")]})
    assert (first.name, second["deep"][0].name) == ("sirius", "vega")
    with pytest.raises(Gone):
        round_trip(context, Star("gone"))
    assert find_locator(object()) is None
    with pytest.raises(InvalidJobArgumentsError, match="of type type"):
        format_arguments([Star])
