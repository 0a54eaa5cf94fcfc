"""Pages: together they contain all rows; each continues after the last row of the previous one, despite writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from queries_models import ONE_TABLE, OWN_TABLES
from queries_oracle import RandomQuery, draw_query, rows
from queries_rig import Db, Way, arrange, database, everywhere, examples, finish, fresh, in_memory, watch_of
from rig.servers import NAMES

from holdall import Index, Key, Model, SortKey, col
from holdall.errors import InvalidOptionsError


class Note(Model, indexes=[Index("by_colour", key=["colour"], sort_key=["weight"])]):
    book: Key[str]
    number: SortKey[int]
    colour: str | None = None
    weight: int = 0


def list_numbers(found: Sequence[Any]) -> list[int]:
    return [note.number for note in found]


async def create_book(db: Db, count: int, **values: Any) -> str:
    """Create a book with this number of notes, and return its name."""
    name = fresh("book")
    await arrange(db, *(Note(book=name, number=number, **values) for number in range(count)))
    return name


async def read_pages(query: Any, size: int) -> list[list[int]]:
    found = []
    after = None
    while True:
        page = await query.page(size, after=after)
        found.append(list_numbers(page.items))
        if (after := page.next) is None:
            return found


# --- all rows ---------------------------------------------------------------------------------------------


@everywhere
async def test_every_page_but_the_last_is_full(db: Db) -> None:
    name = await create_book(db, 10)
    assert await read_pages(db.query(Note, book=name), 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert await read_pages(db.query(Note, book=name, reverse=True), 7) == [[9, 8, 7, 6, 5, 4, 3], [2, 1, 0]]
    assert await read_pages(db.query(Note, book=name), 100) == [list(range(10))]
    assert await read_pages(db.query(Note, book=fresh("empty")), 3) == [[]]


@everywhere
async def test_pages_of_a_filtered_query_are_full_too(db: Db) -> None:
    name = await create_book(db, 30)
    query = db.query(Note, book=name, where=col(Note.number).in_(3, 4, 15, 28, 29))
    assert await read_pages(query, 2) == [[3, 4], [15, 28], [29]]


@everywhere
async def test_a_limit_applies_to_all_pages_together(db: Db) -> None:
    name = await create_book(db, 12)
    assert await read_pages(db.query(Note, book=name, limit=10), 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert await read_pages(db.query(Note, book=name, limit=8), 4) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert await read_pages(db.query(Note, book=name, limit=3), 4) == [[0, 1, 2]]
    filtered = db.query(Note, book=name, limit=5, where=col(Note.number) >= 2)
    assert await read_pages(filtered, 2) == [[2, 3], [4, 5], [6]]


@everywhere
async def test_pages_of_an_index_continue_between_rows_with_equal_keys(db: Db) -> None:
    name = await create_book(db, 9, colour=fresh("colour"), weight=7)
    (note,) = await db.query(Note, book=name, limit=1).all()
    assert note.colour is not None
    query = db.query(Note, index="by_colour", colour=note.colour)
    found = await read_pages(query, 2)
    assert [len(page) for page in found] == [2, 2, 2, 2, 1]
    assert sorted(number for page in found for number in page) == list(range(9))


@in_memory
async def test_pages_omit_the_excluded_ends_of_a_range(db: Db) -> None:
    name = await create_book(db, 10)
    inside = (Note.number > 0) & (Note.number < 9)
    assert await read_pages(db.query(Note, book=name, sort=inside), 3) == [[1, 2, 3], [4, 5, 6], [7, 8]]
    assert await read_pages(db.query(Note, book=name, sort=inside, reverse=True), 5) == [
        [8, 7, 6, 5, 4],
        [3, 2, 1],
    ]


@everywhere
async def test_after_a_full_last_page_there_is_an_empty_one(db: Db) -> None:
    """Only reading one more row would show that there are no more."""
    name = await create_book(db, 4)
    watch_of(db).forget()
    assert await read_pages(db.query(Note, book=name), 2) == [[0, 1], [2, 3], []]
    assert [page.scanned for _, page in watch_of(db).pages()] == [2, 2, 0]


@in_memory
async def test_an_invalid_page_size_is_refused(db: Db) -> None:
    query = db.query(Note, book=fresh())
    for size in (0, -1, True, 2.0, "3", None):
        with pytest.raises(InvalidOptionsError, match="size must be"):
            await query.page(size)  # type: ignore[arg-type]


@in_memory
async def test_a_page_can_be_fetched_again(db: Db) -> None:
    name = await create_book(db, 6)
    query = db.query(Note, book=name)
    first = await query.page(2)
    for _ in range(2):
        assert list_numbers((await query.page(2, after=first.next)).items) == [2, 3]
    assert list_numbers((await query.page(3, after=first.next)).items) == [2, 3, 4]


@in_memory
async def test_a_query_with_an_empty_range_sends_no_request(db: Db) -> None:
    name = await create_book(db, 3)
    nothing = db.query(Note, book=name, sort=(Note.number > 5) & (Note.number < 2))
    watch_of(db).forget()
    assert await read_pages(nothing, 2) == [[]]
    assert (await nothing.all(), await nothing.first(), await nothing.count()) == ([], None, 0)
    assert watch_of(db).kinds() == []


# --- with writes in between -------------------------------------------------------------------------------


@everywhere
async def test_the_next_page_continues_even_if_the_last_row_was_deleted(db: Db) -> None:
    name = await create_book(db, 6)
    query = db.query(Note, book=name)
    first = await query.page(3)
    async with db.transaction() as tx:
        tx.delete(*(Note.key(book=name, number=number) for number in (1, 2, 3)))
    assert list_numbers((await query.page(3, after=first.next)).items) == [4, 5]


@everywhere
async def test_the_next_page_has_new_rows_ahead_but_not_behind(db: Db) -> None:
    name = await create_book(db, 4)
    query = db.query(Note, book=name)
    first = await query.page(2)
    await arrange(db, Note(book=name, number=-5), Note(book=name, number=9))
    assert list_numbers((await query.page(9, after=first.next)).items) == [2, 3, 9]


WAYS = [
    *((Way("memory", "blocking"), 20), (Way("memory", "awaiting"), 5)),
    *((Way(name, "blocking"), 2) for name in NAMES),
]


@pytest.mark.parametrize(("way", "count"), WAYS, ids=[str(way) for way, _ in WAYS])
def test_each_page_contains_the_rows_stored_at_that_time_after_the_last_row(way: Way, count: int) -> None:
    shapes = [*ONE_TABLE, *(OWN_TABLES if way.store == "memory" else OWN_TABLES[1:3])]

    @examples(count)
    @hypothesis_given(data=st.data())
    def check_examples(data: st.DataObject) -> None:
        shape = data.draw(st.sampled_from(shapes))
        partition = fresh("pages")
        question = data.draw(draw_query(shape, partition, index=False)).remove_limit()
        states = [data.draw(rows(shape, partition, most=8)) for _ in range(3)]
        finish(way, _check_agreement(database(way), question, states, data.draw(st.integers(1, 3))))

    check_examples()


async def _check_agreement(db: Db, question: RandomQuery, states: Sequence[Sequence[Any]], size: int) -> None:
    """Replace the stored rows by the next state before each page."""
    query = db.query(question.shape.model, **question.build_arguments())
    stored: Sequence[Any] = []
    after, last = None, None
    for state in states:
        await _replace_rows(db, stored, state)
        stored = state
        page = await query.page(size, after=after)
        answer = [
            row for row in question.compute_answer(stored) if last is None or _is_after(question, row, last)
        ]
        assert [row.to_dict() for row in page.items] == [row.to_dict() for row in answer[:size]]
        if page.next is None:
            assert len(answer) <= size
            return
        after, last = page.next, page.items[-1]


def _is_after(question: RandomQuery, row: Any, last: Any) -> bool:
    own_rank, last_rank = question.rank(row), question.rank(last)
    return bool(own_rank < last_rank if question.reverse else own_rank > last_rank)


async def _replace_rows(db: Db, before: Sequence[Any], now: Sequence[Any]) -> None:
    """Replace the stored rows."""
    keys = {row.key for row in now}
    async with db.transaction() as tx:
        for row in before:
            if row.key not in keys:
                tx.delete(row.key)
        for row in now:
            tx.create_or_put(type(row), dict(row.key.components), row.to_dict())
