"""The fast encoding of everyday values agrees with the thorough one, and refuses the same values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall import Key, Model, field
from holdall.core import Attribute
from holdall.errors import InvalidFieldError, InvalidValueError
from holdall.models.codec.codec import Codec, codec_for
from holdall.models.codec.everyday import compile_encoder


class Colour(StrEnum):
    RED = "red"


class Text(str):
    """A subclass of str."""


texts = st.text(st.characters(), max_size=8) | st.sampled_from(
    ["", "Zürich", "\ud800", Text("x"), Colour.RED]
)
odd = st.sampled_from([None, True, 1, 1.5, "1", b"1", [], {}, ["a"], {"a": "b"}, {1: "a"}, {"": "a"}])
moments = st.datetimes(
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=2)), timezone.utc, None])  # noqa: UP017 - the same
)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    bool: st.booleans(),
    int: st.integers() | st.integers(-(10**40), 10**40) | st.sampled_from([10**38, 10**38 - 1, -(10**38)]),
    float: st.floats() | st.sampled_from([0.0, -0.0, 1e-4, 9e-5, 1e15, 1e16, 22.0, -3.0]),
    datetime: moments | st.sampled_from([datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]),
    list[str]: st.lists(texts, max_size=3),
    dict[str, str]: st.dictionaries(texts, texts, max_size=3),
}


def find_outcome(encode: Any, value: Any) -> Attribute | str:
    try:
        found: Attribute = encode(value)
    except InvalidValueError as error:
        return str(error)
    return found


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_the_fast_and_the_thorough_encoding_of_an_everyday_value_agree(
    kind: Any, data: st.DataObject
) -> None:
    value = data.draw(VALUES[kind] | odd)
    for annotation in (kind, kind | None):
        codec = codec_for(annotation)
        assert find_outcome(codec.encode_checked, value) == find_outcome(
            partial(encode_thoroughly, codec), value
        )


def encode_thoroughly(codec: Codec, value: Any) -> Attribute:
    return codec.encode(codec.validate(value))


class Everything(Model):
    name: Key[str]
    flag: bool = True
    count: int = 0
    price: float = 0.0
    at: datetime | None = None
    note: str | None = field(default=None, name="n")
    tags: list[str] = field(default_factory=list)


@given(
    st.fixed_dictionaries(
        {
            "name": st.text(min_size=1, max_size=4),
            "flag": st.booleans(),
            "count": st.integers(-9, 9),
            "price": st.floats(-9, 9),
            "at": st.none() | st.datetimes(timezones=st.just(UTC)),
            "note": st.none() | st.text(max_size=3),
            "tags": st.lists(st.text(max_size=3), max_size=2),
        }
    )
)
def test_a_compiled_encoder_agrees_with_the_encoding_of_each_field(values: dict[str, Any]) -> None:
    fields = Everything._schema.fields
    encode = compile_encoder(fields.values())
    try:
        expected = {each.stored: each.encode(values[name]) for name, each in fields.items()}
    except InvalidFieldError:
        with pytest.raises(InvalidValueError):
            encode(values, {})
        return
    item: dict[str, Attribute] = {}
    encode(values, item)
    assert item == {name: attribute for name, attribute in expected.items() if attribute is not None}


def test_a_compiled_encoder_fails_on_a_missing_value() -> None:
    encode = compile_encoder(Everything._schema.fields.values())
    with pytest.raises(KeyError):
        encode({"name": "a"}, {})
