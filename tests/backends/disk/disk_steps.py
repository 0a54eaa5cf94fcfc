"""Changes of objects on disk, and a way to interrupt each of their system calls, as a crash or an error would."""

from __future__ import annotations

import os
import signal
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import md5, sha256
from pathlib import Path
from typing import Any, NamedTuple

from rig.torture import ROUNDS, SEED, SEEDED, Child, run_script, strace_missing, trace_command

from holdall.backends.disk import DiskService
from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    CopyObject,
    DeleteObject,
    GetObject,
    HeadObject,
    ObjectHeaders,
    ObjectInfo,
    Part,
    PutObject,
    Upload,
    UploadPart,
)
from holdall.errors import ObjectNotFoundError

__all__ = [
    "CHANGES",
    "NAME",
    "NEW",
    "OLD",
    "ROUNDS",
    "SEED",
    "SEEDED",
    "STEPS",
    "Change",
    "Child",
    "Version",
    "at_each_step",
    "die",
    "files",
    "fork",
    "run_script",
    "sha256_of",
    "read_version",
    "strace_missing",
    "trace_command",
]

NAME = "disk"
KEY = "dir/sub/key"
STEPS = (
    *("fsync", "ftruncate", "link", "mkdir", "open", "pwrite", "rename", "rmdir", "unlink", "utime"),
    "copy_file_range",
)
"""The functions of `os` that change the disk."""


class Version(NamedTuple):
    """The bytes of an object, and the content type that belongs to them."""

    body: bytes
    content_type: str

    @property
    def headers(self) -> ObjectHeaders:
        return ObjectHeaders(self.content_type)


OLD = Version(b"old" * 10_000, "text/old")
NEW = Version(b"new!" * 20_000, "text/new")


def read_version(root: Path, key: str = KEY) -> Version | None:
    """Read an object with a new service; its digests must be those of its bytes."""
    service = DiskService(root)
    try:
        found = service.send_blocking(GetObject(NAME, key))
    except ObjectNotFoundError:
        return None
    assert found.info.size == len(found.body)
    assert (found.info.md5, found.info.sha256) == (md5_of(found.body), sha256_of(found.body))
    return Version(found.body, found.info.headers.content_type or "")


def md5_of(body: bytes) -> str:
    return b64encode(md5(body, usedforsecurity=False).digest()).decode()


def sha256_of(body: bytes) -> str:
    return b64encode(sha256(body).digest()).decode()


def files(root: Path) -> set[str]:
    """All files below a root, relative to it."""
    return {str(Path(place, name).relative_to(root)) for place, _, names in os.walk(root) for name in names}


# --- changes ---


class Change(NamedTuple):
    """A change of an object: its version before, preparations, the request, and its version afterwards."""

    name: str
    before: Version | None
    prepare: Callable[[DiskService], Any]
    make: Callable[[DiskService, Any], Any]
    after: Version | None

    def __str__(self) -> str:
        return self.name


def _put(service: DiskService, version: Version, key: str = KEY) -> ObjectInfo:
    return service.send_blocking(PutObject(NAME, key, version.body, version.headers))


def _begin_upload(service: DiskService, *sizes: int) -> tuple[Upload, tuple[Part, ...]]:
    """Begin an upload of the new version with parts of these sizes; send three parts in reverse order."""
    upload = service.send_blocking(BeginUpload(NAME, KEY, NEW.headers))
    places = [(number, sum(sizes[: number - 1]), size) for number, size in enumerate(sizes, 1)]
    parts = [
        service.send_blocking(UploadPart(NAME, upload, number, NEW.body[start : start + size]))
        for number, start, size in (reversed(places) if len(sizes) == 3 else places)
    ]
    return upload, tuple(sorted(parts, key=lambda part: part.number))


def _complete(service: DiskService, begun: tuple[Upload, tuple[Part, ...]], put_id: str | None) -> ObjectInfo:
    digests = md5_of(NEW.body), sha256_of(NEW.body)
    return service.send_blocking(CompleteUpload(NAME, *begun, *digests, put_id))


def _do_nothing(service: DiskService) -> None:
    pass


def _etag(service: DiskService) -> str:
    return service.send_blocking(HeadObject(NAME, KEY)).etag


CHANGES = [
    Change("put", OLD, _do_nothing, lambda s, _: _put(s, NEW), NEW),
    Change("create", None, _do_nothing, lambda s, _: _put(s, NEW), NEW),
    Change(
        "create if absent",
        None,
        _do_nothing,
        lambda s, _: s.send_blocking(PutObject(NAME, KEY, NEW.body, NEW.headers, if_absent="id")),
        NEW,
    ),
    Change(
        "copy",
        OLD,
        lambda s: _put(s, NEW, "source"),
        lambda s, _: s.send_blocking(CopyObject(NAME, "source", KEY)),
        NEW,
    ),
    Change("delete", OLD, _do_nothing, lambda s, _: s.send_blocking(DeleteObject(NAME, KEY)), None),
    Change(
        "complete in place",
        OLD,
        lambda s: _begin_upload(s, 60_000, 20_000),
        lambda s, begun: _complete(s, begun, None),
        NEW,
    ),
    Change(
        "complete in place if absent",
        None,
        lambda s: _begin_upload(s, 60_000, 20_000),
        lambda s, begun: _complete(s, begun, "id"),
        NEW,
    ),
    Change(
        "complete from separate files",
        OLD,
        lambda s: _begin_upload(s, 50_000, 20_000, 10_000),
        lambda s, begun: _complete(s, begun, None),
        NEW,
    ),
    Change(
        "complete from separate files if absent",
        None,
        lambda s: _begin_upload(s, 50_000, 20_000, 10_000),
        lambda s, begun: _complete(s, begun, "id"),
        NEW,
    ),
    Change(
        "put if match",
        OLD,
        _etag,
        lambda s, etag: s.send_blocking(PutObject(NAME, KEY, NEW.body, NEW.headers, if_match=etag)),
        NEW,
    ),
    Change(
        "delete if match",
        OLD,
        _etag,
        lambda s, etag: s.send_blocking(DeleteObject(NAME, KEY, etag)),
        None,
    ),
]


# --- steps ---


@contextmanager
def at_each_step(
    meet: Callable[[int, str, Callable[..., Any], tuple[Any, ...]], None], steps: Sequence[str] = STEPS
) -> Iterator[None]:
    """Before each change to the disk, call ``meet`` with its number (from 1), name, function and arguments."""
    real = {name: getattr(os, name) for name in steps}
    count = 0

    def watch(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            if name != "open" or arguments[1] & os.O_CREAT:
                count += 1
                meet(count, name, real[name], arguments)
            return real[name](*arguments, **options)

        return call

    for name in steps:
        setattr(os, name, watch(name))
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)


def fork(work: Callable[[], Any]) -> int:
    """Do the work in a forked child; return its exit code, or minus the signal that killed it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)
