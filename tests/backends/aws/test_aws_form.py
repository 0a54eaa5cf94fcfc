"""Credentials in the forms in which functions and services return them: accepted, or refused without showing them."""

from __future__ import annotations

import json
from collections import namedtuple
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from aws_secrecy import SECRET, TOKEN, assert_shows_no_secret
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.aws.form import credentials_from, credentials_from_document
from holdall.backends.aws.signer import Credentials
from holdall.errors import CredentialsError

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
Frozen = namedtuple("Frozen", ["access_key", "secret_key", "token", "account_id"])


@pytest.mark.parametrize(
    ("given_form", "expected"),
    [
        (Credentials("AK", "s", "t", 5.0), Credentials("AK", "s", "t", 5.0)),
        (("AK", "s"), Credentials("AK", "s")),
        (["AK", "s", None], Credentials("AK", "s")),
        (("AK", "s", "t", NOON), Credentials("AK", "s", "t", NOON.timestamp())),
        ({"access_key": "AK", "secret_key": "s"}, Credentials("AK", "s")),
        (
            {"access_key": "AK", "secret_key": "s", "token": "t", "expires": 7},
            Credentials("AK", "s", "t", 7.0),
        ),
        (
            {
                "AccessKeyId": "AK",
                "SecretAccessKey": "s",
                "SessionToken": "t",
                "Expiration": NOON.isoformat(),
            },
            Credentials("AK", "s", "t", NOON.timestamp()),
        ),
        (Frozen("AK", "s", "t", "123456789012"), Credentials("AK", "s", "t")),
        (SimpleNamespace(access_key="AK", secret_key="s", token=None), Credentials("AK", "s")),
        (("AK\n", " s ", "t\n"), Credentials("AK", "s", "t")),
        (("AK", "s", ""), Credentials("AK", "s")),
    ],
)
def test_each_form_gives_the_same_credentials(given_form: object, expected: Credentials) -> None:
    assert credentials_from("a test", given_form) == expected


@pytest.mark.parametrize(
    "moment",
    [
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00",
        "2026-01-31T13:00:00+01:00",
        " 2026-01-31T12:00:00.000Z\n",
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(timezone(timedelta(hours=-5))),
        NOON.timestamp(),
        int(NOON.timestamp()),
    ],
)
def test_an_expiry_without_a_time_zone_is_in_utc(moment: object) -> None:
    assert credentials_from("a test", ("AK", "s", None, moment)).expires == NOON.timestamp()


@pytest.mark.parametrize(
    ("given_form", "why"),
    [
        (None, "a test returned a NoneType without credentials"),
        (SECRET, "a str without credentials"),
        (SECRET.encode(), "a bytes without credentials"),
        ((SECRET,), "a tuple without credentials"),
        (("AK", SECRET, TOKEN, 1, 2), "a tuple without credentials"),
        ({}, "the access key is missing"),
        ((" ", SECRET), "the access key is missing"),
        (("AK", ""), "the secret key is missing"),
        (("AK", None, TOKEN), "the secret key is missing"),
        ((b"AK", SECRET), "the access key must be text, not a bytes"),
        (("AK", SECRET.encode()), "the secret key must be text, not a bytes"),
        ((f"AK {SECRET}", SECRET), "the access key has characters"),
        (("AK", SECRET, f"{TOKEN}\r\nx: y"), "the session token has characters"),
        (("AK", SECRET, TOKEN + "é"), "the session token has characters"),
        (("AK", SECRET, TOKEN, "tomorrow " + TOKEN), "the expiry is not a time"),
        (("AK", SECRET, TOKEN, True), "the expiry is not a time"),
        (("AK", SECRET, TOKEN, float("nan")), "the expiry is not a time"),
        (("AK", SECRET, TOKEN, float("inf")), "the expiry is not a time"),
        (("AK", SECRET, TOKEN, 10**400), "the expiry is not a time"),
        (("AK", SECRET, TOKEN, [SECRET]), "the expiry is not a time"),
    ],
)
def test_invalid_credentials_are_an_error_that_does_not_show_them(given_form: object, why: str) -> None:
    with pytest.raises(CredentialsError, match=why) as refusal:
        credentials_from("a test", given_form)
    assert_shows_no_secret(refusal.value)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "not a JSON object"),
        (SECRET.encode(), "not a JSON object"),
        (b"\xff\xfe" + SECRET.encode(), "not a JSON object"),
        (b"[" * 60_000, "not a JSON object"),
        (json.dumps([SECRET]).encode(), "not a JSON object"),
        (json.dumps({"SecretAccessKey": SECRET}).encode(), "the access key is missing"),
        (
            json.dumps({"AccessKeyId": "AK", "SecretAccessKey": {"x": SECRET}}).encode(),
            "must be text, not a dict",
        ),
        (b'{"Code": "AssumeRoleUnauthorizedAccess", "Message": "m"}', "AssumeRoleUnauthorizedAccess"),
        (json.dumps({"Code": f"{SECRET}-{TOKEN}"}).encode(), "an error instead"),
        (b'{"AccessKeyId": "AK", "SecretAccessKey": "s", "Expiration": NaN}', "the expiry is not a time"),
    ],
)
def test_a_document_without_credentials_is_not_repeated(document: bytes, why: str) -> None:
    with pytest.raises(CredentialsError, match=why) as refusal:
        credentials_from_document("a test", document)
    assert_shows_no_secret(refusal.value)


@given(
    st.binary()
    | st.recursive(st.none() | st.booleans() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
def test_any_document_without_credentials_is_a_credentials_error(document: bytes) -> None:
    with pytest.raises(CredentialsError):
        credentials_from_document("a test", document)


@given(
    st.dictionaries(
        st.sampled_from(["AccessKeyId", "SecretAccessKey", "Token", "Expiration", "Code"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    )
)
def test_any_object_is_credentials_that_fit_a_header_or_a_credentials_error(
    fields: dict[str, object],
) -> None:
    try:
        found = credentials_from_document("a test", json.dumps(fields).encode())
    except CredentialsError:
        return
    shown = found.access_key + (found.token or "")
    assert shown.isascii()
    assert shown.isprintable()
    assert " " not in shown
