"""Types of every kind that pydantic validates, with random values of each, for property tests of codecs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, StrEnum
from ipaddress import IPv4Address
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypeVar
from uuid import UUID

from annotated_types import Ge, Gt, MaxLen
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    JsonValue,
    NaiveDatetime,
    PositiveInt,
    PrivateAttr,
    RootModel,
    SecretStr,
    computed_field,
    field_serializer,
    field_validator,
    model_serializer,
)
from typing_extensions import TypeAliasType, TypedDict

# --- types to store -------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"
    GREEN = 2
    DARK = (1, "x")
    DAWN = date(2026, 1, 31)


class Size(StrEnum):
    SMALL = "S"
    LARGE = "L"


class Rank(IntEnum):
    FIRST = 1
    SECOND = 2


class Right(IntFlag):
    READ = 1
    WRITE = 2


class Line(BaseModel):
    sku: str
    price: Decimal
    count: Annotated[int, Ge(1)] = 1


class Discounted(Line):
    percent: int


class Parcel(BaseModel):
    model_config = ConfigDict(populate_by_name=False)

    lines: list[Line]
    sent_at: datetime | None = Field(default=None, alias="sentAt")
    tags: set[str] = set()
    sizes: tuple[Size, ...] = ()
    weights: dict[int, float] = {}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> Decimal:
        return sum((line.price * line.count for line in self.lines), Decimal(0))


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    count: int
    when: date
    inner: list[Line] = []


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Tags(RootModel[list[str]]):
    pass


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    content: T


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Tidy(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def _strip(cls, name: str) -> str:
        return name.strip()


class Epoch(BaseModel):
    """Its own serializer stores the time in seconds."""

    when: AwareDatetime

    @field_serializer("when")
    def _seconds(self, when: datetime) -> int:
        return int(when.timestamp())


@dataclass
class Point:
    x: int
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Fixed:
    x: int


class Address(TypedDict):
    street: str
    number: NotRequired[int]


class Spot(NamedTuple):
    x: int
    when: datetime


UserId = NewType("UserId", int)
Alias = TypeAliasType("Alias", int | None)

# --- values of these types ------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
integers = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-100, 100)
floats = (
    st.sampled_from([0.0, -0.0, 1e23, 0.1, 5.0])
    | st.floats(1e-129, 9e125)
    | st.floats(-9e125, -1e-129)
    | st.floats(-1e6, 1e6).filter(lambda number: not number or abs(number) >= 1e-130)
)
blobs = st.binary(max_size=8)


@st.composite
def _decimals(draw: st.DrawFn) -> Decimal:
    length = draw(st.integers(1, 38))
    digits = draw(st.integers(10 ** (length - 1), 10**length - 1))
    exponent = draw(st.integers(-129, 124) | st.integers(-3, 40)) - length + 1
    return Decimal((draw(st.integers(0, 1)), tuple(map(int, str(digits))), exponent))


decimals = st.just(Decimal("0.00")) | _decimals()
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC) | offsets)
naive = st.datetimes()
dates = st.dates()
times = st.times(timezones=st.none() | offsets)
lengths = st.timedeltas()
short_lengths = st.timedeltas(timedelta(days=-40000), timedelta(days=40000))
lines = st.builds(Line, sku=texts, price=decimals, count=st.integers(1, 99))
parcels = st.builds(
    lambda lines, sent_at, tags, sizes, weights: Parcel(
        lines=lines, sentAt=sent_at, tags=tags, sizes=sizes, weights=weights
    ),
    st.lists(lines, max_size=3),
    st.none() | moments,
    st.sets(texts, max_size=3),
    st.lists(st.sampled_from(Size), max_size=3).map(tuple),
    st.dictionaries(st.integers(-9, 9), floats, max_size=3),
)
trees = st.recursive(
    st.builds(Tree, value=integers), lambda inner: st.builds(Tree, value=integers, children=st.lists(inner))
)
points = st.builds(Point, st.integers(), floats, st.lists(texts, max_size=2)).filter(
    lambda point: abs(point.x) < 10**38
)
plain_leaves = st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-1e9, 1e9) | texts | blobs
plain_leaves = plain_leaves.filter(lambda leaf: type(leaf) is not float or not leaf or abs(leaf) > 1e-100)
plain_values = st.recursive(
    plain_leaves | st.sets(texts, min_size=1, max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)

SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, texts),
    (int, integers),
    (float, floats),
    (bool, st.booleans()),
    (bytes, blobs),
    (Decimal, decimals),
    (datetime, moments),
    (datetime, naive),
    (date, dates),
    (time, times),
    (timedelta, short_lengths),
    (UUID, st.uuids()),
    (Size, st.sampled_from(Size)),
    (Rank, st.sampled_from(Rank)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
]

TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    *SCALARS,
    *((kind | None, st.none() | values) for kind, values in SCALARS),
    *((list[kind], st.lists(values, max_size=4)) for kind, values in SCALARS),  # type: ignore[valid-type]
    *((dict[str, kind], st.dictionaries(names, values, max_size=3)) for kind, values in SCALARS),  # type: ignore[valid-type]
    *((set[kind], st.sets(values, max_size=4)) for kind, values in SCALARS),  # type: ignore[valid-type]
    *((tuple[kind, ...], st.lists(values, max_size=3).map(tuple)) for kind, values in SCALARS),  # type: ignore[valid-type]
    *((list[kind | None], st.lists(st.none() | values, max_size=3)) for kind, values in SCALARS),  # type: ignore[valid-type]
    (timedelta, lengths),
    (Colour, st.sampled_from(Colour)),
    (Right, st.sampled_from([Right.READ, Right.WRITE, Right.READ | Right.WRITE])),
    (Literal["a", 1, True, b"b", None], st.sampled_from(["a", 1, True, b"b", None])),
    (UserId, integers),
    (Alias, st.none() | integers),
    (Annotated[int, Ge(0)], st.integers(0, 10**38 - 1)),
    (Annotated[int | None, Ge(0)], st.none() | st.integers(0, 99)),
    (Annotated[str, MaxLen(8)], texts),
    (Annotated[str, "a note that means nothing"], texts),
    (Annotated[bool, Field(strict=True)], st.booleans()),
    (Annotated[Decimal, Field(ge=0)], decimals.map(abs)),
    (Annotated[datetime, Gt(datetime(1, 1, 1))], naive.filter(lambda moment: moment > datetime(1, 1, 1))),
    (Annotated[list[int], MaxLen(3)], st.lists(integers, max_size=3)),
    (Annotated[int, AfterValidator(abs)], st.integers(0, 99)),
    (AwareDatetime, moments),
    (NaiveDatetime, naive),
    (PositiveInt, st.integers(1, 99)),
    (frozenset[tuple[int, str]], st.frozensets(st.tuples(integers, texts), max_size=3)),
    (set[frozenset[str]], st.sets(st.frozensets(texts, max_size=2), max_size=3)),
    (dict[int, str], st.dictionaries(integers, texts, max_size=3)),
    (dict[float, str], st.dictionaries(floats, texts, max_size=3)),
    (dict[Decimal, str], st.dictionaries(decimals, texts, max_size=3)),
    (dict[bool, str], st.dictionaries(st.booleans(), texts)),
    (dict[UUID, str], st.dictionaries(st.uuids(), texts, max_size=3)),
    (dict[date, str], st.dictionaries(dates, texts, max_size=3)),
    (dict[datetime, str], st.dictionaries(moments, texts, max_size=3)),
    (dict[Size, list[int]], st.dictionaries(st.sampled_from(Size), st.lists(integers, max_size=2))),
    (dict[Rank, int], st.dictionaries(st.sampled_from(Rank), integers)),
    (dict[Literal["a", "b"], int], st.dictionaries(st.sampled_from(["a", "b"]), integers)),
    (deque[int], st.lists(integers, max_size=3).map(deque)),
    (list[timedelta], st.lists(short_lengths, max_size=3)),
    (int | str, integers | texts),
    (int | float, st.integers(-9, 9) | st.floats(-9, 9).filter(lambda number: abs(number) > 1e-9)),
    (bytes | str | None, blobs | texts | st.none()),
    (list[int | str], st.lists(integers | texts, max_size=3)),
    (bool | int | None, st.booleans() | integers | st.none()),
    (Line, lines),
    (Line | None, st.none() | lines),
    (list[Line], st.lists(lines, max_size=3)),
    (Parcel, parcels),
    (dict[str, Parcel], st.dictionaries(names, parcels, max_size=2)),
    (Strict, st.builds(Strict, count=integers, when=dates, inner=st.lists(lines, max_size=2))),
    (Tree, trees),
    (Tags, st.builds(Tags, st.lists(texts, max_size=3))),
    (Box[datetime], st.builds(Box[datetime], content=moments)),
    (Cat | Dog, st.builds(Cat, lives=st.integers(0, 9)) | st.builds(Dog, name=texts)),
    (
        list[Annotated[Cat | Dog, Field(discriminator="kind")]],
        st.lists(st.builds(Cat, lives=st.integers(0, 9)) | st.builds(Dog, name=texts), max_size=3),
    ),
    (Tidy, st.builds(Tidy, name=texts)),
    (
        Epoch,
        st.builds(
            Epoch, when=st.integers(0, 10**9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
        ),
    ),
    (Point, points),
    (list[Point], st.lists(points, max_size=2)),
    (Fixed, st.builds(Fixed, st.integers(-9, 9))),
    (Address, st.fixed_dictionaries({"street": texts}, optional={"number": integers})),
    (Spot, st.builds(Spot, st.integers(-9, 9), moments)),
    (list[Spot], st.lists(st.builds(Spot, st.integers(-9, 9), naive), max_size=2)),
    (Any, plain_values),
    (object, plain_values),
    (dict[str, Any], st.dictionaries(names, plain_values, max_size=3)),
    (dict, st.dictionaries(names, plain_values, max_size=3)),
    (list[Any], st.lists(plain_values, max_size=3)),
    (list[dict[str, Any]] | None, st.lists(st.dictionaries(names, plain_values, max_size=2), max_size=2)),
    (JsonValue, st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | texts, st.lists, max_leaves=5)),
    (Path, st.sampled_from([Path("/etc/hosts"), Path("a/b"), Path()])),
    (PurePosixPath, st.just(PurePosixPath("/etc/hosts"))),
    (IPv4Address, st.ip_addresses(v=4)),
    (HttpUrl, st.sampled_from([HttpUrl("https://example.com/a?b=c")])),
    (None, st.none()),
]


# --- types that lose data when stored -------------------------------------------------------------------


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Forgetful(BaseModel):
    kept: int
    lost: int = Field(default=0, exclude=True)


class Lopsided(BaseModel):
    name: str = Field(validation_alias="in", serialization_alias="out")


class Growing(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def _grow(cls, name: str) -> str:
        return name + "!"


class Silent(BaseModel):
    secret: SecretStr


class Terse(BaseModel):
    x: int
    y: int

    @model_serializer
    def _terse(self) -> str:
        return f"{self.x},{self.y}"


class Secretive(BaseModel):
    name: str
    _seen: int = PrivateAttr(default=0)
