"""Scans: every item once, in pages and segments."""

from __future__ import annotations

from holdall.core.expressions import Compare, path, value
from holdall.core.requests import Scan
from holdall.core.values import decode_item, encode_item
from holdall.errors import InvalidKeyError, InvalidRequestError
from holdall.testing.table_contract.check import Store, check, refused


async def _fill_table(store: Store) -> str:
    table = await store.table("S", "N")
    for number in range(20):
        await store.put(table, pk=f"p{number % 7}", sk=number, n=number)
    return table


@check()
async def a_scan_reads_everything_once(store: Store) -> None:
    table = await _fill_table(store)
    for limit in (None, 1, 3, 20, 50):
        pages = await store.pages(Scan(table, limit=limit))
        found = [decode_item(item)["n"] for page in pages for item in page.items]
        assert sorted(found) == list(range(20)), limit


@check()
async def segments_are_disjoint_and_complete(store: Store) -> None:
    table = await _fill_table(store)
    for segments in (2, 3, 8):
        found: list[int] = []
        for segment in range(segments):
            scan = Scan(table, limit=2, segment=segment, segments=segments)
            found += [decode_item(item)["n"] for page in await store.pages(scan) for item in page.items]
        assert sorted(found) == list(range(20)), segments


@check()
async def a_scan_filters_projects_and_counts(store: Store) -> None:
    table = await _fill_table(store)
    large = Compare(">=", path("n"), value(15))
    pages = await store.pages(Scan(table, filter=large, projection=(path("n"),)))
    assert sorted(decode_item(item)["n"] for page in pages for item in page.items) == [15, 16, 17, 18, 19]
    assert all(item.keys() == {"n"} for page in pages for item in page.items)
    counted = await store.pages(Scan(table, filter=large, count_only=True))
    assert sum(page.count for page in counted) == 5
    assert sum(page.scanned for page in counted) == 20


@check()
async def a_scan_can_filter_on_keys(store: Store) -> None:
    table = await _fill_table(store)
    pages = await store.pages(Scan(table, filter=Compare("=", path("pk"), value("p0"))))
    assert sorted(decode_item(item)["n"] for page in pages for item in page.items) == [0, 7, 14]


@check()
async def invalid_scans_are_refused(store: Store) -> None:
    table = await _fill_table(store)
    for segment, segments in ((1, 1), (-1, 2), (2, 2), (0, 0), (0, 1_000_001)):
        with refused(InvalidRequestError):
            await store.send(Scan(table, segment=segment, segments=segments))
    with refused(InvalidKeyError):
        await store.send(Scan(table, start_after=encode_item({"pk": "p"})))
