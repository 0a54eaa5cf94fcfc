"""The overview shows dated figures and does not wait for a store that counts slowly."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, TypeVar

import pytest
from console_rig import Station, open_visitor
from rig.wrapper import Wrapper
from web_rig import run_awaiting

from holdall import Database, Index, Key, Model
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import DescribeTable, Request
from holdall.errors import AccessDeniedError
from holdall.web.console import figure_cache
from holdall.web.console.figure import Figures, count_figures
from holdall.web.console.figure_cache import FigureCache

R = TypeVar("R")


class SlowBackend(Wrapper):
    """A store that describes tables once the test sets ``go``, or refuses to; sync code does not wait for that."""

    def __init__(self) -> None:
        super().__init__(EmbeddedBackend(None))
        self.go = asyncio.Event()
        self.refuses = False

    async def send_awaiting(self, request: Request[R]) -> R:
        if isinstance(request, DescribeTable):
            await self.go.wait()
            if self.refuses:
                raise AccessDeniedError("not permitted: DescribeTable")
        return await super().send_awaiting(request)


@run_awaiting
async def test_a_page_does_not_wait_for_figures() -> None:
    store = SlowBackend()
    with Database(backend=store) as db:
        db.table.create()
        figures = FigureCache(partial(count_figures, db.aio, []))
        assert await figures.get() is None
        store.go.set()
        while (found := await figures.get()) is None:
            await asyncio.sleep(0)
        (table,) = found.tables
        assert table.description is not None
        assert table.description.item_count == 0
        assert await figures.get() is found, "fresh figures are not counted again"


@run_awaiting
async def test_a_refusal_of_the_store_is_reported() -> None:
    store = SlowBackend()
    store.refuses = True
    store.go.set()
    with Database(backend=store, manage_table=False) as db:
        figures = FigureCache(partial(count_figures, db.aio, []))
        while (found := await figures.get()) is None:
            pass
    assert found.problem == "not permitted: DescribeTable"


@run_awaiting
async def test_an_error_while_counting_in_the_background_is_raised_for_the_next_page() -> None:
    go = asyncio.Event()

    async def count() -> Figures:
        await go.wait()
        go.clear()
        raise AccessDeniedError("not permitted: Query")

    figures = figure_cache.FigureCache(count)
    for _ in range(2):
        assert await figures.get() is None
        go.set()
        while go.is_set():
            await asyncio.sleep(0)
        with pytest.raises(AccessDeniedError):
            await figures.get()


class Parcel(Model, name="ConsoleParcel", indexes=[Index("by_place", key=["place"])]):
    number: Key[str]
    place: str


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page wait for its figures, however slow the machine is."""
    monkeypatch.setattr(figure_cache, "_PATIENCE", 600)


def read_overview(db: Database, models: list[Any]) -> str:
    """Request the overview; return its HTML."""
    return open_visitor(db, models=models).get("/").text


@pytest.mark.usefixtures("patience")
def test_missing_tables_and_indexes_are_reported() -> None:
    with Database("memory:", manage_table=False) as db:
        assert "missing" in read_overview(db, [])
        db.table.create()
        page = read_overview(db, [Parcel, Station])
        assert "Index gsi1 is missing; it is needed by ConsoleParcel." in page
        assert "console-stations" in page
        db.table.create(models=[Parcel, Station])
        page = read_overview(db, [Parcel, Station])
        assert "missing" not in page
        assert page.count('class="badge good">active') == 2


@pytest.mark.usefixtures("patience")
def test_the_overview_shows_the_figures_of_the_last_check() -> None:
    with Database("memory:") as db:
        db.table.create(models=[Parcel])
        assert "They are then listed here." in read_overview(db, [Parcel])
        db.create(Parcel, number="1", place="here")
        db.doctor(models=[Parcel])
        page = read_overview(db, [Parcel])
        assert '/models/test_console_overview%3AParcel">ConsoleParcel</a></th>' in page
        assert 'aria-label="Bytes of each model: ConsoleParcel 100%"' in page
        assert "As the last <code>holdall doctor</code> has counted them." in page
