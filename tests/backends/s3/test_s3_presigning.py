"""Signed URLs equal botocore's for the same input and time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.signer import Credentials, Signer
from holdall.backends.s3.place import encode_key
from holdall.backends.s3.service import S3Service
from holdall.core.objects import ObjectHeaders, SignedUrl, SignUrl
from holdall.errors import InvalidRequestError

botocore_auth: Any = pytest.importorskip(
    "botocore.auth", reason="botocore, whose signed URLs these tests compare, is not installed"
)
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
AMAZON = Endpoint("https", "s3.eu-central-1.amazonaws.com", 443, "eu-central-1")
LOCAL = Endpoint("http", "localhost", 9000, "us-east-1")
WHO = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY")
GUEST = Credentials("ASIAEXAMPLE", "secret", "token/with+odd=characters")

keys = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
).filter(lambda key: {".", ".."}.isdisjoint(key.split("/")) and not key.startswith("/"))
printable = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=40)
words = printable.map(lambda text: " ".join(text.split())).filter(bool)


class FixedCredentials:
    """A source that always has the same credentials."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def current(self) -> Credentials:
        return self._credentials

    def peek(self) -> Credentials:
        return self.current()

    def renew(self, rejected: Credentials) -> None:
        raise AssertionError("signing must not need the service")


@contextmanager
def at(now: datetime) -> Iterator[None]:
    """Make botocore sign with this time."""
    naive = now.replace(tzinfo=None)
    with mock.patch.object(botocore_auth, "get_current_datetime", return_value=naive):
        yield


def when(signed: SignedUrl) -> datetime:
    (stamp,) = parse_qs(urlsplit(signed.url).query)["X-Amz-Date"]
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


@cache
def client_of(endpoint: Endpoint, who: Credentials, style: str) -> Any:
    config: Any = pytest.importorskip("botocore.config").Config
    session: Any = pytest.importorskip("botocore.session").Session()
    session.set_credentials(who.access_key, who.secret_key, who.token)
    amazon = endpoint.host.endswith("amazonaws.com")
    return session.create_client(
        "s3",
        region_name=endpoint.region,
        endpoint_url=None if amazon else f"{endpoint.scheme}://{endpoint.authority}",
        config=config(signature_version="s3v4", s3={"addressing_style": style}),
    )


def by_botocore(
    now: datetime,
    endpoint: Endpoint,
    who: Credentials,
    operation: str,
    expires: int,
    style: str,
    **parameters: Any,
) -> str:
    with at(now):
        url: str = client_of(endpoint, who, style).generate_presigned_url(operation, parameters, expires)
    return url


def by_us(endpoint: Endpoint, who: Credentials, request: SignUrl, **options: Any) -> SignedUrl:
    service = S3Service("things", endpoint, FixedCredentials(who), **options)
    try:
        return service.send_blocking(request)
    finally:
        service.close()


PLACES = pytest.mark.parametrize(
    ("endpoint", "style"), [(AMAZON, "virtual"), (AMAZON, "path"), (LOCAL, "path")], ids=str
)


@PLACES
@pytest.mark.parametrize("who", [WHO, GUEST], ids=["user", "guest"])
@pytest.mark.parametrize(
    "key", ["a", "a/b c+d", "ü/😀", "100%", "a?b=c&d#e", "a//b", "~tilde", "'(quotes)'*!", "a\nb"]
)
def test_a_url_for_get_equals_botocores(endpoint: Endpoint, style: Any, who: Credentials, key: str) -> None:
    ours = by_us(endpoint, who, SignUrl("", key, "GET", 300), style=style)
    theirs = by_botocore(when(ours), endpoint, who, "get_object", 300, style, Bucket="things", Key=key)
    assert ours == SignedUrl(theirs, {})


@PLACES
def test_a_url_with_response_headers_equals_botocores(endpoint: Endpoint, style: Any) -> None:
    headers = ObjectHeaders(
        "text/plain; charset=utf-8", "attachment; filename=\"a b.txt\"; filename*=UTF-8''%C3%BC"
    )
    served = ObjectHeaders(headers.content_type, headers.disposition, "no-store")
    ours = by_us(endpoint, WHO, SignUrl("", "a", "GET", 604800, served), style=style)
    theirs = by_botocore(
        when(ours),
        endpoint,
        WHO,
        "get_object",
        604800,
        style,
        Bucket="things",
        Key="a",
        ResponseContentDisposition=headers.disposition,
        ResponseContentType=headers.content_type,
        ResponseCacheControl="no-store",
    )
    assert ours.url == theirs


@PLACES
@pytest.mark.parametrize("who", [WHO, GUEST], ids=["user", "guest"])
def test_a_url_for_put_equals_botocores_and_signs_length_type_and_digest(
    endpoint: Endpoint, style: Any, who: Credentials
) -> None:
    digest = "XrY7u+Ae7tCTyyK7j1rNww=="
    request = SignUrl("", "a/b", "PUT", 60, ObjectHeaders("text/plain"), size=11, md5=digest)
    ours = by_us(endpoint, who, request, style=style)
    theirs = by_botocore(
        when(ours),
        endpoint,
        who,
        "put_object",
        60,
        style,
        Bucket="things",
        Key="a/b",
        ContentLength=11,
        ContentType="text/plain",
        ContentMD5=digest,
    )
    assert ours.url == theirs
    assert ours.headers == {"content-type": "text/plain", "content-md5": digest}
    signed = parse_qs(urlsplit(ours.url).query)["X-Amz-SignedHeaders"]
    assert signed == ["content-length;content-md5;content-type;host"]


def test_a_url_for_put_includes_the_storage_options() -> None:
    headers = ObjectHeaders("text/plain", "inline", "no-cache", {"colour": "red"})
    options = {"encryption": "aws:kms", "kms_key": "key-1", "storage_class": "STANDARD_IA", "acl": "private"}
    ours = by_us(AMAZON, WHO, SignUrl("", "a", "PUT", 60, headers), prefix="in", **options)
    theirs = by_botocore(
        when(ours),
        AMAZON,
        WHO,
        "put_object",
        60,
        "virtual",
        Bucket="things",
        Key="in/a",
        ContentType="text/plain",
        ContentDisposition="inline",
        CacheControl="no-cache",
        Metadata={"colour": "red"},
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId="key-1",
        StorageClass="STANDARD_IA",
        ACL="private",
    )
    assert ours.url == theirs
    assert ours.headers == {
        "content-type": "text/plain",
        "content-disposition": "inline",
        "cache-control": "no-cache",
        "x-amz-meta-colour": "red",
        "x-amz-server-side-encryption": "aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id": "key-1",
        "x-amz-storage-class": "STANDARD_IA",
        "x-amz-acl": "private",
    }


def test_a_url_for_put_without_a_content_type_accepts_any() -> None:
    ours = by_us(LOCAL, WHO, SignUrl("", "a", "PUT", 60))
    assert ours.headers == {}
    assert "X-Amz-SignedHeaders=host&" in ours.url


def test_the_url_of_a_public_object_is_not_signed_and_does_not_expire() -> None:
    request = SignUrl("", "a b", "GET", 60, ObjectHeaders("text/plain"))
    ours = by_us(AMAZON, WHO, request, public=True, prefix="in")
    assert ours == SignedUrl("https://things.s3.eu-central-1.amazonaws.com/in/a%20b", {})
    assert "X-Amz-Signature" in by_us(AMAZON, WHO, SignUrl("", "a", "PUT", 60), public=True).url


def test_an_invalid_digest_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="md5"):
        by_us(LOCAL, WHO, SignUrl("", "a", "PUT", 60, md5="0123456789abcdef0123456789abcdef"))


# --- signatures ---


@given(
    keys,
    st.dictionaries(st.sampled_from(["Content-Type", "x-amz-meta-a", "Content-MD5"]), words),
    st.lists(
        st.tuples(st.sampled_from(["response-content-type", "versionId"]), words),
        max_size=2,
        unique_by=lambda p: p[0],
    ),
    st.integers(1, 604800),
    st.sampled_from([WHO, GUEST]),
)
def test_a_signature_in_a_query_equals_botocores(
    key: str, headers: dict[str, str], query: list[tuple[str, str]], expires: int, who: Credentials
) -> None:
    awsrequest: Any = pytest.importorskip("botocore.awsrequest")
    frozen: Any = pytest.importorskip("botocore.credentials").ReadOnlyCredentials
    path = f"/{encode_key(key)}"
    request = awsrequest.AWSRequest("PUT", f"https://example.com{path}", headers=headers, params=dict(query))
    with at(NOW):
        signing = botocore_auth.S3SigV4QueryAuth(
            frozen(who.access_key, who.secret_key, who.token), "s3", "us-east-1", expires
        )
        signing.add_auth(request)
    ours = Signer("s3", "us-east-1").presign(
        "PUT", path, query, {"host": "example.com", **headers}, expires, who, NOW
    )
    assert f"https://example.com{path}?{ours}" == request.url
