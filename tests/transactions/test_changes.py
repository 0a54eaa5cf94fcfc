"""The pending changes of a transaction: ``tx.changes()``, and the values of an item before and after."""

from __future__ import annotations

from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import Order, arrange, put_raw

from holdall.core import encode_item


def make_values(**changed: object) -> dict[str, object]:
    return {"id": "a", "product": "coffee", "quantity": 1, "note": None, "tags": [], **changed}


@everywhere
async def test_changes_show_each_item_before_and_after(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"), Order(id="c"))
    async with db.transaction() as tx:
        changed, deleted = await tx.get_one(Order, "a"), await tx.get_one(Order, "b")
        await tx.get_one(Order, "c")
        await tx.get(Order, "x")
        assert tx.changes() == []
        changed.quantity = 2
        changed.tags.append("x")
        tx.delete(deleted)
        tx.create(Order, id="d", note="new")
        assert tx.changes() == [
            (Order.key("a"), make_values(), make_values(quantity=2, tags=["x"])),
            (Order.key("b"), make_values(id="b"), None),
            (Order.key("d"), None, make_values(id="d", note="new")),
        ]


@everywhere
async def test_changes_show_increments_as_a_sum(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.field("quantity").increment_by(4)
        assert tx.changes() == [(order.key, make_values(), make_values(quantity=5))]
        order.field("quantity").increment_by(-4)
        assert tx.changes() == []


@everywhere
async def test_changes_show_what_is_known_of_blind_writes(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        tx.update(Order, {"id": "a", "quantity": 1, "product": "coffee"}, {"quantity": 2})
        tx.create_or_put(Order, {"id": "b"}, {"note": "x"})
        tx.delete(Order.key("c"))
        update, put, delete = tx.changes()
        assert update.before == {"id": "a", "quantity": 1, "product": "coffee"}
        assert update.after == {"id": "a", "quantity": 2, "product": "coffee"}
        assert (put.before, put.after) == (None, make_values(id="b", note="x"))
        assert (delete.key, delete.before, delete.after) == (Order.key("c"), None, None)


@in_memory
async def test_changes_are_a_copy(db: Db) -> None:
    await arrange(db, Order(id="a", tags=["x"]))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.quantity = 2
        (change,) = tx.changes()
        assert change.after is not None
        change.after["tags"].append("y")
        change.after["quantity"] = 9
    order = await db.get_one(Order, "a")
    assert (order.tags, order.quantity) == (["x"], 2)


@in_memory
async def test_an_item_that_was_created_and_deleted_is_not_a_change(db: Db) -> None:
    async with db.transaction() as tx:
        tx.delete(tx.create(Order, id="a"))
        assert tx.changes() == []


@in_memory
async def test_an_invalid_field_does_not_hide_the_changes_of_others(db: Db) -> None:
    key = Order.key("a")
    await put_raw(db, Order, {**raw_key(key), **encode_item({"id": "a", "product": 5, "quantity": 3})})
    async with db.transaction() as tx:
        order = await tx.get_one(key)
        order.quantity = 4
        (change,) = tx.changes()
        assert change.before is not None
        assert change.after is not None
        assert (change.before["quantity"], change.after["quantity"]) == (3, 4)
    assert (await db.raw(key) or {})["quantity"] == {"N": "4"}


@everywhere
async def test_an_item_keeps_its_loaded_values(db: Db) -> None:
    await arrange(db, Order(id="a", tags=["x"]))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.quantity = 2
        order.tags.append("y")
        assert order.to_dict() == make_values(quantity=2, tags=["x", "y"])
        assert order.to_dict(initial=True) == make_values(tags=["x"])
        new = tx.create(Order, id="b")
        assert new.to_dict(initial=True) == {}
        assert new.to_dict() == make_values(id="b")


@everywhere
async def test_a_field_handle_shows_whether_the_field_was_accessed_and_changed(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        quantity, note, tags = order.field("quantity"), order.field("note"), order.field("tags")
        assert not any(each.accessed or each.changed for each in (quantity, note, tags))
        assert order.quantity == 1
        assert (quantity.accessed, quantity.changed) == (True, False)
        order.note = "x"
        assert (note.accessed, note.changed) == (True, True)
        order.note = None
        assert (note.accessed, note.changed) == (True, False)
        order.tags.append("x")
        assert (tags.accessed, tags.changed) == (True, True)
