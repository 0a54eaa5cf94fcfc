"""Passes while an application writes: after a pass during which nothing changes, both sides are equal."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

import pytest
from copy_rig import Way, items, open_rig
from hypothesis import given
from hypothesis import strategies as st
from rig.colour import COLOURS, Colour, finish
from rig.recorder import Recorder

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.core import BatchGet, BatchWrite, DeleteItem, PutItem, Scan

CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "file", "unlink"]), st.integers(0, 9)), max_size=8
)
PASSES = st.lists(st.tuples(CHANGES, CHANGES, st.booleans()), min_size=1, max_size=4)


@given(passes=PASSES, seed=st.integers(0, 9))
def test_a_quiet_pass_makes_both_sides_equal(passes: list[Any], seed: int) -> None:
    chance = Random(seed)
    colour: Any = chance.choice(["blocking", "awaiting"])
    with open_rig(Way("memory-to-memory", colour)) as rig:

        def change(changes: list[tuple[str, int]]) -> None:
            for verb, number in changes:
                if verb == "put":
                    rig.put(number, value=chance.random())
                elif verb == "delete":
                    rig.delete(number)
                elif verb == "file":
                    rig.source.files.put(f"file {number}", chance.randbytes(3))
                else:
                    rig.source.files.delete(f"file {number}")

        rig.source.files.put("kept", b"without any file, the copy would delete nothing")
        rig.put(100)
        for before, during, delete in passes:
            change(before)
            meddling = iter(during)
            report = finish(
                colour, rig.copy(delete=delete, progress=lambda _, some=meddling: change([*islice(some, 1)]))
            )
            assert report.is_complete
        report = finish(colour, rig.copy(delete=True))
        assert report.is_current, report
        assert items(rig.target) == items(rig.source)
        one, other = (
            {each.key: db.files.get(each.key) for each in db.files.list()} for db in (rig.source, rig.target)
        )
        assert one == other


@pytest.mark.parametrize("colour", COLOURS)
def test_another_pass_sends_only_what_differs(colour: Colour) -> None:
    """The cost of a pass after the application has stopped: reads of the source, and writes of the changes."""
    table, files = Recorder(EmbeddedBackend(None)), Recorder(MemoryService())
    target = {"backend": table, "files": files}
    with open_rig(Way("memory-to-memory", colour), target=target) as rig:
        rig.put(*range(200))
        for number in range(100):
            rig.source.files.put(f"files/{number}", b"old")
        finish(colour, rig.copy())
        for change in (3, 150):
            rig.put(change, colour="red")
        rig.put(200)
        rig.delete(7, 8)
        rig.source.files.put("files/5", b"new")
        rig.source.files.delete("files/6")
        table.forget()
        files.forget()
        finish(colour, rig.copy(delete=True, verify=False))

        actions = [each for batch in table.list_sent(BatchWrite) for each in batch.actions]
        assert sorted(each.item["sk"]["S"] for each in actions if isinstance(each, PutItem)) == [
            "150",
            "200",
            "3",
        ]
        assert sorted(each.key["sk"]["S"] for each in actions if isinstance(each, DeleteItem)) == ["7", "8"]
        reads = [each for batch in table.list_sent(BatchGet) for each in batch.reads]
        assert sorted(each.key["sk"]["S"] for each in reads) == ["150", "200", "3", "7", "8"]
        assert len(table.requests) <= 12
        assert not table.list_sent(Scan)
        assert {(type(each).__name__, getattr(each, "key", "")) for each in files.requests} == {
            ("ListObjects", ""),  # checks that the bucket exists
            ("HeadObject", "files/5"),
            ("PutObject", "files/5"),
            ("HeadObject", "files/6"),
            ("DeleteObject", "files/6"),
        }
        assert finish(colour, rig.copy()).is_current
