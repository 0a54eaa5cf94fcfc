"""Queries return the same rows as a list that is filtered and sorted in Python.

Rows, ranges, conditions, limits and pages are random; the models have every kind of sort key and index, in both
layouts; and the tests run on every store, in both colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from queries_models import ONE_TABLE, OWN_TABLES, Shape
from queries_oracle import RandomQuery, draw_query, partitions, rows
from queries_rig import TORTURE, Db, Way, arrange, database, examples, finish, fresh
from rig.servers import NAMES

from holdall.errors import InvalidOptionsError, RecordNotFound

# a server takes a second to create an index, so only some models with their own tables are tested there
SHAPES: dict[str, list[Shape]] = {"memory": [*ONE_TABLE, *OWN_TABLES]}
SHAPES |= {name: [*ONE_TABLE, *(OWN_TABLES if TORTURE else OWN_TABLES[1:3])] for name in NAMES}

WAYS = [
    *((Way("memory", "blocking"), 40), (Way("memory", "awaiting"), 10)),
    *((Way(name, "blocking"), 4) for name in NAMES),
    *((Way(name, "awaiting"), 2) for name in NAMES),
]
ways = pytest.mark.parametrize(("way", "count"), WAYS, ids=[str(way) for way, _ in WAYS])


@ways
def test_a_query_returns_the_same_rows_as_filtering_and_sorting_a_list(way: Way, count: int) -> None:
    @examples(count)
    @hypothesis_given(data=st.data())
    def check_examples(data: st.DataObject) -> None:
        shape = data.draw(st.sampled_from(SHAPES[way.store]))
        partition = data.draw(partitions(shape, fresh("query")))
        stored = data.draw(rows(shape, partition))
        questions = data.draw(st.lists(draw_query(shape, partition), min_size=1, max_size=6))
        size = data.draw(st.integers(1, 5))
        finish(way, _check_agreement(database(way), stored, questions, size))

    check_examples()


async def _check_agreement(
    db: Db, stored: Sequence[Any], questions: Sequence[RandomQuery], size: int
) -> None:
    await arrange(db, *stored)
    for question in questions:
        query = db.query(question.shape.model, **question.build_arguments())
        everything, answer = question.remove_limit().compute_answer(stored), question.compute_answer(stored)
        given_rows = await query.all()
        _check_same(question, given_rows, everything, answer)
        _check_same(question, [row async for row in query], everything, answer)
        assert await query.count() == len(answer)
        assert await query.exists() == bool(answer)
        first = await query.first()
        assert first is None if not answer else question.rank(first) == question.rank(answer[0])
        await _check_one(question, query, answer)
        _check_same(question, await _read_pages(query, size), everything, answer)


def _check_same(
    question: RandomQuery, found: Sequence[Any], everything: Sequence[Any], answer: Sequence[Any]
) -> None:
    """Check that the rows are the expected ones, in order; the order of rows with equal index keys is undefined."""
    assert [question.rank(row) for row in found] == [question.rank(row) for row in answer]
    values = [row.to_dict() for row in everything]
    assert all(row.to_dict() in values for row in found)
    assert len({row.key for row in found}) == len(found)


async def _check_one(question: RandomQuery, query: Any, answer: Sequence[Any]) -> None:
    if len(answer) == 1:
        assert question.rank(await query.one()) == question.rank(answer[0])
    else:
        with pytest.raises(InvalidOptionsError if answer else RecordNotFound):
            await query.one()


async def _read_pages(query: Any, size: int) -> list[Any]:
    """Read all rows page by page, and check that every page but the last is full."""
    found: list[Any] = []
    page = await query.page(size)
    while True:
        found += page.items
        if page.next is None:
            return found
        assert len(page.items) == size
        page = await query.page(size, after=page.next)
