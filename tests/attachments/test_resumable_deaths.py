"""A process dies right before or right after any request of a resumable upload: it can continue, nothing is left over.

The dead process is one whose requests are all refused from then on, so its cleanup changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from attachments_rig import SECRET, ask_for_small_parts
from rig.clock import Clock, TimedPort
from rig.recorder import Recorder

from holdall import Database
from holdall.attachments.upload.upload import GRACE
from holdall.backends.disk import DiskService
from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.core.frozen import replace
from holdall.core.objects import ListUploads
from holdall.core.requests import Scan
from holdall.errors import OutcomeUnknown, RecordNotFound, ServiceUnavailableError

DATA = b"one part, another, the end"
DAY = 86400.0


class Death(BaseException):
    """The process died."""


class World:
    """A store, a service and a clock that outlive the processes that use them."""

    def __init__(self, path: Path | None, service: Any) -> None:
        self.recorder = Recorder(EmbeddedBackend(path, durability="normal"))
        self.service = Recorder(ask_for_small_parts(service), beside=self.recorder)
        self.clock = Clock(ticking=True)

    @contextmanager
    def process(
        self, dies: int = 0, when: str = "after", fault: BaseException | None = None
    ) -> Iterator[Database]:
        """A process that dies at one of its requests; with a fault, only that request fails."""
        left, self.struck = dies, False

        def count(request: Any) -> None:
            nonlocal left
            left -= fault is None or when == "before" or request.writes
            if left == 0:
                left, self.struck = -1, True
                if fault is not None:
                    raise fault
                self.recorder.before = stop
                raise Death

        def stop(request: Any) -> None:
            raise Death

        self.recorder.before = self.recorder.after = lambda request: None
        if dies:
            setattr(self.recorder, when, count)
        db = Database("memory:", backend=self.recorder, files=self.service, secret=SECRET)
        db._context = replace(db._context, port=TimedPort(db._context.port, self.clock))
        with suppress(Death, ServiceUnavailableError, OutcomeUnknown):
            yield db
        self.recorder.before = self.recorder.after = lambda request: None

    def list_leftovers(self, db: Database) -> list[Any]:
        """Everything in the service, and the types of Holdall's own items in the table."""
        found = self.recorder.send_blocking(Scan(db._context.settings.table_name, consistent=True))
        items = [item["_type"]["S"] for item in found.items if "_type" in item]
        return [*db.files.list(), *self.service.send_blocking(ListUploads("default")), *items]


WORLDS: dict[str, Callable[[Path], World]] = {
    "memory": lambda directory: World(None, MemoryService()),
    "disk": lambda directory: World(directory / "app.db", DiskService(directory / "files")),
}


def upload(db: Database, ids: list[str]) -> None:
    started = db.blobs.start_upload(filename="a.txt", byte_size=len(DATA))
    ids.append(started.id)
    for at, end in ((0, 14), (14, len(DATA))):
        db.blobs.continue_upload(started, at, iter([DATA[at:end]]))


def cancel(db: Database, ids: list[str]) -> None:
    started = db.blobs.start_upload(filename="a.txt", byte_size=len(DATA))
    ids.append(started.id)
    db.blobs.continue_upload(started, 0, DATA[:14])
    db.blobs.cancel_upload(started)


def resume(db: Database, id: str) -> None:
    """Continue as a client does: ask for the offset, then send the rest."""
    found = db.blobs.find_upload(id)
    if not found.is_complete:
        found = db.blobs.continue_upload(found, found.offset, DATA[found.offset :])
    assert found.is_complete
    assert db.blobs.download(id) == DATA


FAULTS = {"before": ServiceUnavailableError("on purpose"), "after": OutcomeUnknown("lost on purpose")}


@pytest.mark.parametrize(
    ("change", "store", "when", "fault"),
    [
        (upload, "memory", "before", None),
        (upload, "memory", "after", None),
        (upload, "disk", "after", None),
        (cancel, "memory", "after", None),
        (upload, "memory", "before", FAULTS["before"]),
        (upload, "memory", "after", FAULTS["after"]),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_after_a_death_or_fault_at_any_request_an_upload_continues_and_leaves_nothing_over(
    tmp_path: Path,
    change: Callable[[Database, list[str]], None],
    store: str,
    when: str,
    fault: BaseException | None,
) -> None:
    for step in range(1, 100):
        (directory := tmp_path / str(step)).mkdir()
        world = WORLDS[store](directory)
        ids: list[str] = []
        with world.process(step, when, fault) as db:
            change(db, ids)
        struck = world.struck
        with world.process() as db:
            if (
                ids and change is upload and (step % 2 or store == "disk" or fault)
            ):  # otherwise it is abandoned
                resume(db, ids[0])
            elif ids and change is cancel:
                with suppress(RecordNotFound):
                    assert db.blobs.find_upload(ids[0]).offset in (0, 10, 14)
            assert db.blobs.check().findings == ()
        world.clock.forward(DAY + GRACE.total_seconds() + 3600)
        with world.process() as db:
            db.blobs.sweep()
            assert world.list_leftovers(db) == []
        world.recorder.close()
        if not struck:
            assert step > 10
            return
    raise AssertionError("the upload never ended")
