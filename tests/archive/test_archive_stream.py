"""Stream records of items that were archived, moved and restored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from moves_rig import NEW, Rig, with_files

from holdall.errors import InvalidFieldError
from holdall.models import StreamChange, stream_change


def record(db: Rig, old: Any, new: Any, view: str = "both", kind: str = "MODIFY") -> dict[str, Any]:
    images: dict[str, Any] = {"Keys": db.row_key("1")}
    if view != "new" and old:
        images["OldImage"] = old
    if view != "old" and new:
        images["NewImage"] = new
    return {"eventName": kind, "eventSource": "aws:dynamodb", "dynamodb": images}


def read(db: Rig, *given: Any, **options: Any) -> StreamChange[Any]:
    found = stream_change(record(db, *given, **options), db.model, table="orders" if db.way.own else None)
    assert found is not None
    return found


@with_files
async def test_archiving_and_restoring_are_changes_of_their_own_kind(db: Rig) -> None:
    async with db.db.transaction() as tx:
        db.add(tx, "1")
    hot = db.row("1")
    await db.run()
    cold = db.row("1")
    db.declare(key=NEW)
    await db.archive.rekey(db.model)
    moved = db.row("1")

    archived = read(db, hot, cold)
    assert archived.kind == "archived"
    assert archived.old is not None
    assert archived.new is not None
    assert archived.old.note == archived.new.note == "note 1"
    assert archived.new.tags == {"a", "b"}
    assert archived.key == db.model.key(customer="ada", number="1")

    back = read(db, moved, hot)
    assert (back.kind, back.new and back.new.note) == ("restored", "note 1")
    assert back.old is not None
    assert back.old.placed_at < datetime.now(UTC)
    assert back.old.number == "1"
    with pytest.raises(InvalidFieldError, match="not fetched"):
        back.old.note  # noqa: B018

    assert read(db, cold, moved).kind == "archived"
    assert read(db, hot, {**hot, "note": {"S": "new"}}).kind == "modify"


@with_files
async def test_a_view_with_one_image_gives_what_it_has(db: Rig) -> None:
    async with db.db.transaction() as tx:
        db.add(tx, "1")
    hot = db.row("1")
    await db.run()
    cold = db.row("1")
    archived = read(db, hot, cold, view="new")
    assert archived.kind == "archived"
    assert archived.new is not None
    with pytest.raises(InvalidFieldError, match="not fetched"):
        archived.new.note  # noqa: B018
    assert read(db, cold, hot, view="new").kind == "modify"
    assert read(db, hot, cold, view="old").kind == "modify"
    removed = read(db, cold, None, kind="REMOVE")
    assert (removed.kind, removed.new) == ("remove", None)
    assert removed.old is not None
    with pytest.raises(InvalidFieldError, match="not fetched"):
        removed.old.note  # noqa: B018
