"""Defaults: new items store them; old items show them, and store them only when the field itself is changed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import arrange, put_raw

from holdall import Key, Model, SortKey, field
from holdall.core import And, ConditionCheck, NotExists, encode_item, path
from holdall.errors import InvalidFieldError, ModelDefinitionError


class Style(BaseModel):
    colour: str = "black"
    width: int = 1


class Page(Model):
    id: Key[str]
    title: str = ""
    views: int = 0
    public: bool = False
    style: Style = Style()
    tags: list[str] = field(default_factory=lambda: ["new"])
    words: list[str] = field(default=["a"])
    maybe: str | None = "perhaps"
    first: int = field(default=1, read_only=True)


class Shelf(Model):
    room: Key[str]
    kind: SortKey[str] = field(default="books")
    level: SortKey[int] = field(default=0)


async def put_old_page(db: Db, **values: Any) -> None:
    key = Page.key("a")
    await put_raw(db, Page, {**raw_key(key), **encode_item({"id": "a", **values})})


# --- new items --------------------------------------------------------------------------------------------


@everywhere
async def test_a_new_item_has_its_defaults_and_stores_them(db: Db) -> None:
    await arrange(db, Page(id="a"))
    stored = await db.raw(Page.key("a"))
    assert stored is not None
    assert (stored["title"], stored["views"], stored["public"]) == ({"S": ""}, {"N": "0"}, {"BOOL": False})
    assert stored["style"] == {"M": {"colour": {"S": "black"}, "width": {"N": "1"}}}
    assert (stored["tags"], stored["maybe"]) == ({"L": [{"S": "new"}]}, {"S": "perhaps"})


@in_memory
async def test_defaults_are_not_shared_between_items(db: Db) -> None:
    async with db.transaction() as tx:
        first, second = tx.create(Page, id="a"), tx.create(Page, id="b")
        first.tags.append("x")
        first.words.append("x")
        first.style.colour = "red"
    second = await db.get_one(Page, "b")
    assert (second.tags, second.words, second.style) == (["new"], ["a"], Style())
    assert Page(id="c").words == ["a"]


@in_memory
async def test_a_given_value_replaces_the_default_even_none_if_the_field_is_optional(db: Db) -> None:
    await arrange(db, Page(id="a", views=5, maybe=None))
    page = await db.get_one(Page, "a")
    assert (page.views, page.maybe) == (5, None)
    stored = await db.raw(page.key)
    assert stored is not None
    assert "maybe" not in stored
    with pytest.raises(InvalidFieldError, match=r"Page\.views"):
        Page(id="b", views=None)  # type: ignore[arg-type]


@in_memory
async def test_a_given_nested_value_is_stored_with_its_own_defaults(db: Db) -> None:
    await arrange(db, Page(id="a", style={"width": 2}))  # type: ignore[arg-type]
    stored = await db.raw(Page.key("a"))
    assert stored is not None
    assert stored["style"] == {"M": {"colour": {"S": "black"}, "width": {"N": "2"}}}


@in_memory
async def test_an_invalid_default_is_refused_when_the_class_is_defined(db: Db) -> None:
    with pytest.raises(ModelDefinitionError, match=r"Bad\.n: its default does not fit"):

        class Bad(Model):
            id: Key[str]
            n: int = "none"  # type: ignore[assignment]


# --- old items --------------------------------------------------------------------------------------------


@everywhere
async def test_a_new_default_shows_on_an_old_item_and_is_not_written(db: Db) -> None:
    await put_old_page(db, title="old")
    async with db.transaction() as tx:
        page = await tx.get_one(Page, "a")
        assert (page.views, page.public, page.style, page.tags) == (0, False, Style(), ["new"])
    assert db.kinds() == ["GetItem"]
    async with db.transaction() as tx:
        page = await tx.get_one(Page, "a")
        assert page.views == 0
        assert page.tags == ["new"]
        page.title = "newer"
    stored = await db.raw(Page.key("a"))
    assert stored is not None
    assert sorted(stored.keys() - {"pk", "sk", "_type", "_w"}) == ["id", "title"]


@everywhere
async def test_reading_a_default_locks_the_attribute_as_absent(db: Db) -> None:
    await put_old_page(db)
    async with db.transaction() as tx:
        page = await tx.get_one(Page, "a")
        assert page.views == 0
        tx.create(Page, id="b")
        db.forget()
    check = db.list_sent()[0].actions[1]
    assert isinstance(check, ConditionCheck)
    assert isinstance(check.condition, And)
    assert NotExists(path("views")) in check.condition.conditions


@everywhere
async def test_a_default_that_is_changed_is_written(db: Db) -> None:
    await put_old_page(db)
    async with db.transaction() as tx:
        page = await tx.get_one(Page, "a")
        page.views += 1
        page.tags.append("seen")
    page = await db.get_one(Page, "a")
    assert (page.views, page.tags) == (1, ["new", "seen"])


@everywhere
async def test_assigning_the_default_itself_writes_it(db: Db) -> None:
    await put_old_page(db)
    async with db.transaction() as tx:
        (await tx.get_one(Page, "a")).views = 0
    stored = await db.raw(Page.key("a"))
    assert stored is not None
    assert stored["views"] == {"N": "0"}


@in_memory
async def test_an_optional_field_that_is_not_stored_is_none_even_if_it_has_a_default(db: Db) -> None:
    await put_old_page(db)
    assert (await db.get_one(Page, "a")).maybe is None


@everywhere
async def test_new_defaults_inside_stored_values_show_and_are_written_with_a_change(db: Db) -> None:
    await put_old_page(db, style={"width": 3})
    async with db.transaction() as tx:
        page = await tx.get_one(Page, "a")
        assert page.style == Style(colour="black", width=3)
        page.title = "x"
    stored = await db.raw(Page.key("a"))
    assert stored is not None
    assert stored["style"] == {"M": {"width": {"N": "3"}}}
    async with db.transaction() as tx:
        (await tx.get_one(Page, "a")).style.width = 4
    stored = await db.raw(Page.key("a"))
    assert stored is not None
    assert stored["style"] == {"M": {"colour": {"S": "black"}, "width": {"N": "4"}}}


@in_memory
async def test_a_read_only_default_shows_too_and_cannot_be_changed(db: Db) -> None:
    await put_old_page(db)
    async with db.transaction() as tx:
        page = await tx.get_one(Page, "a")
        assert page.first == 1
        with pytest.raises(InvalidFieldError, match="it is read-only"):
            page.first = 2


@in_memory
async def test_a_blind_update_neither_expects_nor_writes_defaults(db: Db) -> None:
    await put_old_page(db)
    async with db.transaction() as tx:
        tx.update(Page, {"id": "a", "title": None}, {"title": "x"})
    stored = await db.raw(Page.key("a"))
    assert stored is not None
    assert sorted(stored.keys() - {"pk", "sk", "_type"}) == ["id", "title"]


@in_memory
async def test_read_only_transactions_show_defaults(db: Db) -> None:
    await put_old_page(db)
    async with db.transaction(read_only=True) as tx:
        page = await tx.get_one(Page, "a")
        assert (page.views, page.tags, page.style) == (0, ["new"], Style())
    assert db.kinds() == ["GetItem"]


# --- sort keys --------------------------------------------------------------------------------------------


@everywhere
async def test_defaults_of_sort_keys_apply_wherever_a_key_is_built(db: Db) -> None:
    await arrange(db, Shelf(room="a"), Shelf(room="a", kind="tools", level=2))
    assert Shelf.key(room="a") == Shelf.key("a") == Shelf.key(room="a", kind="books", level=0)
    for shelf in (await db.get(Shelf, "a"), await db.get(Shelf, room="a", level=0)):
        assert shelf is not None
        assert (shelf.kind, shelf.level) == ("books", 0)
    assert await db.get(Shelf, room="a", kind="tools") is None
    assert await db.get(Shelf, room="a", kind="tools", level=2) is not None


@in_memory
async def test_a_subclass_may_have_another_default_for_a_sort_key(db: Db) -> None:
    class Tools(Shelf):
        kind = field(default="tools")

    assert Tools.key("a") == Shelf.key(room="a", kind="tools")
    await arrange(db, Tools(room="a"))
    assert type(await db.get(Tools, "a")) is Tools
