"""What Holdall stores besides the fields is right after every kind of write, in every layout.

A random life of a few items, with all kinds of writes. After each write, the table is compared with one in which the
same values were created at once: key, index attributes, expiry, type, times and version. Then every index is asked for
what a list in Python has, and every unique value for its item.
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


class Life:
    """A database, and what it should hold: the values of each item by its key."""

    def __init__(self, db: Db, model: type[Any]) -> None:
        self.db = db
        self.model = model
        self.truth: dict[tuple[str, int], dict[str, Any]] = {}
        kept = ("id", "no", "created", "updated", "version", "band")
        self.plain = [name for name in model._fields if name not in kept]

    def key(self, place: tuple[str, int]) -> Any:
        return self.model.key(id=place[0], no=place[1])

    def values(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """All values of a new item."""
        fresh = {"kind": "a", "rank": 0, "count": 0, "tags": set(), "words": []}
        return {**dict.fromkeys(self.plain), **fresh, **self.fit(change)}

    def fit(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a change that the model has fields for."""
        return {name: value for name, value in change.items() if name in self.plain}

    def is_taken(self, place: tuple[str, int], change: Mapping[str, Any]) -> bool:
        """Whether another item has the unique value."""
        code = change.get("code") if "code" in self.plain else None
        return code is not None and any(
            each["code"] == code for key, each in self.truth.items() if key != place
        )

    def stores(self, place: tuple[str, int], values: Mapping[str, Any], *, anew: bool = False) -> None:
        """Note that a write has succeeded."""
        now = self.db.clock.now()
        old = {} if anew else self.truth.get(place, {})
        self.truth[place] = {"created": now, **old, **values, "updated": now}
        if self.model is Versioned:
            self.truth[place]["version"] = old.get("version", 0) + 1

    def changes(self, place: tuple[str, int], change: Mapping[str, Any]) -> None:
        """Note that fields were changed, if one of them is different now."""
        if any(self.truth[place][name] != value for name, value in change.items()):
            self.stores(place, change)


Write = Callable[[Life, tuple[str, int], Mapping[str, Any]], Awaitable[None]]
WRITES: dict[str, Write] = {}


def write(function: Write) -> Write:
    WRITES[function.__name__] = function
    return function


@write
async def create(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    item = life.model(id=place[0], no=place[1], **life.fit(change))
    if life.is_taken(place, change):
        with pytest.raises((UniqueViolationError, TransactionErrors)):
            await life.db.create(item)
    elif place in life.truth:
        with pytest.raises(ModelAlreadyExistsError):
            await life.db.create(item)
    else:
        await life.db.create(item)
        life.stores(place, life.values(change))


@write
async def put(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """A unique value or a version is read first; the time of creation then stays."""
    is_read = life.model in (Unique, Versioned)
    count = life.truth.get(place, {}).get("count", 0) + 1
    change = {**change, "count": count}
    item = life.model(id=place[0], no=place[1], **life.fit(change))
    if life.is_taken(place, change):
        with pytest.raises(UniqueViolationError):
            await life.db.put(item)
        return
    await life.db.put(item)
    life.stores(place, life.values(change), anew=not is_read)


@write
async def create_or_put(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    expected: dict[str, Any] = {"id": place[0], "no": place[1]}
    if life.model is Unique:
        return
    if life.model is Versioned:
        expected["version"] = life.truth.get(place, {}).get("version", 0)
    async with life.db.transaction() as tx:
        tx.create_or_put(life.model, expected, life.fit(change))
    version = life.truth.get(place, {}).get("version", 0)
    life.stores(place, life.values(change), anew=True)
    if life.model is Versioned:
        life.truth[place]["version"] = version + 1


@write
async def assign_fields(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if place not in life.truth or life.is_taken(place, change):
        return
    async with life.db.transaction() as tx:
        item = await tx.get_one(life.key(place))
        for name, value in life.fit(change).items():
            setattr(item, name, value)
    life.changes(place, life.fit(change))


@write
async def assign_mapping(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if place not in life.truth or life.is_taken(place, change):
        return
    await life.db.update(life.key(place), **life.fit(change))
    life.changes(place, life.fit(change))


@write
async def change_members(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """On an item that was read, but without locks; the counter, the set and the list are in no index."""
    if place not in life.truth:
        return
    async with life.db.transaction() as tx:
        item = await tx.get_one(life.key(place))
        item.field("count").increment_by(2)
        item.field("tags").add("new")
        item.field("words").append("new")
        item.field("rank").increment_by(1)
    old = life.truth[place]
    life.stores(
        place,
        {
            "count": old["count"] + 2,
            "tags": old["tags"] | {"new"},
            "words": [*old["words"], "new"],
            "rank": old["rank"] + 1,
        },
    )


@write
async def update_blindly(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if place not in life.truth or life.is_taken(place, change) or not life.fit(change):
        return
    old = {name: value for name, value in life.truth[place].items() if name in life.plain}
    async with life.db.transaction() as tx:
        expected = {"id": place[0], "no": place[1], **old}
        tx.update(life.model, expected, life.fit(change))
    life.changes(place, life.fit(change))


@write
async def update_fields(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if place not in life.truth:
        return
    model, old = life.model, life.truth[place]
    await life.db.update(
        life.key(place),
        col(model.count).increment_by(1),
        col(model.tags).add("a", "b"),
        col(model.words).append("end"),
        col(model.note).remove(),
        where=col(model.rank) == old["rank"],
    )
    life.stores(
        place,
        {
            "count": old["count"] + 1,
            "tags": old["tags"] | {"a", "b"},
            "words": [*old["words"], "end"],
            "note": None,
        },
    )


@write
async def update_index_fields(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """Blindly, too: the condition names the other fields of the indexes."""
    if place not in life.truth or "rank" not in change:
        return
    model, old = life.model, life.truth[place]
    known = (col(model.kind) == old["kind"]) & (col(model.rank) == old["rank"])
    known &= (col(model.tag) == old["tag"]) & (col(model.note) == old["note"])
    await life.db.update(life.key(place), col(model.rank).set(change["rank"]), where=known)
    life.changes(place, {"rank": change["rank"]})


@write
async def update_unique_value(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    """Blindly, too: the condition names the old value, which is released."""
    if place not in life.truth or life.model is not Unique or life.is_taken(place, change):
        return
    code, known = change.get("code"), col(Unique.code) == life.truth[place]["code"]
    await life.db.update(life.key(place), col(Unique.code).set(code), where=known)
    life.changes(place, {"code": code})


@write
async def discard_members(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    left = life.truth.get(place, {}).get("tags", set()) - {"a", "u"}
    if not left:
        return
    await life.db.update(life.key(place), col(life.model.tags).discard("a", "u"))
    life.stores(place, {"tags": left})


@write
async def update_or_create(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if life.is_taken(place, change):
        return
    given = life.fit(change) if place not in life.truth else {}
    given = {name: value for name, value in given.items() if name != "count"}
    await life.db.update(
        life.key(place), col(life.model.count).increment_by(5), create_if_missing=given or True
    )
    if place in life.truth:
        life.stores(place, {"count": life.truth[place]["count"] + 5})
    else:
        life.stores(place, life.values({**given, "count": 5}))


@write
async def delete(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    await life.db.delete(life.key(place))
    life.truth.pop(place, None)


@write
async def delete_what_was_read(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    async with life.db.transaction() as tx:
        item = await tx.get(life.key(place))
        if item is not None:
            tx.delete(item)
    life.truth.pop(place, None)


@write
async def write_in_batches(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    if life.model in (Unique, Versioned):
        return
    other = PLACES[0] if place != PLACES[0] else PLACES[1]
    async with life.db.bulk(life.model) as bulk:
        await bulk.put(life.model(id=place[0], no=place[1], **life.fit(change)))
        await bulk.delete(life.key(other))
    life.stores(place, life.values(change), anew=True)
    life.truth.pop(other, None)


@write
async def update_what_a_query_finds(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    new = {name: change[name] for name in ("kind", "tag", "note") if name in change}
    if not new:
        return
    await life.db.update_all(life.model, new, index="by_kind", kind="b")
    for found, old in [*life.truth.items()]:
        if old["kind"] == "b":
            life.changes(found, new)


@write
async def update_all_by_a_function(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    def rise(item: Any) -> None:
        item.rank += 1

    await life.db.update_all(life.model, rise, scan=True, where=col(life.model.rank) < 3)
    for found, old in [*life.truth.items()]:
        if old["rank"] < 3:
            life.changes(found, {"rank": old["rank"] + 1})


@write
async def delete_what_a_query_finds(life: Life, place: tuple[str, int], change: Mapping[str, Any]) -> None:
    await life.db.delete_all(life.model, index="by_kind", kind="c")
    for found, old in [*life.truth.items()]:
        if old["kind"] == "c":
            del life.truth[found]


@write
async def migrate_what_an_older_program_wrote(
    life: Life, place: tuple[str, int], change: Mapping[str, Any]
) -> None:
    """The older program did not have the indexes, so their attributes are missing, or those of other values."""
    if place in life.truth:
        stored = dict(await life.db.raw(life.key(place)) or {})
        made_up = {name for each in life.model._schema.derived for name in each.attributes(life.truth[place])}
        for name in made_up & stored.keys():
            if change.get("kind") == "a":
                del stored[name]
            elif name != "_ttl" and "S" in stored[name]:
                stored[name] = {"S": "stale"}
        if life.model is Special:
            del stored["_v"]
            stored["words"] = {"S": " ".join(life.truth[place]["words"])}
            stored["grade"] = stored.pop("rank")
        await life.db.send(PutItem(life.db.table_of(life.model), stored))
    if place in life.truth and change.get("kind") == "c":  # a write converts the item, too
        await life.db.update(life.key(place), kind="c", rank=life.truth[place]["rank"])
        life.changes(place, {"kind": "c"})
    await life.db.migrate(life.model)


# --- what should be there ---------------------------------------------------------------------------------


async def scan(db: Db, model: type[Any]) -> list[dict[str, Any]]:
    await db.get(model, id="nobody", no=0)  # makes the table
    page = await db.send(Scan(db.table_of(model), consistent=True))
    found = []
    for item in page.items:
        if item.get("pk", {}).get("S", "").startswith("holdall#"):
            continue  # where a run was
        kept = {name: value for name, value in item.items() if name not in ("_w", "version")}
        if not any(kept.get("tags", {}).values()):
            kept.pop("tags", None)  # an empty set is stored as an empty list, or by its absence
        found.append({name: set(value["SS"]) if "SS" in value else value for name, value in kept.items()})
    return sorted(found, key=repr)


async def check(life: Life, way: Way) -> None:
    db, model = life.db, life.model
    with open_database(way) as other:
        for place, values in life.truth.items():
            other.clock.set(values["updated"].timestamp())
            given = {name: value for name, value in values.items() if name not in ("updated", "version")}
            await other.create(model(id=place[0], no=place[1], **given))
        assert await scan(db, model) == await scan(other, model)
    for place, values in life.truth.items():
        item = await db.get_one(life.key(place))
        assert {name: getattr(item, name) for name in values} == values
    await check_indexes(life)
    if model is Unique:
        for code in ("p", "q"):
            owner = await db.get_by(model, code=code)
            owners = [place for place, values in life.truth.items() if values["code"] == code]
            assert ([] if owner is None else [(owner.id, owner.no)]) == owners


async def check_indexes(life: Life) -> None:
    for index in life.model._schema.indexes.values():
        names = [part.name for part in index.key]
        listed: dict[tuple[Any, ...], list[tuple[str, int]]] = {}
        for place, values in life.truth.items():
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
            query = life.db.query(life.model, index=index.name, **dict(zip(names, partition, strict=True)))
            rows = [(row.id, row.no) async for row in query]
            assert sorted(rows) == sorted(listed.get(partition, []))
            ranks = [life.truth[row]["rank"] for row in rows]
            if index.sort_key[0].name == "rank":
                assert ranks == sorted(ranks)


some_changes = st.fixed_dictionaries(
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
some_writes = st.tuples(st.sampled_from(sorted(WRITES)), st.sampled_from(PLACES), some_changes)


@pytest.mark.parametrize(
    ("model", "colour"),
    [(model, colour) for model in MODELS for colour in in_turn("derived", model.__name__)],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
@settings(max_examples=400 if TORTURE else 8)
@given(steps=st.lists(some_writes, min_size=3, max_size=9))
def test_everything_stored_follows_from_the_values(
    model: type[Any], colour: Colour, steps: list[Any]
) -> None:
    way = Way("memory", colour)

    async def live(db: Db) -> None:
        life = Life(db, model)
        await create(life, PLACES[0], {"kind": "b", "tag": "s"})
        for name, place, change in steps:
            db.clock.forward(1)
            await WRITES[name](life, place, change)
            await check(life, way)

    with open_database(way) as db:
        finish(colour, live(db))
