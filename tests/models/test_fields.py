"""Fields: what a class has for each of its annotations, and the way of a value through one."""

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


def the(name: str) -> Field[Any]:
    return Thing._schema.fields[name]


def test_the_class_gives_the_field_and_the_item_its_value() -> None:
    assert Thing.k is the("k")
    assert Thing.s is the("s")
    item = Thing(k="a", needed=1.5)
    assert (item.k, item.s, item.x) == ("a", 7, 1)


def test_a_field_says_what_it_is() -> None:
    assert repr(the("x")) == "Thing.x"
    assert (the("x").stored, the("words").stored) == ("ex", "words")
    assert (the("x").description, the("words").description) == ("how many", None)
    assert [name for name, known in Thing._schema.fields.items() if known.is_key] == ["k", "s"]
    assert [name for name, known in Thing._schema.fields.items() if known.is_sort_key] == ["s"]
    assert [name for name, known in Thing._schema.fields.items() if known.fixed] == ["k", "s"]


def test_what_has_a_default_need_not_be_given() -> None:
    with_default = [name for name, known in Thing._schema.fields.items() if known.has_default]
    assert with_default == ["s", "x", "maybe", "words", "open_"]
    assert the("needed").default() is ABSENT


def test_a_default_that_can_change_is_a_new_one_each_time() -> None:
    assert the("words").default() == []
    assert the("words").default() is not the("words").default()


def test_a_missing_attribute_is_shown_as_none_where_none_is_a_value_else_as_the_default() -> None:
    assert (the("maybe").absent_value(), the("open_").absent_value()) == (None, None)
    assert (the("x").absent_value(), the("words").absent_value()) == (1, [])
    assert the("needed").absent_value() is ABSENT


def test_a_value_is_validated_encoded_and_decoded() -> None:
    x = the("x")
    assert x.validate(3) == 3
    assert x.encode(3) == {"N": "3"}
    assert x.decode({"N": "3"}) == 3


def test_none_is_stored_as_absence() -> None:
    assert the("maybe").encode(None) is None
    assert the("open_").encode(None) is None
    with pytest.raises(InvalidFieldError, match=r"^Thing\.x: "):
        the("x").encode(None)


@pytest.mark.parametrize("value", [-1, "1", 1.5, None, True])
def test_a_value_that_does_not_fit_is_refused_by_name(value: Any) -> None:
    with pytest.raises(InvalidFieldError, match=r"^Thing\.x: ") as caught:
        the("x").validate(value)
    assert caught.value.stored is None


def test_a_value_that_was_changed_in_place_is_checked_again_when_it_is_encoded() -> None:
    words = the("words").validate(["a"])
    words.append(1)
    with pytest.raises(InvalidFieldError, match=r"^Thing\.words: \[1\]: "):
        the("words").encode(words)


def test_a_stored_attribute_that_does_not_fit_is_in_the_error() -> None:
    with pytest.raises(
        InvalidFieldError, match=r"^Thing\.words: the stored value.* does not fit the type: \[0\]"
    ) as caught:
        the("words").decode({"L": [{"N": "1"}]})
    assert caught.value.stored == {"L": [{"N": "1"}]}
    assert "assign a value that fits" in (caught.value.hint or "")


def test_a_long_stored_attribute_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidFieldError) as caught:
        the("x").decode({"S": "x" * 9999})
    assert len(str(caught.value)) < 400
    assert caught.value.stored == {"S": "x" * 9999}


def test_a_place_inside_of_a_value_is_named() -> None:
    class Deep(Model):
        x: dict[str, list[Literal["a", "b"]]] = field(default_factory=dict)

    with pytest.raises(InvalidFieldError, match=r"^Deep\.x: key\[1\]: "):
        Deep(x={"key": ["a", "c"]})  # type: ignore[list-item]


def test_no_value_is_one_thing_also_after_a_copy() -> None:
    assert copy.deepcopy(ABSENT) is ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert repr(ABSENT) == "ABSENT"
