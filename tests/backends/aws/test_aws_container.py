"""Credentials of a container's role; a local server stands in for the endpoint."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aws_loopback import Answer, ReceivedRequest, loopback
from aws_secrecy import SECRET, TOKEN, assert_shows_no_secret

from holdall.backends.aws.metadata import container_credentials
from holdall.backends.aws.signer import Credentials
from holdall.errors import CredentialsError

LATER = datetime(2099, 1, 1, tzinfo=UTC)
DOCUMENT = json.dumps(
    {
        "AccessKeyId": "AKROLE",
        "SecretAccessKey": SECRET,
        "Token": TOKEN,
        "Expiration": "2099-01-01T00:00:00Z",
        "RoleArn": "arn:aws:iam::1:role/r",
    }
).encode()
FOUND = Credentials("AKROLE", SECRET, TOKEN, LATER.timestamp())

RELATIVE = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
FULL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
SHOWN = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
SHOWN_FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"


class Connected(Exception):
    """Raised instead of connecting; has the address."""


def connect(address: tuple[str, int], *args: object, **options: object) -> None:
    raise Connected(*address)


def give(received: ReceivedRequest) -> Answer:
    return Answer(body=DOCUMENT)


def test_outside_a_container_the_reason_names_both_variables() -> None:
    assert container_credentials({}) == f"{RELATIVE} and {FULL} are not set"


def test_a_relative_uri_is_requested_from_the_endpoint_of_ecs() -> None:
    with loopback(give) as server:
        assert container_credentials({RELATIVE: "/v2/credentials/0?x=1"}, ecs=server.url) == FOUND
    assert server.requests[0].target == "/v2/credentials/0?x=1"
    assert "authorization" not in server.requests[0].headers


def test_a_full_uri_is_requested() -> None:
    with loopback(give) as server:
        assert container_credentials({FULL: f"{server.url}/creds"}) == FOUND
    assert server.requests[0].target == "/creds"


def test_the_relative_uri_takes_precedence() -> None:
    with loopback(give) as server:
        found = container_credentials({RELATIVE: "/a", FULL: "http://example.com/"}, ecs=server.url)
    assert found == FOUND


def test_the_token_is_sent(tmp_path: Path) -> None:
    with loopback(give) as server:
        container_credentials({FULL: server.url, SHOWN: "Bearer one"})
    assert server.requests[0].headers["authorization"] == "Bearer one"


def test_a_token_file_takes_precedence_and_is_read_every_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    environment = {SHOWN: "one", SHOWN_FILE: str(file)}
    with loopback(give) as server:
        for token in ("two", "three\n"):
            file.write_text(token)
            container_credentials({**environment, FULL: server.url})
    assert [received.headers["authorization"] for received in server.requests] == ["two", "three"]


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"],
)
def test_plain_http_is_allowed_to_hosts_of_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.create_connection", connect)
    with pytest.raises(Connected) as reached:
        container_credentials({FULL: f"http://{host}/creds"})
    assert reached.value.args == (host.strip("[]"), 80)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/creds",
        "http://10.0.0.1/creds",
        "http://169.254.169.254/creds",
        "http://127.0.0.1.example.com/creds",
        "http://localhost.example.com/creds",
    ],
)
def test_plain_http_to_other_hosts_is_refused(url: str) -> None:
    with pytest.raises(CredentialsError, match="credentials are not requested from it over plain http"):
        container_credentials({FULL: url, SHOWN: TOKEN})


def test_https_is_allowed_to_any_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.create_connection", connect)
    with pytest.raises(Connected) as reached:
        container_credentials({FULL: "https://example.com/creds"})
    assert reached.value.args == ("example.com", 443)


@pytest.mark.parametrize(
    "environment",
    [
        {RELATIVE: "no-slash"},
        {RELATIVE: ".example.com/x"},
        {RELATIVE: f"/{SECRET} {TOKEN}"},
        {FULL: "localhost:80"},
        {FULL: f"http://{SECRET}:{TOKEN}@127.0.0.1/"},
    ],
)
def test_a_malformed_uri_is_an_error_that_does_not_show_it(environment: dict[str, str]) -> None:
    with pytest.raises(CredentialsError, match="is not a valid URL") as refusal:
        container_credentials(environment)
    assert next(iter(environment)) in str(refusal.value)
    assert_shows_no_secret(refusal.value)


def test_an_invalid_token_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for content in (b"", f"{TOKEN}\r\nX: y".encode(), TOKEN.encode() + b"\xff", f"{TOKEN}é".encode()):
        file.write_bytes(content)
        with pytest.raises(CredentialsError, match=f"{SHOWN_FILE} does not contain a valid token") as refusal:
            container_credentials({FULL: "http://127.0.0.1:9/", SHOWN_FILE: str(file)})
        assert_shows_no_secret(refusal.value)
    with pytest.raises(CredentialsError, match=f"{SHOWN} does not contain a valid token") as refusal:
        container_credentials({FULL: "http://127.0.0.1:9/", SHOWN: f"{TOKEN}\nX: y"})
    assert_shows_no_secret(refusal.value)


def test_a_missing_token_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="cannot be read: No such file"):
        container_credentials({FULL: "http://127.0.0.1:9/", SHOWN_FILE: str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(403, SECRET.encode()), "answered 403"),
        (Answer(500, SECRET.encode()), "answered 500"),
        (Answer(302, headers={"location": "http://127.0.0.1/"}), "answered 302"),
        (Answer(body=SECRET.encode()), "not a JSON object"),
        (Answer(body=json.dumps({"SecretAccessKey": SECRET}).encode()), "the access key is missing"),
        (Answer(body=DOCUMENT.replace(b"2099-01-01T00:00:00Z", b"soon")), "the expiry is not a time"),
    ],
)
def test_an_endpoint_that_returns_no_credentials_is_an_error(answer: Answer, why: str) -> None:
    with loopback(lambda received: answer) as server, pytest.raises(CredentialsError, match=why) as refusal:
        container_credentials({FULL: f"{server.url}/{TOKEN}", SHOWN: TOKEN})
    assert server.authority in str(refusal.value)
    assert_shows_no_secret(refusal.value)


def test_a_request_that_fails_once_is_repeated() -> None:
    answers = iter([Answer(500), Answer(body=DOCUMENT)])
    with loopback(lambda received: next(answers)) as server:
        assert container_credentials({FULL: server.url}) == FOUND
