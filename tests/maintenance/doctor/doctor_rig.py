"""A database to examine: in memory, in a file and on a server, sync and async."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from rig.colour import Colour, here_and_elsewhere, run_in, take_turns
from rig.files import bucket_service
from rig.servers import ENVIRONMENT, sign_in, start_server
from rig.torture import TORTURE

from holdall import Database, Index, Key, Model, SortKey, field
from holdall.core import DeleteItem, GetItem, Item, PutItem, Scan, encode_item
from holdall.maintenance import DoctorReport


class Person(Model, name="DoctorPerson", indexes=[Index("by_town", key=["town"], sort_key=["age"])]):
    name: Key[str]
    town: str
    age: int = 0
    email: str | None = field(default=None, unique=True)


class Visit(Model, name="DoctorVisit", ttl="until"):
    person: Key[str]
    number: SortKey[int]
    until: datetime | None = None


MODELS: list[type[Model]] = [Person, Visit]


class Patient:
    """A database; ``examine`` works in the colour of the test."""

    def __init__(self, db: Database, colour: Colour) -> None:
        self.db = db
        self.colour = colour

    async def examine(self, **options: Any) -> DoctorReport:
        options = {"models": MODELS, **options}
        if self.colour == "blocking":
            return self.db.doctor(**options)
        return await self.db.aio.doctor(**options)

    def read(self, pk: str, sk: str) -> Item | None:
        return self.db.send(GetItem(self.db.table.name, encode_item({"pk": pk, "sk": sk}), True)).item

    def write(self, item: Item) -> None:
        self.db.send(PutItem(self.db.table.name, item))

    def put(self, pk: str, sk: str, **values: Any) -> None:
        self.write(encode_item({"pk": pk, "sk": sk, **values}))

    def change(self, pk: str, sk: str, **attributes: Any) -> None:
        """Change stored attributes behind Holdall's back; None removes one."""
        item = dict(self.read(pk, sk) or {})
        assert item
        for name, attribute in attributes.items():
            if attribute is None:
                item.pop(name)
            else:
                item[name] = attribute
        self.write(item)

    def delete(self, pk: str, sk: str) -> None:
        self.db.send(DeleteItem(self.db.table.name, encode_item({"pk": pk, "sk": sk})))

    def find(self, **wanted: str) -> Item:
        """The stored item with these attributes; values are compared by prefix."""
        for page in self.db.pages(Scan(self.db.table.name, consistent=True)):
            for item in page.items:
                if all(item.get(name, {}).get("S", "").startswith(text) for name, text in wanted.items()):
                    return item
        raise LookupError(wanted)

    def forget(self, **wanted: str) -> Item:
        """Delete the stored item with these attributes, and return it."""
        item = self.find(**wanted)
        self.delete(item["pk"]["S"], item["sk"]["S"])
        return item

    def alter(self, attributes: dict[str, Any], **wanted: str) -> None:
        item = self.find(**wanted)
        self.change(item["pk"]["S"], item["sk"]["S"], **attributes)

    def lose(self, prefix: str) -> None:
        """Delete all objects whose keys have this prefix."""
        for each in list(self.db.files.list(prefix)):
            self.db.files.delete(each.key)


@dataclass(frozen=True)
class Ward:
    """A store and a colour."""

    store: str
    colour: Colour

    def __str__(self) -> str:
        return f"{self.store}-{self.colour}"


def open_store(kind: str, folder: Path) -> Database:
    """Open a new database with a file service."""
    if kind == "memory":
        return Database("memory:", secret="x" * 32)
    if kind == "file":
        return Database(f"embedded:{folder / 'a.db'}?durability=normal", files=f"file:{folder / 'files'}")
    url = (
        f"dynamodb://doctor-{uuid4()}?region={ENVIRONMENT['AWS_REGION']}&endpoint={start_server('ministack')}"
    )
    return Database(url, manage_table=True, credentials=sign_in, files=bucket_service(uuid4().hex))


@contextmanager
def open_patient(ward: Ward) -> Iterator[Patient]:
    """Open a healthy database with a few items."""
    with tempfile.TemporaryDirectory() as folder, open_store(ward.store, Path(folder)) as db:
        db.table.create(models=MODELS)
        fill(db)
        yield Patient(db, ward.colour)


def fill(db: Database) -> None:
    """Store a few items without faults."""
    with db.transaction() as tx:
        tx.create(Person, name="ada", town="London", age=36, email="ada@example.com")
        tx.create(Person, name="bob", town="Paris", email="bob@example.com")
        tx.create(Person, name="eve", town="Paris")
        tx.create(Visit, person="ada", number=1, until=datetime.fromisoformat("2100-01-01T00:00:00Z"))


def list_wards(name: str) -> list[Ward]:
    return [Ward(*each) for each in here_and_elsewhere(["file", "ministack"], name)]


everywhere = run_in(list_wards, open_patient)


# --- planted faults -----------------------------------------------------------------------------------------


class Fault(NamedTuple):
    """How to plant a fault, the check that finds it, words of its message, and whether it can be repaired."""

    plant: Callable[[Any], Any]
    check: str
    words: str
    repairable: bool


def list_cases(faults: Mapping[str, Fault]) -> list[Any]:
    """Each fault in memory or in a file, in one colour, in turn; under torture in all ways."""
    cases = []
    for name, fault in faults.items():
        here = [Ward(*each) for each in here_and_elsewhere(["file"], name)]
        chosen = list_wards(name) if TORTURE else [here[take_turns("where", name)]]
        cases += [pytest.param(ward, fault, id=f"{ward}-{name}") for ward in chosen]
    return cases


async def confirm_fault(patient: Patient, fault: Fault) -> None:
    """Plant a fault; check that it is found without changing anything, and that a repair removes it if possible."""
    fault.plant(patient)
    report = await patient.examine()
    assert any(fault.words in each.message for each in report.findings), report.findings
    assert {each.check for each in report.findings} == {fault.check}
    assert not any(each.repaired for each in report.findings)
    assert (await patient.examine()).findings == report.findings, "the first examination changed something"
    repaired = await patient.examine(repair=True)
    assert repaired.repaired == (repaired.found if fault.repairable else 0), repaired.findings
    assert (await patient.examine()).is_healthy is fault.repairable
