"""The cache of downloads: entries are named by digest, checked when they are used, and limited in total size."""

from __future__ import annotations

import io
import logging
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from random import Random
from time import time
from typing import Any
from uuid import uuid4

import pytest
from download_rig import BOTH, PART, SMALL, Store, Way, on, open_download_store, pattern, tree_of
from rig.torture import start_source

from holdall.artifacts.settings import ArtifactSettings
from holdall.artifacts.version.delivery import download
from holdall.artifacts.version.intent import put
from holdall.artifacts.version.retrieval import find_cache
from holdall.core.objects import GetObject
from holdall.core.port import run
from holdall.database import Database
from holdall.errors import ConfigurationError, InvalidOptionsError
from holdall.local.cache import Cache, Filling, fill_turn, keep_filling, write_piece
from holdall.local.copy import CheckedFile

DAY = 24 * 60 * 60


def list_targets(store: Store) -> list[Any]:
    """Every kind of target that a download can have."""
    return [None, io.BytesIO(), store.directory / "it"]


def read_result(got: Any, to: Any) -> bytes:
    """The bytes that a download returned or wrote."""
    return bytes(got if to is None else to.getvalue() if isinstance(to, io.BytesIO) else to.read_bytes())


def order_by_use(store: Store, *contents: bytes) -> None:
    """Set the last use of these entries in this order, long ago."""
    for age, content in enumerate(reversed(contents), 1):
        moment = 1_700_000_000 - age
        os.utime(store.entry(content), (moment, moment))


@on(*BOTH, Way("disk", "blocking"), Way("S3", "awaiting"))
async def test_cached_content_is_not_fetched_again(store: Store) -> None:
    content = pattern(70_000)
    await store.put_and_publish("app", content)
    for first in list_targets(store):
        assert read_result(await store.download("app", 1, first), first) == content
        assert len(store.gets()) == 1
        assert store.entry(content).read_bytes() == content
        for to in list_targets(store):
            assert read_result(await store.download("app", "LATEST", to), to) == content
        assert store.gets() == []
        store.entry(content).unlink()
    assert await store.download("app", 1, cache=False) == content
    assert store.list_cache() == set()
    assert store.names() == {"it"}


@on(*BOTH)
async def test_a_damaged_entry_is_removed_and_fetched_again(store: Store) -> None:
    content = pattern(3000)
    await store.put_and_publish("app", content)
    for damaged in (bytes(3000), content[:-1], content + b"x", b""):
        for to in list_targets(store):
            store.entry(content).parent.mkdir(parents=True, exist_ok=True)
            store.entry(content).write_bytes(damaged)
            store.gets()
            assert read_result(await store.download("app", 1, to), to) == content
            assert len(store.gets()) == 1
            assert store.entry(content).read_bytes() == content
    assert store.names() == {"it"}


@on(*BOTH)
async def test_a_directory_in_the_place_of_an_entry_is_left_alone(store: Store) -> None:
    content = pattern(3000)
    await store.put_and_publish("app", content)
    store.entry(content).mkdir(parents=True)
    for to in list_targets(store):
        assert read_result(await store.download("app", 1, to), to) == content
    assert store.entry(content).is_dir()
    assert store.list_cache() == set()


@on(*BOTH)
async def test_a_directory_is_cached_file_by_file(store: Store) -> None:
    source = store.rig.directory / "source"
    source.mkdir()
    for name in ("one", "two"):
        (source / name).write_bytes(name.encode())
    await store.put_and_publish("app", source)
    (source / "three").write_bytes(b"three")
    await store.put_and_publish("app", source)
    await store.download("app", 1, store.directory / "old")
    assert len(store.list_cache()) == 2
    store.gets()
    await store.download("app", 2, store.directory / "new")
    assert len(store.gets()) == 2, "the manifest and the new file"
    assert tree_of(store.directory / "new") == tree_of(source)


# --- how much is kept -----------------------------------------------------------------------------------


@on(*BOTH, cache_size=1000)
async def test_the_least_recently_used_entry_is_removed_first(store: Store) -> None:
    contents = [bytes([number]) * 300 for number in range(5)]
    for content in contents:
        await store.put_and_publish("app", content)
    for number in (1, 2, 3):
        await store.download("app", number)
    order_by_use(store, contents[1], contents[0], contents[2])
    await store.download("app", 2)  # now the second entry is no longer the oldest
    await store.download("app", 4)
    assert store.list_cache() == {store.entry(contents[each]).name for each in (1, 2, 3)}
    order_by_use(store, contents[3], contents[2], contents[1])
    await store.download("app", 5)
    assert store.list_cache() == {store.entry(contents[each]).name for each in (1, 2, 4)}


@on(*SMALL, cache_size=1000)
async def test_content_larger_than_the_cache_is_not_kept_and_displaces_nothing(store: Store) -> None:
    small, large, fitting = pattern(10), pattern(1001), pattern(1000)
    for content in (small, large, fitting):
        await store.put_and_publish("app", content)
    await store.download("app", 1)
    for to in list_targets(store):
        assert read_result(await store.download("app", 2, to), to) == large
    assert store.list_cache() == {store.entry(small).name}
    await store.download("app", 3)
    assert store.list_cache() == {store.entry(fitting).name}


@on(*BOTH, cache_size=0)
async def test_a_cache_of_size_zero_keeps_nothing(store: Store) -> None:
    await store.put_and_publish("app", b"bytes")
    for to in list_targets(store):
        assert read_result(await store.download("app", 1, to), to) == b"bytes"
    assert store.list_cache() == set()


@on(*BOTH, cache_size=1000)
async def test_entries_of_other_processes_count(store: Store) -> None:
    mine = [bytes([number]) * 200 for number in range(2)]
    theirs = [bytes([100 + number]) * 300 for number in range(3)]
    for content in mine:
        await store.put_and_publish("app", content)
    await store.download("app", 1)
    for content in theirs:
        store.entry(content).parent.mkdir(exist_ok=True)
        store.entry(content).write_bytes(content)
    order_by_use(store, theirs[0], theirs[1], theirs[2], mine[0])
    await store.download("app", 2)
    kept = (theirs[1], theirs[2], *mine)
    assert store.list_cache() == {store.entry(content).name for content in kept}


@on(*BOTH, cache_size=1000)
async def test_only_temporary_files_older_than_a_day_are_removed(store: Store) -> None:
    digest = "ab" * 32
    shelf = store.cache / "ab"
    shelf.mkdir(parents=True)
    old, young = (shelf / f".{digest}.{mark * 16}.part" for mark in "01")
    foreign = [shelf / "notes.txt", store.cache / "README", store.cache / "abc", shelf / ("cd" * 32)]
    for path in (old, young, *foreign):
        path.write_bytes(pattern(5000))
    now = store.context.port.now().timestamp()
    for path, age in ((old, DAY + 60), (young, DAY - 600), *((path, -DAY) for path in foreign)):
        os.utime(path, (now - age, now - age))
    await store.put_and_publish("app", b"bytes")
    await store.download("app", 1)
    assert store.list_cache() == {store.entry(b"bytes").name, young.name, *(path.name for path in foreign)}


def keep(cache: Cache, content: bytes, name: bytes | None = None) -> None:
    """Keep content, by default under its own digest, or under the digest of ``name``."""
    filling = Filling(cache, sha256(content if name is None else name).hexdigest(), f"{uuid4()}"[:16])
    write_piece(filling, content)
    keep_filling(filling, time())


def keep_file(cache: Cache, content: bytes, path: Path) -> None:
    """Keep a file that is expected to have this content."""
    digest = sha256(content).hexdigest()
    filling, file = Filling(cache, digest, f"{uuid4()}"[:16]), CheckedFile(path, digest, len(content))
    while not fill_turn(filling, file):
        pass
    keep_filling(filling, time())


@on(*BOTH, cache_size=1000)
async def test_content_with_a_wrong_digest_or_above_the_limit_is_not_kept(store: Store) -> None:
    cache = await find_cache(store.context, True)
    assert cache is not None
    keep(cache, b"small")
    keep(cache, b"something else", b"what it should be")
    keep(cache, pattern(1001))
    changed = store.directory / "changed"
    changed.write_bytes(b"by its owner")
    keep_file(cache, b"as it was", changed)
    keep_file(cache, b"gone", store.directory / "gone")
    assert store.list_cache() == {store.entry(b"small").name}


def test_a_full_cache_is_not_searched_for_every_addition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the directory of the cache is the first thing that a search does, so the test counts that."""
    searched: list[Path] = []
    iterdir = Path.iterdir

    def watch_iterdir(path: Path) -> Any:
        searched.append(path)
        return iterdir(path)

    with open_download_store(Way("memory", "blocking"), cache_size=6400) as store:
        cache = run(find_cache(store.context, None))
        assert cache is not None
        monkeypatch.setattr(Path, "iterdir", watch_iterdir)
        for number in range(250):
            keep(cache, number.to_bytes(2, "big") * 25)
            assert number % 25 or sum(map(size_of, store.cache.glob("*/*"))) <= 6400
        assert searched.count(store.cache) <= 250 // 2, (
            "a search is due only after a 64th of the size was added"
        )
        assert sum(map(size_of, store.cache.glob("*/*"))) > 6200


def size_of(path: Path) -> int:
    return path.stat().st_size


# --- other processes and failures -----------------------------------------------------------------------


@on(*SMALL)
async def test_a_cache_deleted_during_a_download_is_created_again(store: Store) -> None:
    content = pattern(5 * PART)
    await store.put_and_publish("app", content)

    def vanish(request: Any) -> None:
        if isinstance(request, GetObject) and request.start >= 3 * PART:
            shutil.rmtree(store.cache, ignore_errors=True)

    store.service.before = vanish
    for to in list_targets(store):
        assert read_result(await store.download("app", 1, to), to) == content
    store.mend()
    await store.download("app", 1)
    assert store.list_cache() == {store.entry(content).name}


@on(*BOTH)
async def test_an_unwritable_cache_is_logged_once_and_bypassed(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    contents = [pattern(1000), pattern(2000)]
    for content in contents:
        await store.put_and_publish("app", content)
        store.cache.mkdir(exist_ok=True)
        store.entry(content).parent.write_bytes(b"in the way")
    with caplog.at_level(logging.WARNING, "holdall"):
        for number, content in enumerate(contents, 1):
            for to in list_targets(store):
                assert read_result(await store.download("app", number, to), to) == content
    assert [record.message.split(", so")[0] for record in caplog.records] == [
        f"the artifact cache {store.cache} cannot be written"
    ]


def test_a_cache_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = ArtifactSettings(cache=str(tmp_path / "file" / "cache"))
    with Database("memory:", files=f"file:{tmp_path / 'files'}", artifacts=settings) as db:
        run(put(db._context, "app", b"bytes"))
        with pytest.raises(ConfigurationError, match=r"the cache of artifacts at .* cannot be opened"):
            run(download(db._context, "app"))
        assert run(download(db._context, "app", cache=False)) == b"bytes"


@on(*BOTH, cached=False)
async def test_a_cache_can_be_required_only_if_one_is_configured(store: Store) -> None:
    await store.put("app", b"bytes")
    with pytest.raises(InvalidOptionsError, match="needs a cache"):
        await store.download("app", cache=True)
    assert await store.download("app") == b"bytes"


def download_at_random(url: str, directory: Path, seed: int, rounds: int) -> None:
    """Download at random through a cache that is always too small for everything; check all content."""
    random = Random(seed)
    settings = ArtifactSettings(cache=str(directory / "cache"), cache_size=1000)
    with Database(url, files=f"file:{directory / 'files'}", artifacts=settings) as db:
        for turn in range(rounds):
            number = random.randrange(6)
            to = random.choice([None, io.BytesIO(), directory / f"{seed}"])
            content = run(download(db._context, f"app-{number}", to=to))
            assert read_result(content, to) == bytes([number]) * 300, (seed, turn)


def test_threads_and_processes_share_a_cache(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'app.db'}"
    with Database(url, files=f"file:{tmp_path / 'files'}") as db:
        for number in range(6):
            run(put(db._context, f"app-{number}", bytes([number]) * 300))
    code = (
        "import sys; from pathlib import Path; from test_artifact_cache import download_at_random;"
        "download_at_random(sys.argv[1], Path(sys.argv[2]), 1, 60)"
    )
    with start_source(code, url, tmp_path) as other:
        with ThreadPoolExecutor(3) as threads:
            for each in [threads.submit(download_at_random, url, tmp_path, seed, 60) for seed in (2, 3, 4)]:
                each.result()
        other.finish()
    kept = list((tmp_path / "cache").glob("*/*"))
    assert kept
    assert all(len(path.name) == 64 for path in kept), "temporary files are left"
    download_at_random(url, tmp_path, 5, 20)
    assert sum(map(size_of, (tmp_path / "cache").glob("*/*"))) <= 1000
