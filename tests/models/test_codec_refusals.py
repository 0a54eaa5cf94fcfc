"""Codecs refuse values that do not fit their type, would not read back, or were changed in place to be wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from annotated_types import Ge, Gt, MaxLen
from codec_types import (
    Address,
    Cat,
    Colour,
    Discounted,
    Dog,
    Epoch,
    Forgetful,
    Growing,
    Line,
    Lopsided,
    Open,
    Parcel,
    Point,
    Rank,
    Right,
    Secretive,
    Silent,
    Size,
    Spot,
    Strict,
    Tags,
    Terse,
    Tidy,
    Tree,
)
from pydantic import (
    AfterValidator,
    Json,
    JsonValue,
    PlainSerializer,
    SecretStr,
    StringConstraints,
)

from holdall.errors import InvalidValueError, ModelDefinitionError
from holdall.models.codec.adapter import Adapter
from holdall.models.codec.codec import codec_for

# --- refused values -------------------------------------------------------------------------------------

FORTY_DIGITS = 10**39 + 1

REFUSED: list[tuple[Any, Any, str, str]] = [
    (str, 5, "", "Input should be a valid string (got 5)"),
    (str, None, "", "Input should be a valid string (got None)"),
    (str, b"a", "", "Input should be a valid string (got b'a')"),
    (str, "\ud800", "", "lone surrogate"),
    (str | None, "\ud800", "", "lone surrogate"),
    (Annotated[str, MaxLen(5)], "\ud800", "", ""),
    (int, "1", "", "Input should be a valid integer (got '1')"),
    (int, True, "", "Input should be a valid integer (got True)"),
    (int, 1.0, "", "Input should be a valid integer (got 1.0)"),
    (int | None, "1", "", "Input should be a valid integer (got '1')"),
    (int, FORTY_DIGITS, "", "40 significant digits"),
    (Annotated[int, Ge(0)], FORTY_DIGITS, "", "40 significant digits"),
    (Annotated[int, Ge(0)], -1, "", "Input should be greater than or equal to 0 (got -1)"),
    (Annotated[int, Ge(0)], True, "", "Input should be a valid integer (got True)"),
    (Annotated[int, Ge(0)] | None, -1, "", "Input should be greater than or equal to 0 (got -1)"),
    (bool, 1, "", "Input should be a valid boolean (got 1)"),
    (float, float("nan"), "", "not a number"),
    (float, float("-inf"), "", "not a number"),
    (float, True, "", "Input should be a valid number (got True)"),
    (float, "1.5", "", "Input should be a valid number (got '1.5')"),
    (float, 10**400, "", "Input should be a valid number"),
    (float, 1e-200, "", "outside"),
    (Annotated[float, Gt(0)], float("nan"), "", "finite number"),
    (Annotated[float, Gt(0)], 1e200, "", "outside"),
    (Decimal, 1, "", "Input should be a Decimal (got 1)"),
    (Decimal, Decimal("NaN"), "", "not a number"),
    (Decimal, Decimal("1." + "1" * 38), "", "39 significant digits"),
    (Decimal, Decimal("1E+200"), "", "outside"),
    (bytes, "a", "", "Input should be bytes (got 'a')"),
    (bytes, bytearray(b"a"), "", "Input should be bytes"),
    (datetime, date(2026, 1, 31), "", "Input should be a valid datetime"),
    (datetime, "2026-01-31T00:00:00Z", "", "Input should be a valid datetime"),
    (datetime, datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "", "outside the years"),
    (date, datetime(2026, 1, 31), "", "Input should be a valid date"),
    (time, "09:30", "", "Input should be a valid time"),
    (time, time(9, tzinfo=timezone(timedelta(seconds=90))), "", "whole minutes"),
    (timedelta, 5, "", "Input should be a valid timedelta"),
    (UUID, str(UUID(int=1)), "", "Input should be a valid UUID"),
    (Size, "S", "", "Input should be one of <Size.SMALL: 'S'>, <Size.LARGE: 'L'> (got 'S')"),
    (Literal["a", "b"], "c", "", "Input should be one of 'a', 'b' (got 'c')"),
    (Literal[1], True, "", "Input should be one of 1 (got True)"),
    (Literal["a"], ["a"], "", "Input should be one of 'a' (got ['a'])"),
    (list[int], [1, "2"], "[1]", "Input should be a valid integer (got '2')"),
    (list[int], (1,), "", "Input should be a valid list (got (1,))"),
    (list[int], ["a", 1, None, "b"], "[0]", "Input should be a valid integer (got 'a'); 2 more problems"),
    (list[int], ["a", "b"], "[0]", "Input should be a valid integer (got 'a'); 1 more problem"),
    (list[float], [0.5, float("nan")], "[1]", "finite number"),
    (set[int], [1], "", "Input should be a valid set (got [1])"),
    (tuple[int, str], (1,), "[1]", "Field required"),
    (dict[str, list[int]], {"a": [1, "x"]}, "a[1]", "Input should be a valid integer (got 'x')"),
    (dict[str, int], {1: 1}, "1", "Input should be a valid string (got 1)"),
    (list[int | bool], [1, "x"], "[1]", "Input should be a valid integer (got 'x'); 1 more problem"),
    (Line, {"sku": "a"}, "price", "Field required"),
    (
        Parcel,
        {"lines": [{"sku": "a", "price": 1, "count": 0}]},
        "lines[0].count",
        "greater than or equal to 1",
    ),
    (list[Line], [{"sku": "a", "price": "x"}], "[0].price", "valid decimal (got 'x')"),
    (dict[str, Any], [], "", "Input should be a valid dictionary (got [])"),
    (dict[str, Any], None, "", "Input should be a valid dictionary (got None)"),
    (list[dict[str, Any]], [{}, 5], "[1]", "Input should be a valid dictionary (got 5)"),
    (list[Any], {}, "", "Input should be a valid list (got {})"),
    (dict[str, dict[str, Any]], {"a": 5}, "a", "Input should be a valid dictionary (got 5)"),
    (dict[str, Any], {1: 1}, "", "keys of a map must be strings"),
    (dict[str, Any], {"a": {"b": [1, float("nan")]}}, "a.b[1]", "not a number"),
    (Any, object(), "", "DynamoDB cannot store a value of type object"),
]


@pytest.mark.parametrize(
    ("kind", "value", "place", "problem"), REFUSED, ids=[ascii((row[0], row[3]))[:70] for row in REFUSED]
)
def test_a_value_that_does_not_fit_is_refused_with_its_place(
    kind: Any, value: Any, place: str, problem: str
) -> None:
    codec = codec_for(kind)
    for refuse in (codec.validate, codec.encode_checked):
        with pytest.raises(InvalidValueError) as refusal:
            refuse(value)
        assert problem in refusal.value.problem
        assert "pydantic" not in str(refusal.value)
        assert refusal.value.place == place


def test_a_long_value_is_shown_short() -> None:
    with pytest.raises(InvalidValueError) as refusal:
        codec_for(int).validate("x" * 1000)
    assert len(refusal.value.problem) < 120


class Odd(str):
    pass


ADMITTED: list[tuple[Any, Any, Any]] = [
    (float, 5, 5.0),
    (Annotated[float, Gt(0)], 5, 5.0),
    (str, Size.SMALL, "S"),
    (str, Odd("odd"), "odd"),
    (int, Rank.FIRST, 1),
    (list[float], [1], [1.0]),
    (Line, {"sku": "a", "price": Decimal(1)}, Line(sku="a", price=Decimal(1))),
    (list[Line], [{"sku": "a", "price": Decimal(1)}], [Line(sku="a", price=Decimal(1))]),
    (Strict, {"count": 1, "when": date(2026, 1, 31)}, Strict(count=1, when=date(2026, 1, 31))),
    (Annotated[str, StringConstraints(strip_whitespace=True)], " a ", "a"),
]


@pytest.mark.parametrize(("kind", "value", "kept"), ADMITTED, ids=[str(row[:2])[:60] for row in ADMITTED])
def test_an_equivalent_value_is_converted_to_the_type(kind: Any, value: Any, kept: Any) -> None:
    found = codec_for(kind).validate(value)
    assert found == kept
    assert type(found) is type(kept)
    codec = codec_for(kind)
    assert codec.encode_checked(value) == codec.encode(kept)


# --- stored values --------------------------------------------------------------------------------------

READ: list[tuple[Any, dict[str, Any], Any]] = [
    (int, {"N": "5.0"}, 5),
    (int, {"N": "5E0"}, 5),
    (int | None, {"NULL": True}, None),
    (Annotated[int, Ge(0)], {"N": "5.0"}, 5),
    (Annotated[int | None, Ge(0)], {"NULL": True}, None),
    (float, {"N": "0.12345678901234567890123"}, 0.12345678901234568),
    (datetime, {"S": "2026-01-31T09:30:00+02:00"}, datetime(2026, 1, 31, 7, 30, tzinfo=UTC)),
    (datetime, {"S": "2026-01-31T09:30:00Z"}, datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
    (timedelta, {"N": "1E2"}, timedelta(seconds=100)),
    (UUID, {"S": "A0EEBC999C0B4EF8BB6D6BB9BD380A11"}, UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    (Rank, {"N": "1.0"}, Rank.FIRST),
    (Size | None, {"NULL": True}, None),
    (list[int] | None, {"NULL": True}, None),
    (list[str], {"SS": ["a"]}, ["a"]),
    (set[str], {"L": [{"S": "a"}]}, {"a"}),
    (dict[str, Any] | None, {"NULL": True}, None),
    (Line, {"M": {"sku": {"S": "a"}, "price": {"N": "1"}}}, Line(sku="a", price=Decimal(1), count=1)),
    (
        Strict,
        {"M": {"count": {"N": "1"}, "when": {"S": "2026-01-31"}}},
        Strict(count=1, when=date(2026, 1, 31)),
    ),
]


@pytest.mark.parametrize(("kind", "attribute", "value"), READ, ids=[str(row[:2])[:60] for row in READ])
def test_equivalent_stored_forms_are_read(kind: Any, attribute: dict[str, Any], value: Any) -> None:
    found = codec_for(kind).decode(attribute)
    assert found == value
    assert type(found) is type(value)


MISFITS: list[tuple[Any, dict[str, Any], str, str]] = [
    (str, {"N": "5"}, "", "Input should be a valid string (stored as {'N': '5'})"),
    (str, {"NULL": True}, "", "Input should be a valid string (stored as {'NULL': True})"),
    (int, {"S": "5"}, "", "Input should be a valid integer (stored as {'S': '5'})"),
    (int, {"N": "5.5"}, "", "Input should be a valid integer (stored as {'N': '5.5'})"),
    (int, {"BOOL": True}, "", "Input should be a valid integer"),
    (int | None, {"S": "5"}, "", "Input should be a valid integer"),
    (Annotated[int, Ge(0)], {"S": "5"}, "", "Input should be a valid integer"),
    (Annotated[int, Ge(0)], {"N": "-5"}, "", "greater than or equal to 0 (got -5)"),
    (Annotated[int, AfterValidator(abs)], {"S": "5"}, "", "of DynamoDB type N (stored as {'S': '5'})"),
    (bool, {"N": "1"}, "", "Input should be a valid boolean"),
    (datetime, {"S": "yesterday"}, "", "Input should be a valid datetime (stored as {'S': 'yesterday'})"),
    (datetime, {"N": "5"}, "", "Input should be a valid datetime"),
    (timedelta, {"N": "1" + "0" * 30}, "", "Input should be a valid timedelta"),
    (UUID, {"S": "x"}, "", "Input should be a valid UUID"),
    (Size, {"S": "XL"}, "", "Input should be one of"),
    (Size, {"N": "five"}, "", "Input should be one of"),
    (Literal["a"], {"N": "1"}, "", "Input should be one of 'a'"),
    (list[int], {"L": [{"N": "1"}, {"S": "x"}]}, "[1]", "Input should be a valid integer"),
    (list[int], {"S": "x"}, "", "Input should be a valid list (got 'x')"),
    (list[int], {"NULL": True}, "", "Input should be a valid list (got None)"),
    (dict[str, Any], {"L": []}, "", "Input should be a valid dictionary (got [])"),
    (Line, {"M": {"sku": {"S": "a"}}}, "price", "Field required"),
    (Line, {"M": {"sku": {"S": "a"}, "price": {"N": "1"}, "count": {"N": "0"}}}, "count", "greater than"),
    (list[int], {"L": [{"Q": 1}]}, "[0]", "not in DynamoDB's JSON form"),
]


@pytest.mark.parametrize(
    ("kind", "attribute", "place", "problem"), MISFITS, ids=[str(row[:2])[:70] for row in MISFITS]
)
def test_a_stored_value_that_does_not_fit_is_refused(
    kind: Any, attribute: dict[str, Any], place: str, problem: str
) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        codec_for(kind).decode(attribute)
    assert problem in refusal.value.problem
    assert refusal.value.place == place


# --- changes in place -----------------------------------------------------------------------------------


def test_a_wrong_member_of_a_list_is_refused_when_it_is_checked() -> None:
    codec = codec_for(dict[str, list[int]])
    value = codec.validate({"a": [1]})
    value["a"].append("5")
    with pytest.raises(InvalidValueError, match=r"a\[1\]: Input should be a valid integer"):
        codec.encode_checked(value)


def test_a_constraint_on_a_list_holds_when_it_is_checked() -> None:
    codec = codec_for(Annotated[list[int], MaxLen(1)])
    value = codec.validate([1])
    value.append(2)
    with pytest.raises(InvalidValueError, match="at most 1 item"):
        codec.encode_checked(value)


def test_a_wrong_member_of_a_plain_dict_is_refused_when_it_is_checked() -> None:
    codec = codec_for(dict[str, Any])
    value = codec.validate({"a": []})
    value["a"].append(object())
    with pytest.raises(InvalidValueError, match=r"a\[0\]: DynamoDB cannot store a value of type object"):
        codec.encode_checked(value)


@pytest.mark.parametrize("kind", [Parcel, Parcel | None, list[Parcel], dict[str, Parcel]])
def test_a_change_inside_a_model_is_validated(kind: Any) -> None:
    parcel = Parcel(lines=[Line(sku="a", price=Decimal(1))])
    value = [parcel] if kind == list[Parcel] else {"a": parcel} if kind == dict[str, Parcel] else parcel
    codec = codec_for(kind)
    value = codec.validate(value)
    parcel.lines[0].count = 0
    with pytest.raises(InvalidValueError) as refusal:
        codec.encode_checked(value)
    assert "greater than or equal to 1 (got 0)" in refusal.value.problem
    assert refusal.value.place.endswith("lines[0].count")
    parcel.lines[0].count = 2
    parcel.tags.add("new")
    back = codec.decode(codec.encode_checked(value))
    assert back == value


@pytest.mark.parametrize("wrong", ["5", 5.0, True])
def test_another_type_inside_a_model_is_refused_or_stored_as_the_right_one(wrong: Any) -> None:
    codec = codec_for(Line)
    line = Line(sku="a", price=Decimal(1))
    line.count = wrong
    if wrong == "5":
        with pytest.raises(InvalidValueError, match="count: '5' would be read back from the database as 5"):
            codec.encode_checked(line)
    else:
        assert codec.encode_checked(line)["M"]["count"] == {"N": str(int(wrong))}


def test_a_change_inside_a_dataclass_is_validated() -> None:
    codec = codec_for(list[Point])
    value = codec.validate([Point(1)])
    value[0].tags.append(5)
    with pytest.raises(InvalidValueError, match=r"\[0\]\.tags\[0\]: Input should be a valid string"):
        codec.encode_checked(value)


def test_a_value_is_stored_as_its_validator_normalizes_it() -> None:
    codec = codec_for(Tidy)
    tidy = Tidy(name="ada")
    tidy.name = "  ada "
    assert codec.encode_checked(tidy) == {"M": {"name": {"S": "ada"}}}


def test_an_instance_of_a_subclass_is_refused_because_it_would_lose_fields() -> None:
    codec = codec_for(list[Line])
    value = codec.validate([Discounted(sku="a", price=Decimal(1), percent=5)])
    with pytest.raises(InvalidValueError, match=r"\[0\]: Discounted\(.*\(Line, not Discounted\)"):
        codec.encode_checked(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for kind in (Any, list[Any], JsonValue):
        with pytest.raises(InvalidValueError):
            codec_for(kind).encode_checked(endless)
    tree = Tree(value=1)
    tree.children.append(tree)
    with pytest.raises(InvalidValueError):
        codec_for(Tree).encode_checked(tree)


MUTABLE: list[tuple[Any, Any, bool]] = [
    (str, "a", False),
    (int | None, None, False),
    (datetime, datetime(2026, 1, 1), False),
    (Colour, Colour.RED, False),
    (Annotated[int, Ge(0)], 1, False),
    (list[int], [], True),
    (dict[str, int], {}, True),
    (set[int], set(), True),
    (frozenset[int], frozenset({1}), False),
    (tuple[int, str], (1, "a"), False),
    (tuple[list[int], str], ([], "a"), True),
    (Line, Line(sku="a", price=Decimal(1)), True),
    (Line | None, None, False),
    (int | list[int], 1, False),
    (int | list[int], [1], True),
    (Any, UUID(int=1), False),
    (Any, {}, True),
    (Spot, Spot(1, datetime(2026, 1, 1)), False),
]


@pytest.mark.parametrize(("kind", "value", "mutable"), MUTABLE)
def test_a_codec_knows_which_values_can_be_changed_in_place(kind: Any, value: Any, mutable: bool) -> None:
    assert codec_for(kind).mutable(value) is mutable


def test_a_validated_list_is_not_shared_with_the_caller() -> None:
    for kind in (list[int], list[Any], list):
        given = [1]
        kept = codec_for(kind).validate(given)
        given.append(2)
        assert kept == [1]


# --- values that would not read back --------------------------------------------------------------------

LOST: list[tuple[Any, Any, str]] = [
    (datetime | str, datetime(2026, 1, 31), "(str, not datetime)"),
    (str | datetime, datetime(2026, 1, 31), "(str, not datetime)"),
    (UUID | str, UUID(int=1), "(str, not UUID)"),
    (Size | str, Size.SMALL, "(str, not Size)"),
    (list[int] | tuple[int, ...], (1,), "(list, not tuple)"),
    (list[str] | set[str], set(), "(list, not set)"),
    (int | float, 1e23, "(int, not float)"),
    (float | Decimal, Decimal("0.1"), "(float, not Decimal)"),
    (int | timedelta, timedelta(seconds=5), "(int, not timedelta)"),
    (Cat | Open, Open.model_validate({"lives": 3}), "(Cat, not Open)"),
    (Any, (1,), "(list, not tuple)"),
    (Any, Decimal("0.1"), "(float, not Decimal)"),
    (dict[str, Any], {"a": [(1,)]}, "(list, not tuple)"),
    (tuple, ((1,),), "(list, not tuple)"),
    (set, {Size.SMALL}, "(str, not Size)"),
    (set[Size | str], {Size.SMALL}, "(str, not Size)"),
    (dict[str, list], {"a": [(1,)]}, "(list, not tuple)"),  # type: ignore[type-arg]
    (Open, Open.model_validate({"when": date(2026, 1, 31)}), "(str, not date)"),
    (Forgetful, Forgetful(kept=1, lost=1), "1 would be read back from the database as 0"),
    (
        Lopsided,
        Lopsided.model_validate({"in": "a"}),
        "could not be read back from the database: Field required",
    ),
    (Growing, Growing(name="a"), "'a!' would be read back from the database as 'a!!'"),
    (Epoch, Epoch(when=datetime(2026, 1, 1, 0, 0, 0, 5, UTC)), "would be read back from the database as"),
    (
        list[Epoch],
        [Epoch(when=datetime(2026, 1, 1, 0, 0, 0, 5, UTC))],
        "would be read back from the database as",
    ),
    (SecretStr, SecretStr("a"), "would be read back from the database"),
    (Silent, Silent(secret=SecretStr("a")), "would be read back from the database"),
    (Terse, Terse(x=1, y=2), "could not be read back from the database"),
    (
        Annotated[int, PlainSerializer(lambda number: number // 2)],
        5,
        "5 would be read back from the database as 2",
    ),
    (dict[Colour, int], {Colour.GREEN: 1}, "could not be read back"),
    (dict[Literal[1, 2], int], {1: 1}, "could not be read back"),
    (dict[timedelta, int], {timedelta(seconds=1.5): 1}, "could not be read back"),
    (dict[int | str, int], {1: 1}, "would be read back"),
    (dict[Any, int], {1: 1}, "would be read back"),
    (list[timedelta], [timedelta.max], "read back"),
    (type[int], int, "a value of type type cannot be stored"),
]


@pytest.mark.parametrize(
    ("kind", "value", "problem"), LOST, ids=[str(row[:2]).partition(" at 0x")[0][:70] for row in LOST]
)
def test_a_value_that_would_not_read_back_is_refused_at_once(kind: Any, value: Any, problem: str) -> None:
    codec = codec_for(kind)
    for refuse in (codec.validate, codec.encode):
        with pytest.raises(InvalidValueError) as refusal:
            refuse(value)
        assert problem in refusal.value.problem
    with pytest.raises(InvalidValueError):
        codec.encode_checked(value)


def test_the_error_for_a_value_that_would_not_read_back_has_a_hint() -> None:
    with pytest.raises(InvalidValueError, match="hint: use a narrower type"):
        codec_for(datetime | str).validate(datetime(2026, 1, 31))


KEPT: list[tuple[Any, Any]] = [
    (datetime | str, "2026-01-31"),
    (Open, Open.model_validate({"a": 1})),
    (Forgetful, Forgetful(kept=1)),
    (dict[Any, int], {"a": 1}),
    (Annotated[datetime, PlainSerializer(lambda moment: moment.isoformat())], datetime(2026, 1, 31)),
]


@pytest.mark.parametrize(("kind", "value"), KEPT, ids=[str(row)[:60] for row in KEPT])
def test_other_values_of_these_types_are_stored(kind: Any, value: Any) -> None:
    codec = codec_for(kind)
    assert codec.decode(codec.encode_checked(codec.validate(value))) == value


def test_private_attributes_are_not_stored() -> None:
    value = Secretive(name="a")
    value._seen = 5
    back = codec_for(Secretive).decode(codec_for(Secretive).encode_checked(value))
    assert back.name == "a"
    assert back._seen == 0


def test_computed_fields_are_not_stored() -> None:
    attribute = codec_for(Parcel).encode(Parcel(lines=[]))
    assert attribute["M"].keys() == {"lines", "sentAt", "tags", "sizes", "weights"}


EXACT: list[tuple[Any, bool]] = [
    (list[int], True),
    (dict[str, datetime], True),
    (set[Size] | None, True),
    (dict[date, list[Decimal]], True),
    (Parcel, True),
    (list[Tree], True),
    (Strict, True),
    (Point, True),
    (Address, True),
    (Tags, True),
    (int | str, False),
    (Cat | Dog, False),
    (list[Any], False),
    (list[timedelta], False),
    (set, False),
    (frozenset, False),
    (tuple, False),
    (dict[str, list], False),  # type: ignore[type-arg]
    (list[dict], False),  # type: ignore[type-arg]
    (tuple[()], True),
    (Path, False),
    (Tidy, False),
    (Epoch, False),
    (Open, False),
    (Forgetful, False),
    (Lopsided, False),
    (Terse, False),
    (dict[Rank, int], False),
    (list[Colour], False),
    (list[Right], False),
    (Literal[1, True], False),
]


@pytest.mark.parametrize(("kind", "exact"), EXACT)
def test_only_values_of_inexact_types_are_read_back_before_writing(kind: Any, exact: bool) -> None:
    assert Adapter(kind).facts.exact is exact


# --- types that cannot be stored ------------------------------------------------------------------------


class Opaque:
    pass


class Alike(Enum):
    TEXT = "2026-01-31"
    DAY = date(2026, 1, 31)


UNUSABLE: list[tuple[Any, str]] = [
    (Opaque, "Opaque cannot be the type of a field: Unable to generate pydantic-core schema"),
    (list[Opaque], "cannot be the type of a field"),
    (Json[int], "use the parsed type"),
    ("Undefined", "cannot be the type of a field"),
]


@pytest.mark.parametrize(("kind", "problem"), UNUSABLE)
def test_a_type_that_cannot_be_stored_is_reported_with_the_first_value(kind: Any, problem: str) -> None:
    codec = codec_for(kind)
    with pytest.raises(ModelDefinitionError) as refusal:
        codec.validate(1)
    assert problem in str(refusal.value)


def test_choices_that_are_stored_alike_are_refused() -> None:
    with pytest.raises(ModelDefinitionError, match=r"the same stored form, \{'S': '2026-01-31'\}"):
        codec_for(Alike)
