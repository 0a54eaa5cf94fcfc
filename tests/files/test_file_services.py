"""The file services of a database: given by URL or as objects, used by name, opened on first use, closed with it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from rig.files import SECRET, InterceptedService, bucket_service, pattern
from rig.machine import strip_machine
from rig.servers import ENVIRONMENT, start_server

from holdall import AsyncDatabase, Database
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.backends.services import MirrorService
from holdall.core.objects import HeadObject
from holdall.core.requests import GetItem
from holdall.errors import ConfigurationError, CredentialsError, InvalidRequestError, StoreClosedError

BROKEN = "s3://bucket?region=eu-central-1&endpoint=http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strip_machine(tmp_path, monkeypatch)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


# --- defaults -------------------------------------------------------------------------------------------


def test_an_embedded_database_keeps_its_files_beside_itself(tmp_path: Path) -> None:
    with Database() as db:
        assert db.files.service == "default"
        assert not (tmp_path / "holdall-files").exists(), "the directory is not created before it is needed"
        db.files.put("it", b"bytes")
    assert (tmp_path / "holdall.db").exists()
    assert (tmp_path / "holdall-files").is_dir()
    with Database("embedded:data/shop.db") as db:
        db.files.put("it", b"others")
    assert (tmp_path / "data" / "shop-files").is_dir()
    with Database("embedded:50%25%20off%3F.db") as db:
        db.files.put("it", b"others")
    assert (tmp_path / "50% off?-files").is_dir()
    with Database() as db:
        assert db.files.get("it") == b"bytes"


def test_the_files_are_beside_the_database_even_if_the_program_changes_its_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with Database("embedded:shop.db") as db:
        os.chdir(tmp_path / "elsewhere")
        db.files.put("it", b"bytes")
    assert (tmp_path / "shop-files").is_dir()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_database_in_memory_keeps_its_files_in_memory(tmp_path: Path) -> None:
    with Database("memory:") as db:
        db.files.put("it", b"bytes")
        assert db.files.get("it") == b"bytes"
    with Database("memory:") as db:
        assert list(db.files.list()) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [Database, AsyncDatabase])
def test_a_database_on_dynamodb_needs_a_file_service_only_when_files_are_used(kind: Any) -> None:
    db = kind("dynamodb://my-app?region=eu-central-1", endpoint="http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="this database has no file service") as caught:
        _ = db.files
    assert caught.value.hint == 'open it with files="s3://BUCKET" or files="file:PATH"'
    db._backend.close()


# --- names ----------------------------------------------------------------------------------------------


def test_services_have_names_and_the_first_is_the_default(tmp_path: Path) -> None:
    with Database("memory:", files={"disk": f"file:{tmp_path / 'a'}", "quick": "memory:"}) as db:
        assert db.files.service == "disk"
        db.files.put("it", b"on disk")
        db.files["quick"].put("it", b"in memory")
        assert db.files["quick"].service == "quick"
        assert db.files["quick"]["disk"].get("it") == db.files.get("it") == b"on disk"
    with Database("memory:", files={"one": MemoryService(), "two": MemoryService()}) as db:
        assert db.files.service == "one"
    with Database("memory:", files={"own": MemoryService(), "quick": "memory:"}) as db:
        assert db.files.service == "own"
    with Database("memory:", files={"one": "memory:", "two": "memory:"}, default_service="two") as db:
        assert db.files.service == "two"


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with Database("memory:", files={"one": "memory:", "two": "memory:"}) as db:
        with pytest.raises(ConfigurationError, match="no file service 'three'; this database has: one, two"):
            db.files["three"].put("it", b"bytes")
        db.files.put("it", b"bytes")
    refused = pytest.raises(ConfigurationError, match="no file service 'three'; this database has: default")
    with Database("memory:", default_service="three") as db, refused:
        db.files.exists("it")


def test_a_service_can_be_an_object_beside_others_given_by_url() -> None:
    own = InterceptedService(MemoryService())
    with Database("memory:", files={"own": own, "plain": "memory:"}, default_service="own") as db:
        db.files.put("it", b"bytes")
        assert own.bytes_in == 5
        assert not db.files["plain"].exists("it")
    with Database("memory:", files=InterceptedService(MemoryService())) as db:
        assert db.files.service == "default"
        db.files.put("it", b"bytes")


@pytest.mark.parametrize("nonsense", [17, {"main": 17}, {"main": None}, {"main": object()}])
def test_a_value_that_is_neither_a_url_nor_a_service_is_refused(nonsense: Any) -> None:
    with pytest.raises(ConfigurationError):
        Database("memory:", files=nonsense)


def test_settings_can_come_from_the_environment_and_from_the_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "holdall.toml").write_text(
        'url = "memory:"\ndefault_service = "quick"\n[files]\nslow = "file:slow"\nquick = "memory:"\n'
    )
    with Database() as db:
        assert db.files.service == "quick"
        db.files["slow"].put("it", b"bytes")
    assert (tmp_path / "slow").is_dir()
    monkeypatch.setenv("HOLDALL_FILES", "file:named%20by%20the%20environment")
    monkeypatch.setenv("HOLDALL_DEFAULT_SERVICE", "default")
    with Database() as db:
        db.files.put("it", b"bytes")
    assert (tmp_path / "named by the environment").is_dir()


# --- URLs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("file:a/b", "a/b"),
        ("file://a/b", "a/b"),
        ("file:with%20space%3F", "with space?"),
        ("file:a?base_url=https://x.example", "a"),
    ],
)
def test_a_file_url_is_a_path(url: str, place: str, tmp_path: Path) -> None:
    with Database("memory:", files=url) as db:
        service = db._services.service("default")
        assert isinstance(service, DiskService)
        assert service.root == tmp_path / place
    with Database("memory:", files=f"file:{tmp_path / 'absolute'}") as db:
        db.files.put("it", b"bytes")
    with Database("memory:", files=f"file://{tmp_path / 'absolute'}") as db:
        assert db.files.get("it") == b"bytes"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("file:a?colour=red", "unknown options: colour"),
        ("memory:?region=eu-central-1", "unknown options: region"),
        ("memory:place", "has a path"),
        ("s3://?region=eu-central-1", "does not name a bucket"),
        ("s3://bucket?regoin=eu-central-1", "unknown options: regoin"),
        ("mirror:", "use mirror:PRIMARY,MIRROR"),
        ("mirror:main", "use mirror:PRIMARY,MIRROR"),
        ("mirror:main,", "use mirror:PRIMARY,MIRROR"),
        ("mirror:main,missing", "names missing, which does not exist"),
        ("mirror:main,main", "names one service twice"),
        ("mirror:main,odd", "has mirrors itself"),
    ],
)
def test_an_invalid_url_is_refused_when_its_service_is_first_used(url: str, complaint: str) -> None:
    with Database("memory:", files={"main": "memory:", "odd": url}) as db:
        db.files.put("it", b"bytes")
        for _ in range(2):
            with pytest.raises(ConfigurationError) as caught:
                db.files["odd"].exists("it")
            assert complaint in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://x", "", "s3:bucket", "disk:a", "https://x"])
def test_a_url_with_an_unknown_scheme_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigurationError):
        Database("memory:", files={"main": url})


def test_a_bucket_can_be_given_by_url(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket_service("urls").close()
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    url = f"s3://holdall-files/by%20url?endpoint={start_server('ministack')}&style=path"
    with Database("memory:", files={"main": url, "plain": "memory:"}) as db:
        db.files.put("it", b"bytes")
        assert db.files.get("it") == b"bytes"
        whole = bucket_service("")
        assert whole.send_blocking(HeadObject("main", "by url/it")).size == 5
        whole.close()


# --- opening and closing --------------------------------------------------------------------------------


def test_a_broken_service_does_not_affect_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with Database("memory:", files={"main": "memory:", "away": "s3://bucket", "far": BROKEN}) as db:
        db.files.put("it", b"bytes")
        with pytest.raises(ConfigurationError, match="region"):
            db.files["away"].exists("it")
        with pytest.raises(CredentialsError):
            db.files["far"].exists("it")
        assert db.files.get("it") == b"bytes"
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        with pytest.raises(CredentialsError):
            db.files["away"].exists("it")


def test_a_service_is_opened_once_however_many_threads_use_it_at_once() -> None:
    with Database("memory:", files={"main": "memory:"}) as db:
        found = []
        barrier = threading.Barrier(8)

        def ask() -> None:
            barrier.wait()
            found.append(db._services.service("main"))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(service) for service in found}) == 1


def test_sync_and_async_share_their_services() -> None:
    with Database("memory:", files="memory:") as db:
        db.files.put("it", b"bytes")

        async def main() -> None:
            assert await db.aio.files.get("it") == b"bytes"
            await db.aio.files.put("more", b"from the twin")
            assert await db.aio.sync.aio.files.exists("more")

        asyncio.run(main())
        assert db.files.get("more") == b"from the twin"


def test_closing_the_database_closes_its_services_including_those_passed_to_it() -> None:
    own = MemoryService()
    db = Database("memory:", files={"own": own, "plain": "memory:", "unused": BROKEN}, default_service="own")
    files = db.files
    files["plain"].put("it", b"bytes")
    db.close()
    db.close()
    for name in ("own", "plain", "unused"):
        with pytest.raises(StoreClosedError):
            files[name].exists("it")
    with pytest.raises(StoreClosedError):
        own.send_blocking(HeadObject("main", "it"))

    async def main() -> None:
        async with AsyncDatabase("memory:") as twin:
            await twin.files.put("it", b"bytes")
            files = twin.files
        with pytest.raises(StoreClosedError):
            await files.exists("it")

    asyncio.run(main())


def test_services_work_in_a_child_that_is_forked_while_another_thread_opens_one(tmp_path: Path) -> None:
    named = {"main": f"file:{tmp_path / 'files'}", "later": f"file:{tmp_path / 'later'}"}
    with Database("memory:", files=named) as db:
        db.files.put("it", pattern(9_000_000))
        opening, forked = threading.Event(), threading.Event()

        def open_another() -> None:
            with db._services._lock:
                opening.set()
                forked.wait()

        other = threading.Thread(target=open_another)
        other.start()
        opening.wait()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # newer Pythons warn about forks beside threads
            child = os.fork()
        if not child:
            signal.alarm(60)  # a child that hangs must not outlive the test
            try:
                db.files.put("from the child", db.files.get("it"))
                db.files["later"].put("it", b"bytes")
                os._exit(0)
            finally:
                os._exit(1)
        forked.set()
        other.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert db.files.get("from the child") == pattern(9_000_000)
        assert db.files["later"].get("it") == b"bytes"


# --- requests -------------------------------------------------------------------------------------------


def test_a_request_that_is_not_for_a_file_service_is_refused_by_name(tmp_path: Path) -> None:
    named = {"main": "memory:", "disk": f"file:{tmp_path}", "mirrored": "mirror:main,disk"}
    with Database("memory:", files=named) as db:
        for name in named:
            service = db._services.service(name)
            with pytest.raises(InvalidRequestError, match="GetItem"):
                service.send_blocking(GetItem("table", {"pk": {"S": "a"}}))
        assert isinstance(db._services.service("mirrored"), MirrorService)


def test_the_databases_secret_signs_the_urls_of_its_services() -> None:
    url = "memory:?base_url=https://app.example/files"
    with Database("memory:", files=url, secret=SECRET) as db:
        token = db.files.url("it").rpartition("/")[2]
    other = MemoryService(secret=[SECRET])
    assert other.verified_download(token).key == "it"
