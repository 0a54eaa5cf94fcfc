"""Delivering a call: signing, sending, waiting, sending again, and saying honestly how it ended.

Colourless. Every call may be sent again after a lost reply; how it ends then follows from its `Manner`:

- ``repeat``: reads, and writes that a repetition does not change. The last answer counts.
- ``settle``: what creates something. A refusal may be of what an earlier send has created: `Unsettled`, and whoever
  asked has to look.

A failed precondition, or any other plain *no*, surfaces at once.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from holdall.backends.aws.connection import Target
from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.limit import Limit, Limits
from holdall.backends.aws.message import Reply
from holdall.backends.aws.proxy import find_proxy
from holdall.backends.aws.signer import UNSIGNED_PAYLOAD, Credentials, Signer, query_text, sha256_hex
from holdall.backends.aws.transfer import Manners
from holdall.backends.aws.transport import Broken, Garbled, Transport, Unsent
from holdall.backends.s3.addressing import Place
from holdall.backends.s3.call import Call
from holdall.backends.s3.digests import UNHURRIED
from holdall.backends.s3.documents import Document, NoDocument, read_document
from holdall.backends.s3.failure import Failure, failed, garbled
from holdall.backends.s3.wire import Wire
from holdall.core.frozen import dataclass, replace
from holdall.core.telemetry import warn
from holdall.errors import EndpointError, ServiceUnavailableError

__all__ = ["Answer", "Delivery", "Manner", "Unsettled"]

Manner: TypeAlias = Literal["repeat", "settle"]

BASE_SECONDS = 0.05
LONGEST_PAUSE = 5.0
BUDGET_SECONDS = 120.0
ATTEMPTS = 12

ANNOUNCED = 1024 * 1024
"""From this size on a body is announced before it is sent."""

_EMPTY = sha256_hex(b"")


class Unsettled(Exception):
    """An earlier send may have been carried out, and the last answer does not tell."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that is no failure, with its document where there is to be one."""

    reply: Reply
    document: Document | None = None

    def read(self) -> Document:
        """The document, where the call asks for one."""
        assert self.document is not None
        return self.document


class _Site:
    """A place, and what is needed to send something there."""

    def __init__(self, place: Place, target: Target) -> None:
        self.place = place
        self.signer = Signer("s3", place.region)
        self.transport = Transport(target)
        self.manners = Manners()


class _Course:
    """What has happened to one call so far."""

    def __init__(self, started: float, limits: Limits, limit: Limit) -> None:
        self.started = started
        self.limits = limits
        self.limit = limit
        self.attempts = 0
        self.unknown = False
        self.repaired: set[str] = set()
        self.reply: Reply | None = None
        self.signed_with: Credentials | None = None

    def may_go_on(self, then: float) -> bool:
        """Whether the call may be sent once more at that time."""
        spent = then - self.started
        return self.attempts < self.limits.max_attempts and spent < self.limits.total_timeout


class Delivery:
    """Calls to one bucket, in the name of one credential source."""

    def __init__(
        self, place: Place, source: CredentialSource, target: Target, limits: Limits | None = None
    ) -> None:
        self._limits = limits or Limits(total_timeout=BUDGET_SECONDS, max_attempts=ATTEMPTS)
        self._source = source
        self._target = target
        self._site = _Site(place, target)
        self._skew = timedelta(0)

    @property
    def place(self) -> Place:
        """Where the bucket is, as far as we know."""
        return self._site.place

    def close(self) -> None:
        """Close the kept connections."""
        self._site.transport.close()

    async def deliver(self, wire: Wire, call: Call, manner: Manner = "repeat") -> Answer:
        """The service's answer to the call; an error of ours when there is none."""
        digest = await self._digest(wire, call)
        course = _Course(wire.now(), self._limits, wire.limit(self._limits.total_timeout))
        while True:
            try:
                answer = await self._attempt(wire, call, digest, course)
            except Exception as error:
                if course.unknown and manner == "settle":  # no credentials to send it again with, for one
                    raise Unsettled(error) from error
                raise
            if isinstance(answer, Answer):
                return answer
            if self._repaired(answer, course):
                continue
            pause = self._pause(wire, answer, course)
            if pause is None:
                if course.unknown and manner == "settle":
                    raise Unsettled(answer.error)
                raise answer.error
            if answer.remedy == "throttle":
                message = "%s was throttled, send %d; again in %.3f s"
                warn("s3", message, call.operation, course.attempts, pause)
            await wire.sleep(pause)

    async def sign_url(
        self,
        wire: Wire,
        method: str,
        key: str,
        query: tuple[tuple[str, str], ...],
        headers: dict[str, str],
        expires: int,
    ) -> str:
        """A URL by which whoever has it can do this, with these headers, for so many seconds."""
        try:
            credentials = await wire.credentials(self._source, wire.limit(self._limits.total_timeout))
        except Unsent as error:
            raise self._unreachable(error) from error
        site = self._site
        path = site.place.path(key)
        signed = site.signer.presigned(
            method, path, query, {"host": site.place.authority, **headers}, expires, credentials, self._now()
        )
        return f"{site.place.scheme}://{site.place.authority}{path}?{signed}"

    def url(self, key: str) -> str:
        """The URL of a key, for whoever needs no signature."""
        place = self._site.place
        return f"{place.scheme}://{place.authority}{place.path(key)}"

    async def _digest(self, wire: Wire, call: Call) -> str:
        """What the signature says of the body.

        Over a plain connection somebody could change it on the way, and what it is compared with too: there it is
        always signed.
        """
        if call.digest is not None:
            return call.digest
        if not call.body:
            return _EMPTY
        if call.unsigned and self._site.place.scheme == "https":
            return UNSIGNED_PAYLOAD
        if len(call.body) < UNHURRIED:
            return sha256_hex(call.body)
        return await wire.call(sha256_hex, call.body)

    async def _attempt(self, wire: Wire, call: Call, digest: str, course: _Course) -> Answer | Failure:
        """One send; notes on the course whether its fate is unknown."""
        course.attempts += 1
        site = self._site
        try:
            course.reply = await self._sent(wire, site, call, digest, course)
            answer = self._answer(site, call, course)
            if isinstance(answer, Failure) and call.method == "HEAD" and course.reply.status in (400, 403):
                answer = await self._explained(wire, site, call, course, answer)
        except Unsent as error:
            return Failure(self._unreachable(error), "final" if error.lasting else "unsent")
        except Broken as error:
            answer = _lost(call, error)
        course.unknown |= isinstance(answer, Failure) and answer.remedy == "server"
        course.limit.has_left = course.unknown
        return answer

    async def _explained(
        self, wire: Wire, site: _Site, call: Call, course: _Course, failure: Failure
    ) -> Answer | Failure:
        """The failure of a HEAD, which cannot say why, as the same question in another form is answered."""
        headers = {**call.headers, "range": "bytes=0-0"}
        asked = replace(call, method="GET", headers=headers)
        course.reply = await self._sent(wire, site, asked, _EMPTY, course)
        answer = self._answer(site, asked, course)
        return answer if isinstance(answer, Failure) and answer.remedy != "server" else failure

    def _answer(self, site: _Site, call: Call, course: _Course) -> Answer | Failure:
        reply, signer = course.reply, course.signed_with
        assert reply is not None
        secrets = (signer.token, signer.secret_key) if signer is not None else ()
        if not 200 <= reply.status < 300:
            return failed(reply, call, site.place, secrets)
        if not call.document:
            return Answer(reply)
        try:
            document = read_document(reply.body)
        except NoDocument as error:
            return garbled(call, str(error))
        return (
            failed(reply, call, site.place, secrets) if document.name == "Error" else Answer(reply, document)
        )

    def _repaired(self, failure: Failure, course: _Course) -> bool:
        """Whether there was something to put right, once per call, before sending again at once."""
        kind = "417" if failure.error.service_code == "417" else failure.remedy
        if kind in course.repaired:
            return False
        course.repaired.add(kind)
        if kind == "expired" and course.signed_with is not None:
            self._source.renew(course.signed_with)
        elif kind == "skew" and course.reply is not None:
            self._set_clock(course.reply)
        elif kind == "region" and failure.place is not None:
            self._move(failure.place)
        elif kind == "417":  # it cannot be asked whether it wants a body
            self._site.manners.announces = False
        else:
            return False
        return True

    @staticmethod
    def _pause(wire: Wire, failure: Failure, course: _Course) -> float | None:
        """How long to wait before sending again; None when that is of no use."""
        if failure.remedy in ("final", "expired", "skew", "region"):
            return None
        pause = wire.random() * min(LONGEST_PAUSE, BASE_SECONDS * 2 ** (course.attempts - 1))
        goes_on = course.limit.left > pause and course.may_go_on(wire.now() + pause)
        return pause if goes_on else None

    async def _sent(self, wire: Wire, site: _Site, call: Call, digest: str, course: _Course) -> Reply:
        credentials = course.signed_with = await wire.credentials(self._source, course.limit)
        path = site.place.path(call.key)
        headers = {"host": site.place.authority, "x-amz-content-sha256": digest, **call.headers}
        signed = site.signer.signed(call.method, path, call.query, headers, digest, credentials, self._now())
        signed.update(call.headers)  # the signature takes spaces for one space; an object keeps them
        signed["accept-encoding"] = "identity"
        signed["user-agent"] = "holdall"
        target = f"{path}?{query_text(call.query)}" if call.query else path
        manners = site.manners if len(call.body) >= ANNOUNCED else None
        return await wire.exchange(
            site.transport,
            call.method,
            target,
            signed,
            call.body,
            call.limit,
            manners,
            course.limit,
            call.room,
        )

    def _now(self) -> datetime:
        return datetime.now(UTC) + self._skew

    def _set_clock(self, reply: Reply) -> None:
        from email.utils import parsedate_to_datetime

        try:
            theirs = parsedate_to_datetime(reply.headers.get("date", ""))
        except (TypeError, ValueError):
            return
        if theirs.tzinfo is None:
            theirs = theirs.replace(tzinfo=UTC)
        self._skew = theirs - datetime.now(UTC)

    def _move(self, place: Place) -> None:
        """From now on ask there."""
        before = self._site
        if before.place != place:
            warn("s3", "the bucket is in the region %s, not in %s", place.region, before.place.region)
            proxy = find_proxy(place.scheme, place.host, place.port, os.environ)
            self._site = _Site(place, replace(self._target, host=place.host, proxy=proxy))
            before.transport.close()

    def _unreachable(self, error: Unsent) -> EndpointError:
        place = self._site.place
        where = f"{place.scheme}://{place.authority}"
        return EndpointError(f"{where} cannot be reached: {error}", hint=error.hint)


def _lost(call: Call, error: Broken) -> Failure:
    if isinstance(error, Garbled):
        return garbled(call, str(error))
    return Failure(ServiceUnavailableError(f"{call.operation}: the reply was lost ({error})"), "server")
