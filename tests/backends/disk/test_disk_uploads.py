"""Uploads in parts on disk: where parts are stored, how another process continues, and what is verified again."""

from __future__ import annotations

import os
import signal
import time
from base64 import b64encode
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5, sha256
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from disk_rig import NAME, Disk, no_file_above
from hypothesis import given
from hypothesis import strategies as st
from rig.torture import start_source

from holdall.backends.disk import DiskService
from holdall.backends.disk.part import Piece, offset_for, piece_of
from holdall.core.objects import (
    AbortUpload,
    CompleteUpload,
    CopyPart,
    ListParts,
    ListUploads,
    Part,
    PutObject,
)
from holdall.core.rules.object import MAX_OBJECT, MAX_PARTS
from holdall.errors import (
    IntegrityError,
    ObjectNotFoundError,
    PreconditionFailedError,
    StoreFullError,
)

PART = 300_000


def body_of(number: int, size: int = PART) -> bytes:
    return Random(number).randbytes(size)


def digests_of(body: bytes) -> dict[str, str]:
    return {
        "md5": b64encode(md5(body, usedforsecurity=False).digest()).decode(),
        "sha256": b64encode(sha256(body).digest()).decode(),
    }


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "files")


def data_of(disk: Disk, id: str) -> Path:
    return disk.root / "_" / "uploads" / id / "data"


# --- places of parts ---

PIECES = st.builds(
    Piece,
    st.integers(1, MAX_PARTS),
    st.integers(0, 2**40),
    st.one_of(st.none(), st.integers(0, MAX_OBJECT)),
    st.from_regex(r"[0-9a-f]{1,8}-[0-9a-f]{8}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
)


@given(PIECES)
def test_the_name_of_a_record_can_be_converted_back_to_its_part(piece: Piece) -> None:
    assert piece_of(piece.name) == piece
    assert len(piece.name) < 120


def arrange(arrivals: Iterable[tuple[int, int]]) -> dict[int, Piece]:
    """Place parts in the order of their arrival, each given by its number and size."""
    kept: dict[int, Piece] = {}
    for number, size in arrivals:
        placed = {
            other: piece for other, piece in kept.items() if piece.offset is not None and other != number
        }
        lower = max((other for other in placed if other < number), default=0)
        upper = min((other for other in placed if other > number), default=0)
        offset = offset_for(number, size, placed.get(lower), placed.get(upper))
        kept[number] = Piece(number, size, offset, "", "")
    return kept


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 20)), max_size=40))
def test_parts_never_overlap(arrivals: list[tuple[int, int]]) -> None:
    kept = arrange(arrivals)
    placed = [kept[number] for number in sorted(kept) if kept[number].offset is not None]
    for one, other in pairwise(placed):
        assert other.offset is not None
        assert one.end <= other.offset


@given(st.permutations(range(1, 9)), st.integers(1, 100), st.integers(0, 100))
def test_parts_of_equal_size_are_stored_in_order_whatever_the_order_of_arrival(
    order: list[int], size: int, last: int
) -> None:
    if order[0] == 8:
        order = [*order[1:], 8]  # the size of the last part says nothing about that of the others
    kept = arrange((number, min(last, size) if number == 8 else size) for number in order)
    assert [kept[number].offset for number in range(1, 9)] == [size * number for number in range(8)]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20))
def test_parts_that_arrive_in_order_are_stored_in_order_whatever_their_sizes(sizes: list[int]) -> None:
    kept = arrange(enumerate(sizes, 1))
    assert [kept[number + 1].offset for number in range(len(sizes))] == [
        sum(sizes[:number]) for number in range(len(sizes))
    ]


def test_a_part_beyond_the_maximum_object_size_is_not_stored_in_the_shared_file() -> None:
    assert offset_for(MAX_PARTS, 2**30, None, None) is None


def test_completing_parts_that_are_stored_in_order_copies_no_bytes(disk: Disk) -> None:
    upload = disk.begin()
    parts = {number: disk.part(upload, number, body_of(number)) for number in (2, 1, 4, 3)}
    file = data_of(disk, upload.id).stat()
    body = b"".join(body_of(number) for number in (1, 2, 3, 4))
    info = disk.complete(upload, *(parts[number] for number in (1, 2, 3, 4)), **digests_of(body))
    assert disk.get("big").body == body
    assert disk.bytes_of("big").stat().st_ino == file.st_ino
    assert (info.md5, info.sha256) == tuple(digests_of(body).values())
    assert disk.files() == {"_/objects/big", f"_/objects/big~{info.etag}"}


@pytest.mark.parametrize(
    "sizes",
    [
        {1: 10, 2: 20, 3: 30},
        {3: 5, 1: 10, 2: 10},
        {2: 7, 1: 900},
        {1: 10, 3: 10},
        {10_000: 3, 7: 2000},
        {1: 0, 2: 10, 3: 0},
        {1: 10, 2: 4, 3: 10},
        {5: 1},
    ],
    ids=str,
)
def test_parts_of_any_size_in_any_order_become_the_object(disk: Disk, sizes: dict[int, int]) -> None:
    upload = disk.begin()
    parts = {number: disk.part(upload, number, body_of(number, size)) for number, size in sizes.items()}
    numbers = sorted(sizes)
    body = b"".join(body_of(number, sizes[number]) for number in numbers)
    disk.complete(upload, *(parts[number] for number in numbers))
    assert disk.get("big").body == body
    assert len(disk.files()) == 2


@pytest.mark.parametrize("again", [10, 5, 20, 0])
def test_a_part_that_is_sent_again_replaces_the_first(disk: Disk, again: int) -> None:
    upload = disk.begin()
    parts = [disk.part(upload, number, body_of(number, 10)) for number in (1, 2, 3)]
    parts[1] = disk.part(upload, 2, body_of(20, again))
    body = body_of(1, 10) + body_of(20, again) + body_of(3, 10)
    disk.complete(upload, *parts)
    assert disk.get("big").body == body


def test_parts_that_the_completion_does_not_name_are_not_in_the_object(disk: Disk) -> None:
    upload = disk.begin()
    parts = [disk.part(upload, number, body_of(number, 10)) for number in (1, 2, 3)]
    assert disk.complete(upload, *parts[:2]).size == 20
    assert disk.get("big").body == body_of(1, 10) + body_of(2, 10)


def test_parts_copied_from_objects_are_stored_in_order_too(disk: Disk) -> None:
    bodies = [body_of(1, 1000), body_of(2, 3000), body_of(3, 10)]
    upload = disk.begin()
    parts = []
    for number, body in enumerate(bodies, 1):
        disk.put(f"source {number}", body)
        request = CopyPart(NAME, upload, number, f"source {number}", 0, len(body))
        parts.append(disk.service.send_blocking(request))
    inode = data_of(disk, upload.id).stat().st_ino
    disk.complete(upload, *parts)
    assert disk.get("big").body == b"".join(bodies)
    assert disk.bytes_of("big").stat().st_ino == inode


# --- several processes ---


def test_another_process_can_continue_an_upload(disk: Disk) -> None:
    upload = disk.begin("big", "text/plain")
    first = disk.part(upload, 1, body_of(1))
    second = disk.part(upload, 2, body_of(2))
    other = Disk(disk.root)
    assert other.service.send_blocking(ListUploads(NAME, "bi")) == (upload,)
    page = other.service.send_blocking(ListParts(NAME, upload))
    assert page.parts == (first, second)
    third = other.part(upload, 3, body_of(3, 10))
    body = body_of(1) + body_of(2) + body_of(3, 10)
    info = Disk(disk.root).complete(upload, first, second, third)
    assert info.headers.content_type == "text/plain"
    assert other.get("big").body == body


def test_a_completion_with_a_part_that_another_process_replaced_is_refused(disk: Disk) -> None:
    upload = disk.begin()
    mine = [disk.part(upload, number, body_of(number)) for number in (1, 2)]
    theirs = Disk(disk.root).part(upload, 1, body_of(9))
    with pytest.raises(PreconditionFailedError, match=r"part 1 .* was replaced"):
        disk.complete(upload, *mine)
    body = body_of(9) + body_of(2)
    disk.complete(upload, theirs, mine[1])
    assert disk.get("big").body == body


def test_a_part_that_another_process_replaced_with_the_same_bytes_is_accepted(disk: Disk) -> None:
    upload = disk.begin()
    part = disk.part(upload, 1, body_of(1))
    assert Disk(disk.root).part(upload, 1, body_of(1)) == part
    disk.complete(upload, part)
    assert disk.get("big").body == body_of(1)


def test_more_than_a_page_of_parts_is_listed_in_pages(disk: Disk) -> None:
    upload = disk.begin()
    parts = [disk.part(upload, number, b"%d" % number) for number in range(1, 1003)]
    first = disk.service.send_blocking(ListParts(NAME, upload))
    assert (first.parts, first.next) == (tuple(parts[:1000]), 1000)
    second = disk.service.send_blocking(ListParts(NAME, upload, first.next))
    assert (second.parts, second.next) == (tuple(parts[1000:]), None)


# --- loss of power ---


def damage(disk: Disk, id: str, offset: int) -> None:
    """Overwrite bytes with zeros, as a loss of power does to bytes that were never synced."""
    file = os.open(data_of(disk, id), os.O_WRONLY)
    try:
        os.pwrite(file, bytes(100), offset)
    finally:
        os.close(file)


@pytest.mark.parametrize("lost", ["zeroed", "cut off"])
def test_a_part_whose_bytes_were_lost_must_be_sent_again(disk: Disk, lost: str) -> None:
    upload = disk.begin()
    parts = [disk.part(upload, number, body_of(number)) for number in (1, 2, 3)]
    if lost == "zeroed":
        damage(disk, upload.id, PART * 2 + 500)
    else:
        os.truncate(data_of(disk, upload.id), PART * 2 + 500)
    fresh = Disk(disk.root)
    assert fresh.service.send_blocking(ListParts(NAME, upload)).parts == tuple(parts[:2])
    with pytest.raises(IntegrityError, match="part 3 "):
        Disk(disk.root).complete(upload, *parts)
    assert disk.keys() == []
    assert fresh.part(upload, 3, body_of(3)) == parts[2]
    body = body_of(1) + body_of(2) + body_of(3)
    fresh.complete(upload, *parts)
    assert fresh.get("big").body == body


def test_a_part_in_a_separate_file_is_verified_too(disk: Disk) -> None:
    upload = disk.begin()
    second = disk.part(upload, 2, b"end")
    first = disk.part(upload, 1, body_of(1))
    (apart,) = [path for path in data_of(disk, upload.id).parent.iterdir() if ".apart." in path.name]
    apart.write_bytes(body_of(1)[:-1] + b"?")
    fresh = Disk(disk.root)
    assert fresh.service.send_blocking(ListParts(NAME, upload)).parts == (second,)
    with pytest.raises(IntegrityError, match="part 1 "):
        fresh.complete(upload, first, second)


def test_a_record_without_bytes_is_not_a_part(disk: Disk) -> None:
    upload = disk.begin()
    data_of(disk, upload.id).with_name(Piece(1, 5, 0, "5-00000000", "00").name).touch()
    assert Disk(disk.root).service.send_blocking(ListParts(NAME, upload)).parts == ()


# --- completion ---


def test_the_digests_of_a_completion_are_stored(disk: Disk) -> None:
    for digests in ({}, {"md5": digests_of(b"words")["md5"]}, digests_of(b"words")):
        upload = disk.begin()
        part = disk.part(upload, 1, b"words")
        info = disk.complete(upload, part, **digests)
        assert (info.md5, info.sha256) == (digests.get("md5"), digests.get("sha256"))
        assert disk.head("big") == info


def test_a_completion_that_must_create_the_object_does_not_replace_one(disk: Disk) -> None:
    disk.put("big", b"there")
    upload = disk.begin()
    part = disk.part(upload, 1, b"words")
    with pytest.raises(PreconditionFailedError):
        disk.complete(upload, part, if_absent="id")
    assert disk.get("big").body == b"there"
    disk.delete("big")
    assert disk.complete(upload, part, if_absent="id").put_id == "id"
    assert disk.get("big").body == b"words"


@pytest.mark.parametrize("if_absent", [None, "id"])
def test_a_completion_can_be_repeated_after_its_reply_was_lost(disk: Disk, if_absent: str | None) -> None:
    options = {} if if_absent is None else {"if_absent": if_absent}
    upload = disk.begin()
    part = disk.part(upload, 1, b"words")
    info = disk.complete(upload, part, **options)
    assert disk.complete(upload, part, **options) == info
    disk.put("big", b"others")
    with pytest.raises(ObjectNotFoundError):
        disk.complete(upload, part, **options)


@pytest.mark.parametrize("if_absent", [None, "id"])
def test_a_completion_whose_process_died_before_removing_the_upload_has_happened(
    disk: Disk, if_absent: str | None
) -> None:
    script = """
import os, signal, sys
from holdall.backends.disk import DiskService
from holdall.core.objects import *
service = DiskService(sys.argv[1])
upload = service.send_blocking(BeginUpload("disk", "big"))
part = service.send_blocking(UploadPart("disk", upload, 1, b"words"))
print(upload.id, part.etag, flush=True)
unlink, rename = os.unlink, os.rename
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
os.unlink = die
service.send_blocking(CompleteUpload("disk", upload, (part,), if_absent=sys.argv[2] or None))
"""
    with start_source(script, disk.root, if_absent or "") as process:
        (line,) = process.end()
        assert process.returncode == -signal.SIGKILL
    id, etag = line.split()
    upload = disk.begin()
    disk.service.send_blocking(AbortUpload(NAME, upload))
    dead = type(upload)("big", id)
    assert disk.get("big").body == b"words"
    assert disk.service.send_blocking(ListUploads(NAME)) == ()
    with pytest.raises(ObjectNotFoundError):
        disk.part(dead, 2, b"must not get into the object")
    request = CompleteUpload(NAME, dead, (Part(1, etag, 5),), if_absent=if_absent)
    assert disk.service.send_blocking(request) == disk.head("big")
    DiskService(disk.root, clock=lambda: time.time() + 3601).send_blocking(PutObject(NAME, "big", b"new"))
    assert disk.files() == {"_/objects/big", f"_/objects/big~{disk.head('big').etag}"}
    assert "_/uploads/" + id not in disk.directories()


def test_unfinished_uploads_and_foreign_directories_are_never_swept(disk: Disk) -> None:
    upload = disk.begin()
    part = disk.part(upload, 1, b"words")
    strange = disk.root / "_" / "uploads" / "keep me"
    strange.mkdir()
    later = DiskService(disk.root, clock=lambda: time.time() + 10**7)
    later.send_blocking(PutObject(NAME, "other", b""))
    assert strange.is_dir()
    assert disk.complete(upload, part).size == 5


def test_an_aborted_upload_leaves_no_files(disk: Disk) -> None:
    upload = disk.begin()
    disk.part(upload, 2, b"end")
    disk.part(upload, 1, body_of(1))
    disk.service.send_blocking(AbortUpload(NAME, upload))
    assert disk.files() == set()


def test_a_part_that_does_not_fit_on_the_disk_is_missing_and_can_be_sent_again(disk: Disk) -> None:
    upload = disk.begin()
    first = disk.part(upload, 1, body_of(1))
    disk.part(upload, 2, body_of(7))
    with no_file_above(PART + 1000), pytest.raises(StoreFullError):
        disk.part(upload, 2, body_of(2))
    assert disk.service.send_blocking(ListParts(NAME, upload)).parts == (first,)
    second = disk.part(upload, 2, body_of(2))
    body = body_of(1) + body_of(2)
    disk.complete(upload, first, second)
    assert disk.get("big").body == body


# --- threads and forks ---


@pytest.mark.parametrize("seed", range(5))
def test_many_threads_can_send_parts(disk: Disk, seed: int) -> None:
    upload = disk.begin()
    bodies = {number: body_of(number + seed * 100, 100_000) for number in range(1, 21)}
    order = Random(seed).sample(sorted(bodies), len(bodies))
    with ThreadPoolExecutor(4) as threads:
        parts = list(threads.map(lambda number: disk.part(upload, number, bodies[number]), order))
    body = b"".join(bodies[number] for number in sorted(bodies))
    in_order = sorted(parts, key=lambda part: part.number)
    disk.complete(upload, *in_order)
    assert disk.get("big").body == body


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # newer Pythons warn of threads
def test_a_forked_child_can_continue_an_upload(disk: Disk) -> None:
    upload = disk.begin()
    parts = [disk.part(upload, number, body_of(number)) for number in range(1, 9)]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            last = disk.part(upload, 9, b"end")
            disk.complete(upload, *parts, last)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert disk.head("big").size == 8 * PART + 3
    with pytest.raises(ObjectNotFoundError):
        disk.part(upload, 10, b"late")


def test_closing_during_an_upload_loses_no_parts(disk: Disk) -> None:
    upload = disk.begin()
    parts = [disk.part(upload, number, body_of(number)) for number in range(1, 5)]
    disk.service.close()
    body = b"".join(body_of(number) for number in range(1, 5))
    Disk(disk.root).complete(upload, *parts)
    assert Disk(disk.root).get("big").body == body
