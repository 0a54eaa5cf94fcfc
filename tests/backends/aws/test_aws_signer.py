"""Our signatures equal botocore's for any request."""

from __future__ import annotations

import string
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.aws.signer import Credentials, PostTemplate, Signer, sha256_hex

STAMP = "%Y%m%dT%H%M%SZ"
WHY_SKIPPED = "botocore, whose signatures this test compares, is not installed"

visible = st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"]), min_size=1)
odd_values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))
keys = st.text(string.ascii_letters + string.digits, min_size=1)
header_names = st.text(string.ascii_letters + string.digits + "-", min_size=1).map("x-amz-meta-".__add__)
unsigned_names = st.sampled_from(["Expect", "Transfer-Encoding", "User-Agent", "X-Amzn-Trace-Id"])
usual_names = st.sampled_from(["Content-Type", "X-Amz-Target", "Accept-Encoding", "if-match"])
headers = st.dictionaries(header_names | unsigned_names | usual_names, odd_values, max_size=5).filter(
    lambda chosen: len({name.lower() for name in chosen}) == len(chosen)
)
segments = st.sampled_from(["", ".", "..", "%2E", "~", "a b"]) | st.text(
    st.characters(exclude_categories=["Cs"])
)
paths = st.lists(segments).map(lambda parts: "/" + quote("/".join(parts), safe="/~"))
queries = st.lists(st.tuples(odd_values, odd_values), max_size=4)
credentials = st.builds(Credentials, keys, visible, st.none() | keys)


def by_botocore(
    kind: str,
    region: str,
    path: str,
    query: list[tuple[str, str]],
    given_headers: dict[str, str],
    body: bytes,
    who: Credentials,
) -> dict[str, str]:
    auth: Any = pytest.importorskip("botocore.auth", reason=WHY_SKIPPED)
    awsrequest: Any = pytest.importorskip("botocore.awsrequest", reason=WHY_SKIPPED)
    frozen: Any = pytest.importorskip("botocore.credentials", reason=WHY_SKIPPED).ReadOnlyCredentials
    request = awsrequest.AWSRequest(
        "POST", f"https://Example.com:8443{path}", headers=given_headers, data=body, params=query
    )
    signing = {"dynamodb": auth.SigV4Auth, "s3": auth.S3SigV4Auth}[kind]
    signing(frozen(who.access_key, who.secret_key, who.token), kind, region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def by_us(
    kind: str,
    region: str,
    path: str,
    query: list[tuple[str, str]],
    given_headers: dict[str, str],
    body: bytes,
    who: Credentials,
    stamp: str,
) -> dict[str, str]:
    now = datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)
    complete = {**given_headers, "Host": "example.com:8443"}
    if kind == "s3":
        complete["X-Amz-Content-SHA256"] = sha256_hex(body)
    return Signer(kind, region).sign("POST", path, query, complete, sha256_hex(body), who, now)


@pytest.mark.parametrize("kind", ["dynamodb", "s3"])
@given(
    region=st.sampled_from(["us-east-1", "eu-central-1"]),
    path=paths,
    query=queries,
    given_headers=headers,
    body=st.binary(),
    who=credentials,
)
def test_a_signature_equals_botocores(
    kind: str,
    region: str,
    path: str,
    query: list[tuple[str, str]],
    given_headers: dict[str, str],
    body: bytes,
    who: Credentials,
) -> None:
    theirs = by_botocore(kind, region, path, query, given_headers, body, who)
    ours = by_us(kind, region, path, query, given_headers, body, who, theirs["x-amz-date"])
    assert ours["authorization"] == theirs["authorization"]
    for name in ("x-amz-date", "x-amz-security-token", "x-amz-content-sha256"):
        assert ours.get(name) == theirs.get(name)


def test_headers_that_botocore_does_not_sign_are_not_signed() -> None:
    auth: Any = pytest.importorskip("botocore.auth", reason=WHY_SKIPPED)
    unsigned = dict.fromkeys(auth.SIGNED_HEADERS_BLACKLIST, "x")
    signer, who = Signer("dynamodb", "us-east-1"), Credentials("AK", "secret")
    assert authorization(signer, who, 1, **unsigned) == authorization(signer, who, 1)


def test_the_published_example_has_the_published_signature() -> None:
    who = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    now = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
    signed = Signer("service", "us-east-1").sign(
        "GET", "/", [], {"Host": "example.amazonaws.com"}, sha256_hex(b""), who, now
    )
    assert signed["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    )


def authorization(signer: Signer, who: Credentials, day: int, **more: str) -> str:
    now = datetime(2026, 1, day, tzinfo=UTC)
    return signer.sign("POST", "/", [], {"host": "h", **more}, sha256_hex(b"{}"), who, now)["authorization"]


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), st.integers(1, 3)), min_size=1))
def test_a_used_signer_signs_like_a_new_one(
    uses: list[tuple[str, int]],
) -> None:
    kept = Signer("dynamodb", "us-east-1")
    for secret, day in uses:
        who = Credentials("AK", secret)
        assert authorization(kept, who, day) == authorization(Signer("dynamodb", "us-east-1"), who, day)


WHO = [Credentials("AK", "one"), Credentials("AK", "two", "token"), Credentials("AK", "two", "another")]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(WHO),
            st.sampled_from([0.0, 0.9, 1.0, 86_400.5]),
            st.sampled_from(["GetItem", "Query"]),
            st.binary(max_size=3),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_a_used_template_signs_like_a_new_signer(
    uses: list[tuple[Credentials, float, str, bytes]],
) -> None:
    headers = {"content-type": "application/x-amz-json-1.0", "host": "example.com:8443"}
    template = PostTemplate(
        Signer("dynamodb", "eu-central-1"), headers, "x-amz-target", "Dynamo.", "POST / HTTP/1.1", "te: x\r\n"
    )
    for who, now, operation, body in uses:
        moment = datetime.fromtimestamp(now, UTC)
        complete = {**headers, "x-amz-target": f"Dynamo.{operation}"}
        expected = Signer("dynamodb", "eu-central-1").sign(
            "POST", "/", [], complete, sha256_hex(body), who, moment
        )
        line, *lines = (
            template.sign(operation, body, who, now).decode().removesuffix("\r\n\r\n").split("\r\n")
        )
        assert line == "POST / HTTP/1.1"
        assert dict(each.split(": ", 1) for each in lines) == expected | {
            "te": "x",
            "content-length": str(len(body)),
        }


def test_the_signature_of_an_earlier_attempt_is_replaced_and_not_signed() -> None:
    signer, who = Signer("dynamodb", "us-east-1"), Credentials("AK", "secret", "token")
    first = authorization(signer, who, 1)
    assert authorization(signer, who, 1, Authorization=first) == first


def test_an_empty_session_token_is_ignored() -> None:
    signer = Signer("dynamodb", "us-east-1")
    assert authorization(signer, Credentials("AK", "secret", ""), 1) == authorization(
        signer, Credentials("AK", "secret"), 1
    )


def test_credentials_do_not_show_their_secrets() -> None:
    shown = f"{Credentials('AKIDEXAMPLE', 'hush', 'quiet')} {Credentials('AKIDEXAMPLE', 'hush', 'quiet')!r}"
    assert "hush" not in shown
    assert "quiet" not in shown
