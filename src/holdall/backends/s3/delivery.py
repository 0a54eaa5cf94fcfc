"""S3's calls on their way: where the bucket is, how a call is signed, and what a reply means.

The courier sends. A creation is delivered in the manner ``settle``: a refusal may be about what an earlier send has
created, so after a lost reply the caller has to look.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from holdall.backends.aws.connection import Target
from holdall.backends.aws.courier import Courier, Failure, Manner, Pace, Parcel, Unsettled
from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.exchange import Manners
from holdall.backends.aws.limit import Limits
from holdall.backends.aws.message import Reply, request_head
from holdall.backends.aws.proxy import find_proxy
from holdall.backends.aws.signer import UNSIGNED_PAYLOAD, Credentials, Signer, query_text, sha256_hex
from holdall.backends.aws.transport import Transport
from holdall.backends.s3.call import Call, Calls
from holdall.backends.s3.digest import UNHURRIED, Etags
from holdall.backends.s3.document import Document, NoDocument, read_document
from holdall.backends.s3.failure import explain_failure, explain_garbled
from holdall.backends.s3.place import Place
from holdall.core.frozen import dataclass, replace
from holdall.core.telemetry import warn

__all__ = ["Answer", "Delivery", "Manner", "Unsettled"]

_EMPTY = sha256_hex(b"")


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that is not a failure, with its document if the call asks for one."""

    reply: Reply
    document: Document | None = None

    def read(self) -> Document:
        """The document, if the call asks for one."""
        assert self.document is not None
        return self.document


class S3Site:
    """A place, and what is needed to send something there. The place changes if the bucket is in another region."""

    name = "s3"

    def __init__(self, place: Place, target: Target) -> None:
        self._target = target
        self._settle(place, target)

    def _settle(self, place: Place, target: Target) -> None:
        self.place = place
        self.signer = Signer("s3", place.region)
        self.transport = Transport(target)
        self.relay = self.transport.relay
        self.manners = Manners()

    @property
    def url(self) -> str:
        """Where it is, for messages."""
        return f"{self.place.scheme}://{self.place.authority}"

    def render(self, call: Call, credentials: Credentials, now: float) -> Parcel:
        """The call as a signed request."""
        assert call.digest is not None
        place = self.place
        path = place.path(call.key)
        headers = {"host": place.authority, "x-amz-content-sha256": call.digest, **call.headers}
        moment = datetime.fromtimestamp(now, UTC)
        signed = self.signer.sign(call.method, path, call.query, headers, call.digest, credentials, moment)
        signed.update(call.headers)  # the signature takes spaces for one space; an object keeps them
        signed["accept-encoding"] = "identity"
        signed["user-agent"] = "holdall"
        prefix, lines = self.relay
        target = f"{prefix}{path}?{query_text(call.query)}" if call.query else prefix + path
        head = request_head(call.method, target, signed, len(call.body), lines)
        return call.method, head, call.body, self.manners, call.limit, call.room

    def judge(self, call: Call, reply: Reply, credentials: Credentials) -> Answer:
        """The answer in a reply; `Failure` if it is an error or makes no sense."""
        document = None
        if 200 <= reply.status < 300:
            if not call.document:
                return Answer(reply)
            try:
                document = read_document(reply.body)
            except NoDocument as error:
                raise explain_garbled(call, str(error)) from error
            if document.name != "Error":
                return Answer(reply, document)
        raise explain_failure(reply, call, self.place, (credentials.token, credentials.secret_key))

    def mend(self, failure: Failure) -> bool:
        """Ask in the bucket's own region, or send bodies without announcing them."""
        if failure.remedy == "unannounced":
            self.manners.announces = False
        elif failure.remedy == "region":
            place, before = failure.detail, self.place
            if before != place:
                warn("s3", "the bucket is in the region %s, not in %s", place.region, before.region)
                proxy = find_proxy(place.scheme, place.host, place.port, os.environ)
                transport = self.transport
                self._settle(place, replace(self._target, host=place.host, proxy=proxy))
                transport.close()
        else:
            return False
        return True


class Delivery:
    """Calls to one bucket, in the name of one credential source, and what is known about the bucket's server."""

    def __init__(
        self, calls: Calls, place: Place, source: CredentialSource, target: Target, limits: Limits
    ) -> None:
        self.calls = calls
        self.etags = Etags(amazon=place.amazon)
        self._site = S3Site(place, target)
        self._courier = Courier(self._site, source, limits)

    @property
    def place(self) -> Place:
        """Where the bucket is, as far as we know."""
        return self._site.place

    def close(self) -> None:
        """Close the kept connections."""
        self._site.transport.close()

    async def deliver(self, pace: Pace, call: Call, manner: Manner = "repeat") -> Answer:
        """The service's answer to the call; one of our errors if there is none."""
        if call.digest is None:
            call = replace(call, digest=await self._digest(pace, call))
        return await self._courier.deliver(pace, call, manner)

    async def _digest(self, pace: Pace, call: Call) -> str:
        """What the signature says about the body.

        On a plain connection an attacker could change the body and its Content-MD5: there the body is always signed.
        """
        if not call.body:
            return _EMPTY
        if call.unsigned and self._site.place.scheme == "https":
            return UNSIGNED_PAYLOAD
        if len(call.body) < UNHURRIED:
            return sha256_hex(call.body)
        return await pace.call(sha256_hex, call.body)

    async def sign_url(
        self,
        pace: Pace,
        method: str,
        key: str,
        query: tuple[tuple[str, str], ...],
        headers: dict[str, str],
        expires: int,
    ) -> str:
        """A URL that allows its holder to do this, with these headers, for so many seconds."""
        credentials, now = await self._courier.find_credentials(pace)
        place = self._site.place
        signed = self._site.signer.presign(
            method,
            place.path(key),
            query,
            {"host": place.authority, **headers},
            expires,
            credentials,
            datetime.fromtimestamp(now, UTC),
        )
        return f"{self.url(key)}?{signed}"

    def url(self, key: str) -> str:
        """The URL of a key, without a signature."""
        return f"{self._site.url}{self._site.place.path(key)}"
