"""Keys of objects: the documented ones, unique to each item, and short enough; templates that would not be unique."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from archive_rig import Rig, in_memory
from rig.files import InterceptedService
from rig.servers import ENVIRONMENT

from holdall import Archive, Database, Key, Model, SortKey
from holdall.archive.template import MAX_KEY, KeyPlan, check_template, format_segment, render_key, stamp_owner
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.s3 import S3Service
from holdall.core.objects import DescribeService, ServiceTraits
from holdall.errors import InvalidOptionsError

DEFAULT = "{tableName}/{partitionKey}/{sortKey}"


# --- the document's examples ----------------------------------------------------------------------------------


class User(Model, table="users", archive=Archive(key="{tableName}/{partitionKey}")):
    user_id: Key[str]


class Purchase(Model, table="orders", archive=Archive()):
    customer_id: Key[str]
    order_id: SortKey[str]


class Metric(Model, table="sensor_values", archive=Archive(key="metrics/{partitionKey}/{sortKey}")):
    device_id: Key[str]
    timestamp: SortKey[str]


class Member(Model, table="users", archive=Archive()):
    """A model with the default template and no sort key."""

    user_id: Key[str]


DOCUMENTED = [
    (User.key("USER_123"), "users/USER_123.json.gz"),
    (Purchase.key(customer_id="CUST_456", order_id="ORDER_789"), "orders/CUST_456/ORDER_789.json.gz"),
    (User.key("user:123<test>"), "users/user_123_test_.json.gz"),
    (Purchase.key(customer_id="CUST_123", order_id="ORDER_456"), "orders/CUST_123/ORDER_456.json.gz"),
    (
        Metric.key(device_id="DEVICE_001", timestamp="2024-01-15T10:00:00Z"),
        "metrics/DEVICE_001/2024-01-15T10:00:00Z.json.gz",
    ),
    (Member.key("USER_001"), "users/USER_001.json.gz"),
]


@pytest.fixture(scope="module")
def db() -> Any:
    with Database("memory:", files="memory:", manage_table=True) as opened:
        yield opened


@pytest.mark.parametrize(("key", "expected"), DOCUMENTED, ids=lambda value: str(value))
def test_keys_are_exactly_as_documented(db: Database, key: Any, expected: str) -> None:
    assert db.archive.key(key) == expected
    assert db.archive.key(key.schema.model(**key.components)) == expected


def test_a_template_may_include_the_extension() -> None:
    assert check_template("a/{partitionKey}.json.gz", has_sort_key=False) == "a/{partitionKey}"


# --- refusals -------------------------------------------------------------------------------------------------

REFUSED = [
    (
        "orders/{partitionKey}/{sortKey}/{timestamp}",
        r"\{timestamp\}.*\n.*use only .*could change",
    ),
    ("orders/{partitionKey}/{sortKey}/{status}", r"\{status\}.*\n.*use only .*could change"),
    ("orders/{sortKey}", r"lacks \{partitionKey\}.*\n.*the same key"),
    ("orders/{partitionKey}", r"lacks \{sortKey\}.*\n.*all items of a partition"),
    ("orders/{partitionKey}{sortKey}", r"nothing between them.*\n.*ab and c"),
    ("orders/{partitionKey}/{sortKey", "brace"),
    ("orders/{partitionKey}/}/{sortKey}", "brace"),
    ("/{partitionKey}/{sortKey}", "segment that is empty"),
    ("orders//{partitionKey}/{sortKey}", "segment that is empty"),
    ("orders/{partitionKey}/{sortKey}/", "segment that is empty"),
    ("../{partitionKey}/{sortKey}", "dots"),
    ("x" * 900 + "/{partitionKey}/{sortKey}", "longer than"),
    ("a\x01b/{partitionKey}/{sortKey}", "control"),
    ("a~b/{partitionKey}/{sortKey}", "~"),
]


@pytest.mark.parametrize(("template", "reason"), REFUSED, ids=[each[0][:40] for each in REFUSED])
def test_a_template_with_ambiguous_or_changing_keys_is_refused_with_its_class(
    template: str, reason: str
) -> None:
    with pytest.raises(InvalidOptionsError, match=reason):

        class Refused(Model, archive=Archive(key=template)):
            customer: Key[str]
            number: SortKey[str]
            status: str


@pytest.mark.parametrize(
    "options",
    [{"timestamp": "when"}, {"keep": ["who"]}],
    ids=["a timestamp", "a kept field"],
)
def test_an_unknown_field_is_refused_with_its_class(options: Any) -> None:
    with pytest.raises(InvalidOptionsError, match="not a field of Refused"):

        class Refused(Model, archive=Archive(**options)):
            customer: Key[str]


@pytest.mark.parametrize(
    "options",
    [
        {"after_days": -1},
        {"after_days": True},
        {"min_item_bytes": -1},
        {"unit": "m"},
        {"on_write": "ignore"},
        {"key_style": "plain"},
    ],
    ids=str,
)
def test_invalid_options_are_refused(options: Any) -> None:
    (name,) = options
    with pytest.raises(InvalidOptionsError, match=name):
        Archive(**options)


# --- values ---------------------------------------------------------------------------------------------------

SEGMENTS = [
    ('a:b<c>"d|e?f*g\\h', "a_b_c_d_e_f_g_h"),
    ("a___b", "a_b"),
    ("_a_", "_a_"),
    ("a/b", "a%2Fb"),
    ("100%", "100%25"),
    ("{sortKey}", "%7BsortKey%7D"),
    ("a~b", "a%7Eb"),
    ("a\x00\n\x7f", "a%00%0A%7F"),
    (".", "%2E"),
    ("..", "%2E%2E"),
    ("a.b", "a.b"),
    ("é", "é"),
    ("e\u0301", "e\u0301"),
    ("2024-01-15T10:00:00+02:00", "2024-01-15T10:00:00+02:00"),
    ("2024-01-15T10:00:00", "2024-01-15T10_00_00"),
    ("x2024-01-15T10:00:00Z", "x2024-01-15T10_00_00Z"),
    ("2024-01-15T10:00:00Z\n", "2024-01-15T10_00_00Z%0A"),
]


@pytest.mark.parametrize(("value", "expected"), SEGMENTS, ids=[repr(each[0]) for each in SEGMENTS])
def test_a_value_is_escaped_for_a_key_in_one_pass(value: str, expected: str) -> None:
    assert format_segment(value, "documented") == expected


def test_a_value_that_looks_like_a_variable_is_not_filled_in() -> None:
    assert render_key(DEFAULT, "documented", "t", "{sortKey}", "SECRET") == "t/%7BsortKey%7D/SECRET"


def test_encoded_keys_are_unique_and_hashed_keys_reveal_nothing() -> None:
    values = [
        "a:b",
        "a_b",
        "a__b",
        "a/b",
        "a%2Fb",
        ".",
        "%2E",
        "é",
        "e\u0301",
        "2024-01-15T10:00:00Z",
        "A",
        "a",
    ]
    encoded = [format_segment(value, "encoded") for value in values]
    assert len(set(encoded)) == len(values)
    assert all(segment.isascii() and "/" not in segment for segment in encoded)
    assert format_segment("a:b", "encoded") == "a%3Ab"
    assert render_key(DEFAULT, "encoded", "t", "a/b", "c") == "t/a%2Fb/c"
    hashed = render_key("orders/{partitionKey}/{sortKey}", "hashed", "t", "ada@example.org", "1")
    assert "ada" not in hashed
    assert len(hashed) == len("orders//") + 64


def test_an_owner_stamp_depends_on_the_table_and_the_whole_key() -> None:
    owners = [
        stamp_owner("t", {"a": {"S": "x"}, "b": {"S": "yz"}}),
        stamp_owner("t", {"a": {"S": "xy"}, "b": {"S": "z"}}),
        stamp_owner("t", {"a": {"S": "xyz"}}),
        stamp_owner("t", {"a": {"N": "1"}}),
        stamp_owner("t", {"a": {"S": "1"}}),
        stamp_owner("tx", {"a": {"S": "yz"}}),
    ]
    assert len(set(owners)) == len(owners)


@pytest.mark.parametrize("room", [MAX_KEY, 700])
@pytest.mark.parametrize(
    "base", ["x" * 2000, "é" * 1000, "x" + "é" * 1000, "\U0001f600" * 400], ids=lambda each: each[0]
)
def test_no_key_is_longer_than_its_service_allows(base: str, room: int) -> None:
    plan, other = KeyPlan(base, "a" * 64, room), KeyPlan(base, "b" * 64, room)
    assert len(plan.candidates) == 1
    keys = [*plan.candidates, plan.other("c" * 64), *other.candidates, other.other("c" * 64)]
    assert len(set(keys)) == len(keys)
    for key in keys:
        assert room - 4 < len(key.encode()) <= room


def test_the_last_key_that_fits_is_the_documented_one() -> None:
    fits = "x" * (MAX_KEY - len(".json.gz"))
    assert KeyPlan(fits, "a" * 64).candidates[0] == fits + ".json.gz"
    assert "~" in KeyPlan(fits + "x", "a" * 64).candidates[0]


class Odd(Model, archive=Archive(key="odd/{partitionKey}/{sortKey}")):
    amount: Key[Decimal]
    data: SortKey[bytes]
    text: str = "x"


class Mixed(Model, archive=Archive(key="{sortKey}/{partitionKey}")):
    number: Key[int]
    flag: Key[bool]
    text: SortKey[str]
    more: SortKey[datetime]


class Alone(Model, archive=Archive(key="{sortKey}/{partitionKey}")):
    """A model without a sort key, with a template that starts with the sort key."""

    name: Key[str]


def test_equal_numbers_and_bytes_give_equal_keys(db: Database) -> None:
    for amount in (Decimal(1), Decimal("1.0"), Decimal("1E0")):
        assert db.archive.key(Odd.key(amount=amount, data=b"\xfb\xff/")) == "odd/1/-_8v.json.gz"
    assert db.archive.key(Odd.key(amount=Decimal("-1.50"), data=b"a")) == "odd/-1.5/YQ.json.gz"
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    key = Mixed.key(number=7, flag=True, text="a/b", more=moment)
    assert db.archive.key(key).endswith("/7#1.json.gz")
    assert db.archive.key(key).startswith("a%2Fb#2026-01-02T00_00_00")
    assert db.archive.key(Alone.key("x")) == "x.json.gz"


def test_a_bucket_with_a_prefix_reports_the_maximum_length_of_keys() -> None:
    endpoint = resolve_endpoint("s3", environment=ENVIRONMENT)
    with closing(
        S3Service("bucket", endpoint, find_credentials(environment=ENVIRONMENT), prefix="é" * 50)
    ) as service:
        assert service.send_blocking(DescribeService("")).max_key == MAX_KEY - 101


@in_memory
async def test_a_prefix_of_the_service_shortens_keys(db: Rig) -> None:
    """S3 counts the prefix as part of the key."""
    db.service.inner = InterceptedService(db.service.inner, ServiceTraits(max_key=900))
    await db.create("x" * 980)
    assert (await db.run()).archived == 1
    (key,) = await db.objects()
    assert len(key.encode()) == 900
    assert (await db.get("x" * 980))["note"] == "green"
