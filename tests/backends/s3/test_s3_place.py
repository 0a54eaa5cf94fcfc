"""The host and path of a bucket, and how its keys are encoded in paths."""

from __future__ import annotations

import string
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.aws.endpoint import Endpoint, resolve_endpoint
from holdall.backends.s3.place import Place, Style, encode_key, find_region, move_place, name_server, place_of
from holdall.errors import ConfigurationError

AMAZON = Endpoint("https", "s3.eu-central-1.amazonaws.com", 443, "eu-central-1")
LOCAL = Endpoint("http", "localhost", 9000, "us-east-1")

keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@pytest.mark.parametrize(
    ("bucket", "endpoint", "style", "url"),
    [
        ("things", AMAZON, "auto", "https://things.s3.eu-central-1.amazonaws.com/a/b"),
        ("my.things", AMAZON, "auto", "https://s3.eu-central-1.amazonaws.com/my.things/a/b"),
        ("Things", AMAZON, "auto", "https://s3.eu-central-1.amazonaws.com/Things/a/b"),
        ("things", AMAZON, "path", "https://s3.eu-central-1.amazonaws.com/things/a/b"),
        ("things", LOCAL, "auto", "http://localhost:9000/things/a/b"),
        ("things", LOCAL, "virtual", "http://things.localhost:9000/a/b"),
        ("my.things", LOCAL, "virtual", "http://my.things.localhost:9000/a/b"),
    ],
)
def test_a_bucket_is_addressed_in_the_style_that_fits(
    bucket: str, endpoint: Endpoint, style: Style, url: str
) -> None:
    place = place_of(bucket, endpoint, style)
    assert f"{place.scheme}://{place.authority}{place.path('a/b')}" == url


@pytest.mark.parametrize(
    ("region", "amazon"),
    [("us-east-1", True), ("cn-north-1", True), ("us-gov-west-1", True), ("us-iso-east-1", True)],
)
def test_resolved_endpoints_are_recognized_as_those_of_aws(region: str, amazon: bool) -> None:
    endpoint = resolve_endpoint("s3", region=region, environment={"AWS_CONFIG_FILE": "/nowhere"})
    place = place_of("things", endpoint, "auto")
    assert place.amazon is amazon
    assert place.host == f"things.{endpoint.host}"


@pytest.mark.parametrize(
    "host",
    ["s3.example.com", "amazonaws.com", "s3.amazonaws.com.evil.example", "minio.local", "xs3.amazonaws.com"],
)
def test_other_endpoints_are_not_recognized_as_those_of_aws(host: str) -> None:
    assert not place_of("things", Endpoint("https", host, 443, "us-east-1"), "auto").amazon


def test_the_bucket_itself_has_a_path_too() -> None:
    assert place_of("things", AMAZON, "auto").path(None) == "/"
    assert place_of("things", LOCAL, "auto").path(None) == "/things"


@given(keys)
def test_a_path_can_be_decoded_to_its_key(key: str) -> None:
    path = encode_key(key)
    assert set(path) <= set(string.ascii_letters + string.digits + "-_.~/%")
    assert unquote(path) == key
    assert path.count("/") == key.count("/")


@pytest.mark.parametrize("bucket", ["", "ab", "a/b", "a b", "ü" * 4, "a\nb", "-ab", "ab.", "x" * 256])
def test_an_invalid_bucket_name_is_refused(bucket: str) -> None:
    with pytest.raises(ConfigurationError, match="bucket"):
        place_of(bucket, LOCAL, "auto")


@pytest.mark.parametrize(
    ("bucket", "endpoint"),
    [
        ("things", Endpoint("http", "127.0.0.1", 9000, "us-east-1")),
        ("things", Endpoint("http", "::1", 9000, "us-east-1")),
        ("my.things", AMAZON),
        ("Things", LOCAL),
        ("my_things", LOCAL),
    ],
)
def test_an_impossible_virtual_host_is_refused_with_advice(bucket: str, endpoint: Endpoint) -> None:
    with pytest.raises(ConfigurationError, match="style=path"):
        place_of(bucket, endpoint, "virtual")


def test_an_unknown_style_is_refused() -> None:
    style: Any = "host"
    with pytest.raises(ConfigurationError, match="auto, path or virtual"):
        place_of("things", LOCAL, style)


# --- other regions ---


def at_amazon(region: str = "us-east-1") -> Place:
    return place_of(
        "things", resolve_endpoint("s3", region=region, environment={"AWS_CONFIG_FILE": "/no"}), "auto"
    )


def test_a_bucket_on_aws_moves_to_the_host_of_its_region() -> None:
    there = move_place(at_amazon(), "eu-west-1")
    assert there is not None
    assert (there.host, there.region) == ("things.s3.eu-west-1.amazonaws.com", "eu-west-1")


def test_a_bucket_on_another_server_stays_at_its_host_with_another_region() -> None:
    place = place_of("things", LOCAL, "auto")
    there = move_place(place, "eu-west-1")
    assert there is not None
    assert (there.host, there.port, there.region) == (place.host, place.port, "eu-west-1")


@pytest.mark.parametrize(
    "region",
    [
        "us-east-1",
        "",
        "evil.example",
        "eu-west-1.evil.example/",
        "eu west",
        "a\r\nb",
        "cn-north-1",
        "us-gov-west-1",
    ],
)
def test_no_reply_can_redirect_us_to_a_foreign_host(region: str) -> None:
    assert move_place(at_amazon(), region) is None


def test_an_endpoint_without_a_region_does_not_move() -> None:
    place = place_of("things", Endpoint("https", "s3.amazonaws.com", 443, "us-east-1"), "auto")
    assert move_place(place, "eu-west-1") is None


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("things.s3.eu-west-1.amazonaws.com", "eu-west-1"),
        ("things.s3-eu-west-1.amazonaws.com", "eu-west-1"),
        ("s3.dualstack.eu-west-1.amazonaws.com", "eu-west-1"),
        ("things.s3.eu-west-1.amazonaws.com.evil.example", None),
        ("evil.example", None),
        ("things.s3.amazonaws.com", None),
        ("", None),
    ],
)
def test_the_region_is_only_read_from_hosts_of_aws(host: str, region: str | None) -> None:
    assert find_region(at_amazon(), host) == region
    assert find_region(place_of("things", LOCAL, "auto"), host) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (AMAZON, Endpoint("https", "s3.us-east-1.amazonaws.com", 443, "us-east-1"), True),
        (AMAZON, Endpoint("https", "s3.cn-north-1.amazonaws.com.cn", 443, "cn-north-1"), False),
        (AMAZON, LOCAL, False),
        (LOCAL, Endpoint("http", "localhost", 9000, "eu-central-1"), True),
        (LOCAL, Endpoint("http", "localhost", 9001, "us-east-1"), False),
    ],
)
def test_places_have_the_same_name_if_one_server_can_copy_between_them(
    one: Endpoint, other: Endpoint, same: bool
) -> None:
    first, second = (name_server(each, place_of("things", each, "auto")) for each in (one, other))
    assert (first == second) is same
