"""Copies of a filled database that is in use end equal, even if their processes are killed at any moment."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
from copy_rig import items, open_store
from full_database import MODELS, TABLES, describe, fill, use
from rig.colour import COLOURS
from rig.torture import ROUNDS, SEED, SEEDED, TORTURE, run_script

from holdall import Database

pytestmark = pytest.mark.torture

WRITES = 60
"""The approximate number of writes of a copy: batches of items, tables, and each file."""

CHANGES = 16
"""The approximate number of writes after some changes."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a filled database, without its suffix."""
    path = str(tmp_path_factory.mktemp("copied") / "source")
    with Database(f"embedded:{path}.db?durability=normal", files=f"file:{path}-files") as db:
        fill(db)
    return path


@pytest.mark.parametrize("colour", COLOURS)
def test_a_killed_copy_is_continued_and_ends_equal(source: str, colour: str, tmp_path: Path) -> None:
    chance = Random(f"{SEED} {colour}")
    counts = ["-2", *map(str, chance.sample(range(WRITES), 2)), f"again{chance.randrange(CHANGES)}"]
    if TORTURE:
        counts = ["-1", "-2", "-3", "-4", *(str(chance.randrange(WRITES)) for _ in range(ROUNDS))]
        counts += [f"again{number}" for number in range(-3, CHANGES)]
    lines = run_script("dying_copier.py", source, colour, tmp_path, *dict.fromkeys(counts))
    results = [json.loads(line) for line in lines]
    assert any(-9 in each["ended"] for each in results), SEEDED
    for each in results:
        assert (each["current"], each["different"]) == (True, []), (each, SEEDED)
        assert each["counts"][0] == each["counts"][1], (each, SEEDED)


@contextmanager
def disable_logging() -> Iterator[None]:
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def test_a_database_copied_through_two_servers_and_back_works(source: str, tmp_path: Path) -> None:
    prefixes = [f"t{uuid4().hex[:8]}-" for _ in range(2)]
    with (
        disable_logging(),
        Database(f"embedded:{source}.db", files=f"file:{source}-files") as ours,
        open_store("ministack", tmp_path, table_prefix=prefixes[0]) as server,
        open_store("ministack", tmp_path, table_prefix=prefixes[1]) as another,
        Database(f"embedded:{tmp_path}/back.db?durability=normal") as back,
    ):
        assert not ours.doctor(models=MODELS, store_figures=False).findings
        expected = describe(ours)
        for one, other in ((ours, server), (server, another), (another, back)):
            report = one.copy_to(other, models=MODELS, manifest=tmp_path / f"{uuid4()}")
            assert report.is_current, report
            assert describe(other) == expected
        for table in TABLES:
            assert items(back, table) == items(ours, table)
        use(back)
        use(server)
