"""Paged reads: a cursor holds its next request; the sync and the async shell iterate it."""

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


class ScriptedPort:
    """A port that returns prepared pages or raises prepared errors, and records its requests."""

    def __init__(self, answers: Sequence[Page | Exception]) -> None:
        self.answers = list(answers)
        self.requests: list[Query | Scan] = []

    async def send(self, request: Any) -> Any:
        self.requests.append(request)
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
def test_each_page_starts_after_the_last_key_of_the_previous_one(request_: Query | Scan) -> None:
    script = ScriptedPort(PAGES)
    assert tuple(BlockingPages(PageCursor(script.port, request_))) == PAGES
    assert script.requests == [
        request_,
        replace(request_, start_after={"id": {"S": "a"}}),
        replace(request_, start_after={"id": {"S": "b"}}),
    ]


def test_a_page_is_fetched_only_when_the_caller_requests_it() -> None:
    script = ScriptedPort(PAGES)
    pages = BlockingPages(PageCursor(script.port, SCAN))
    assert len(script.requests) == 0
    assert next(pages) is PAGES[0]
    assert len(script.requests) == 1


def test_after_the_last_page_no_request_is_sent() -> None:
    script = ScriptedPort(PAGES[2:])
    cursor = PageCursor(script.port, SCAN)
    assert run(cursor.next_page()) is PAGES[2]
    assert run(cursor.next_page()) is None
    assert run(cursor.next_page()) is None
    pages = BlockingPages(cursor)
    with pytest.raises(StopIteration):
        next(pages)
    assert len(script.requests) == 1


def test_an_empty_page_with_a_last_key_is_not_the_end() -> None:
    empty = Page((), 0, 5, {"id": {"S": "a"}})
    script = ScriptedPort((empty, PAGES[2]))
    assert list(BlockingPages(PageCursor(script.port, SCAN))) == [empty, PAGES[2]]


def test_a_cursor_can_begin_in_the_middle() -> None:
    begin = replace(SCAN, start_after={"id": {"S": "m"}})
    script = ScriptedPort(PAGES[2:])
    list(BlockingPages(PageCursor(script.port, begin)))
    assert script.requests == [begin]


def test_a_failed_page_can_be_requested_again() -> None:
    script = ScriptedPort((PAGES[0], StoreBusyError("locked"), PAGES[2]))
    pages = BlockingPages(PageCursor(script.port, SCAN))
    next(pages)
    with pytest.raises(StoreBusyError):
        next(pages)
    assert next(pages) is PAGES[2]
    assert script.requests[1] == script.requests[2]


def test_the_async_iterator_returns_the_same_pages() -> None:
    script = ScriptedPort(PAGES)

    async def collect() -> list[Page]:
        return [page async for page in AwaitingPages(PageCursor(script.port, SCAN))]

    assert tuple(run(collect())) == PAGES
    assert len(script.requests) == 3


def test_an_exhausted_async_iterator_stays_exhausted() -> None:
    pages = AwaitingPages(PageCursor(ScriptedPort(PAGES[2:]).port, SCAN))

    async def step() -> Page:
        return await anext(pages)

    assert run(step()) is PAGES[2]
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            run(step())
