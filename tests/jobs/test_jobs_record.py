"""Jobs as items: they come back unchanged, under keys that sort in the order in which jobs are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.frozen import replace
from holdall.core.keys import format_moment
from holdall.core.schema import IndexSchema, KeyAttribute
from holdall.errors import InvalidOptionsError
from holdall.jobs.record import (
    SHARDS,
    JobRecord,
    Lease,
    bury_job,
    check_key,
    decode_job,
    encode_job,
    lend_job,
    locate_job,
    locate_key,
    locate_occurrence,
    locate_queue,
    partitions,
    pause_item,
    postpone_job,
    shard_of,
)
from holdall.tables.layout import Address, Layout

PK, SK = KeyAttribute("pk", "S"), KeyAttribute("sk", "S")
MODE_A = Layout("A", "t", PK, SK)
MODE_B = Layout(
    "B",
    "t",
    PK,
    KeyAttribute("number", "N"),
    IndexSchema("i", KeyAttribute("h", "S"), KeyAttribute("r", "S")),
)
LAYOUTS = pytest.mark.parametrize("layout", [MODE_A, MODE_B], ids=["mode A", "mode B"])

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
RECORDS = st.builds(
    JobRecord,
    id=st.uuids(version=4).map(str),
    name=st.sampled_from(["a", "mail.send:now", "x" * 100]),
    queue=st.sampled_from(["default", "a.b_c-d", "9"]),
    arguments=TEXT.map("[{}]".format),
    due=MOMENTS,
    enqueued=MOMENTS,
    attempts=st.integers(0, 10**6),
    key=st.none() | TEXT.filter(bool),
    once_for=st.none() | st.floats(0, 366 * 86400),
    lease=st.none() | st.builds(Lease, st.uuids().map(str), MOMENTS, st.floats(0.01, 86400)),
    error=st.none() | TEXT,
)
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
RECORD = JobRecord("7" * 36, "name", "queue", "[]", NOW, NOW)


@LAYOUTS
@given(record=RECORDS)
def test_a_record_comes_back_unchanged(layout: Layout, record: JobRecord) -> None:
    assert decode_job(layout, encode_job(layout, record).stored) == record


@LAYOUTS
@given(record=RECORDS, died=MOMENTS)
def test_a_dead_record_comes_back_unchanged(layout: Layout, record: JobRecord, died: datetime) -> None:
    dead = bury_job(record, died, "why")
    assert decode_job(layout, encode_job(layout, dead).stored) == dead
    assert (dead.state, dead.error, dead.lease, dead.died) == ("dead", "why", None, died)


@LAYOUTS
@given(record=RECORDS)
def test_the_key_of_a_record_is_part_of_its_item(layout: Layout, record: JobRecord) -> None:
    item = encode_job(layout, record).stored
    assert locate_job(layout, record).attributes.items() <= item.items()
    assert layout.address_of(item) == locate_job(layout, record)
    assert all(isinstance(name, str) and len(attribute) == 1 for name, attribute in item.items())


@given(record=RECORDS, seconds=st.floats(0.01, 86400))
def test_taking_a_job_does_not_move_it(record: JobRecord, seconds: float) -> None:
    taken = lend_job(record, "token", NOW, seconds)
    for layout in (MODE_A, MODE_B):
        assert locate_job(layout, taken) == locate_job(layout, record)
    assert taken.attempts == record.attempts + 1
    assert taken.lease == Lease("token", NOW + timedelta(seconds=seconds), seconds)


def test_the_state_of_a_record_follows_from_its_lease_and_death() -> None:
    taken = lend_job(RECORD, "token", NOW, 30.0)
    assert (RECORD.state, taken.state, bury_job(taken, NOW, "why").state) == ("waiting", "running", "dead")
    again = postpone_job(taken, NOW + timedelta(seconds=5), "why")
    assert (again.state, again.error, again.attempts) == ("waiting", "why", 1)
    assert again.due == NOW + timedelta(seconds=5)


def test_a_job_is_stored_under_its_queue_shard_and_time() -> None:
    assert locate_job(MODE_A, RECORD).key == {
        "pk": {"S": "holdall#Job#queue#7"},
        "sk": {"S": f"2026-01-02T03:04:05.678901Z#{'7' * 36}"},
    }
    assert locate_job(MODE_B, RECORD).key == {"pk": {"S": f"holdall.Job#{'7' * 36}"}, "number": {"N": "0"}}
    dead = bury_job(RECORD, NOW + timedelta(seconds=1), "why")
    assert locate_job(MODE_A, dead).key == {
        "pk": {"S": "holdall#DeadJob#queue#7"},
        "sk": {"S": f"2026-01-02T03:04:06.678901Z#{'7' * 36}"},
    }
    assert locate_job(MODE_B, dead).key == locate_job(MODE_B, RECORD).key


def test_a_new_job_is_stored_with_few_attributes() -> None:
    assert sorted(encode_job(MODE_A, RECORD).stored) == [
        "_type",
        "job_args",
        "job_at",
        "job_id",
        "job_name",
        "pk",
        "sk",
    ]


@given(one=MOMENTS, other=MOMENTS)
def test_texts_of_times_sort_as_times_do(one: datetime, other: datetime) -> None:
    assert (one < other) == (format_moment(one) < format_moment(other))
    assert (one == other) == (format_moment(one) == format_moment(other))


@given(st.uuids(version=4).map(str))
def test_the_shard_of_a_job_is_one_of_sixteen(id: str) -> None:
    assert shard_of(id) in SHARDS


def test_the_partitions_of_a_queue_are_those_of_its_states() -> None:
    alive = [f"holdall#Job#q#{shard}" for shard in "0123456789abcdef"]
    dead = [f"holdall#DeadJob#q#{shard}" for shard in "0123456789abcdef"]
    assert list(partitions("q", ("waiting",))) == list(partitions("q", ("running",))) == alive
    assert list(partitions("q", ("dead",))) == dead
    assert sorted(partitions("q", ("waiting", "running", "dead"))) == sorted(alive + dead)
    assert list(partitions("q", ("paused",))) == [f"holdall#PausedJob#q#{shard}" for shard in SHARDS]


@LAYOUTS
@given(record=RECORDS)
def test_a_paused_record_comes_back_unchanged(layout: Layout, record: JobRecord) -> None:
    paused = replace(record, paused=True, lease=None)
    assert decode_job(layout, encode_job(layout, paused).stored) == paused
    assert (paused.state, postpone_job(paused, NOW, None).state) == ("paused", "waiting")


@given(record=RECORDS)
def test_the_item_of_a_job_can_be_turned_into_a_paused_one(record: JobRecord) -> None:
    paused = pause_item(encode_job(MODE_A, record).stored, "pk")
    assert paused is not None
    assert decode_job(MODE_A, paused) == replace(record, paused=True, lease=None)
    assert pause_item(paused, "pk") is None
    assert pause_item({"pk": {"S": "Job#queue#7"}, "sk": {"S": "x"}}, "pk") is None
    assert pause_item({"pk": {"N": "7"}}, "pk") is None


# --- other items ----------------------------------------------------------------------------------------


def _logical(address: Address) -> tuple[str, str, str]:
    """An item's H, R and item_id, as mode B stores all three."""
    h, r = MODE_B.logical(address.attributes)
    return h, r, address.key["pk"]["S"]


@given(one=TEXT.filter(bool), other=TEXT.filter(bool))
def test_different_keys_have_different_items(one: str, other: str) -> None:
    assert (locate_key(MODE_A, "n", one) == locate_key(MODE_A, "n", other)) == (one == other)
    assert locate_key(MODE_A, "n", one) != locate_key(MODE_A, "m", one)


@given(key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=500))
def test_every_accepted_key_fits_into_a_key_of_the_table(key: str) -> None:
    try:
        check_key(key)
    except InvalidOptionsError:
        assert len(key.encode()) > 500
    else:
        h, r, item_id = _logical(locate_key(MODE_B, "x" * 100, key))
        assert max(len(h.encode()), len(item_id.encode())) <= 2048
        assert 0 < len(r.encode()) <= 1024


@pytest.mark.parametrize("key", ["", "x" * 501, "\ud800", None, 5, b"k"], ids=repr)
def test_an_invalid_key_is_refused(key: Any) -> None:
    with pytest.raises(InvalidOptionsError, match="is not a valid key for a job"):
        check_key(key)


def test_keys_queues_and_occurrences_are_stored_under_their_names() -> None:
    assert _logical(locate_key(MODE_B, "n", "a/b#c")) == (
        "holdall#JobKey#n#a%2Fb%23c",
        "#",
        "holdall#JobKey#n#a%2Fb%23c",
    )
    assert _logical(locate_queue(MODE_B, "q")) == ("holdall#Queues", "q", "holdall#Queues#q")
    assert _logical(locate_occurrence(MODE_B, "n", "every:60", NOW)) == (
        "holdall#Schedule#n",
        "every:60#2026-01-02T03:04:05.678901Z",
        "holdall#Schedule#n#every:60#2026-01-02T03:04:05.678901Z",
    )


def test_a_record_is_immutable() -> None:
    with pytest.raises(AttributeError):
        RECORD.attempts = 5  # type: ignore[misc]
    assert replace(RECORD, attempts=5).attempts == 5
