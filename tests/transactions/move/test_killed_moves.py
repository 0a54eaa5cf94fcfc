"""Moves whose process is killed: the next run finishes them, and every item arrives once, with its guard."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rig.colour import COLOURS, in_turn
from rig.servers import ENVIRONMENT, NAMES, started
from rig.torture import TORTURE, run_script

pytestmark = pytest.mark.torture

SCRIPT = "dying_mover.py"
ITEMS = 7
PAGES = 3
WRITES = ITEMS + PAGES + 1
"""Of a run in one segment: the items, the checkpoint after each page, and its deletion."""

MANNERS = [*product(COLOURS, ["before", "after"])]


def stories(url: str, colour: str, segments: int, when: str, counts: range) -> list[dict[str, Any]]:
    lines = run_script(SCRIPT, url, colour, segments, when, *counts, settings=ENVIRONMENT)
    return [json.loads(line) for line in lines]


def assert_finished(told: dict[str, Any]) -> None:
    """The second run has found all, failed at nothing, and left each item and guard once, and nothing else."""
    report = told["report"]
    assert (report["found"], report["failed"], report["differing"]) == (ITEMS, 0, 0)
    assert report["copied"] + report["same"] == ITEMS
    kinds = sorted(item["_type"]["S"] for item in told["items"])
    assert kinds == ["Product"] * ITEMS + ["holdall.Unique"] * 3
    products = [item for item in told["items"] if item["_type"]["S"] == "Product"]
    assert {int(item["sku"]["N"]): item["price"]["N"] for item in products} == {
        n: str(n) for n in range(ITEMS)
    }
    assert all(item["gsi1_pk"] == {"S": "Product#by_kind#tea"} for item in products)


@pytest.mark.parametrize(("colour", "when"), MANNERS if TORTURE else MANNERS[1:2])
def test_a_move_that_is_killed_at_any_write_is_finished_by_the_next(
    tmp_path: Path, colour: str, when: str
) -> None:
    url = f"embedded:{tmp_path}/{{}}.db?durability=normal"
    told = stories(url, colour, 1, when, range(WRITES + 1))
    assert [each["ended"] for each in told] == [-9] * WRITES + [0]
    for each in told:
        assert_finished(each)
    done = 1 if when == "after" else 0  # the write at which it died is done, or not
    assert [each["copied"] for each in told[:3]] == [done, 1 + done, 2 + done]


@pytest.mark.parametrize("colour", in_turn("segments of a move"))
def test_a_move_in_segments_as_well(tmp_path: Path, colour: str) -> None:
    url = f"embedded:{tmp_path}/{{}}.db?durability=normal"
    told = stories(url, colour, 3, "after", range(0, WRITES + 4, 3 if TORTURE else 7))
    assert {each["ended"] for each in told[:2]} == {-9}
    for each in told:
        assert_finished(each)


@pytest.mark.parametrize("server", NAMES if TORTURE else ["ministack"])
def test_a_move_on_dynamodb_as_well(server: str) -> None:
    unique = uuid4().hex
    url = f"dynamodb://killed-{unique}-{{}}?endpoint={started(server)}&table_prefix={unique}-{{}}-"
    told = stories(url, "blocking", 1, "after", range(1, WRITES, 4 if TORTURE else 8))
    assert {each["ended"] for each in told} == {-9}
    for each in told:
        assert_finished(each)
