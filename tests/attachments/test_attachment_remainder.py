"""What a removal leaves to jobs: rows that a lagging list did not show, and rows too many for one transaction."""

from __future__ import annotations

from typing import Any

import pytest
from attachments_rig import Rig, Way, file, in_memory, names_of, opening
from rig.colour import COLOURS, run_in

from holdall.core.frozen import replace
from holdall.core.requests import Query

in_mode_b = run_in(lambda _: [Way("B", "memory", colour) for colour in COLOURS], opening)


class LateIndex:
    """A store whose indexes show nothing new while they are ``late``."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.late = True
        self.close = inner.close

    def send_blocking(self, request: Any) -> Any:
        return self._hide(request, self._inner.send_blocking(request))

    async def send_awaiting(self, request: Any) -> Any:
        return self._hide(request, await self._inner.send_awaiting(request))

    def _hide(self, request: Any, reply: Any) -> Any:
        if self.late and isinstance(request, Query) and request.index is not None:
            return replace(reply, items=())
        return reply


@in_mode_b
@pytest.mark.parametrize("way_out", ["clear", "destroy"])
async def test_a_second_look_removes_what_the_list_did_not_show(db: Rig, way_out: str) -> None:
    person = await db.create(documents=[file(name="old.txt")], avatar=file())
    blobs = [person.documents.blobs[0], person.avatar.blob]
    db.recorder.inner = index = LateIndex(db.recorder.inner)
    async with db.db.transaction() as tx:
        if way_out == "clear":
            found = await tx.get(db.model, person.id)
            found.documents = [file(name="new.txt")]
            found.avatar = None
        else:
            tx.delete(db.model.key(person.id))
    async with db.db.transaction() as tx:
        other = tx.create(db.model, name="Bob")
        other.documents = [file(name="other.txt")]
    index.late = False
    assert await db.count(blobs[0]) == 1
    await db.check()
    db.clock.forward(61)
    await db.drain()
    assert [await db.find(blob) for blob in blobs] == [None, None]
    left = ["new.txt"] if way_out == "clear" else []
    assert [str(each.blob.filename) for each in await _list(db, person)] == left
    assert names_of((await db.load(other)).documents) == ["other.txt"]
    await db.check()


@in_mode_b
async def test_a_second_look_leaves_what_was_to_stay_and_what_came_later(db: Rig) -> None:
    person = await db.create(documents=[file(name="1.txt"), file(name="2.txt")])
    stays = person.documents.blobs[1]
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).documents = [stays]
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).documents.attach(file(name="3.txt"))
    db.clock.forward(61)
    await db.drain()
    assert names_of((await db.load(person)).documents) == ["2.txt", "3.txt"]
    await db.check()


@in_memory
async def test_what_is_detached_by_itself_is_read_by_its_key_alone(db: Rig) -> None:
    person = await db.create(documents=[file(name=f"{n}.txt") for n in range(3)])
    loaded = await db.load(person)
    async with db.db.transaction() as tx:
        again = await tx.get(db.model, person.id, include=["documents"])
        db.recorder.forget()
        again.documents.detach(again.documents.attachments[1])
    assert db.recorder.sent(Query) == []
    assert names_of(again.documents) == ["0.txt", "2.txt"]
    assert await db.count(loaded.documents.blobs[1]) == 0
    assert names_of((await db.load(person)).documents) == ["0.txt", "2.txt"]
    await db.check()


async def _list(db: Rig, person: Any) -> list[Any]:
    listed = db.database.blobs.list(db.model.__name__, person.id)
    return [each async for each in listed] if db.way.colour == "awaiting" else list(listed)
