"""Downloads as bytes, files, streams and directories: always checked, and never visible in part."""

from __future__ import annotations

import asyncio
import io
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from download_rig import BOTH, EVERYWHERE, PART, SMALL, Store, Way, on, open_download_store, pattern, tree_of

from holdall.artifacts.directory.manifest import Manifest, Member
from holdall.artifacts.directory.record import FileRecord
from holdall.artifacts.home import find_home
from holdall.artifacts.record import VersionRow
from holdall.core.expressions import Set, Update, Value
from holdall.core.expressions import path as expression_path
from holdall.core.objects import (
    CopyObject,
    DeleteObject,
    GetObject,
    HeadObject,
    ObjectHeaders,
    PutObject,
    SignUrl,
)
from holdall.core.port import run
from holdall.core.requests import PutItem, UpdateItem
from holdall.errors import (
    ArtifactNotFoundError,
    IntegrityError,
    InvalidArtifactError,
    InvalidOptionsError,
    ObjectNotFoundError,
    PreconditionFailedError,
)


class ProgressCalls:
    """Records the calls of a progress callback."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int | None) -> None:
        assert total is not None
        self.all.append((done, total))


@on(*EVERYWHERE)
async def test_content_is_downloaded_as_bytes_to_a_file_and_to_a_stream(store: Store) -> None:
    path = store.directory / "it"
    large = 9_000_000 if store.rig.way.kind == "S3" else 300_000  # on S3, the download is split into parts
    for content in (b"", b"one", pattern(large)):
        await store.put_and_publish("app", content)
        for cache in (False, None, None):
            assert await store.download("app", cache=cache) == content
            assert await store.download("app", "LATEST", path, cache=cache) == path
            assert path.read_bytes() == content
            stream = io.BytesIO()
            assert await store.download("app", to=stream, cache=cache) is None
            assert stream.getvalue() == content
    assert await store.download("app", 2, str(path)) == path
    assert path.read_bytes() == b"one"
    assert store.names() == {"it"}


@on(*BOTH, cached=False)
async def test_an_alias_serves_each_key_its_version(store: Store) -> None:
    for content in (b"one", b"two"):
        await store.put_and_publish("app", content)
    alias = await store.put_alias("app", "prod", 1, 2, 50)
    for key in ("ada", "bob", "cleo", 17, 18, 19):
        expected = {"1": b"one", "2": b"two"}[alias.resolve(key)]
        assert await store.download("app", "prod", key=key) == expected


@on(*BOTH, Way("S3", "blocking"), cached=False)
async def test_a_url_refers_to_the_version_that_a_reference_resolves_to(store: Store) -> None:
    await store.put_and_publish("app", b"one")
    await store.put_alias("app", "prod", 1)
    plain = await store.url("app", "prod", expires=60)
    dressed = await store.url(
        "app", 1, filename="app.zip", disposition="attachment", content_type="text/x-it"
    )
    assert plain.startswith("http")
    assert dressed.startswith("http")
    first, second = store.service.list_sent(SignUrl)
    assert (first.key, first.expires) == ("versioned-artifacts/app/000001", 60)
    assert (second.key, second.headers.content_type) == (first.key, "text/x-it")
    assert second.headers.disposition.startswith('attachment; filename="app.zip"')
    with pytest.raises(ArtifactNotFoundError):
        await store.url("app", 2)


@on(*BOTH, cached=False)
async def test_nothing_is_fetched_for_an_invalid_target(store: Store) -> None:
    await store.put("app", b"one")
    store.gets()
    with pytest.raises(InvalidOptionsError, match="is a directory"):
        await store.download("app", to=store.directory)
    with pytest.raises(InvalidOptionsError, match="there is no directory"):
        await store.download("app", to=store.directory / "missing" / "it")
    for nonsense in (17, [b""]):
        with pytest.raises(InvalidOptionsError, match="needs a path or a stream"):
            await store.download("app", to=nonsense)
    assert store.gets() == []
    with pytest.raises(ArtifactNotFoundError):
        await store.download("app", 1, store.directory / "it")
    assert store.names() == set()


@on(*SMALL)
async def test_progress_reports_all_bytes(store: Store) -> None:
    content = pattern(5 * PART + 1)
    await store.put_and_publish("app", content)
    targets: tuple[Any, ...] = (None, io.BytesIO(), store.directory / "it")
    for cache in (False, None, None):
        for to in targets:
            calls = ProgressCalls()
            await store.download("app", 1, to, cache=cache, progress=calls)
            assert (calls.all[0], calls.all[-1]) == ((0, len(content)), (len(content), len(content)))
            assert calls.all == sorted(calls.all)


# --- checking -------------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    """Flip a bit, as a rotting disk would, and keep the file's times."""
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@on(Way("disk", "blocking"), Way("disk", "awaiting"))
async def test_damaged_bytes_are_detected_and_leave_no_files(store: Store) -> None:
    content = pattern(70_000)
    await store.put("app", content)
    flip(store.rig.object_file(content))
    target = store.directory / "it"
    target.write_bytes(b"mine")
    with pytest.raises(IntegrityError):
        await store.download("app")
    for resume in (False, True):
        with pytest.raises(IntegrityError):
            await store.download("app", to=target, resume=resume)
    assert (store.names(), target.read_bytes()) == ({"it"}, b"mine")
    assert store.list_cache() == set()


@on(*BOTH, Way("S3", "awaiting"))
async def test_an_object_is_checked_against_the_digest_in_the_table(store: Store) -> None:
    version = await store.put_and_publish("app", b"what was published")
    for key in (version.key, "versioned-artifacts/app/LATEST"):
        kept = await store.rig.send(HeadObject("main", str(key)))
        await store.rig.send(PutObject("main", str(key), b"what was slipped in", kept.headers))
    for reference in (1, "LATEST"):
        with pytest.raises(IntegrityError, match="should have"):
            await store.download("app", reference)
        with pytest.raises(IntegrityError, match="should have"):
            await store.download("app", reference, store.directory / "it")
        stream = io.BytesIO()
        with pytest.raises(IntegrityError, match="should have"):
            await store.download("app", reference, stream)
        assert stream.getvalue() == b"what was slipped in", "bytes written to a stream cannot be taken back"
    assert (store.names(), store.list_cache()) == (set(), set())


@on(*BOTH)
async def test_an_invalid_digest_never_becomes_part_of_a_path(store: Store) -> None:
    home = await find_home(store.context)
    nonsense = "../" * 8 + "evil"
    key = home.object_key("odd", "000001")
    headers = ObjectHeaders(metadata={"artifact_name": "odd", "artifact_sha256": nonsense})
    kept = await store.rig.send(PutObject("main", key, b"bytes", headers))
    await store.context.port.send(
        PutItem(home.table, VersionRow.make(home, "odd", "000001", kept.modified, nonsense).stored)
    )
    with pytest.raises(IntegrityError, match="is not a SHA-256"):
        await store.download("odd", 1)
    assert store.list_cache() == set()


@on(*BOTH)
async def test_a_download_of_missing_bytes_leaves_no_file(store: Store) -> None:
    version = await store.put_and_publish("app", b"one")
    await store.rig.send(DeleteObject("main", str(version.key)))
    with pytest.raises(ObjectNotFoundError):
        await store.download("app", 1, store.directory / "it")
    assert store.names() == set()


# --- resuming -------------------------------------------------------------------------------------------


@on(*SMALL, cached=False)
async def test_an_interrupted_download_resumes(store: Store) -> None:
    content = pattern(9 * PART)
    await store.put_and_publish("app", content)
    target = store.directory / "it"
    store.fail_from(7)
    with pytest.raises(ConnectionResetError):
        await store.download("app", 1, target, resume=True)
    store.mend()
    (left,) = store.names()
    have = (store.directory / left).stat().st_size
    assert 3 * PART <= have <= 7 * PART
    store.gets()
    calls = ProgressCalls()
    await store.download("app", 1, target, resume=True, progress=calls)
    assert sorted(request.start for request in store.gets()) == list(range(have, 9 * PART, PART))
    assert (calls.all[0], calls.all[-1]) == ((have, 9 * PART), (9 * PART, 9 * PART))
    assert (store.names(), target.read_bytes()) == ({"it"}, content)


@on(*SMALL)
async def test_a_failed_download_leaves_the_old_file_and_nothing_else(store: Store) -> None:
    await store.put_and_publish("app", pattern(9 * PART))
    target = store.directory / "it"
    target.write_bytes(b"mine")
    store.fail_from(5)
    for to in (target, None, io.BytesIO()):
        with pytest.raises(ConnectionResetError):
            await store.download("app", 1, to)
    assert (store.names(), target.read_bytes()) == ({"it"}, b"mine")
    assert store.list_cache() == set()


# --- LATEST that is replaced ----------------------------------------------------------------------------


def replace_latest(store: Store, content: bytes, when: Any) -> None:
    """Replace LATEST once, before the first request for bytes for which ``when`` is true."""
    done: list[Any] = []

    def replace_it(request: Any) -> Any:
        if done or not isinstance(request, GetObject) or not when(request):
            return None
        done.append(request)
        flow = store.put("app", content)
        return run(flow) if store.rig.colour == "blocking" else flow

    store.service.before = replace_it


@on(*SMALL)
async def test_if_latest_is_replaced_before_the_first_read_the_new_one_is_downloaded(store: Store) -> None:
    old, new = pattern(5 * PART), bytes(7 * PART)
    target = store.directory / "it"
    for resume, to in ((False, None), (False, target), (True, target), (False, io.BytesIO())):
        await store.put("app", old)
        replace_latest(store, new, lambda request: request.start == 0)
        got = await store.download("app", to=to, resume=resume, cache=False)
        assert (to.getvalue() if isinstance(to, io.BytesIO) else target.read_bytes() if to else got) == new
        store.mend()
    assert store.names() == {"it"}


@on(*SMALL)
async def test_if_latest_is_replaced_during_a_download_old_and_new_bytes_never_mix(store: Store) -> None:
    old, new = pattern(9 * PART), bytes(9 * PART)
    target = store.directory / "it"
    for resume, to in ((False, None), (False, target), (True, target)):
        await store.put("app", old)
        replace_latest(store, new, lambda request: request.start >= 4 * PART)
        got = await store.download("app", to=to, resume=resume, cache=False)
        assert (target.read_bytes() if to else got) == new
        store.mend()
    await store.put("app", old)
    replace_latest(store, new, lambda request: request.start >= 4 * PART)
    stream = io.BytesIO()
    with pytest.raises(PreconditionFailedError):
        await store.download("app", to=stream, cache=False)
    assert old.startswith(stream.getvalue()), "bytes written to a stream cannot be taken back"
    assert store.names() == {"it"}


# --- directories ----------------------------------------------------------------------------------------


def make_tree(store: Store, name: str = "source") -> tuple[Path, dict[str, bytes | None]]:
    """A directory with programs, equal files, nested and empty directories, and an empty file."""
    source = store.rig.directory / name
    tree: dict[str, bytes | None] = {
        "bin": None,
        "bin/run*": b"#!/bin/sh\n",
        "data": None,
        "data/copy": pattern(3 * PART),
        "data/deep": None,
        "data/deep/er": None,
        "data/deep/er/ünï cöde": b"text",
        "data/large": pattern(3 * PART),
        "data/program*": pattern(3 * PART),
        "empty": None,
        "nothing": b"",
    }
    for each, content in tree.items():
        path = source / each.removesuffix("*")
        if content is None:
            path.mkdir(parents=True)
        else:
            path.write_bytes(content)
            path.chmod(0o755 if each.endswith("*") else 0o644)
    return source, tree


@on(*EVERYWHERE, *SMALL)
async def test_a_downloaded_directory_has_its_executables_and_empty_directories(store: Store) -> None:
    source, tree = make_tree(store)
    total = sum(len(content or b"") for content in tree.values())
    await store.put_and_publish("app", source)
    for cache in (False, None, None):
        target = store.directory / f"with {cache} {len(store.names())}"
        calls = ProgressCalls()
        assert await store.download("app", 1, target, cache=cache, progress=calls) == target
        assert tree_of(target) == tree
        assert (calls.all[0], calls.all[-1]) == ((0, total), (total, total))
        assert calls.all == sorted(calls.all)
    assert len(store.names()) == 3


@on(*BOTH, cached=False)
async def test_equal_files_in_a_directory_are_fetched_once(store: Store) -> None:
    source, _ = make_tree(store)
    await store.put_and_publish("app", source)
    store.gets()
    await store.download("app", 1, store.directory / "it")
    keys = [request.key for request in store.gets()]
    assert len(keys) == len(set(keys)) == 1 + 4, "the manifest, and each distinct content"


@on(*BOTH, cached=False)
async def test_a_file_is_fetched_from_the_key_in_its_record(store: Store) -> None:
    source, tree = make_tree(store)
    await store.put_and_publish("app", source)
    home = await find_home(store.context)
    digest = sha256(tree["bin/run*"] or b"").hexdigest()
    await store.rig.send(CopyObject("main", home.file_key(digest), "elsewhere"))
    await store.rig.send(DeleteObject("main", home.file_key(digest)))
    with pytest.raises(ObjectNotFoundError):
        await store.download("app", 1, store.directory / "it")
    moved = Update((Set(expression_path("stored"), Value({"S": "elsewhere"})),))
    await store.context.port.send(UpdateItem(home.table, FileRecord.at(home, digest).address.key, moved))
    await store.download("app", 1, store.directory / "it")
    assert tree_of(store.directory / "it") == tree


@on(*BOTH, cached=False)
async def test_a_directory_may_replace_an_empty_directory_and_nothing_else(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, tree = make_tree(store)
    await store.put_and_publish("app", source)
    empty, full, file = (store.directory / name for name in ("empty", "full", "file"))
    empty.mkdir(mode=0o700)
    full.mkdir()
    (full / "mine").touch()
    file.touch()
    (store.directory / "link").symlink_to(empty)
    for place, problem in (
        (full, "is not empty"),
        (file, "is not a directory"),
        (file / "in", "no directory"),
    ):
        with pytest.raises(InvalidOptionsError, match=problem):
            await store.download("app", 1, place)
    with monkeypatch.context() as patched:
        patched.chdir(empty)
        with pytest.raises(InvalidOptionsError, match="working directory"):
            await store.download("app", 1, ".")
    await store.download("app", 1, store.directory / "link")
    assert tree_of(empty) == tree
    assert empty.stat().st_mode & 0o777 == 0o700
    assert store.names() == {"empty", "full", "file", "link"}
    assert tree_of(full) == {"mine": b""}


@on(*BOTH, cached=False)
async def test_a_directory_has_neither_bytes_nor_a_url(store: Store) -> None:
    await store.put_and_publish("app", make_tree(store)[0])
    for to in (None, io.BytesIO()):
        with pytest.raises(InvalidOptionsError, match="version 1 of 'app' is a directory") as caught:
            await store.download("app", 1, to)
        assert "to=" in str(caught.value.hint)
    with pytest.raises(InvalidOptionsError, match="is a directory"):
        await store.url("app", 1)


@on(*SMALL)
async def test_a_failed_directory_download_leaves_nothing(store: Store) -> None:
    source, tree = make_tree(store)
    await store.put_and_publish("app", source)
    for count in (0, 1, 3, 5):
        store.fail_from(count, of="__files")
        with pytest.raises(ConnectionResetError):
            await store.download("app", 1, store.directory / "it", cache=False)
        assert store.names() == set()
    store.mend()
    await store.download("app", 1, store.directory / "it")
    assert tree_of(store.directory / "it") == tree


@on(Way("disk", "blocking"), Way("disk", "awaiting"), cached=False)
async def test_a_directory_with_a_damaged_file_is_not_downloaded(store: Store) -> None:
    source, tree = make_tree(store)
    await store.put_and_publish("app", source)
    flip(store.rig.object_file(tree["data/large"] or b""))
    for resume in (False, True):
        with pytest.raises(IntegrityError):
            await store.download("app", 1, store.directory / "it", resume=resume)
        assert store.names() == set()


@on(*BOTH, cached=False)
async def test_an_interrupted_directory_download_resumes(store: Store) -> None:
    source = store.rig.directory / "source"
    source.mkdir()
    for number in range(80):
        (source / f"{number:02}").write_bytes(b"content %d" % number)
    tree = tree_of(source)
    await store.put_and_publish("app", source)
    store.fail_from(70, of="__files")
    with pytest.raises(ConnectionResetError):
        await store.download("app", 1, store.directory / "it", resume=True)
    store.mend()
    (left,) = store.names()
    beside = store.directory / left
    have = tree_of(beside)
    assert len(have) >= 60
    first = next(iter(have))
    (beside / first).write_bytes(b"damaged")
    (beside / "stranger").write_bytes(b"of a process that died")
    (beside / "strange").mkdir()
    (beside / "strange" / "r").symlink_to(source)
    store.gets()
    await store.download("app", 1, store.directory / "it", resume=True)
    assert len(store.gets()) == 1 + 80 - len(have) + 1
    assert tree_of(store.directory / "it") == tree
    assert store.names() == {"it"}
    assert tree_of(source) == tree


@on(*BOTH, cached=False)
async def test_a_forged_manifest_writes_nothing_outside_the_target(store: Store) -> None:
    home = await find_home(store.context)
    manifest = Manifest((Member("../evil", "0" * 64, 1),)).to_bytes()
    metadata = {
        "artifact_name": "forged",
        "artifact_sha256": sha256(manifest).hexdigest(),
        "artifact_manifest": "1",
    }
    key = home.object_key("forged", "000001")
    kept = await store.rig.send(PutObject("main", key, manifest, ObjectHeaders(metadata=metadata)))
    row = VersionRow.make(home, "forged", "000001", kept.modified, metadata["artifact_sha256"]).stored
    await store.context.port.send(PutItem(home.table, row))
    with pytest.raises(InvalidArtifactError):
        await store.download("forged", 1, store.directory / "it")
    assert store.names() == set()


def test_a_cancelled_directory_download_leaves_nothing() -> None:
    async def cancel_download(store: Store) -> None:
        await store.put_and_publish("app", make_tree(store)[0])
        under_way = asyncio.Event()

        async def wait(request: Any) -> None:
            if isinstance(request, GetObject) and "__files" in request.key:
                under_way.set()
                await asyncio.sleep(0)

        store.service.before = wait
        task = asyncio.ensure_future(store.download("app", 1, store.directory / "it"))
        await under_way.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.names() == set()
        assert not [name for name in store.list_cache() if name.startswith(".")]

    with open_download_store(Way("memory", "awaiting")) as store:
        asyncio.run(cancel_download(store))
