"""Bulk runs whose process is killed: the next finishes them; nothing is lost, and nothing is converted twice."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from migration_rig import in_order
from race_models import converted
from rig.colour import COLOURS, in_turn
from rig.servers import ENVIRONMENT, NAMES, started
from rig.torture import TORTURE, run_script

pytestmark = pytest.mark.torture

SCRIPT = "dying_migrator.py"
ITEMS = 7
PAGES = 3
WRITES = ITEMS + PAGES + 1
"""Of a run in one segment: the items, the place after each page, and the forgetting of that."""

MANNERS = [*product(COLOURS, ["before", "after"])]
"""Before a write is after the one before it, in either colour: the first of these and the last tell the same."""


def stories(url: str, colour: str, segments: int, when: str, counts: range) -> list[dict[str, Any]]:
    lines = run_script(SCRIPT, url, colour, segments, when, *counts, settings=ENVIRONMENT)
    return [json.loads(line) for line in lines]


def assert_finished(told: dict[str, Any]) -> None:
    """The second run has found all, failed at nothing, and left only items that were converted once."""
    _, found, changed, failed, problems = told["report"]
    assert (found, failed, problems) == (ITEMS, 0, [])
    assert changed >= ITEMS - told["converted"]
    assert sorted(told["items"], key=in_order) == sorted(map(converted, range(ITEMS)), key=in_order)


@pytest.mark.parametrize(("colour", "when"), MANNERS if TORTURE else MANNERS[::3])
def test_a_run_that_is_killed_at_any_write_is_finished_by_the_next(
    tmp_path: Path, colour: str, when: str
) -> None:
    url = f"embedded:{tmp_path}/{{}}.db?durability=normal"
    told = stories(url, colour, 1, when, range(WRITES + 1))
    assert [each["ended"] for each in told] == [-9] * WRITES + [0]
    for each in told:
        assert_finished(each)
    done = 1 if when == "after" else 0  # the write that was its last is done, or not
    first_page = [each["converted"] for each in told[:3]]
    assert first_page == [done, 1 + done, 2 + done]


@pytest.mark.parametrize("colour", in_turn("segments"))
def test_a_run_in_segments_as_well(tmp_path: Path, colour: str) -> None:
    url = f"embedded:{tmp_path}/{{}}.db?durability=normal"
    told = stories(url, colour, 3, "after", range(0, WRITES + 4, 3))
    assert {each["ended"] for each in told[:3]} == {-9}
    for each in told:
        assert_finished(each)


@pytest.mark.parametrize("server", NAMES)
def test_a_run_on_dynamodb_as_well(server: str) -> None:
    url = f"dynamodb://killed-{uuid4().hex}-{{}}?endpoint={started(server)}"
    told = stories(url, "blocking", 1, "after", range(1, WRITES, 4))
    assert {each["ended"] for each in told} == {-9}
    for each in told:
        assert_finished(each)
