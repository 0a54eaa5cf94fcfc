"""Random operations on a service, compared with a dictionary that predicts their results.

Hypothesis runs the state machine: it draws names, bytes and headers from small pools, so that several operations hit
the same object. Each run has its own prefix and a random colour (sync or async).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest import TestCase

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, precondition, rule

from holdall.core.objects import (
    AbortUpload,
    CopyPart,
    DeleteObjects,
    ListUploads,
    ObjectHeaders,
    Part,
    Upload,
)
from holdall.core.port import Backend, run
from holdall.errors import HoldallError, IntegrityError, ObjectNotFoundError, PreconditionFailedError
from holdall.testing.file_contract.check import NAME, Calls, Service, md5_of, sha256_of
from holdall.testing.file_contract.listing import in_order
from holdall.testing.file_contract.uploads import parts_of

__all__ = ["model_test"]

T = TypeVar("T")

NAMES = ("a", "a/", "a/b", "A", "a b", "a+b", "a%20b", "ü", "u\u0308", "😀/<&>", "b\nc", "x" * 300)
names = st.sampled_from(NAMES)
prefixes = st.sampled_from(("", "a", "a/", "A", "a ", "u", "ü", "😀", "x" * 200, "nothing"))
bodies = st.binary(max_size=40) | st.integers(0, 70_000).map(lambda size: b"0123456789" * (size // 10))
texts = st.sampled_from(("red", "Grüße 😀", "", "=?utf-8?q?x?=", "two  spaces"))
headers = st.builds(
    ObjectHeaders,
    content_type=st.sampled_from(("text/plain", "image/png")),
    disposition=st.sampled_from((None, "inline")),
    cache_control=st.sampled_from((None, "no-store")),
    metadata=st.dictionaries(st.sampled_from(("colour", "shape-of-it")), texts),
)


@dataclass
class ExpectedObject:
    """The expected state of an object."""

    body: bytes
    headers: ObjectHeaders
    etag: str
    put_id: str | None = None


@dataclass
class ExpectedUpload:
    """The expected state of an upload."""

    name: str
    headers: ObjectHeaders
    parts: dict[int, tuple[bytes, Part]] = field(default_factory=dict)


class ServiceMachine(RuleBasedStateMachine):
    """Applies each operation to the service and to the dictionaries."""

    opened: Callable[[], AbstractContextManager[Backend]]
    uploads = Bundle("uploads")

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, ExpectedObject] = {}
        self.sending: dict[Upload, ExpectedUpload] = {}
        self.sent: dict[Upload, tuple[Part, str]] = {}
        self.etags: dict[tuple[str, str], bytes] = {}
        self._stack = ExitStack()

    @initialize(colour=st.sampled_from(("blocking", "awaiting")))
    def open_service(self, colour: Calls) -> None:
        backend = self._stack.enter_context(type(self).opened())
        self.service = Service(backend, colour)
        if colour == "awaiting":
            self._runner = self._stack.enter_context(asyncio.Runner())

    def teardown(self) -> None:
        if not hasattr(self, "service"):
            return
        try:
            self.list("", 1000)
            self.do(self.service.clear())
        finally:
            self._stack.close()

    def do(self, flow: Coroutine[Any, Any, T]) -> T:
        return run(flow) if self.service.calls == "blocking" else self._runner.run(flow)

    def keep(self, name: str, kept: ExpectedObject) -> None:
        assert self.etags.setdefault((name, kept.etag), kept.body) == kept.body, "different bytes, same etag"
        self.kept[name] = kept

    # --- objects ---

    @rule(name=names, body=bodies, headers=headers, with_digests=st.booleans())
    def put(self, name: str, body: bytes, headers: ObjectHeaders, with_digests: bool) -> None:
        digests = {"md5": md5_of(body), "sha256": sha256_of(body)} if with_digests else {}
        info = self.do(self.service.put(name, body, headers=headers, **digests))
        assert (info.size, info.headers, info.put_id) == (len(body), headers, None)
        self.keep(name, ExpectedObject(body, headers, info.etag))

    @rule(name=names, body=bodies, digest=st.sampled_from(("md5", "sha256")))
    def put_with_a_wrong_digest(self, name: str, body: bytes, digest: str) -> None:
        wrong = {"md5": md5_of(body + b"x")} if digest == "md5" else {"sha256": sha256_of(body + b"x")}
        with pytest.raises(IntegrityError):
            self.do(self.service.put(name, body, **wrong))

    @rule(name=names, body=bodies, headers=headers)
    def create(self, name: str, body: bytes, headers: ObjectHeaders) -> None:
        mine = self.service.port.new_id()
        creation = self.service.put(name, body, headers=headers, if_absent=mine)
        if name in self.kept:
            with pytest.raises(PreconditionFailedError):
                self.do(creation)
        else:
            info = self.do(creation)
            assert (info.headers, info.put_id) == (headers, mine)
            self.keep(name, ExpectedObject(body, headers, info.etag, mine))

    @precondition(lambda self: self.etags)
    @rule(name=names, body=bodies, headers=headers, known=st.booleans(), data=st.data())
    def replace(
        self, name: str, body: bytes, headers: ObjectHeaders, known: bool, data: st.DataObject
    ) -> None:
        etag = self.some_etag(name, known, data)
        replacing = self.service.put(name, body, headers=headers, if_match=etag)
        if (kept := self.kept.get(name)) is None or kept.etag != etag:
            with pytest.raises(PreconditionFailedError):
                self.do(replacing)
        else:
            info = self.do(replacing)
            assert (info.size, info.headers) == (len(body), headers)
            self.keep(name, ExpectedObject(body, headers, info.etag, info.put_id))

    @precondition(lambda self: self.etags)
    @rule(name=names, known=st.booleans(), data=st.data())
    def delete_if_it_matches(self, name: str, known: bool, data: st.DataObject) -> None:
        etag = self.some_etag(name, known, data)
        deleting = self.service.delete_match(name, etag)
        if (kept := self.kept.get(name)) is not None and kept.etag != etag:
            with pytest.raises(PreconditionFailedError):
                self.do(deleting)
        else:
            self.do(deleting)
            self.kept.pop(name, None)

    def some_etag(self, name: str, known: bool, data: st.DataObject) -> str:
        """Return the object's current etag if the caller knows it, or else any etag that a service has returned."""
        if known and name in self.kept:
            return self.kept[name].etag
        return data.draw(st.sampled_from(sorted(self.etags)))[1]

    @rule(name=names, start=st.integers(0, 60), size=st.none() | st.integers(1, 70_000))
    def get(self, name: str, start: int, size: int | None) -> None:
        reading = self.service.get(name, start=start, size=size)
        if (kept := self.kept.get(name)) is None:
            with pytest.raises(ObjectNotFoundError):
                self.do(reading)
            return
        found = self.do(reading)
        assert found.body == (kept.body[start:] if size is None else kept.body[start : start + size])
        assert found.start == start
        info = found.info
        assert (info.size, info.headers, info.etag) == (len(kept.body), kept.headers, kept.etag)

    @precondition(lambda self: self.etags)
    @rule(name=names, data=st.data())
    def get_if_it_matches(self, name: str, data: st.DataObject) -> None:
        _, etag = data.draw(st.sampled_from(sorted(self.etags)))
        reading = self.service.get(name, if_match=etag)
        if (kept := self.kept.get(name)) is None:
            with pytest.raises(ObjectNotFoundError):
                self.do(reading)
        elif kept.etag != etag:
            with pytest.raises(PreconditionFailedError):
                self.do(reading)
        else:
            assert self.do(reading).body == kept.body

    @rule(name=names)
    def head(self, name: str) -> None:
        if (kept := self.kept.get(name)) is None:
            with pytest.raises(ObjectNotFoundError):
                self.do(self.service.head(name))
            return
        info = self.do(self.service.head(name))
        assert (info.size, info.headers, info.etag) == (len(kept.body), kept.headers, kept.etag)
        assert info.put_id == kept.put_id

    @rule(source=names, name=names, known=st.sampled_from((None, True, False)), creates=st.booleans())
    def copy(self, source: str, name: str, known: bool | None, creates: bool) -> None:
        kept = self.kept.get(source)
        etag = None if known is None else "0" * 32 if not known or kept is None else kept.etag
        mine = self.service.port.new_id() if creates else None
        copying = self.service.copy(source, name, if_match=etag, if_absent=mine)
        if kept is None:
            with pytest.raises(ObjectNotFoundError):
                self.do(copying)
        elif known is False or (creates and name in self.kept):
            with pytest.raises(PreconditionFailedError):
                self.do(copying)
        else:
            info = self.do(copying)
            assert (info.size, info.headers, info.put_id) == (len(kept.body), kept.headers, mine)
            self.keep(name, ExpectedObject(kept.body, kept.headers, info.etag, mine))

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.do(self.service.delete(name))
        self.kept.pop(name, None)

    @rule(gone=st.lists(names, min_size=1, max_size=5))
    def delete_many(self, gone: list[str]) -> None:
        keys = tuple(self.service.key(name) for name in gone)
        assert self.do(self.service.send(DeleteObjects(NAME, keys))).failures == {}
        for name in gone:
            self.kept.pop(name, None)

    @rule(prefix=prefixes, limit=st.sampled_from((1, 2, 3, 1000)))
    def list(self, prefix: str, limit: int) -> None:
        pages = self.do(self.service.pages(prefix, limit))
        found = [
            (listed.key.removeprefix(self.service.prefix), listed.size, listed.etag)
            for page in pages
            for listed in page.objects
        ]
        wanted = in_order([name for name in self.kept if name.startswith(prefix)])
        assert found == [(name, len(self.kept[name].body), self.kept[name].etag) for name in wanted]

    # --- uploads ---

    @rule(target=uploads, name=names, headers=headers)
    def begin(self, name: str, headers: ObjectHeaders) -> Upload:
        upload = self.do(self.service.begin(name, headers=headers))
        assert upload not in self.sending
        self.sending[upload] = ExpectedUpload(name, headers)
        return upload

    @rule(upload=uploads, number=st.integers(1, 3), body=bodies)
    def upload_part(self, upload: Upload, number: int, body: bytes) -> None:
        uploading = self.service.part(upload, number, body)
        if (sending := self.sending.get(upload)) is None:
            with pytest.raises(ObjectNotFoundError):
                self.do(uploading)
        else:
            part = self.do(uploading)
            assert (part.number, part.size) == (number, len(body))
            sending.parts[number] = (body, part)

    @rule(
        upload=uploads,
        number=st.integers(1, 3),
        source=names,
        start=st.integers(0, 30),
        size=st.integers(1, 9),
    )
    def copy_part(self, upload: Upload, number: int, source: str, start: int, size: int) -> None:
        key = self.service.key(source)
        copying = self.service.send(CopyPart(NAME, upload, number, key, start, size))
        sending, kept = self.sending.get(upload), self.kept.get(source)
        if kept is not None and start + size > len(kept.body):
            with pytest.raises(HoldallError):
                self.do(copying)
        elif sending is None or kept is None:
            with pytest.raises(ObjectNotFoundError):
                self.do(copying)
        else:
            part = self.do(copying)
            assert (part.number, part.size) == (number, size)
            sending.parts[number] = (kept.body[start : start + size], part)

    @rule(upload=uploads)
    def list_parts(self, upload: Upload) -> None:
        if (sending := self.sending.get(upload)) is None:
            with pytest.raises(ObjectNotFoundError):
                self.do(parts_of(self.service, upload))
        else:
            wanted = tuple(sending.parts[number][1] for number in sorted(sending.parts))
            assert self.do(parts_of(self.service, upload)) == wanted

    @rule(prefix=prefixes)
    def list_uploads(self, prefix: str) -> None:
        found = self.do(self.service.send(ListUploads(NAME, self.service.key(prefix))))
        wanted = {upload for upload, sending in self.sending.items() if sending.name.startswith(prefix)}
        assert len(found) == len(wanted)
        assert set(found) == wanted

    @rule(
        upload=uploads,
        number=st.integers(1, 3),
        demands=st.sampled_from((None, "nothing", "what is there", "another")),
    )
    def complete(self, upload: Upload, number: int, demands: str | None) -> None:
        """Complete an upload with one of its parts: strict services refuse to join small ones."""
        sending = self.sending.get(upload)
        if sending is None:
            self.complete_again(upload, number)
            return
        if number not in sending.parts:
            return
        body, part = sending.parts[number]
        there = self.kept.get(sending.name)
        demanded: dict[str, str] = {}
        if demands == "nothing":
            demanded["if_absent"] = self.service.port.new_id()
        elif demands is not None:
            demanded["if_match"] = there.etag if there and demands == "what is there" else "0" * 32
        completing = self.service.complete(upload, part, **demanded)
        wanted = {None: True, "nothing": there is None, "what is there": there is not None}
        if not wanted.get(demands, False):
            with pytest.raises(PreconditionFailedError):
                self.do(completing)
            self.do(self.service.send(AbortUpload(NAME, upload)))
        else:
            info = self.do(completing)
            assert (info.size, info.headers) == (len(body), sending.headers)
            self.keep(sending.name, ExpectedObject(body, sending.headers, info.etag, info.put_id))
            self.sent[upload] = part, info.etag
        del self.sending[upload]

    def complete_again(self, upload: Upload, number: int) -> None:
        """An aborted upload is not found. For a completed one, a service may return the same result again."""
        if (sent := self.sent.get(upload)) is None:
            with pytest.raises(ObjectNotFoundError):
                self.do(self.service.complete(upload, Part(number, "0" * 32, 1)))
            return
        part, etag = sent
        with suppress(ObjectNotFoundError):
            assert self.do(self.service.complete(upload, part)).etag == etag

    @rule(upload=uploads)
    def abort(self, upload: Upload) -> None:
        self.do(self.service.send(AbortUpload(NAME, upload)))
        self.sending.pop(upload, None)


def model_test(
    opened: Callable[[], AbstractContextManager[Backend]], *, examples: int, steps: int
) -> type[TestCase]:
    """Return a test case, for pytest to collect, that runs the state machine on a service; more often under torture."""

    class Machine(ServiceMachine):
        pass

    Machine.opened = staticmethod(opened)
    chosen = settings.default
    assert chosen is not None
    rounds = examples if chosen.derandomize else examples * 60
    case: type[TestCase] = Machine.TestCase
    case.settings = settings(chosen, max_examples=rounds, stateful_step_count=steps)  # type: ignore[attr-defined]
    return case
