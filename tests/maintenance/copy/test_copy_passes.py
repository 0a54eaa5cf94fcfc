"""Passes beside an application that writes: after one during which nothing changed, both sides are equal."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

from copy_rig import Way, items, opening
from hypothesis import given
from hypothesis import strategies as st
from rig.colour import finish

CHANGES = st.lists(st.tuples(st.sampled_from(["put", "delete"]), st.integers(0, 9)), max_size=8)
PASSES = st.lists(st.tuples(CHANGES, CHANGES, st.booleans()), min_size=1, max_size=4)


@given(passes=PASSES, seed=st.integers(0, 9))
def test_a_quiet_pass_makes_both_sides_equal(passes: list[Any], seed: int) -> None:
    chance = Random(seed)
    colour: Any = chance.choice(["blocking", "awaiting"])
    with opening(Way("memory-to-memory", colour)) as rig:

        def change(changes: list[tuple[str, int]]) -> None:
            for verb, number in changes:
                if verb == "put":
                    rig.put(number, value=chance.random())
                else:
                    rig.delete(number)

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
