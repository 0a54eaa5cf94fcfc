"""The attributes that Holdall stores besides the fields are right after every kind of write, in every layout.

Random sequences of writes of all kinds change a few items. After each write, the table is compared with one in which
the same values were created at once: keys, index attributes, expiry, type and times. Then queries of every index are
compared with lists in Python, and every unique value is looked up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rig.behaviour import Colour, Db, Way, open_database
from rig.colour import finish, in_turn
from rig.torture import TORTURE

from holdall import Index, Key, Model, SortKey, Template, col, computed, field
from holdall.core import PutItem, Scan
from holdall.errors import ModelAlreadyExistsError, TransactionErrors, UniqueViolationError

LATER = 4_000_000_000
PLACES = [("x", 1), ("x", 2), ("y", 1)]


class Base(Model, abstract=True):
    id: Key[str]
    no: SortKey[int]
    kind: str = "a"
    rank: int = 0
    tag: str | None = None
    note: str | None = None
    count: int = 0
    tags: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    until: int | None = None
    created: datetime = field(now="create")
    updated: datetime = field(now="update")


def split_words(item: dict[str, Any]) -> dict[str, Any]:
    if isinstance(item["words"], str):
        item["words"] = item["words"].split()
    return item


class Shared(
    Base,
    ttl="until",
    migrations=[split_words],
    indexes=[
        Index("by_kind", ["kind"], ["rank"], slot=1),
        Index("by_tag", ["tag", "kind"], ["rank"], slot=2),
    ],
):
    rank: int = field(default=0, aliases=["grade"])


class Special(Shared, indexes=[Index("by_note", ["note"], ["rank"], slot=3)]):
    pass


class Gathered(Base, collection="things", indexes=[Index("by_kind", ["kind"], ["rank"], collection="kinds")]):
    pass


class Unique(Base, indexes=[Index("by_kind", ["kind"], ["rank"])]):
    code: str | None = field(default=None, unique=True)


class Own(
    Base,
    table="Own",
    ttl="until",
    indexes=[
        Index("by_kind", ["kind"], ["rank"]),
        Index("by_tag", ["tag", "kind"], ["rank"], sparse=True),
        Index("by_rank", sort_key=["kind", "rank"], local=True),
    ],
):
    pass


class Plain(
    Base,
    table="plain",
    layout="plain",
    ttl="until",
    indexes=[
        Index("by_kind", ["kind"], ["rank"]),
        Index("by_tag", ["tag", "kind"], ["rank", "count"]),
        Index("by_rank", sort_key=["rank"], local=True),
    ],
):
    pass


class Versioned(Base, table="versioned", layout="plain", indexes=[Index("by_kind", ["kind"], ["rank"])]):
    version: int = field(default=0, version=True)


class Templated(
    Base,
    table="templated",
    layout=Template(
        pk="I#{id}",
        sk="N#{no:03d}",
        type="entity",
        by_kind=("KIND#{kind}", "{rank:05d}"),
        by_tag={"TAG": "TAG#{tag}#{kind}", "RANK": "R#{rank:05d}"},
        by_expiry={"TAG": "TAG#{tag}#{kind}", "until": "{until}"},
        by_no={"sk": "N#{no:03d}", "RANK": "R#{rank:05d}"},
        local={"by_rank": "R#{rank:05d}#{kind}"},
    ),
):
    pass


class Reckoned(
    Base,
    indexes=[
        Index("by_kind", ["kind"], ["rank"], slot=1),
        Index("by_band", ["band"], ["rank"], slot=2),
    ],
):
    @computed("kind", "rank")
    def band(self) -> str | None:
        return None if self.kind == "c" else f"{self.kind}{self.rank // 6}"


MODELS: list[type[Any]] = [Special, Gathered, Unique, Own, Plain, Versioned, Templated, Reckoned]


class Scenario:
    """A database and its expected content: the values of each item by its key."""

    def __init__(self, db: Db, model: type[Any]) -> None:
        self.db = db
        self.model = model
        self.expected: dict[tuple[str, int], dict[str, Any]] = {}
        kept = ("id", "no", "created", "updated", "version", "band")
        self.plain = [name for name in model._fields if name not in kept]

    def key(self, place: tuple[str, int]) -> Any:
        return self.model.key(id=place[0], no=place[1])

    def values(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """Return all values of a new item."""
        fresh = {"kind": "a", "rank": 0, "count": 0, "tags": set(), "words": []}
        return {**dict.fromkeys(self.plain), **fresh, **self.select_fields(change)}

    def select_fields(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a change for which the model has fields."""
        return {name: value for name, value in change.items() if name in self.plain}

    def is_taken(self, place: tuple[str, int], change: Mapping[str, Any]) -> bool:
        """Whether another item has the unique value."""
        code = change.get("code") if "code" in self.plain else None
        return code is not None and any(
            each["code"] == code for key, each in self.expected.items() if key != place
        )

    def record_write(self, place: tuple[str, int], values: Mapping[str, Any], *, anew: bool = False) -> None:
        """Record a successful write."""
        now = self.db.clock.now()
        old = {} if anew else self.expected.get(place, {})
        self.expected[place] = {"created": now, **old, **values, "updated": now}
        if self.model is Versioned:
            self.expected[place]["version"] = old.get("version", 0) + 1

    def record_change(self, place: tuple[str, int], change: Mapping[str, Any]) -> None:
        """Record a change of fields, unless all have these values already."""
        if any(self.expected[place][name] != value for name, value in change.items()):
            self.record_write(place, change)


Write = Callable[[Scenario, tuple[str, int], Mapping[str, Any]], Awaitable[None]]
WRITES: dict[str, Write] = {}


def write(function: Write) -> Write:
    WRITES[function.__name__] = function
    return function


@write
async def create(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    item = scenario.model(id=place[0], no=place[1], **scenario.select_fields(change))
    if scenario.is_taken(place, change):
        with pytest.raises((UniqueViolationError, TransactionErrors)):
            await scenario.db.create(item)
    elif place in scenario.expected:
        with pytest.raises(ModelAlreadyExistsError):
            await scenario.db.create(item)
    else:
        await scenario.db.create(item)
        scenario.record_write(place, scenario.values(change))


@write
async def put(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """``put`` first reads items with a unique value or a version, and then keeps their time of creation."""
    is_read = scenario.model in (Unique, Versioned)
    count = scenario.expected.get(place, {}).get("count", 0) + 1
    change = {**change, "count": count}
    item = scenario.model(id=place[0], no=place[1], **scenario.select_fields(change))
    if scenario.is_taken(place, change):
        with pytest.raises(UniqueViolationError):
            await scenario.db.put(item)
        return
    await scenario.db.put(item)
    scenario.record_write(place, scenario.values(change), anew=not is_read)


@write
async def create_or_put(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    expected: dict[str, Any] = {"id": place[0], "no": place[1]}
    if scenario.model is Unique:
        return
    if scenario.model is Versioned:
        expected["version"] = scenario.expected.get(place, {}).get("version", 0)
    async with scenario.db.transaction() as tx:
        tx.create_or_put(scenario.model, expected, scenario.select_fields(change))
    version = scenario.expected.get(place, {}).get("version", 0)
    scenario.record_write(place, scenario.values(change), anew=True)
    if scenario.model is Versioned:
        scenario.expected[place]["version"] = version + 1


@write
async def assign_fields(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if place not in scenario.expected or scenario.is_taken(place, change):
        return
    async with scenario.db.transaction() as tx:
        item = await tx.get_one(scenario.key(place))
        for name, value in scenario.select_fields(change).items():
            setattr(item, name, value)
    scenario.record_change(place, scenario.select_fields(change))


@write
async def assign_mapping(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if place not in scenario.expected or scenario.is_taken(place, change):
        return
    await scenario.db.update(scenario.key(place), **scenario.select_fields(change))
    scenario.record_change(place, scenario.select_fields(change))


@write
async def change_members(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """Change fields of an item that was read, without locks; the counter, the set and the list are not in an index."""
    if place not in scenario.expected:
        return
    async with scenario.db.transaction() as tx:
        item = await tx.get_one(scenario.key(place))
        item.field("count").increment_by(2)
        item.field("tags").add("new")
        item.field("words").append("new")
        item.field("rank").increment_by(1)
    old = scenario.expected[place]
    scenario.record_write(
        place,
        {
            "count": old["count"] + 2,
            "tags": old["tags"] | {"new"},
            "words": [*old["words"], "new"],
            "rank": old["rank"] + 1,
        },
    )


@write
async def update_blindly(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if (
        place not in scenario.expected
        or scenario.is_taken(place, change)
        or not scenario.select_fields(change)
    ):
        return
    old = {name: value for name, value in scenario.expected[place].items() if name in scenario.plain}
    async with scenario.db.transaction() as tx:
        expected = {"id": place[0], "no": place[1], **old}
        tx.update(scenario.model, expected, scenario.select_fields(change))
    scenario.record_change(place, scenario.select_fields(change))


@write
async def update_fields(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if place not in scenario.expected:
        return
    model, old = scenario.model, scenario.expected[place]
    await scenario.db.update(
        scenario.key(place),
        col(model.count).increment_by(1),
        col(model.tags).add("a", "b"),
        col(model.words).append("end"),
        col(model.note).remove(),
        where=col(model.rank) == old["rank"],
    )
    scenario.record_write(
        place,
        {
            "count": old["count"] + 1,
            "tags": old["tags"] | {"a", "b"},
            "words": [*old["words"], "end"],
            "note": None,
        },
    )


@write
async def update_index_fields(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """Change a field of an index blindly; the condition names the other fields of the indexes."""
    if place not in scenario.expected or "rank" not in change:
        return
    model, old = scenario.model, scenario.expected[place]
    known = (col(model.kind) == old["kind"]) & (col(model.rank) == old["rank"])
    known &= (col(model.tag) == old["tag"]) & (col(model.note) == old["note"])
    await scenario.db.update(scenario.key(place), col(model.rank).set(change["rank"]), where=known)
    scenario.record_change(place, {"rank": change["rank"]})


@write
async def update_unique_value(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """Change a unique value blindly; the condition names the old value, which is released."""
    if place not in scenario.expected or scenario.model is not Unique or scenario.is_taken(place, change):
        return
    code, known = change.get("code"), col(Unique.code) == scenario.expected[place]["code"]
    await scenario.db.update(scenario.key(place), col(Unique.code).set(code), where=known)
    scenario.record_change(place, {"code": code})


@write
async def discard_members(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    left = scenario.expected.get(place, {}).get("tags", set()) - {"a", "u"}
    if not left:
        return
    await scenario.db.update(scenario.key(place), col(scenario.model.tags).discard("a", "u"))
    scenario.record_write(place, {"tags": left})


@write
async def update_or_create(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if scenario.is_taken(place, change):
        return
    given = scenario.select_fields(change) if place not in scenario.expected else {}
    given = {name: value for name, value in given.items() if name != "count"}
    await scenario.db.update(
        scenario.key(place), col(scenario.model.count).increment_by(5), create_if_missing=given or True
    )
    if place in scenario.expected:
        scenario.record_write(place, {"count": scenario.expected[place]["count"] + 5})
    else:
        scenario.record_write(place, scenario.values({**given, "count": 5}))


@write
async def delete(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    await scenario.db.delete(scenario.key(place))
    scenario.expected.pop(place, None)


@write
async def delete_loaded_item(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    async with scenario.db.transaction() as tx:
        item = await tx.get(scenario.key(place))
        if item is not None:
            tx.delete(item)
    scenario.expected.pop(place, None)


@write
async def write_in_batches(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if scenario.model in (Unique, Versioned):
        return
    other = PLACES[0] if place != PLACES[0] else PLACES[1]
    async with scenario.db.bulk(scenario.model) as bulk:
        await bulk.put(scenario.model(id=place[0], no=place[1], **scenario.select_fields(change)))
        await bulk.delete(scenario.key(other))
    scenario.record_write(place, scenario.values(change), anew=True)
    scenario.expected.pop(other, None)


@write
async def update_all_by_values(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    new = {name: change[name] for name in ("kind", "tag", "note") if name in change}
    if not new:
        return
    await scenario.db.update_all(scenario.model, new, index="by_kind", kind="b")
    for found, old in [*scenario.expected.items()]:
        if old["kind"] == "b":
            scenario.record_change(found, new)


@write
async def update_all_by_a_function(
    scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]
) -> None:
    def increase_rank(item: Any) -> None:
        item.rank += 1

    await scenario.db.update_all(scenario.model, increase_rank, scan=True, where=col(scenario.model.rank) < 3)
    for found, old in [*scenario.expected.items()]:
        if old["rank"] < 3:
            scenario.record_change(found, {"rank": old["rank"] + 1})


@write
async def delete_all_of_a_query(
    scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]
) -> None:
    await scenario.db.delete_all(scenario.model, index="by_kind", kind="c")
    for found, old in [*scenario.expected.items()]:
        if old["kind"] == "c":
            del scenario.expected[found]


@write
async def migrate_old_item(scenario: Scenario, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """An older program did not know the indexes, so their attributes are missing or outdated."""
    if place in scenario.expected:
        stored = dict(await scenario.db.raw(scenario.key(place)) or {})
        made_up = {
            name
            for each in scenario.model._schema.derived
            for name in each.attributes(scenario.expected[place])
        }
        for name in made_up & stored.keys():
            if change.get("kind") == "a":
                del stored[name]
            elif name != "_ttl" and "S" in stored[name]:
                stored[name] = {"S": "stale"}
        if scenario.model is Special:
            del stored["_v"]
            stored["words"] = {"S": " ".join(scenario.expected[place]["words"])}
            stored["grade"] = stored.pop("rank")
        await scenario.db.send(PutItem(scenario.db.table_of(scenario.model), stored))
    if place in scenario.expected and change.get("kind") == "c":  # a write also converts the item
        await scenario.db.update(scenario.key(place), kind="c", rank=scenario.expected[place]["rank"])
        scenario.record_change(place, {"kind": "c"})
    await scenario.db.migrate(scenario.model)


# --- the expected content ---------------------------------------------------------------------------------


async def scan(db: Db, model: type[Any]) -> list[dict[str, Any]]:
    await db.get(model, id="any", no=0)  # creates the table
    page = await db.send(Scan(db.table_of(model), consistent=True))
    found = []
    for item in page.items:
        if item.get("pk", {}).get("S", "").startswith("holdall#"):
            continue  # the position of a run
        kept = {name: value for name, value in item.items() if name not in ("_w", "version")}
        if not any(kept.get("tags", {}).values()):
            kept.pop("tags", None)  # an empty set is stored as an empty list or not at all
        found.append({name: set(value["SS"]) if "SS" in value else value for name, value in kept.items()})
    return sorted(found, key=repr)


async def check_scenario(scenario: Scenario, way: Way) -> None:
    db, model = scenario.db, scenario.model
    with open_database(way) as other:
        for place, values in scenario.expected.items():
            other.clock.set(values["updated"].timestamp())
            given = {name: value for name, value in values.items() if name not in ("updated", "version")}
            await other.create(model(id=place[0], no=place[1], **given))
        assert await scan(db, model) == await scan(other, model)
    for place, values in scenario.expected.items():
        item = await db.get_one(scenario.key(place))
        assert {name: getattr(item, name) for name in values} == values
    await check_indexes(scenario)
    if model is Unique:
        for code in ("p", "q"):
            owner = await db.get_by(model, code=code)
            owners = [place for place, values in scenario.expected.items() if values["code"] == code]
            assert ([] if owner is None else [(owner.id, owner.no)]) == owners


async def check_indexes(scenario: Scenario) -> None:
    for index in scenario.model._schema.indexes.values():
        names = [part.name for part in index.key]
        listed: dict[tuple[Any, ...], list[tuple[str, int]]] = {}
        for place, values in scenario.expected.items():
            band = None if values["kind"] == "c" else f"{values['kind']}{values['rank'] // 6}"
            all_values = {"id": place[0], "no": place[1], "band": band, **values}
            if all(all_values[part.name] is not None for part in index.components):
                listed.setdefault(tuple(all_values[name] for name in names), []).append(place)
        kinds: dict[str, list[Any]] = {"kind": ["a", "b", "c"], "tag": ["s", "t"], "id": ["x", "y"]}
        kinds |= {"note": ["n"], "no": [1, 2]}
        kinds["band"] = [f"{kind}{number}" for kind in "abc" for number in range(3)]
        combinations: list[tuple[Any, ...]] = [()]
        for name in names:
            combinations = [(*each, value) for each in combinations for value in kinds[name]]
        for partition in combinations:
            query = scenario.db.query(
                scenario.model, index=index.name, **dict(zip(names, partition, strict=True))
            )
            rows = [(row.id, row.no) async for row in query]
            assert sorted(rows) == sorted(listed.get(partition, []))
            ranks = [scenario.expected[row]["rank"] for row in rows]
            if index.sort_key[0].name == "rank":
                assert ranks == sorted(ranks)


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from("abc"),
        "rank": st.integers(0, 12),
        "tag": st.sampled_from([None, "s", "t"]),
        "note": st.sampled_from([None, "n"]),
        "tags": st.sets(st.sampled_from("uv")),
        "until": st.sampled_from([None, LATER, LATER + 1]),
        "code": st.sampled_from([None, "p", "q"]),
    },
)
STEPS = st.tuples(st.sampled_from(sorted(WRITES)), st.sampled_from(PLACES), CHANGES)


@pytest.mark.parametrize(
    ("model", "colour"),
    [(model, colour) for model in MODELS for colour in in_turn("derived", model.__name__)],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
@settings(max_examples=400 if TORTURE else 8)
@given(steps=st.lists(STEPS, min_size=3, max_size=9))
def test_derived_attributes_match_the_values_after_every_write(
    model: type[Any], colour: Colour, steps: list[Any]
) -> None:
    way = Way("memory", colour)

    async def run_steps(db: Db) -> None:
        scenario = Scenario(db, model)
        await create(scenario, PLACES[0], {"kind": "b", "tag": "s"})
        for name, place, change in steps:
            db.clock.forward(1)
            await WRITES[name](scenario, place, change)
            await check_scenario(scenario, way)

    with open_database(way) as db:
        finish(colour, run_steps(db))
