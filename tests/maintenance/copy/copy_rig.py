"""Two databases, and copies from one to the other: in memory, in files, and to and from a server, sync and async."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from rig.colour import Colour, here_and_elsewhere, run_in
from rig.files import bucket_service
from rig.servers import ENVIRONMENT, sign_in, start_server

from holdall import Database
from holdall.core import DeleteItem, Item, PutItem, Scan, encode_item
from holdall.maintenance import CopyReport


class Rig:
    """The two databases, both sync; ``copy`` works in the colour of the test."""

    def __init__(self, source: Database, target: Database, colour: Colour, folder: Path) -> None:
        self.source = source
        self.target = target
        self.colour = colour
        self.folder = folder

    async def copy(self, **options: Any) -> CopyReport:
        options = {"manifest": self.folder / "manifest", "segments": 2, **options}
        if self.colour == "blocking":
            return self.source.copy_to(self.target, **options)
        return await self.source.aio.copy_to(self.target.aio, **options)

    def put(self, *numbers: int, where: Database | None = None, **values: Any) -> None:
        db = where or self.source
        for number in numbers:
            key = {"pk": f"Thing#{number % 3}", "sk": str(number)}
            db.send(PutItem(db.table.name, encode_item({**key, "n": number, **values})))

    def delete(self, *numbers: int, where: Database | None = None) -> None:
        db = where or self.source
        for number in numbers:
            key = encode_item({"pk": f"Thing#{number % 3}", "sk": str(number)})
            db.send(DeleteItem(db.table.name, key))


def items(db: Database, table: str | None = None) -> list[Item]:
    """All items of a table, in a fixed order."""
    name = db.table.name if table is None else table
    found = [item for page in db.pages(Scan(name, consistent=True)) for item in page.items]
    return sorted(found, key=lambda item: sorted((name, str(value)) for name, value in item.items()))


@dataclass(frozen=True)
class Way:
    """The store to copy from, the store to copy to, and a colour."""

    stores: str
    colour: Colour

    def __str__(self) -> str:
        return f"{self.stores}-{self.colour}"


@contextmanager
def open_store(kind: str, folder: Path, **settings: Any) -> Iterator[Database]:
    """Open a new database."""
    with ExitStack() as stack:
        url, more = "memory:", dict[str, Any]()
        if kind == "file":
            url = f"embedded:{folder / uuid4().hex}.db?durability=normal"
        elif kind == "ministack":
            address = start_server("ministack")
            url = f"dynamodb://copy-{uuid4()}?region={ENVIRONMENT['AWS_REGION']}&endpoint={address}"
            more = {"manage_table": True, "credentials": sign_in, "files": bucket_service(uuid4().hex)}
        yield stack.enter_context(Database(url, **{**more, **settings}))


@contextmanager
def open_rig(way: Way, source: Mapping[str, Any] = {}, target: Mapping[str, Any] = {}) -> Iterator[Rig]:
    """Open both databases, and create the source's table."""
    one, other = way.stores.split("-to-")
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(one, Path(folder), **source) as ours,
        open_store(other, Path(folder), **target) as theirs,
    ):
        ours.table.create()
        yield Rig(ours, theirs, way.colour, Path(folder))


ELSEWHERE = ["file-to-file", "file-to-ministack", "ministack-to-file"]


def list_ways(name: str) -> list[Way]:
    found = here_and_elsewhere(ELSEWHERE, name)
    return [Way("memory-to-memory" if stores == "memory" else stores, colour) for stores, colour in found]


everywhere = run_in(list_ways, open_rig)
