"""Delivering calls to S3: where the bucket is, how a call is signed, and what a reply means.

The courier sends. A creation is delivered in the manner ``settle``: a refusal may be about an object that an earlier
send has created, so after a lost reply the caller must examine the object.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import cast

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

__all__ = ["Answer", "Delivery", "Unsettled"]

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
    """A bucket's address, and what is needed to send requests there."""

    name = "s3"

    def __init__(self, place: Place, target: Target) -> None:
        self.place = place
        self.authority = place.authority
        self.url = f"{place.scheme}://{self.authority}"
        self.transport = Transport(target)
        self.signer = Signer("s3", place.region)
        self._target = target
        self._relay = self.transport.relay
        self._manners = Manners()

    def render(self, call: Call, credentials: Credentials, now: float) -> Parcel:
        """The call as a signed request."""
        place = self.place
        path = place.path(call.key)
        digest = call.digest or self.digest(call)
        headers = {"host": self.authority, "x-amz-content-sha256": digest, **call.headers}
        moment = datetime.fromtimestamp(now, UTC)
        signed = self.signer.sign(call.method, path, call.query, headers, digest, credentials, moment)
        signed.update(call.headers)  # the signature collapses spaces, but an object keeps them
        signed["accept-encoding"] = "identity"
        signed["user-agent"] = "holdall"
        prefix, lines = self._relay
        target = f"{prefix}{path}?{query_text(call.query)}" if call.query else prefix + path
        head = request_head(call.method, target, signed, len(call.body), lines)
        return call.method, head, call.body, self._manners, call.limit, call.room

    def digest(self, call: Call) -> str:
        """The digest of the body for the signature.

        On a plain connection, an attacker could change the body and its Content-MD5, so there the body is always
        signed.
        """
        if not call.body:
            return _EMPTY
        if call.unsigned and self.place.scheme == "https":
            return UNSIGNED_PAYLOAD
        return sha256_hex(call.body)

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

    def mend(self, failure: Failure) -> S3Site | None:
        """Switch to the bucket's region, or send bodies without announcing them."""
        if failure.remedy == "unannounced":
            self._manners.announces = False
            return self
        if failure.remedy != "region":
            return None
        place: Place = failure.detail
        proxy = find_proxy(place.scheme, place.host, place.port, os.environ)
        message = "the bucket is in the region %s, not in %s; set region to avoid this detour"
        warn("s3", message, place.region, self.place.region)
        return S3Site(place, replace(self._target, host=place.host, proxy=proxy))


class Delivery:
    """Delivers calls to one bucket, with the credentials of one source; knows the bucket's server."""

    def __init__(
        self, calls: Calls, place: Place, source: CredentialSource, target: Target, limits: Limits
    ) -> None:
        self.calls = calls
        self.etags = Etags(amazon=place.amazon)
        self._courier = Courier(S3Site(place, target), source, limits)

    @property
    def _site(self) -> S3Site:
        return cast("S3Site", self._courier.service)

    @property
    def place(self) -> Place:
        """Where the bucket is, as far as is known."""
        return self._site.place

    def close(self) -> None:
        """Close the kept connections."""
        self._site.transport.close()

    async def deliver(self, pace: Pace, call: Call, manner: Manner = "repeat") -> Answer:
        """The service's answer to the call; one of our errors if there is none."""
        if call.digest is None and len(call.body) >= UNHURRIED:
            call = replace(call, digest=await pace.call(self._site.digest, call))
        return await self._courier.deliver(pace, call, manner)

    async def sign_url(
        self,
        pace: Pace,
        method: str,
        key: str,
        query: tuple[tuple[str, str], ...],
        headers: dict[str, str],
        expires: int,
    ) -> str:
        """A URL that permits this request, with these headers, for ``expires`` seconds."""
        credentials, now = await self._courier.find_credentials(pace)
        site = self._site
        path, moment = site.place.path(key), datetime.fromtimestamp(now, UTC)
        headers = {"host": site.authority, **headers}
        signed = site.signer.presign(method, path, query, headers, expires, credentials, moment)
        return f"{site.url}{path}?{signed}"

    def url(self, key: str) -> str:
        """The URL of a key, without a signature."""
        site = self._site
        return f"{site.url}{site.place.path(key)}"
