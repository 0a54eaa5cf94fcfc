"""Paged reads: a cursor is its next request; the shells iterate it in either colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from holdall.core.cursor import AwaitingPages, BlockingPages, PageCursor
from holdall.core.expressions import KeyCondition, path
from holdall.core.port import Port, run
from holdall.core.requests import Page, Query, Scan
from holdall.errors import StoreBusyError

QUERY = Query("t", KeyCondition("id", {"S": "x"}), projection=(path("a"),), limit=2, reverse=True)
SCAN = Scan("t", segment=1, segments=3, limit=2)


class Script:
    """A port that answers each request with the next of some pages and keeps what it was asked."""

    def __init__(self, answers: Sequence[Page | Exception]) -> None:
        self.answers = list(answers)
        self.asked: list[Query | Scan] = []

    async def send(self, request: Any) -> Any:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def port(self) -> Port:
        return cast("Port", self)


def _page(name: str, last: str | None) -> Page:
    return Page(({"id": {"S": name}},), 1, 1, None if last is None else {"id": {"S": last}})


PAGES = (_page("one", "a"), _page("two", "b"), _page("three", None))


@pytest.mark.parametrize("request_", [QUERY, SCAN], ids=["query", "scan"])
def test_each_page_starts_after_the_last_key_of_the_one_before(request_: Query | Scan) -> None:
    script = Script(PAGES)
    assert tuple(BlockingPages(PageCursor(script.port, request_))) == PAGES
    assert script.asked == [
        request_,
        replace(request_, start_after={"id": {"S": "a"}}),
        replace(request_, start_after={"id": {"S": "b"}}),
    ]


def test_a_page_is_fetched_only_when_it_is_asked_for() -> None:
    script = Script(PAGES)
    pages = BlockingPages(PageCursor(script.port, SCAN))
    assert len(script.asked) == 0
    assert next(pages) is PAGES[0]
    assert len(script.asked) == 1


def test_after_the_last_page_nothing_more_is_sent() -> None:
    script = Script(PAGES[2:])
    cursor = PageCursor(script.port, SCAN)
    assert run(cursor.next_page()) is PAGES[2]
    assert run(cursor.next_page()) is None
    assert run(cursor.next_page()) is None
    pages = BlockingPages(cursor)
    with pytest.raises(StopIteration):
        next(pages)
    assert len(script.asked) == 1


def test_an_empty_page_with_a_last_key_is_not_the_end() -> None:
    empty = Page((), 0, 5, {"id": {"S": "a"}})
    script = Script((empty, PAGES[2]))
    assert list(BlockingPages(PageCursor(script.port, SCAN))) == [empty, PAGES[2]]


def test_a_cursor_can_begin_in_the_middle() -> None:
    begin = replace(SCAN, start_after={"id": {"S": "m"}})
    script = Script(PAGES[2:])
    list(BlockingPages(PageCursor(script.port, begin)))
    assert script.asked == [begin]


def test_a_page_that_failed_can_be_asked_for_again() -> None:
    script = Script((PAGES[0], StoreBusyError("locked"), PAGES[2]))
    pages = BlockingPages(PageCursor(script.port, SCAN))
    next(pages)
    with pytest.raises(StoreBusyError):
        next(pages)
    assert next(pages) is PAGES[2]
    assert script.asked[1] == script.asked[2]


def test_the_awaiting_colour_gives_the_same_pages() -> None:
    script = Script(PAGES)

    async def collect() -> list[Page]:
        return [page async for page in AwaitingPages(PageCursor(script.port, SCAN))]

    assert tuple(run(collect())) == PAGES
    assert len(script.asked) == 3


def test_an_exhausted_awaiting_iterator_stays_exhausted() -> None:
    pages = AwaitingPages(PageCursor(Script(PAGES[2:]).port, SCAN))

    async def step() -> Page:
        return await anext(pages)

    assert run(step()) is PAGES[2]
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            run(step())
