"""Steps about files: whole or not at all, resumed after a kill, shared by URLs, mirrored and repaired."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from holdall import Database
from holdall.backends.disk import DiskService
from holdall.core import Request
from holdall.core.objects import DescribeService, UploadPart
from holdall.core.port import Backend
from holdall.errors import HoldallError, IntegrityError, PreconditionFailedError
from tour.stage import Meter, Tour, step

R = TypeVar("R")

SECRET = "the tour's own secret, 32 letters"
LARGE = 48_000_000


class MeteredService:
    """A service whose requests are counted together with the table's."""

    def __init__(self, service: Backend, meter: Meter) -> None:
        self.service = service
        self.parts = 0
        self._meter = meter

    def send_blocking(self, request: Request[R]) -> R:
        try:
            reply = self.service.send_blocking(request)
        except HoldallError as error:
            self._meter.count(request, error)
            raise
        if not isinstance(request, DescribeService):  # it is answered without a request
            self._meter.count(request, reply)
        self.parts += isinstance(request, UploadPart)
        return reply

    async def send_awaiting(self, request: Request[R]) -> R:
        return self.send_blocking(request)

    def close(self) -> None:
        self.service.close()


def open_disk(tour: Tour, name: str, **options: Any) -> MeteredService:
    return MeteredService(DiskService(tour.folder / name, **options), tour.meter)


@step("Files: as a whole, or not at all")
def whole_files(tour: Tour) -> None:
    """Bytes under keys, in a directory. A large file is stored in parts and appears when the last part is stored."""
    source = tour.folder / "film.raw"
    source.write_bytes(os.urandom(LARGE))
    with Database(tour.url, files=open_disk(tour, "files")) as db:
        db.files.put("notes/ü & ö.txt", "Grüße".encode(), content_type="text/plain")
        began = time.perf_counter()
        steps: list[int] = []
        film = db.files.put("film", source, progress=lambda done, total: steps.append(done))
        seconds = time.perf_counter() - began
        tour.voice.say(
            f"{LARGE / 1e6:.0f} MB in {len(steps) - 1} parts, digested on the way, in {seconds:.2f} s: "
            f"{LARGE / 1e6 / seconds:,.0f} MB/s."
        )
        with db.files.open("film") as handle, source.open("rb") as file:
            handle.seek(-5, 2)
            file.seek(-5, 2)
            assert handle.read() == file.read()
        tour.voice.table(
            ["key", "bytes", "sha256"],
            [
                (each.key, f"{each.size:,}", f"{db.files.head(each.key).sha256:.24}…")
                for each in db.files.list()
            ],
        )
        attempts: list[tuple[str, type[HoldallError], dict[str, Any]]] = [
            ("put the film where one exists", PreconditionFailedError, {"if_absent": True}),
            ("put it with the digest of another file", IntegrityError, {"md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}),
        ]
        for what, kind, options in attempts:
            try:
                db.files.put("film", source, **options)
            except kind as error:
                tour.voice.refusal(what, error.code, error.message, error.hint)
            else:
                raise AssertionError(f"not refused: {what}")
        assert db.files.head("film").etag == film.etag


UPLOADER = """
import os, signal, sys
from holdall import Database

def watch(done, total):
    if done > total / 2:
        os.kill(os.getpid(), signal.SIGKILL)

with Database("memory:", files=sys.argv[1]) as db:
    db.files.put("film", sys.argv[2], resume=True, progress=watch)
"""


@step("An upload that is killed half-way")
def kill_upload(tour: Tour) -> None:
    """SIGKILL ends a process in the middle of a put. No file appears, and the next process continues the upload."""
    source, service = tour.folder / "film.raw", open_disk(tour, "resumed")
    command = [sys.executable, "-c", UPLOADER, f"file:{tour.folder / 'resumed'}", str(source)]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    with Database(tour.url, files=service) as db:
        seen = db.files.exists("film")
        info = db.files.put("film", source, resume=True)
        total = -(-info.size // (8 * 1024 * 1024))
        tour.voice.say(f"After the kill, the film exists: {seen}.")
        tour.voice.say(f"The second process sent {service.parts} of its {total} parts.")
        assert (seen, info.size) == (False, LARGE)
        assert service.parts <= total - 3
        with source.open("rb") as file, db.files.open("film") as handle:
            assert all(file.read(len(piece)) == piece for piece in handle)


@step("Files: shared, composed, mirrored, repaired")
def share_files(tour: Tour) -> None:
    """A signed URL works for a limited time. A worker fills the mirror; damaged bytes are detected and repaired."""
    main = open_disk(tour, "files", secret=[SECRET], base_url="https://shop.example/files")
    named: dict[str, Any] = {"main": main, "copy": open_disk(tour, "copy"), "safe": "mirror:main,copy"}
    with Database(tour.url, files=named, default_service="safe") as db:
        for number in (1, 2, 3):
            db.files.put(f"pages/{number}", f"page {number}\n".encode(), content_type="text/plain")
        whole = db.files.compose([f"pages/{number}" for number in (1, 2, 3)], "book")
        url = db.files.url("book", expires=60, disposition="attachment", filename="Bücher.txt")
        permitted = main.service.verified_download(urlsplit(url).path.rpartition("/")[2])  # type: ignore[attr-defined]
        tour.voice.say(f"The book has {whole.size} bytes. This URL serves it for one minute:")
        tour.voice.show(f"{url[:88]}…\nserves {permitted.key}: {permitted.headers.disposition}")
        before = db.files.check_mirrors()[0].missing
        db.worker(queues=["default"]).drain()
        rows = [
            ("before the worker ran", before),
            ("after", db.files.check_mirrors(prefix="pages/")[0].missing),
        ]
        tour.voice.table(["", "missing in the mirror"], rows)
        (page,) = [path for path in (tour.folder / "files").rglob("*") if _is(path, b"page 2\n")]
        times = page.stat()
        page.write_bytes(b"page Z\n")
        os.utime(page, ns=(times.st_atime_ns, times.st_mtime_ns))
        try:
            db.files.get("pages/2")
        except IntegrityError as error:
            tour.voice.refusal(
                "read a page in which a byte has changed", error.code, error.message, error.hint
            )
        db.files.put("pages/2", db.files["copy"].get("pages/2"), content_type="text/plain")
        tour.voice.say(f"Repaired from the mirror: {db.files.get('pages/2').decode().strip()}.")
        db.worker().drain()
        db.files.delete_prefix("pages/")
        left = [each.key for each in db.files["copy"].list("pages/")]
        tour.voice.say(f"Deleted everywhere; left in the mirror: {len(left)}.")
        assert (rows[-1][1], left) == (0, [])


def _is(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data
