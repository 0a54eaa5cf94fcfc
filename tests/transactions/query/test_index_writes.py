"""Index attributes are right after every write, also with concurrent writers, in both layouts.

Random sequences of writes change a few items. After each write, every stored attribute is compared with its expected
value, and queries of the indexes with lists in Python. Other tests run every pair of writes to components of one index,
the second between the read and the commit of the first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from annotated_types import Ge
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from pydantic import StringConstraints
from queries_rig import (
    TORTURE,
    Db,
    Way,
    arrange,
    database,
    everywhere,
    examples,
    finish,
    fresh,
    in_memory,
    raw,
    raw_key,
    table_of,
    watch_of,
)
from rig.servers import NAMES

from holdall import Index, Key, Model, col, field
from holdall.core import PutItem, encode, sort_text
from holdall.errors import (
    ContentionError,
    InvalidFieldError,
    InvalidModelUpdateError,
    TransactionFailedError,
)

PLACE, SORT = ["country", "city"], ["people", "founded"]


class Town(
    Model,
    ttl="gone",
    indexes=[Index("by_place", PLACE, SORT, slot=1), Index("by_mayor", ["mayor"], slot=2)],
):
    id: Key[str]
    country: str
    city: str = "Aachen"
    people: Annotated[int, Ge(0)] = 0
    founded: datetime | None = datetime(1150, 1, 1, tzinfo=UTC)
    mayor: str | None = None
    gone: int | None = None
    note: str | None = None
    log: list[str] = field(default_factory=list)


class OwnTown(
    Model,
    table="Town",
    ttl="gone",
    indexes=[Index("by_place", PLACE, SORT, sparse=True), Index("by_mayor", ["mayor"], sparse=True)],
):
    id: Key[str]
    country: str
    city: str = "Aachen"
    people: Annotated[int, Ge(0)] = 0
    founded: datetime | None = datetime(1150, 1, 1, tzinfo=UTC)
    mayor: str | None = None
    gone: int | None = None
    note: str | None = None
    log: list[str] = field(default_factory=list)


Values = dict[str, Any]
both_layouts = pytest.mark.parametrize("town", [Town, OwnTown], ids=["one table", "own table"])

DEFAULTS = Town(id="", country="").to_dict()


def spell_out(town: type[Any], values: Values) -> Values:
    """Return the expected stored item for these values, without using Holdall's encoding of keys."""
    plain = {
        name: encode(_format_value(value))
        for name, value in values.items()
        if value is not None and name != "id"
    }
    is_placed = None not in (values["country"], values["city"], values["people"], values["founded"])
    if town is OwnTown:
        item = {"_id": {"S": values["id"]}, **plain}
        item["_c_city_country"] = {"S": f"{values['city']}\0{values['country']}"}
        if values["founded"] is not None:
            item["_c_founded_people"] = {"S": f"{_format_value(values['founded'])}\0{values['people']}"}
        return item
    item = {"pk": {"S": f"Town#{values['id']}"}, "sk": {"S": "#"}, "_type": {"S": "Town"}}
    item |= {"id": {"S": values["id"]}, **plain}
    if is_placed:
        city = values["city"].replace("%", "%25").replace("#", "%23")
        item["gsi1_pk"] = {"S": f"Town#by_place#{values['country']}#{city}"}
        item["gsi1_sk"] = {"S": sort_text(values["people"], values["founded"])}
    if values["mayor"] is not None:
        item |= {"gsi2_pk": {"S": f"Town#by_mayor#{values['mayor']}"}, "gsi2_sk": {"S": "#"}}
    if values["gone"] is not None:
        item["_ttl"] = {"N": str(values["gone"])}
    return item


def _format_value(value: Any) -> Any:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27) if isinstance(value, datetime) else value


async def check_items(db: Db, town: type[Any], country: str, states: dict[str, Values | None]) -> None:
    """Check that the items are stored with these values, and that the indexes contain exactly these items, in order."""
    present = {id: values for id, values in states.items() if values is not None}
    for values in present.values():
        assert await raw(db, town.key(values["id"])) == spell_out(town, values)
    alive = [values for values in present.values() if values["gone"] is None or values["gone"] > _now()]
    for city in CITIES:
        placed = [
            v for v in alive if (v["country"], v["city"]) == (country, city) and v["founded"] is not None
        ]
        found = await db.query(town, index="by_place", country=country, city=city).all()
        assert [_rank(town, row.to_dict()) for row in found] == sorted(_rank(town, v) for v in placed)
        assert {row.id for row in found} == {values["id"] for values in placed}
    for mayor in MAYORS:
        found = await db.query(town, index="by_mayor", mayor=country + mayor).all()
        assert {row.id for row in found} == {v["id"] for v in alive if v["mayor"] == country + mayor}


def _rank(town: type[Any], values: Values) -> tuple[Any, ...]:
    """Return the values by which items of one place are ordered; in an own table that is the text of both, by name."""
    if town is OwnTown:
        return (f"{_format_value(values['founded'])}\0{values['people']}",)
    return values["people"], values["founded"]


def _now() -> int:
    return int(datetime.now(UTC).timestamp())


# --- random sequences of writes ---------------------------------------------------------------------------

CITIES = ["Aachen", "Bonn", "", "#%"]
MAYORS = ["Ada", "Bo"]
TIMES = [None, *(datetime(year, 5, 6, 7, 8, 9, 10, tzinfo=UTC) for year in (900, 1999, 2026))]

PAST, FUTURE = -3600, 3600


def draw_changes(country: str) -> st.SearchStrategy[Values]:
    """Draw new values of some fields."""
    return st.fixed_dictionaries(
        {},
        optional={
            "country": st.sampled_from([country, country, "elsewhere"]),
            "city": st.sampled_from(CITIES),
            "people": st.sampled_from([0, 1, 9, 10, 11, 250_000]),
            "founded": st.sampled_from(TIMES),
            "mayor": st.sampled_from([None, *(country + mayor for mayor in MAYORS)]),
            "gone": st.sampled_from([None, None, PAST, FUTURE]).map(
                lambda seconds: None if seconds is None else _now() + seconds
            ),
            "note": st.sampled_from([None, "", "x"]),
        },
    )


Step = tuple[str, str, Values]


def draw_steps(country: str) -> st.SearchStrategy[Step]:
    kinds = ["create", "set", "set", "update", "put", "increment", "delete", "missing"]
    kinds += ["append", "change", "upsert", "drop"]
    return st.tuples(st.sampled_from(kinds), st.sampled_from(["a", "b"]), draw_changes(country))


async def write_step(
    db: Db, town: type[Any], country: str, state: Values | None, step: Step
) -> Values | None:
    """Make one write if the item's state allows it, and return the state afterwards."""
    kind, id, new = step
    alive = state is not None and (state["gone"] is None or state["gone"] > _now())
    whole = {**DEFAULTS, "country": country, **new, "id": country + id}
    async with db.transaction() as tx:
        if kind == "put":
            tx.create_or_put(town, {"id": whole["id"]}, {n: v for n, v in whole.items() if n != "id"})
            return whole
        if kind == "upsert" or (alive and kind == "change"):
            _update_blindly(
                tx, town, whole["id"], state or DEFAULTS, new, {"country": country}, upsert=kind == "upsert"
            )
            before = state if alive and state is not None else {**whole, "log": []}
            return {**before, **new, "log": [*before["log"], "x"]}
        if not alive and kind in ("create", "missing"):
            if kind == "create":
                tx.create(town, **whole)
            else:
                await tx.get(town.key(whole["id"]), create_if_missing=whole)
            return whole
        if state is None or not alive or (not new and kind not in ("delete", "drop", "append")):
            return state
        if kind == "drop":
            tx.delete(town.key(state["id"]), where=col(town.people) >= state["people"])
            return None
        if kind == "append":
            (await tx.get_one(town, state["id"])).field("log").append("y")
            return {**state, "log": [*state["log"], "y"]}
        if kind == "delete":
            tx.delete(await tx.get_one(town, state["id"]))
            return None
        if kind == "update":
            old = {name: value for name, value in state.items() if name != "note" or "note" in new}
            tx.update(town, old, new)
        elif kind == "increment":
            (await tx.get_one(town, state["id"])).field("people").increment_by(3)
            return {**state, "people": state["people"] + 3}
        else:
            item = await tx.get_one(town, state["id"])
            for name, value in new.items():
                setattr(item, name, value)
        return {**state, **new}


def _update_blindly(
    tx: Any, town: type[Any], id: str, state: Values, new: Values, start: Values, *, upsert: bool
) -> None:
    """Set fields without a read; the condition supplies the other values that derived attributes need."""
    where = (col(town.people) == state["people"]) & (col(town.founded) == state["founded"])
    where &= (col(town.country) == state["country"]) & (col(town.city) == state["city"])
    updates = [col(getattr(town, name)).set(value) for name, value in new.items()]
    options = {"create_if_missing": start} if upsert else {}
    tx.update(town.key(id), *updates, col(town.log).append("x"), where=where, **options)


WAYS = [
    *((Way("memory", "blocking"), 15), (Way("memory", "awaiting"), 4)),
    *((Way(name, "blocking"), 2) for name in NAMES),
]


@both_layouts
@pytest.mark.parametrize(("way", "count"), WAYS, ids=[str(way) for way, _ in WAYS])
def test_indexes_are_right_after_every_write(way: Way, count: int, town: type[Any]) -> None:
    @examples(count)
    @hypothesis_given(data=st.data())
    def check_examples(data: st.DataObject) -> None:
        country = fresh("land")
        steps = data.draw(st.lists(draw_steps(country), min_size=1, max_size=8))
        finish(way, _run_steps(database(way), town, country, steps))

    check_examples()


async def _run_steps(db: Db, town: type[Any], country: str, steps: Sequence[Step]) -> None:
    states: dict[str, Values | None] = {"a": None, "b": None}
    for step in steps:
        id = step[1]
        states[id] = await write_step(db, town, country, states[id], step)
        await check_items(db, town, country, states)


@everywhere
@both_layouts
async def test_creating_an_item_removes_all_attributes_of_the_expired_one(db: Db, town: type[Any]) -> None:
    country = fresh("land")
    old = {"mayor": f"{country}Ada", "note": "old", "people": 7, "gone": _now() - 60}
    await arrange(db, town(id=country, country=country, **old))
    assert await db.query(town, index="by_mayor", mayor=f"{country}Ada").all() == []
    async with db.transaction() as tx:
        tx.create(town, id=country, country=country)
    await check_items(db, town, country, {"a": {**DEFAULTS, "id": country, "country": country}})


# --- concurrent writers -----------------------------------------------------------------------------------

Change = Callable[[Any, type[Any], str], Awaitable[None]]


async def set_city(tx: Any, town: type[Any], id: str) -> None:
    (await tx.get_one(town, id)).city = "Bonn"


async def set_country(tx: Any, town: type[Any], id: str) -> None:
    item = await tx.get_one(town, id)
    item.country = f"{id} south"


async def clear_founded(tx: Any, town: type[Any], id: str) -> None:
    (await tx.get_one(town, id)).founded = None


async def increment_people(tx: Any, town: type[Any], id: str) -> None:
    (await tx.get_one(town, id)).field("people").increment_by(5)


async def update_people(tx: Any, town: type[Any], id: str) -> None:
    item = await tx.get_one(town, id)
    item.people = item.people + 100


async def set_note(tx: Any, town: type[Any], id: str) -> None:
    (await tx.get_one(town, id)).note = "n"


async def append_to_log(tx: Any, town: type[Any], id: str) -> None:
    (await tx.get_one(town, id)).field("log").append("x")


async def update_blindly(tx: Any, town: type[Any], id: str) -> None:
    place = col(town.country).set(f"{id} north"), col(town.city).set("Bonn")
    tx.update(town.key(id), *place, col(town.people).set(77), col(town.founded).set(None))


async def remove(tx: Any, town: type[Any], id: str) -> None:
    tx.delete(town.key(id))


async def put(tx: Any, town: type[Any], id: str) -> None:
    tx.create_or_put(town, {"id": id}, {"country": id, "city": "#%", "people": 1})


READERS: list[Change] = [
    set_city,
    set_country,
    clear_founded,
    increment_people,
    update_people,
    set_note,
    append_to_log,
]
ALL = [*READERS, update_blindly, remove, put]
INDEPENDENT = {set_note, append_to_log}


def select_changes(town: type[Any], first: Change, changes: Sequence[Change]) -> list[Change]:
    """Select the changes to combine with the first: all under torture, otherwise half for each layout."""
    turn = READERS.index(first) + (town is OwnTown)
    return [each for place, each in enumerate(changes) if TORTURE or (place + turn) % 2]


@in_memory
@both_layouts
@pytest.mark.parametrize("first", READERS, ids=lambda change: change.__name__)
async def test_concurrent_writers_never_leave_an_index_wrong(db: Db, town: type[Any], first: Change) -> None:
    for second in select_changes(town, first, ALL):
        await _interleave(db, town, first, second)


@everywhere
@both_layouts
@pytest.mark.parametrize(
    ("first", "second"),
    [(set_city, set_country), (increment_people, clear_founded), (set_city, put), (set_country, remove)],
    ids=lambda change: change.__name__,
)
async def test_on_every_store_concurrent_writers_never_leave_an_index_wrong(
    db: Db, town: type[Any], first: Change, second: Change
) -> None:
    await _interleave(db, town, first, second)


async def _interleave(db: Db, town: type[Any], first: Change, second: Change) -> None:
    """Commit the second change between the read and the commit of the first, which is right then, or fails."""
    id = fresh("two")
    await arrange(db, town(id=id, country=id))
    failure = None
    try:
        async with db.transaction() as tx:
            await first(tx, town, id)
            async with db.transaction() as other:
                await second(other, town, id)
    except TransactionFailedError as error:
        failure = error.__cause__
    if failure is None:
        assert INDEPENDENT & {first, second}  # otherwise they conflict
    else:
        assert isinstance(failure, ContentionError)
    await _check_consistency(db, town, id)


@in_memory
@both_layouts
@pytest.mark.parametrize("first", READERS, ids=lambda change: change.__name__)
async def test_after_a_retry_both_changes_are_stored(db: Db, town: type[Any], first: Change) -> None:
    for second in select_changes(town, first, ALL[:8]):
        await _retry(db, town, first, second)


async def _retry(db: Db, town: type[Any], first: Change, second: Change) -> None:
    id = fresh("two")
    await arrange(db, town(id=id, country=id))
    attempts: list[None] = []

    async def body(tx: Any) -> None:
        await first(tx, town, id)
        if not attempts:
            async with db.transaction() as other:
                await second(other, town, id)
        attempts.append(None)

    await db.run(body, initial_backoff=0)
    await _check_consistency(db, town, id)
    one_by_one = fresh("two")
    await arrange(db, town(id=one_by_one, country=one_by_one))
    for change in (second, first):
        async with db.transaction() as tx:
            await change(tx, town, one_by_one)
    expected = await db.get_one(town, one_by_one)
    found = (await db.get_one(town, id)).to_dict()
    assert found == {
        **expected.to_dict(),
        "id": id,
        "country": expected.country.replace(one_by_one, id),
    }


async def _check_consistency(db: Db, town: type[Any], id: str) -> None:
    """Check that the stored index attributes match the stored fields."""
    item = await db.get(town, id)
    if item is not None:
        assert await raw(db, town.key(id)) == spell_out(town, item.to_dict())


# --- blind updates ----------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_a_blind_update_that_does_not_know_all_parts_is_refused_before_anything_is_sent(
    db: Db, town: type[Any]
) -> None:
    id = fresh("blind")
    await arrange(db, town(id=id, country=id))
    known = {"id": id, "country": id, "city": "Aachen", "people": 0, "founded": DEFAULTS["founded"]}
    for missing in ("country", "city", "people", "founded") if town is Town else ("country",):
        partly = {name: value for name, value in known.items() if name != missing}
        changed = "city" if missing != "city" else "people"
        async with db.transaction() as tx:
            with pytest.raises(InvalidFieldError, match=rf"{missing}.*value is needed too"):
                tx.update(town, partly, {changed: "Bonn" if changed == "city" else 4})
    assert watch_of(db).kinds() == []
    async with db.transaction() as tx:
        tx.update(town, known, {"city": "Bonn"})
    await _check_consistency(db, town, id)
    assert [row.id for row in await db.query(town, index="by_place", country=id, city="Bonn").all()] == [id]


@everywhere
@both_layouts
async def test_a_blind_update_that_expects_wrong_parts_changes_nothing(db: Db, town: type[Any]) -> None:
    id = fresh("blind")
    await arrange(db, town(id=id, country=id))
    expected = {"id": id, "country": id, "city": "Aachen", "people": 99, "founded": DEFAULTS["founded"]}
    with pytest.raises(InvalidModelUpdateError):
        async with db.transaction() as tx:
            tx.update(town, expected, {"city": "Bonn"})
    await _check_consistency(db, town, id)
    assert await db.query(town, index="by_place", country=id, city="Bonn").all() == []


Normalized = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)]


class Shop(Model, indexes=[Index("by_street", ["street"], ["since"])]):
    id: Key[str]
    street: Normalized = ""
    since: datetime | None = None


class OwnShop(Model, table="Shop", indexes=[Index("by_street", ["street", "lane"])]):
    id: Key[str]
    street: Normalized = ""
    lane: Normalized = ""


@everywhere
async def test_values_that_a_type_normalizes_are_normalized_in_the_index_too(db: Db) -> None:
    id = fresh("shop")
    zone = datetime(2026, 1, 1, 12, tzinfo=UTC).astimezone()
    await arrange(db, Shop(id=id, street=f" A {id} "), OwnShop(id=id, street=f" A {id} ", lane=" B"))
    async with db.transaction() as tx:
        tx.update(
            Shop, {"id": id, "street": f"a {id}", "since": None}, {"street": f"  C {id}", "since": zone}
        )
        tx.update(OwnShop, {"id": id, "street": f" a {id}", "lane": "B "}, {"street": f"  C {id}"})
    assert [row.id for row in await db.query(Shop, index="by_street", street=f"C {id} ").all()] == [id]
    found = await db.query(OwnShop, index="by_street", street=f"C {id}", lane="b").all()
    assert [row.id for row in found] == [id]
    assert (await raw(db, Shop.key(id)))["gsi1_sk"] == {"S": "2026-01-01T12:00:00.000000Z"}


# --- hooks, defaults and old items ------------------------------------------------------------------------


class Hooked(Model, indexes=[Index("by_word", ["word"])]):
    id: Key[str]
    text: str = ""
    word: str = field(default="", description="the first word of the text")

    def before_commit(self, tx: Any) -> None:
        self.word = self.text.partition(" ")[0]


@in_memory
async def test_a_value_that_a_hook_changes_is_in_the_index(db: Db) -> None:
    id = fresh("hook")
    await arrange(db, Hooked(id=id, text=f"{id} a b"))
    assert [row.id for row in await db.query(Hooked, index="by_word", word=id).all()] == [id]
    async with db.transaction() as tx:
        (await tx.get_one(Hooked, id)).text = f"{id}! a"
    assert await db.query(Hooked, index="by_word", word=id).all() == []
    assert [row.id for row in await db.query(Hooked, index="by_word", word=f"{id}!").all()] == [id]


@everywhere
@both_layouts
async def test_a_deleted_item_is_not_in_any_index(db: Db, town: type[Any]) -> None:
    id = fresh("gone")
    await arrange(db, town(id=id, country=id, mayor=id))
    async with db.transaction() as tx:
        tx.delete(*(await tx.query(town, index="by_mayor", mayor=id).all()))
    assert await db.query(town, index="by_mayor", mayor=id).all() == []
    assert await db.query(town, index="by_place", country=id, city="Aachen").count() == 0


@everywhere
@both_layouts
async def test_an_old_item_enters_the_index_when_the_last_missing_part_is_written(
    db: Db, town: type[Any]
) -> None:
    id = fresh("old")
    await db.get(town, id)
    own: dict[str, Any] = {} if town is OwnTown else {"id": {"S": id}, "_type": {"S": "Town"}}
    item = {**raw_key(town.key(id)), **own, "country": {"S": id}}
    await db.send(PutItem(table_of(db, town), item))
    async with db.transaction() as tx:
        (await tx.get_one(town, id)).people = 3
    found = await raw(db, town.key(id))
    if town is Town:  # an optional field that is not stored is None, whatever its default
        assert "gsi1_pk" not in found
    else:
        assert "_c_founded_people" not in found
    async with db.transaction() as tx:
        (await tx.get_one(town, id)).founded = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(0)
        (await tx.get_one(town, id)).country = f"{id} north"
    rows = await db.query(town, index="by_place", country=f"{id} north", city="Aachen").all()
    assert [row.id for row in rows] == [id]
