"""The cost of attaching: the number of requests, and their kinds."""

from __future__ import annotations

from collections import Counter

from attachments_rig import Rig, file, in_memory

from holdall.core.objects import PutObject
from holdall.core.requests import BatchWrite


def count_kinds(db: Rig) -> dict[str, int]:
    kinds = Counter(type(request).__name__ for request in db.recorder.requests)
    db.recorder.forget()
    return dict(kinds)


@in_memory
async def test_the_files_of_a_new_owner_cost_a_put_each_a_batch_of_markers_and_a_transaction(db: Rig) -> None:
    await db.create(avatar=file())  # makes the requests that a process makes only once
    db.clock.forward(3600)
    db.recorder.forget()
    await db.create(documents=[file(name=f"{n}.txt") for n in range(25)])
    first = [type(request) for request in db.recorder.requests]
    assert first[:2] == [BatchWrite, BatchWrite]  # 25 markers and their hour, before the first byte
    assert first[2:-1] == [PutObject] * 25
    assert count_kinds(db) == {"PutObject": 25, "BatchWrite": 2, "TransactWrite": 1}
    await db.create(documents=[file(name=f"{n}.txt") for n in range(25)])
    assert count_kinds(db) == {"PutObject": 25, "BatchWrite": 1, "TransactWrite": 1}
    await db.create(avatar=file())
    assert count_kinds(db) == {"PutObject": 1, "BatchWrite": 1, "TransactWrite": 1}
