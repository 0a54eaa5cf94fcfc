"""The cache of downloads: content by its digest, checked when it is taken out, never more than it may be."""

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


def ways_out(store: Store) -> list[Any]:
    """Every kind of place that a download can go to."""
    return [None, io.BytesIO(), store.directory / "it"]


def came(got: Any, to: Any) -> bytes:
    """What a download gave."""
    return bytes(got if to is None else to.getvalue() if isinstance(to, io.BytesIO) else to.read_bytes())


def in_order(store: Store, *contents: bytes) -> None:
    """Let these have been used in this order, long ago."""
    for age, content in enumerate(reversed(contents), 1):
        moment = 1_700_000_000 - age
        os.utime(store.entry(content), (moment, moment))


@on(*BOTH, Way("disk", "blocking"), Way("S3", "awaiting"))
async def test_what_was_downloaded_is_not_fetched_again(store: Store) -> None:
    content = pattern(70_000)
    await store.put_and_publish("app", content)
    for first in ways_out(store):
        assert came(await store.download("app", 1, first), first) == content
        assert len(store.gets()) == 1
        assert store.entry(content).read_bytes() == content
        for to in ways_out(store):
            assert came(await store.download("app", "LATEST", to), to) == content
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
        for to in ways_out(store):
            store.entry(content).parent.mkdir(parents=True, exist_ok=True)
            store.entry(content).write_bytes(damaged)
            store.gets()
            assert came(await store.download("app", 1, to), to) == content
            assert len(store.gets()) == 1
            assert store.entry(content).read_bytes() == content
    assert store.names() == {"it"}


@on(*BOTH)
async def test_what_cannot_be_an_entry_is_left_alone(store: Store) -> None:
    content = pattern(3000)
    await store.put_and_publish("app", content)
    store.entry(content).mkdir(parents=True)
    for to in ways_out(store):
        assert came(await store.download("app", 1, to), to) == content
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
    assert len(store.gets()) == 2, "the manifest, and the file that is new"
    assert tree_of(store.directory / "new") == tree_of(source)


# --- how much is kept -----------------------------------------------------------------------------------


@on(*BOTH, cache_size=1000)
async def test_what_was_not_used_for_the_longest_time_goes_first(store: Store) -> None:
    contents = [bytes([number]) * 300 for number in range(5)]
    for content in contents:
        await store.put_and_publish("app", content)
    for number in (1, 2, 3):
        await store.download("app", number)
    in_order(store, contents[1], contents[0], contents[2])
    await store.download("app", 2)  # and so the second is no longer the oldest
    await store.download("app", 4)
    assert store.list_cache() == {store.entry(contents[each]).name for each in (1, 2, 3)}
    in_order(store, contents[3], contents[2], contents[1])
    await store.download("app", 5)
    assert store.list_cache() == {store.entry(contents[each]).name for each in (1, 2, 4)}


@on(*SMALL, cache_size=1000)
async def test_what_is_larger_than_the_cache_is_not_kept_and_takes_nothing_s_place(store: Store) -> None:
    small, large, fitting = pattern(10), pattern(1001), pattern(1000)
    for content in (small, large, fitting):
        await store.put_and_publish("app", content)
    await store.download("app", 1)
    for to in ways_out(store):
        assert came(await store.download("app", 2, to), to) == large
    assert store.list_cache() == {store.entry(small).name}
    await store.download("app", 3)
    assert store.list_cache() == {store.entry(fitting).name}


@on(*BOTH, cache_size=0)
async def test_a_cache_without_room_keeps_nothing(store: Store) -> None:
    await store.put_and_publish("app", b"bytes")
    for to in ways_out(store):
        assert came(await store.download("app", 1, to), to) == b"bytes"
    assert store.list_cache() == set()


@on(*BOTH, cache_size=1000)
async def test_what_others_put_into_the_cache_counts(store: Store) -> None:
    mine = [bytes([number]) * 200 for number in range(2)]
    theirs = [bytes([100 + number]) * 300 for number in range(3)]
    for content in mine:
        await store.put_and_publish("app", content)
    await store.download("app", 1)
    for content in theirs:
        store.entry(content).parent.mkdir(exist_ok=True)
        store.entry(content).write_bytes(content)
    in_order(store, theirs[0], theirs[1], theirs[2], mine[0])
    await store.download("app", 2)
    kept = (theirs[1], theirs[2], *mine)
    assert store.list_cache() == {store.entry(content).name for content in kept}


@on(*BOTH, cache_size=1000)
async def test_only_what_was_left_behind_a_day_ago_is_removed(store: Store) -> None:
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
    """Keep content, perhaps by the name of another."""
    filling = Filling(cache, sha256(content if name is None else name).hexdigest(), f"{uuid4()}"[:16])
    write_piece(filling, content)
    keep_filling(filling, time())


def keep_file(cache: Cache, content: bytes, path: Path) -> None:
    """Keep a file that should have certain content."""
    digest = sha256(content).hexdigest()
    filling, file = Filling(cache, digest, f"{uuid4()}"[:16]), CheckedFile(path, digest, len(content))
    while not fill_turn(filling, file):
        pass
    keep_filling(filling, time())


@on(*BOTH, cache_size=1000)
async def test_what_has_another_digest_or_turns_out_to_be_too_large_becomes_no_entry(store: Store) -> None:
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


def test_a_full_cache_is_not_looked_through_for_every_addition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen from outside: a listing of the cache's directory is what looking through begins with."""
    looked: list[Path] = []
    iterdir = Path.iterdir

    def watch_iterdir(path: Path) -> Any:
        looked.append(path)
        return iterdir(path)

    with open_download_store(Way("memory", "blocking"), cache_size=6400) as store:
        cache = run(find_cache(store.context, None))
        assert cache is not None
        monkeypatch.setattr(Path, "iterdir", watch_iterdir)
        for number in range(250):
            keep(cache, number.to_bytes(2, "big") * 25)
            assert number % 25 or sum(map(size_of, store.cache.glob("*/*"))) <= 6400
        assert looked.count(store.cache) <= 250 // 2, "a 64th of it may be added before"
        assert sum(map(size_of, store.cache.glob("*/*"))) > 6200


def size_of(path: Path) -> int:
    return path.stat().st_size


# --- others and trouble ---------------------------------------------------------------------------------


@on(*SMALL)
async def test_a_cache_that_vanishes_under_a_download_is_begun_anew(store: Store) -> None:
    content = pattern(5 * PART)
    await store.put_and_publish("app", content)

    def vanish(request: Any) -> None:
        if isinstance(request, GetObject) and request.start >= 3 * PART:
            shutil.rmtree(store.cache, ignore_errors=True)

    store.service.before = vanish
    for to in ways_out(store):
        assert came(await store.download("app", 1, to), to) == content
    store.mend()
    await store.download("app", 1)
    assert store.list_cache() == {store.entry(content).name}


@on(*BOTH)
async def test_a_cache_that_cannot_be_written_is_told_of_once_and_done_without(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    contents = [pattern(1000), pattern(2000)]
    for content in contents:
        await store.put_and_publish("app", content)
        store.cache.mkdir(exist_ok=True)
        store.entry(content).parent.write_bytes(b"in the way")
    with caplog.at_level(logging.WARNING, "holdall"):
        for number, content in enumerate(contents, 1):
            for to in ways_out(store):
                assert came(await store.download("app", number, to), to) == content
    assert [record.message.split(", so")[0] for record in caplog.records] == [
        f"the artifact cache {store.cache} cannot be written"
    ]


def test_a_cache_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = ArtifactSettings(cache=str(tmp_path / "file" / "cache"))
    with Database("memory:", files=f"file:{tmp_path / 'files'}", artifacts=settings) as db:
        run(put(db._context, "app", b"bytes"))
        with pytest.raises(ConfigurationError, match=r"the cache of artifacts at .* cannot be opened"):
            run(download(db._context, "app"))
        assert run(download(db._context, "app", cache=False)) == b"bytes"


@on(*BOTH, cached=False)
async def test_a_cache_can_be_demanded_only_where_one_is_set(store: Store) -> None:
    await store.put("app", b"bytes")
    with pytest.raises(InvalidOptionsError, match="needs a cache"):
        await store.download("app", cache=True)
    assert await store.download("app") == b"bytes"


def download_at_random(url: str, directory: Path, seed: int, rounds: int) -> None:
    """Download at random from a cache in which there is never room for all; everything that comes has to be right."""
    random = Random(seed)
    settings = ArtifactSettings(cache=str(directory / "cache"), cache_size=1000)
    with Database(url, files=f"file:{directory / 'files'}", artifacts=settings) as db:
        for turn in range(rounds):
            number = random.randrange(6)
            to = random.choice([None, io.BytesIO(), directory / f"{seed}"])
            content = run(download(db._context, f"app-{number}", to=to))
            assert came(content, to) == bytes([number]) * 300, (seed, turn)


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
    assert all(len(path.name) == 64 for path in kept), "nothing is left beside"
    download_at_random(url, tmp_path, 5, 20)
    assert sum(map(size_of, (tmp_path / "cache").glob("*/*"))) <= 1000
