"""Where the tests of directories' files run: both colours, services in memory and on disk, a clock, and deaths.

A test is written once, as ``async def test(rig: Rig)``; in the blocking colour it never suspends. `Rig.audit` reads
every record and every object, and checks what must hold at any moment.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from rig.colour import Colour, finish

from holdall import AsyncDatabase, Database
from holdall.artifacts.directory.hold import count_versions, drop_hold, hold_files, redeem_hold
from holdall.artifacts.directory.inventory import Directory, gather_directory
from holdall.artifacts.directory.sweep import Freed, sweep
from holdall.artifacts.home import Home, find_home
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.core.context import Context
from holdall.core.objects import DescribeService, GetObject, ListObjects, PutObject, UploadPart
from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.errors import ContentionError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import Record, fetch
from holdall.tables.record_column import text

DAYS = timedelta(days=2)
"""Longer than any hold lasts."""


class Dead(Exception):
    """The process died: it sends nothing more."""


class Row(Record):
    """Stands in for a version's row."""

    manifest = text("manifest")


async def send(change: Change) -> None:
    """Commit, and raise an error if a condition refuses the change."""
    refused = await commit_once(change)
    if refused is not None:
        raise ContentionError(f"refused: {', '.join(refused.found)}")


class InterceptedPort:
    """A port with its own clock, on which a test can run code before each request and let the process die."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.ahead = timedelta()
        self.requests: list[Any] = []
        self.before: Callable[[int], Any] = lambda number: None
        self.dies_before: int | None = None
        self.dies_after: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def now(self) -> datetime:
        return cast("datetime", self._port.now() + self.ahead)

    async def send(self, request: Any) -> Any:
        if isinstance(request, DescribeService):
            return await self._port.send(request)
        self.requests.append(request)
        number = len(self.requests)
        if self.dies_before is not None and number >= self.dies_before:
            raise Dead
        if self.dies_after is not None and number > self.dies_after:
            raise Dead
        self.before(number)
        reply = await self._port.send(request)
        if self.dies_after == number:
            raise Dead
        return reply


class Rig:
    """A database with a service, and directories with their versions."""

    def __init__(self, colour: Colour, service: Any, root: Path) -> None:
        kind: Any = Database if colour == "blocking" else AsyncDatabase
        self.db: Any = kind("memory:", files={"main": service}, default_service="main")
        self.service = service
        self.root = root
        self.directories: dict[str, Directory] = {}
        self._made = 0
        self.port = self.fresh()

    def fresh(self) -> InterceptedPort:
        """Act as another process from here on: a new clock, no requests counted, not dead."""
        self.port = InterceptedPort(self.db._context.port)
        return self.port

    @property
    def context(self) -> Context:
        return cast("Context", replace(self.db._context, port=self.port))

    async def home(self) -> Home:
        return await find_home(self.db._context)

    # --- actions ---

    def folder(self, files: Mapping[str, bytes | None]) -> Path:
        """Make a directory with these files; None stands for an empty directory."""
        self._made += 1
        top = self.root / f"directory{self._made}"
        top.mkdir()
        for name, data in files.items():
            place = top / name
            if data is None:
                place.mkdir(parents=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        return top

    async def gather(self, files: Mapping[str, bytes | None]) -> Directory:
        directory = await gather_directory(self.db._context, self.folder(files))
        self.directories[directory.sha256] = directory
        return directory

    async def put(self, name: str, directory: Directory, context: Context | None = None) -> None:
        """Make a directory the content of a name, as a version does."""
        context = context or self.context
        home = await self.home()
        hold = await hold_files(context, home, directory)
        row = await fetch(context.port, Row(home.address(name, "LATEST")))
        if row.is_stored and row.manifest == directory.sha256:
            await drop_hold(context, home, hold)
            return
        change = Change(context)
        change.put(Row.new(row.address, Row.manifest.set(directory.sha256)), expect=[row.same(Row.manifest)])
        redeem_hold(change, home, hold)
        count_versions(change, home, fewer=[row.manifest] if row.is_stored else ())
        await send(change)

    async def drop(self, name: str, context: Context | None = None) -> None:
        """Remove a name, if it exists."""
        context = context or self.context
        home = await self.home()
        row = await fetch(context.port, Row(home.address(name, "LATEST")))
        if not row.is_stored:
            return
        change = Change(context)
        change.delete(row, expect=[row.same(Row.manifest)])
        count_versions(change, home, fewer=[row.manifest])
        await send(change)

    async def sweep(self, manifests: list[str] | None = None, context: Context | None = None) -> Freed:
        return await sweep(context or self.context, await self.home(), manifests)

    async def sweep_later(self) -> Freed:
        """Sweep in another process, when every hold and every sweep begun earlier has expired."""
        self.fresh().ahead = 2 * DAYS
        freed = await self.sweep()
        self.fresh()
        return freed

    # --- state ---

    @property
    def uploads(self) -> list[str]:
        """The keys of all objects that were uploaded, in part or whole."""
        sent = [each for each in self.port.requests if isinstance(each, PutObject | UploadPart)]
        return [each.key if isinstance(each, PutObject) else each.upload.key for each in sent]

    async def objects(self) -> dict[str, bytes]:
        port, found = self.db._context.port, {}
        for listed in (await port.send(ListObjects("main"))).objects:
            found[listed.key] = (await port.send(GetObject("main", listed.key))).body
        return found

    async def records(self) -> dict[tuple[str, str], Item]:
        home = await self.home()
        page = await self.db._context.port.send(Scan(home.table, consistent=True))
        assert page.last_key is None
        return {(home.pk_of(item), home.sk_of(item)): item for item in page.items}

    async def audit(self) -> Audit:
        """Read everything, and check what always holds."""
        records, objects = await self.records(), await self.objects()
        return Audit(records, objects).audit(self.directories)


@dataclass
class Audit:
    """All records and all objects, at a moment when no request is under way."""

    records: dict[tuple[str, str], Item]
    objects: dict[str, bytes]

    def of(self, kind: str, sk: str = "") -> dict[str, Item]:
        prefix = f"holdall#Artifact{kind}"
        return {
            pk.removeprefix(prefix).removeprefix("#") + (f" {key}" if sk else ""): item
            for (pk, key), item in self.records.items()
            if pk.startswith(prefix) and key.startswith(sk or "#")
        }

    @property
    def versions(self) -> Counter[str]:
        return Counter(item["manifest"]["S"] for (_, sk), item in self.records.items() if sk == "LATEST")

    @property
    def needed(self) -> set[str]:
        """The keys that records refer to."""
        files = self.of("File").values()
        return {item["stored"]["S"] for item in files if "stored" in item} | {
            key for item in files for key in item.get("leftovers", {}).get("SS", ())
        }

    @property
    def marks(self) -> set[str]:
        return {sk for pk, sk in self.records if pk == "holdall#ArtifactSweep"}

    def audit(self, directories: Mapping[str, Directory]) -> Audit:
        pairs: dict[str, set[str]] = {}
        counts: Counter[str] = Counter()
        for key, item in self.of("Manifest", "file#").items():
            manifest, _, sha = key.partition(" file#")
            if "taken" not in item:
                pairs.setdefault(manifest, set()).add(sha)
                counts[sha] += 1
        files, manifests = self.of("File"), self.of("Manifest")
        for sha, item in files.items():
            assert int(item.get("refs", {"N": "0"})["N"]) == counts[sha], (
                "a file's count must match its pairs"
            )
            assert ("deleting" in item) == ("born" in item and counts[sha] == 0)
        assert counts.keys() <= files.keys()
        assert self.versions.keys() <= manifests.keys(), "a version's manifest must have a record"
        for sha, item in manifests.items():
            assert int(item["refs"]["N"]) == self.versions[sha], "a manifest's count must match its versions"
            if self.versions[sha]:
                assert "complete" in item
                assert "going" not in item
            else:
                assert sha in self.marks, "a manifest without versions must be marked"
            if "complete" in item:
                assert pairs.get(sha, set()) == set(directories[sha].sizes)
                self._check_files(files, directories[sha])
        return self

    def _check_files(self, files: Mapping[str, Item], directory: Directory) -> None:
        for sha in directory.sizes:
            data = self.objects[files[sha]["stored"]["S"]]
            assert sha256(data).hexdigest() == sha

    def check_no_leaks(self) -> None:
        """Check that there is no unknown object and no unused manifest."""
        assert set(self.objects) <= self.needed
        assert set(self.of("Manifest")) == set(self.versions)

    def check_nothing_left(self) -> None:
        """Check that everything is gone, except the records that keep a key from being used again."""
        assert self.objects == {}
        assert self.marks == set()
        assert not self.of("Manifest")
        assert not self.of("Manifest", "file#")
        assert all("moved" in item and "born" not in item for item in self.of("File").values())


# --- where a test runs ------------------------------------------------------------------------------------


@contextmanager
def open_rig(colour: Colour = "blocking", kind: str = "memory") -> Iterator[Rig]:
    """A rig with a new, empty store."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        service: Any = MemoryService() if kind == "memory" else DiskService(root / "files")
        rig = Rig(colour, service, root)
        try:
            yield rig
        finally:
            (rig.db if colour == "blocking" else rig.db.sync).close()


Test = Callable[[Rig], Coroutine[Any, Any, None]]

_WAYS: list[tuple[Colour, str]] = [("blocking", "memory"), ("awaiting", "memory"), ("blocking", "disk")]


def everywhere(test: Test) -> Callable[..., None]:
    """Run a test in both colours, and on disk."""

    @wraps(test)
    def run_it(way: tuple[Colour, str]) -> None:
        with open_rig(*way) as rig:
            finish(way[0], test(rig))

    del run_it.__wrapped__  # pytest would take its arguments for fixtures
    marked: Callable[..., None] = pytest.mark.parametrize("way", _WAYS, ids=" ".join)(run_it)
    return marked
