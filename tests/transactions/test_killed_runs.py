"""Migrations and moves whose process is killed: the next run finishes them, without lost or repeated writes."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from migration_rig import order_item
from race_models import convert_thing
from rig.colour import COLOURS, in_turn
from rig.servers import ENVIRONMENT, NAMES, start_server
from rig.torture import TORTURE, run_script

pytestmark = pytest.mark.torture

ITEMS = 7
PAGES = 3
WRITES = ITEMS + PAGES + 1
"""The writes of a run in one segment: the items, the checkpoint after each page, and its deletion."""
WAYS = [*product(["migrate", "move"], COLOURS, ["before", "after"])]
SHORT = [("migrate", "awaiting", "after"), ("move", "blocking", "after")]
"""The cases of a normal run: dying before a write leaves the same state as dying after the previous one."""


def kill(kind: str, url: str, colour: str, segments: int, when: str, counts: range) -> list[dict[str, Any]]:
    """Return the program's report of each death, after checking that the next run finished the work."""
    lines = run_script("dying_runner.py", kind, url, colour, segments, when, *counts, settings=ENVIRONMENT)
    deaths = [json.loads(line) for line in lines]
    for death in deaths:
        {"migrate": check_migration, "move": check_move}[kind](death)
    return deaths


def check_migration(death: dict[str, Any]) -> None:
    """Check that the second run found all items without failures, and that each was converted once."""
    report = death["report"]
    assert (report["found"], report["failed"], report["problems"]) == (ITEMS, 0, [])
    assert report["changed"] >= ITEMS - death["written"]
    assert sorted(death["items"], key=order_item) == sorted(map(convert_thing, range(ITEMS)), key=order_item)


def check_move(death: dict[str, Any]) -> None:
    """Check that the second run found all items without failures, and that each item and guard exists once."""
    report = death["report"]
    assert (report["found"], report["failed"], report["differing"]) == (ITEMS, 0, 0)
    assert report["copied"] + report["same"] == ITEMS
    kinds = sorted(item["_type"]["S"] for item in death["items"])
    assert kinds == ["Product"] * ITEMS + ["holdall.Unique"] * 3
    products = [item for item in death["items"] if item["_type"]["S"] == "Product"]
    prices = {int(item["sku"]["N"]): item["price"]["N"] for item in products}
    assert prices == {number: str(number) for number in range(ITEMS)}
    assert all(item["gsi1_pk"] == {"S": "Product#by_kind#tea"} for item in products)


@pytest.mark.parametrize(("kind", "colour", "when"), WAYS if TORTURE else SHORT)
def test_a_run_that_is_killed_at_any_write_is_finished_by_the_next(
    tmp_path: Path, kind: str, colour: str, when: str
) -> None:
    url = f"embedded:{tmp_path}/{{}}.db?durability=normal"
    deaths = kill(kind, url, colour, 1, when, range(WRITES + 1))
    assert [death["ended"] for death in deaths] == [-9] * WRITES + [0]
    done = 1 if when == "after" else 0  # whether the write at which the process died was done
    assert [death["written"] for death in deaths[:3]] == [done, 1 + done, 2 + done]


@pytest.mark.parametrize(
    ("kind", "colour"),
    [(kind, colour) for kind in ("migrate", "move") for colour in in_turn("segments", kind)],
)
def test_a_killed_run_in_segments_is_finished_by_the_next(tmp_path: Path, kind: str, colour: str) -> None:
    url = f"embedded:{tmp_path}/{{}}.db?durability=normal"
    deaths = kill(kind, url, colour, 3, "after", range(0, WRITES + 4, 3 if TORTURE else 7))
    assert {death["ended"] for death in deaths[:2]} == {-9}


@pytest.mark.parametrize("server", NAMES if TORTURE else ["ministack"])
@pytest.mark.parametrize("kind", ["migrate", "move"])
def test_a_killed_run_on_dynamodb_is_finished_by_the_next(kind: str, server: str) -> None:
    unique = uuid4().hex
    url = f"dynamodb://killed-{unique}-{{}}?endpoint={start_server(server)}&table_prefix={unique}-{{}}-"
    deaths = kill(kind, url, "blocking", 1, "after", range(1, WRITES, 4 if TORTURE else 8))
    assert {death["ended"] for death in deaths} == {-9}
