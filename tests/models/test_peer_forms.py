"""Stored forms of other programs: `field(stored=...)`."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pydantic
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as some
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, meanwhile, put_raw

from holdall import Index, Key, Model, SortKey, Template, col, field
from holdall.core import encode, encode_item
from holdall.errors import InvalidFieldError, InvalidValueError, ModelDefinitionError, QueryNotSupported
from holdall.models.codec.peer_form import codec_as

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SECONDS = 1767355200
TIMES = ("epoch", "epoch_ms", "iso", "iso_ms", "pynamodb")


class Place(pydantic.BaseModel):
    city: str
    tags: set[str] = set()


class Visit(
    Model, table="visits", layout="plain", ttl="until", indexes=[Index("by_page", ["page"], ["seen"])]
):
    user: Key[str]
    at: SortKey[datetime] = field(stored="epoch_ms")
    page: str | None = None
    seen: datetime | None = field(default=None, stored="pynamodb")
    sent: datetime | None = field(default=None, stored="iso")
    until: datetime | None = field(default=None, stored="epoch")
    done: bool = field(default=False, stored="number")
    place: Place | None = field(default=None, stored="json")
    extra: dict[str, Any] = field(default_factory=dict, stored="json")
    photo: bytes | None = field(default=None, stored="base64")


class Stage(
    Model, table="stages", layout=Template(pk="S#{name}", sk="AT#{at:012d}#{day}", by_day=("ALL", "{day}"))
):
    name: Key[str]
    at: SortKey[datetime] = field(stored="epoch")
    day: SortKey[datetime] = field(stored="pynamodb")


# --- what is stored ---------------------------------------------------------------------------------------


@everywhere
async def test_every_value_has_the_form_of_the_other_program(db: Db) -> None:
    visit = Visit(
        user="ada",
        at=NOON,
        seen=NOON,
        sent=NOON,
        until=NOON + timedelta(days=9999),
        done=True,
        place=Place(city="Rome", tags={"b", "a"}),
        extra={"b": [1, None, 0.5], "a": "ü"},
    )
    await arrange(db, visit)
    stored = {
        "user": "ada",
        "at": SECONDS * 1000,
        "seen": "2026-01-02T12:00:00.000000+0000",
        "sent": "2026-01-02T12:00:00Z",
        "until": SECONDS + 9999 * 86400,
        "done": 1,
        "place": '{"city": "Rome", "tags": ["a", "b"]}',
        "extra": json.dumps({"b": [1, None, 0.5], "a": "ü"}),
    }
    assert await db.raw(Visit.key(user="ada", at=NOON)) == encode_item(stored)
    found = await db.get_one(Visit, user="ada", at=NOON)
    assert found.to_dict() == visit.to_dict()


@everywhere
async def test_other_spellings_and_nulls_are_read_and_stay_until_they_are_changed(db: Db) -> None:
    await db.get(Visit, user="ada", at=NOON)
    theirs = {
        "user": "ada",
        "at": SECONDS * 1000,
        "seen": "2026-01-02T13:00:00+01:00",
        "sent": None,
        "until": None,
        "done": True,
        "place": None,
        "extra": '{"a":1,"b":1e300}',
    }
    await put_raw(db, Visit, encode_item(theirs))
    async with db.transaction() as tx:
        visit = await tx.get_one(Visit, user="ada", at=NOON)
        assert (visit.seen, visit.sent, visit.until, visit.place) == (NOON, None, None, None)
        assert visit.done is True
        assert visit.extra == {"a": 1, "b": 1e300}
        visit.page = "index"
    assert await db.raw(Visit.key(user="ada", at=NOON)) == encode_item({**theirs, "page": "index"})
    async with db.transaction() as tx:
        visit = await tx.get_one(Visit, user="ada", at=NOON)
        visit.extra["b"], visit.done = 2, False
    raw = await db.raw(Visit.key(user="ada", at=NOON))
    assert raw is not None
    assert (raw["extra"], raw["done"]) == ({"S": '{"a": 1, "b": 2}'}, {"N": "0"})


@everywhere
async def test_values_that_were_read_are_locked_in_their_stored_form(db: Db) -> None:
    await arrange(db, Visit(user="ada", at=NOON, extra={"n": 1}))
    with expect_contention():
        async with db.transaction() as tx:
            visit = await tx.get_one(Visit, user="ada", at=NOON)
            visit.page = str(visit.extra["n"])
            await meanwhile(db, Visit.key(user="ada", at=NOON), extra={"n": 2})


@everywhere
async def test_a_time_in_seconds_lets_items_expire(db: Db) -> None:
    soon = db.clock.now() + timedelta(seconds=10)
    await arrange(db, Visit(user="a", at=NOON, until=soon), Visit(user="b", at=NOON))
    db.clock.forward(12)
    assert await db.get(Visit, user="a", at=NOON) is None
    assert await db.get(Visit, user="b", at=NOON) is not None


# --- values -----------------------------------------------------------------------------------------------


zones = some.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = some.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)


@for_all(times, some.sampled_from(TIMES))
def test_a_validated_time_comes_back_equal(moment: datetime, form: Any) -> None:
    codec = codec_as(datetime, form)
    kept = codec.validate(moment)
    coarse = {"epoch": 1_000_000, "epoch_ms": 1000, "iso_ms": 1000}
    step = timedelta(microseconds=coarse.get(form, 1))
    assert moment - step < kept <= moment
    assert codec.validate(kept) == kept == codec.decode(codec.encode(kept)) == codec.quick(codec.encode(kept))


@for_all(times, times)
def test_texts_of_pynamodb_times_sort_as_the_times(one: datetime, other: datetime) -> None:
    write = codec_as(datetime, "pynamodb").encode
    assert (write(one)["S"] < write(other)["S"]) == (one < other)


@for_all(times, some.timedeltas(timedelta(0), timedelta(milliseconds=3)))
def test_texts_of_javascript_times_sort_correctly_against_finer_times(one: datetime, step: timedelta) -> None:
    codec = codec_as(datetime, "iso_ms")
    stored, other = codec.validate(one), one + step
    text, compared = codec.encode(stored)["S"], codec.encode(codec.comparable(other))["S"]
    assert (text < compared, text == compared) == (stored < other, stored == other)


@for_all(times)
def test_times_in_iso_are_those_of_pydantic(moment: datetime) -> None:
    from pydantic_core import to_jsonable_python

    codec = codec_as(datetime, "iso")
    assert codec.encode(moment) == {"S": to_jsonable_python(moment.astimezone(UTC))}
    naive = moment.replace(tzinfo=None)
    assert codec.decode({"S": to_jsonable_python(moment)}) == moment
    assert codec.decode(codec.encode(codec.validate(naive))) == naive


@for_all(some.binary())
def test_bytes_in_base64_are_those_of_pynamodb(content: bytes) -> None:
    codec = codec_as(bytes, "base64")
    assert codec.encode(codec.validate(content)) == encode(b64encode(content))
    assert codec.decode(encode(b64encode(content))) == codec.quick(encode(b64encode(content))) == content
    assert codec.decode(encode(b"\xff" + content)) == b"\xff" + content  # not base64, so unchanged


leaves = some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False)
trees = some.recursive(
    leaves | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=8,
)


@for_all(trees)
def test_any_json_is_written_as_pynamodb_writes_it(value: Any) -> None:
    codec = codec_as(Any, "json")
    try:
        kept = codec.validate(value)
    except InvalidValueError:  # lone surrogates
        with pytest.raises(UnicodeEncodeError):
            json.dumps(value, ensure_ascii=False).encode()
        return
    assert codec.encode_checked(kept) == {"S": json.dumps(value)}
    assert codec.decode({"S": json.dumps(value, separators=(",", ":"))}) == value


def test_a_value_that_would_read_back_differently_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="without a zone"):
        Visit(user="a", at=datetime(2026, 1, 1))
    with pytest.raises(InvalidFieldError, match="without a zone"):
        Visit(user="a", at=NOON, seen=datetime(2026, 1, 1))
    with pytest.raises(InvalidFieldError, match="read back"):
        Visit(user="a", at=NOON, extra={"a": (1, 2)})
    with pytest.raises(InvalidFieldError, match="JSON"):
        Visit(user="a", at=NOON, extra={"a": float("nan")})
    with pytest.raises(InvalidFieldError, match="boolean"):
        Visit(user="a", at=NOON, done=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="valid datetime"):
        codec_as(datetime, "epoch").decode({"N": str(SECONDS * 1000_000)})


@everywhere
async def test_an_update_without_a_read_can_only_set_the_whole_value(db: Db) -> None:
    await arrange(db, Visit(user="ada", at=NOON, extra={"n": [1]}))
    async with db.transaction() as tx:
        tx.update(Visit.key(user="ada", at=NOON), col(Visit.extra).set({"n": 2}), col(Visit.sent).set(NOON))
    raw = await db.raw(Visit.key(user="ada", at=NOON))
    assert raw is not None
    assert (raw["extra"], raw["sent"]) == ({"S": '{"n": 2}'}, {"S": "2026-01-02T12:00:00Z"})
    with pytest.raises(InvalidFieldError, match="as a whole"):
        col(Visit.extra)["n"].append(2)


# --- queries ----------------------------------------------------------------------------------------------


@everywhere
async def test_ranges_and_conditions_compare_the_stored_form_exactly(db: Db) -> None:
    millis = [NOON + timedelta(milliseconds=n) for n in range(4)]
    half = timedelta(microseconds=500)
    await arrange(
        db, *(Visit(user="a", at=at, page="p", seen=at, until=at + timedelta(days=9999)) for at in millis)
    )

    async def find(**query: Any) -> list[int]:
        return [visit.at.microsecond // 1000 async for visit in db.query(Visit, user="a", **query)]

    assert await find(sort=Visit.at >= millis[1]) == [1, 2, 3]
    assert await find(sort=Visit.at >= millis[1] + half) == [2, 3]
    assert await find(sort=Visit.at < millis[1] + half) == [0, 1]
    assert await find(sort=Visit.at == millis[1] + half) == [1]
    assert await find(where=col(Visit.seen) > millis[2]) == [3]
    assert await find(where=col(Visit.seen) == millis[2].astimezone(timezone(timedelta(hours=2)))) == [2]
    until = NOON + timedelta(days=9999)
    assert await find(where=col(Visit.until) < until + timedelta(milliseconds=1)) == [0, 1, 2, 3]
    assert await find(where=col(Visit.until) < until) == []
    assert await find(where=col(Visit.done) == False) == [0, 1, 2, 3]  # noqa: E712
    by_page = db.query(Visit, index="by_page", page="p", sort=col(Visit.seen) <= millis[1])
    assert [visit.at async for visit in by_page] == millis[:2]


@everywhere
async def test_a_template_pads_seconds_and_sorts_times_of_pynamodb(db: Db) -> None:
    days = [NOON + timedelta(days=n) for n in range(4)]
    await arrange(db, *(Stage(name="a", at=day, day=NOON) for day in days))
    raw = await db.raw(Stage.key(name="a", at=NOON, day=NOON))
    assert raw is not None
    assert raw["sk"] == {"S": f"AT#{SECONDS:012d}#2026-01-02T12:00:00.000000+0000"}
    assert (raw["at"], raw["by_daysk"]) == ({"N": str(SECONDS)}, {"S": "2026-01-02T12:00:00.000000+0000"})

    async def find(sort: Any) -> list[datetime]:
        return [stage.at async for stage in db.query(Stage, name="a", sort=sort)]

    later = days[1] + timedelta(milliseconds=1)
    assert await find(Stage.at > days[1]) == days[2:]
    assert await find(Stage.at >= later) == days[2:]
    assert await find(Stage.at < later) == days[:2]
    assert await find(Stage.at <= later) == days[:2]
    assert await find(Stage.at.between(later, days[3])) == days[2:]
    assert await find((Stage.at == days[1]) & (Stage.day >= NOON)) == [days[1]]


@in_memory
async def test_a_condition_that_the_stored_text_cannot_answer_is_refused(db: Db) -> None:
    async def find(where: Any) -> None:
        assert [visit async for visit in db.query(Visit, user="a", where=where)] == []

    with pytest.raises(InvalidFieldError, match="cannot compare"):
        await find(col(Visit.sent) > NOON)
    with pytest.raises(InvalidFieldError, match="cannot compare"):
        await find(col(Visit.extra)["a"] == 1)
    for wrong in (col(Visit.photo) > b"a", col(Visit.photo).begins_with(b"a"), col(Visit.photo).size > 1):
        with pytest.raises(InvalidFieldError, match="cannot compare"):
            await find(wrong)
    await find((col(Visit.photo) == b"a") | col(Visit.photo).exists())
    with pytest.raises(InvalidFieldError, match="without a zone"):
        await find(col(Visit.seen) > datetime(2026, 1, 1))
    await find((col(Visit.sent) == NOON) & col(Visit.place).exists() & (col(Visit.extra) != None))  # noqa: E711

    class Loose(Model, table="loose", layout=Template(pk="L#{name}", sk="{at}")):
        name: Key[str]
        at: SortKey[datetime] = field(stored="iso")

    with pytest.raises(QueryNotSupported, match="does not sort"):
        db.query(Loose, name="a", sort=Loose.at > NOON)


# --- declarations -----------------------------------------------------------------------------------------


def test_forms_that_do_not_fit_are_refused_when_the_class_is_defined() -> None:
    with pytest.raises(ModelDefinitionError, match=r"Odd.a: stored='morse' is not a stored form"):

        class Odd(Model):
            a: str = field(stored="morse")  # type: ignore[call-overload]

    with pytest.raises(ModelDefinitionError, match="is a form of datetime"):

        class Count(Model):
            a: int = field(stored="epoch")

    with pytest.raises(ModelDefinitionError, match="another program laid out"):

        class Ours(Model):
            a: Key[datetime] = field(stored="epoch")

    with pytest.raises(ModelDefinitionError, match="do not sort as the times do"):

        class Sorted(Model, table="tables", layout="plain"):
            a: Key[str]
            b: SortKey[datetime] = field(stored="iso")

    with pytest.raises(ModelDefinitionError, match="do not sort as the bytes do"):

        class Binary(Model, table="tables", layout="plain"):
            a: Key[bytes] = field(stored="base64")
            b: SortKey[bytes] = field(stored="base64")

    with pytest.raises(ModelDefinitionError, match="have no fixed spelling"):

        class Indexed(Model, indexes=[Index("by_b", ["b"])]):
            a: Key[str]
            b: list[str] = field(stored="json")

    with pytest.raises(ModelDefinitionError, match="cannot be unique"):

        class Unique(Model):
            b: list[str] = field(stored="json", unique=True)

    with pytest.raises(ModelDefinitionError, match="cannot spell b"):

        class Spelt(Model, table="tables", layout=Template(pk="{a}", sk="{b}")):
            a: Key[str]
            b: SortKey[str] = field(stored="json")

    with pytest.raises(ModelDefinitionError, match="seconds since 1970"):

        class Late(Model, table="tables", layout="plain", ttl="b"):
            a: Key[str]
            b: datetime = field(stored="epoch_ms")


@everywhere
async def test_a_subclass_inherits_the_form(db: Db) -> None:
    class Base(Model, abstract=True):
        at: datetime = field(stored="epoch", default=NOON)

    class Derived(Base):
        id: Key[str]
        at = field(description="when it happened")

    await arrange(db, Derived(id="a"))
    raw = await db.raw(Derived.key("a"))
    assert raw is not None
    assert raw["at"] == {"N": str(SECONDS)}
    assert (await db.get_one(Derived, "a")).at == NOON
