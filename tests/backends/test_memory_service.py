"""Behaviour of the memory service beyond the contract of services."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.memory import MemoryService
from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    DeleteObject,
    HeadObject,
    ListObjects,
    ListParts,
    ObjectHeaders,
    PutObject,
    UploadPart,
)
from holdall.errors import ObjectNotFoundError

NAME = "memory"


@given(
    st.lists(st.tuples(st.booleans(), st.text("aé/😀", min_size=1, max_size=4)), max_size=40),
    st.text("aé/", max_size=2),
    st.integers(1, 5),
)
def test_keys_are_listed_in_the_order_of_their_bytes(
    changes: list[tuple[bool, str]], prefix: str, limit: int
) -> None:
    service = MemoryService()
    stored: set[str] = set()
    for put, key in changes:
        if put:
            service.send_blocking(PutObject(NAME, key, b"words"))
            stored.add(key)
        else:
            service.send_blocking(DeleteObject(NAME, key))
            stored.discard(key)
    found: list[str] = []
    after: str | None = None
    while True:
        page = service.send_blocking(ListObjects(NAME, prefix, after, limit))
        found += [each.key for each in page.objects]
        after = page.next
        if after is None:
            break
    assert found == sorted((key for key in stored if key.startswith(prefix)), key=str.encode)


def test_later_changes_of_the_callers_values_do_not_change_the_objects() -> None:
    service = MemoryService()
    metadata, body = {"colour": "red"}, bytearray(b"words")
    service.send_blocking(PutObject(NAME, "key", body, ObjectHeaders(metadata=metadata)))  # type: ignore[arg-type]
    upload = service.send_blocking(BeginUpload(NAME, "big", ObjectHeaders(metadata=metadata)))
    part = service.send_blocking(UploadPart(NAME, upload, 1, body))  # type: ignore[arg-type]
    metadata["colour"] = "blue"
    body[:] = b"other"
    service.send_blocking(
        CompleteUpload(NAME, upload, (part,), sha256=service.send_blocking(HeadObject(NAME, "key")).sha256)
    )
    for key in ("key", "big"):
        assert service.send_blocking(HeadObject(NAME, key)).headers.metadata == {"colour": "red"}


def test_an_object_is_modified_at_the_time_of_the_clock() -> None:
    service = MemoryService(clock=lambda: 1_700_000_000.0)
    info = service.send_blocking(PutObject(NAME, "key", b"words"))
    assert info.modified == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_a_completion_can_be_repeated_until_its_object_is_replaced() -> None:
    service = MemoryService()
    upload = service.send_blocking(BeginUpload(NAME, "key"))
    part = service.send_blocking(UploadPart(NAME, upload, 1, b"words"))
    complete = CompleteUpload(NAME, upload, (part,), if_absent="id")
    assert service.send_blocking(complete) == service.send_blocking(complete)
    service.send_blocking(PutObject(NAME, "key", b"others"))
    with pytest.raises(ObjectNotFoundError):
        service.send_blocking(complete)


def test_more_than_a_page_of_parts_is_listed_in_pages() -> None:
    service = MemoryService()
    upload = service.send_blocking(BeginUpload(NAME, "key"))
    parts = [service.send_blocking(UploadPart(NAME, upload, number, b"")) for number in range(1, 1003)]
    first = service.send_blocking(ListParts(NAME, upload))
    assert (first.parts, first.next) == (tuple(parts[:1000]), 1000)
    second = service.send_blocking(ListParts(NAME, upload, first.next))
    assert (second.parts, second.next) == (tuple(parts[1000:]), None)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # newer Pythons warn of threads
def test_after_a_fork_during_another_threads_put_the_service_works_in_the_child() -> None:
    service = MemoryService()
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            service.send_blocking(PutObject(NAME, "busy", b"x" * 100_000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    service.send_blocking(PutObject(NAME, "child", b"words"))
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
