"""Listings: by prefix, in the order of the keys' bytes, in pages."""

from __future__ import annotations

from holdall.core.objects import ListObjects, ListUploads
from holdall.testing.file_contract.check import NAME, Service, check

NAMES = ("a", "a/b", "a/b/c", "ab", "b", "b/", "b/c", "ba", "ü", "üa")


def in_order(names: tuple[str, ...] | list[str] | set[str]) -> list[str]:
    """Names in the order of a listing."""
    return sorted(names, key=str.encode)


async def _fill(service: Service, names: tuple[str, ...] = NAMES) -> None:
    await service.side_by_side([service.put(name, name.encode()) for name in names])


@check()
async def a_listing_of_nothing_is_empty(service: Service) -> None:
    page = await service.send(ListObjects(NAME, service.key("nothing")))
    assert (page.objects, page.next) == ((), None)


@check()
async def a_listing_reports_the_same_as_a_head(service: Service) -> None:
    await _fill(service)
    (page,) = await service.pages()
    assert [listed.key for listed in page.objects] == [service.key(name) for name in in_order(NAMES)]
    for listed, name in zip(page.objects, in_order(NAMES), strict=True):
        head = await service.head(name)
        assert (listed.size, listed.etag) == (head.size, head.etag)
        # HTTP headers have no fractions of seconds, but listings may
        assert listed.modified.replace(microsecond=0) == head.modified.replace(microsecond=0)


@check()
async def a_prefix_is_text_and_not_a_directory(service: Service) -> None:
    await _fill(service)
    for prefix in ("a", "a/", "a/b", "a/b/", "ab", "b", "b/", "b/c", "c", "", "ü", "/"):
        assert await service.names(prefix) == in_order([name for name in NAMES if name.startswith(prefix)])


@check()
async def the_empty_prefix_lists_everything(service: Service) -> None:
    await service.put(body=b"words")
    page = await service.send(ListObjects(NAME, "", None, 1))
    assert len(page.objects) == 1


@check()
async def keys_are_in_the_order_of_their_bytes(service: Service) -> None:
    names = ("A", "B", "Z", "a", "b", "z", "\u00e9", "\u07ff", "\ud7ff", "\uffee", "\U00010000", "\U0001f600")
    signs = (*" !+-09:_~", "a ", "a!", "a-b", "a.b", "a/b", "a0", "aA", "a\u0301")
    await _fill(service, names + signs)
    assert await service.names() == in_order(names + signs)
    assert await service.names(limit=4) == in_order(names + signs)


@check()
async def a_listing_is_the_same_in_pages_of_every_size(service: Service) -> None:
    await _fill(service)
    for prefix in ("", "a", "b", "ü"):
        wanted = in_order([name for name in NAMES if name.startswith(prefix)])
        for limit in range(1, len(wanted) + 2):
            assert await service.names(prefix, limit) == wanted


@check()
async def nothing_is_missed_when_pages_are_deleted_on_the_way(service: Service) -> None:
    await _fill(service)
    seen: list[str] = []
    after = None
    while len(seen) < 2 * len(NAMES):
        page = await service.send(ListObjects(NAME, service.prefix, after, 3))
        for listed in page.objects:
            name = listed.key.removeprefix(service.prefix)
            seen.append(name)
            await service.delete(name)
        after = page.next
        if after is None:
            break
    assert seen == in_order(NAMES)
    assert await service.names() == []


@check()
async def an_object_that_stays_is_listed_once_whatever_else_changes(service: Service) -> None:
    await _fill(service)
    first = await service.send(ListObjects(NAME, service.prefix, None, 4))
    assert first.next is not None
    await service.put("0 before", b"words")
    await service.put("zz behind", b"words")
    await service.delete("b/")
    await service.put("a/b", b"others")
    seen = [listed.key.removeprefix(service.prefix) for listed in first.objects]
    after: str | None = first.next
    while after is not None:
        page = await service.send(ListObjects(NAME, service.prefix, after, 4))
        seen += [listed.key.removeprefix(service.prefix) for listed in page.objects]
        after = page.next
    assert seen == in_order({*NAMES, "zz behind"} - {"b/"})


@check()
async def a_page_can_be_requested_again(service: Service) -> None:
    await _fill(service)
    first = await service.send(ListObjects(NAME, service.prefix, None, 2))
    for _ in range(2):
        second = await service.send(ListObjects(NAME, service.prefix, first.next, 3))
        assert [listed.key for listed in second.objects] == [
            service.key(name) for name in in_order(NAMES)[2:5]
        ]


@check()
async def uploads_that_are_under_way_are_not_listed(service: Service) -> None:
    await service.put("there", b"words")
    upload = await service.begin("coming")
    await service.part(upload, 1, b"words")
    assert await service.names() == ["there"]
    assert await service.send(ListUploads(NAME, service.prefix)) == (upload,)
