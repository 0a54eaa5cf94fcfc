"""Objects in a bucket of S3, or of any server that speaks its protocol, over our own wire.

**How bytes are protected in transit.** A put or a part is signed together with the SHA-256 of its body, so that the
service refuses a body that was changed; if the request has that digest, the bytes are not digested again. Over TLS, a
body for which the request has only an MD5 is sent with that (Content-MD5) and is itself unsigned. Over a plain
connection, everything is signed.

**What only AWS can show.** Encryption, storage classes, access control lists, virtual hosts and other regions are sent
as AWS documents them. The tests check the requests, but not how AWS handles them.
"""

from __future__ import annotations

from holdall.backends.aws.backend import AwsBackend
from holdall.backends.aws.connection import target_of
from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.limit import Limits
from holdall.backends.s3.call import Calls
from holdall.backends.s3.creation import Claims
from holdall.backends.s3.delivery import Delivery
from holdall.backends.s3.flow import BucketExists, CreateBucket, S3Flow
from holdall.backends.s3.header import Storage
from holdall.backends.s3.place import Style, name_server, place_of
from holdall.core.objects import Origin, ServiceTraits
from holdall.core.rules.object import MAX_KEY, check_key

LIMITS = Limits(connect_timeout=5.0, read_timeout=60.0, total_timeout=120.0)
"""The limits without settings."""


class S3Service(AwsBackend):
    """Objects of one bucket: all of them, or those below a prefix, which callers do not see.

    ``style`` is how the bucket is addressed: ``path``, ``virtual``, or ``auto``, which depends on the endpoint.
    ``encryption`` (``AES256``, ``aws:kms``), ``kms_key``, ``storage_class`` and ``acl`` apply to every object that is
    created. ``public`` says that everyone may read: download URLs are then permanent and unsigned.

    ``conditional_puts`` says whether the server honours conditions on puts and deletions; if it is None, that is tested
    before the first request that depends on it. ``claims`` are used if it does not, and nothing may be replaced.
    ``single_put``, ``part_size`` and ``parallel`` say how to transfer large objects. ``limits`` are the timeouts and
    the maximum numbers of connections and attempts.
    """

    def __init__(
        self,
        bucket: str,
        endpoint: Endpoint,
        source: CredentialSource,
        *,
        prefix: str = "",
        style: Style = "auto",
        encryption: str | None = None,
        kms_key: str | None = None,
        storage_class: str | None = None,
        acl: str | None = None,
        public: bool = False,
        conditional_puts: bool | None = None,
        claims: Claims | None = None,
        single_put: int = 8 * 1024**2,
        part_size: int = 5 * 1024**2,
        parallel: int = 4,
        limits: Limits = LIMITS,
    ) -> None:
        place = place_of(bucket, endpoint, style)
        prefix = _directory(prefix)
        calls = Calls(bucket, prefix, Storage(encryption, kms_key, storage_class, acl).headers())
        target = target_of(place.scheme, place.host, place.port, limits)
        self._delivery = Delivery(calls, place, source, target, limits)
        traits = ServiceTraits(
            single_put,
            part_size,
            parallel,
            public,
            place=f"s3://{bucket}/{prefix}".rstrip("/"),
            max_key=MAX_KEY - len(prefix.encode()),
            origin=Origin(name_server(endpoint, place), bucket, prefix),
        )
        super().__init__(S3Flow(self._delivery, traits, conditional_puts, claims).answer, "file service")
        self.claims = claims

    def bucket_exists(self) -> bool:
        """Whether the bucket exists; the calling thread waits."""
        return self.send_blocking(BucketExists())

    def create_bucket(self) -> None:
        """Create the bucket in the region of the endpoint, unless it exists; the calling thread waits."""
        self.send_blocking(CreateBucket())

    def close(self) -> None:
        """Close the kept connections."""
        super().close()
        self._delivery.close()


def _directory(prefix: str) -> str:
    """The prefix with a slash at its end, and none at its beginning."""
    prefix = prefix.strip("/")
    if not prefix:
        return ""
    check_key(prefix, "prefix")
    return f"{prefix}/"
