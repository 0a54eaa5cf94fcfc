"""Fields: what a class has for each of its annotations, and how a field converts a value."""

from __future__ import annotations

import copy
import pickle
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge

from holdall import Key, Model, SortKey, field
from holdall.errors import InvalidFieldError
from holdall.models import Field
from holdall.models.fields.options import ABSENT


class Thing(Model):
    k: Key[str]
    s: SortKey[int] = field(default=7)
    x: Annotated[int, Ge(0)] = field(default=1, name="ex", description="how many")
    maybe: str | None = None
    words: list[str] = field(default_factory=list)
    needed: float
    open_: Any = 5


def get_field(name: str) -> Field[Any]:
    return Thing._schema.fields[name]


def test_the_class_has_the_field_and_the_item_its_value() -> None:
    assert Thing.k is get_field("k")
    assert Thing.s is get_field("s")
    item = Thing(k="a", needed=1.5)
    assert (item.k, item.s, item.x) == ("a", 7, 1)


def test_a_field_describes_itself() -> None:
    assert repr(get_field("x")) == "Thing.x"
    assert (get_field("x").stored, get_field("words").stored) == ("ex", "words")
    assert (get_field("x").description, get_field("words").description) == ("how many", None)
    assert [name for name, known in Thing._schema.fields.items() if known.is_key] == ["k", "s"]
    assert [name for name, known in Thing._schema.fields.items() if known.is_sort_key] == ["s"]
    assert [name for name, known in Thing._schema.fields.items() if known.fixed] == ["k", "s"]


def test_a_field_with_a_default_is_optional() -> None:
    with_default = [name for name, known in Thing._schema.fields.items() if known.has_default]
    assert with_default == ["s", "x", "maybe", "words", "open_"]
    assert get_field("needed").default() is ABSENT


def test_a_mutable_default_is_new_each_time() -> None:
    assert get_field("words").default() == []
    assert get_field("words").default() is not get_field("words").default()


def test_a_missing_attribute_reads_as_none_if_the_type_admits_it_and_as_the_default_otherwise() -> None:
    assert (get_field("maybe").absent_value(), get_field("open_").absent_value()) == (None, None)
    assert (get_field("x").absent_value(), get_field("words").absent_value()) == (1, [])
    assert get_field("needed").absent_value() is ABSENT


def test_a_value_is_validated_encoded_and_decoded() -> None:
    x = get_field("x")
    assert x.validate(3) == 3
    assert x.encode(3) == {"N": "3"}
    assert x.decode({"N": "3"}) == 3


def test_none_is_stored_as_absence() -> None:
    assert get_field("maybe").encode(None) is None
    assert get_field("open_").encode(None) is None
    with pytest.raises(InvalidFieldError, match=r"^Thing\.x: "):
        get_field("x").encode(None)


@pytest.mark.parametrize("value", [-1, "1", 1.5, None, True])
def test_a_value_that_does_not_fit_is_refused_by_name(value: Any) -> None:
    with pytest.raises(InvalidFieldError, match=r"^Thing\.x: ") as caught:
        get_field("x").validate(value)
    assert caught.value.stored is None


def test_a_value_that_was_changed_in_place_is_checked_again_when_it_is_encoded() -> None:
    words = get_field("words").validate(["a"])
    words.append(1)
    with pytest.raises(InvalidFieldError, match=r"^Thing\.words: \[1\]: "):
        get_field("words").encode(words)


def test_a_stored_attribute_that_does_not_fit_is_in_the_error() -> None:
    with pytest.raises(
        InvalidFieldError, match=r"^Thing\.words: the stored value.* does not fit the type: \[0\]"
    ) as caught:
        get_field("words").decode({"L": [{"N": "1"}]})
    assert caught.value.stored == {"L": [{"N": "1"}]}
    assert "assign a value that fits" in (caught.value.hint or "")


def test_a_long_stored_attribute_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidFieldError) as caught:
        get_field("x").decode({"S": "x" * 9999})
    assert len(str(caught.value)) < 400
    assert caught.value.stored == {"S": "x" * 9999}


def test_a_place_inside_a_value_is_named() -> None:
    class Deep(Model):
        x: dict[str, list[Literal["a", "b"]]] = field(default_factory=dict)

    with pytest.raises(InvalidFieldError, match=r"^Deep\.x: key\[1\]: "):
        Deep(x={"key": ["a", "c"]})  # type: ignore[list-item]


def test_the_absent_value_is_the_same_object_after_a_copy() -> None:
    assert copy.deepcopy(ABSENT) is ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert repr(ABSENT) == "ABSENT"
