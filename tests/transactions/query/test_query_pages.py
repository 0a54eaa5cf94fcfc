"""Pages: what is given page by page is the whole, and goes on after what was given, whatever is written in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from queries_models import ONE_TABLE, OWN_TABLES
from queries_oracle import Asked, draw_query, rows
from queries_rig import Db, Way, arrange, database, everywhere, examples, finish, fresh, in_memory, watch_of
from rig.servers import NAMES

from holdall import Index, Key, Model, SortKey, col
from holdall.errors import InvalidOptionsError


class Note(Model, indexes=[Index("by_colour", key=["colour"], sort_key=["weight"])]):
    book: Key[str]
    number: SortKey[int]
    colour: str | None = None
    weight: int = 0


def numbers(found: Sequence[Any]) -> list[int]:
    return [note.number for note in found]


async def book(db: Db, count: int, **values: Any) -> str:
    """A book of so many notes."""
    name = fresh("book")
    await arrange(db, *(Note(book=name, number=number, **values) for number in range(count)))
    return name


async def pages(query: Any, size: int) -> list[list[int]]:
    found = []
    after = None
    while True:
        page = await query.page(size, after=after)
        found.append(numbers(page.items))
        if (after := page.next) is None:
            return found


# --- whole ----------------------------------------------------------------------------------------------


@everywhere
async def test_pages_are_full_but_for_the_last(db: Db) -> None:
    name = await book(db, 10)
    assert await pages(db.query(Note, book=name), 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert await pages(db.query(Note, book=name, reverse=True), 7) == [[9, 8, 7, 6, 5, 4, 3], [2, 1, 0]]
    assert await pages(db.query(Note, book=name), 100) == [list(range(10))]
    assert await pages(db.query(Note, book=fresh("empty")), 3) == [[]]


@everywhere
async def test_a_filtered_page_is_as_full_as_any_other(db: Db) -> None:
    name = await book(db, 30)
    query = db.query(Note, book=name, where=col(Note.number).in_(3, 4, 15, 28, 29))
    assert await pages(query, 2) == [[3, 4], [15, 28], [29]]


@everywhere
async def test_a_limit_is_for_all_pages_together(db: Db) -> None:
    name = await book(db, 12)
    assert await pages(db.query(Note, book=name, limit=10), 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert await pages(db.query(Note, book=name, limit=8), 4) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert await pages(db.query(Note, book=name, limit=3), 4) == [[0, 1, 2]]
    filtered = db.query(Note, book=name, limit=5, where=col(Note.number) >= 2)
    assert await pages(filtered, 2) == [[2, 3], [4, 5], [6]]


@everywhere
async def test_pages_of_an_index_go_on_among_rows_in_one_place(db: Db) -> None:
    name = await book(db, 9, colour=fresh("colour"), weight=7)
    (note,) = await db.query(Note, book=name, limit=1).all()
    assert note.colour is not None
    query = db.query(Note, index="by_colour", colour=note.colour)
    found = await pages(query, 2)
    assert [len(page) for page in found] == [2, 2, 2, 2, 1]
    assert sorted(number for page in found for number in page) == list(range(9))


@in_memory
async def test_an_open_end_is_left_out_of_every_page(db: Db) -> None:
    name = await book(db, 10)
    inside = (Note.number > 0) & (Note.number < 9)
    assert await pages(db.query(Note, book=name, sort=inside), 3) == [[1, 2, 3], [4, 5, 6], [7, 8]]
    assert await pages(db.query(Note, book=name, sort=inside, reverse=True), 5) == [
        [8, 7, 6, 5, 4],
        [3, 2, 1],
    ]


@everywhere
async def test_where_the_rows_end_with_a_page_the_next_one_is_empty(db: Db) -> None:
    """To know that there are no more, one would have to read one more."""
    name = await book(db, 4)
    watch_of(db).forget()
    assert await pages(db.query(Note, book=name), 2) == [[0, 1], [2, 3], []]
    assert [page.scanned for _, page in watch_of(db).pages()] == [2, 2, 0]


@in_memory
async def test_a_page_has_a_size_of_at_least_one(db: Db) -> None:
    query = db.query(Note, book=fresh())
    for size in (0, -1, True, 2.0, "3", None):
        with pytest.raises(InvalidOptionsError, match="size must be"):
            await query.page(size)  # type: ignore[arg-type]


@in_memory
async def test_a_page_may_be_fetched_again(db: Db) -> None:
    name = await book(db, 6)
    query = db.query(Note, book=name)
    first = await query.page(2)
    for _ in range(2):
        assert numbers((await query.page(2, after=first.next)).items) == [2, 3]
    assert numbers((await query.page(3, after=first.next)).items) == [2, 3, 4]


@in_memory
async def test_nothing_is_asked_of_the_store_where_nothing_can_be_an_answer(db: Db) -> None:
    name = await book(db, 3)
    nothing = db.query(Note, book=name, sort=(Note.number > 5) & (Note.number < 2))
    watch_of(db).forget()
    assert await pages(nothing, 2) == [[]]
    assert (await nothing.all(), await nothing.first(), await nothing.count()) == ([], None, 0)
    assert watch_of(db).kinds() == []


# --- with writes in between -------------------------------------------------------------------------------


@everywhere
async def test_a_page_goes_on_after_a_row_that_is_gone(db: Db) -> None:
    name = await book(db, 6)
    query = db.query(Note, book=name)
    first = await query.page(3)
    async with db.transaction() as tx:
        tx.delete(*(Note.key(book=name, number=number) for number in (1, 2, 3)))
    assert numbers((await query.page(3, after=first.next)).items) == [4, 5]


@everywhere
async def test_rows_written_behind_are_not_seen_and_those_ahead_are(db: Db) -> None:
    name = await book(db, 4)
    query = db.query(Note, book=name)
    first = await query.page(2)
    await arrange(db, Note(book=name, number=-5), Note(book=name, number=9))
    assert numbers((await query.page(9, after=first.next)).items) == [2, 3, 9]


WAYS = [
    *((Way("memory", "blocking"), 20), (Way("memory", "awaiting"), 5)),
    *((Way(name, "blocking"), 2) for name in NAMES),
]


@pytest.mark.parametrize(("way", "count"), WAYS, ids=[str(way) for way, _ in WAYS])
def test_each_page_is_what_comes_after_the_last_row_as_things_are_then(way: Way, count: int) -> None:
    shapes = [*ONE_TABLE, *(OWN_TABLES if way.store == "memory" else OWN_TABLES[1:3])]

    @examples(count)
    @hypothesis_given(data=st.data())
    def check(data: st.DataObject) -> None:
        shape = data.draw(st.sampled_from(shapes))
        partition = fresh("pages")
        question = data.draw(draw_query(shape, partition, index=False)).lift_limit()
        states = [data.draw(rows(shape, partition, most=8)) for _ in range(3)]
        finish(way, _agree(database(way), question, states, data.draw(st.integers(1, 3))))

    check()


async def _agree(db: Db, question: Asked, states: Sequence[Sequence[Any]], size: int) -> None:
    """The rows change from state to state before each page."""
    query = db.query(question.shape.model, **question.arguments())
    stored: Sequence[Any] = []
    after, last = None, None
    for state in states:
        await _turn(db, stored, state)
        stored = state
        page = await query.page(size, after=after)
        answer = [row for row in question.answer(stored) if last is None or _is_after(question, row, last)]
        assert [row.to_dict() for row in page.items] == [row.to_dict() for row in answer[:size]]
        if page.next is None:
            assert len(answer) <= size
            return
        after, last = page.next, page.items[-1]


def _is_after(question: Asked, row: Any, last: Any) -> bool:
    mine, theirs = question.place(row), question.place(last)
    return bool(mine < theirs if question.reverse else mine > theirs)


async def _turn(db: Db, before: Sequence[Any], now: Sequence[Any]) -> None:
    """Make the stored rows those."""
    keys = {row.key for row in now}
    async with db.transaction() as tx:
        for row in before:
            if row.key not in keys:
                tx.delete(row.key)
        for row in now:
            tx.create_or_put(type(row), dict(row.key.components), row.to_dict())
