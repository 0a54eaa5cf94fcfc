"""What the streams of real servers report about transactions, in each of the four views of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import botocore.session
import pytest
from rig.servers import ENVIRONMENT, GIVEN, NAMES, start_server

from holdall import Database, Key, Model, SortKey, field
from holdall.models import StreamChange, stream_changes


class Kite(Model):
    owner: Key[str]
    number: SortKey[int]
    colour: str = "red"
    tail: bytes = b"\x00\xff"
    knots: set[bytes] = field(default_factory=lambda: {b"a", b"\xfe"})
    code: str | None = field(default=None, unique=True)


class Stunt(Kite):
    lines: int = 2


class OwnKite(Model, table="Kites"):
    owner: Key[str]
    number: SortKey[int]
    colour: str = "red"
    tail: bytes = b"\x00\xff"


class Server:
    """Clients of a server, and a unique prefix for tables."""

    def __init__(self, name: str) -> None:
        self.url = start_server(name)
        self.prefix = f"streams-{uuid4().hex}-"
        session = botocore.session.get_session()
        session.set_credentials(ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"])
        where = {"region_name": ENVIRONMENT["AWS_REGION"], "endpoint_url": self.url}
        self.tables: Any = session.create_client("dynamodb", **where)
        self.streams: Any = session.create_client("dynamodbstreams", **where)

    def create(self, table: str, keys: dict[str, str], view: str) -> None:
        self.tables.create_table(
            TableName=table,
            KeySchema=[
                {"AttributeName": name, "KeyType": kind}
                for name, kind in zip(keys, ("HASH", "RANGE"), strict=True)
            ],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": kind} for name, kind in keys.items()
            ],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": view},
        )

    def answers(self, table: str) -> Iterator[dict[str, Any]]:
        """The reply of GetRecords for each shard of a table's stream."""
        arn = self.tables.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        for shard in self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            where = self.streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )
            yield self.streams.get_records(ShardIterator=where["ShardIterator"])

    def close(self) -> None:
        self.tables.close()
        self.streams.close()


@pytest.fixture(params=[name for name in NAMES if name != GIVEN])  # these tests leave tables behind
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name, setting in ENVIRONMENT.items():
        monkeypatch.setenv(name, setting)
    found = Server(request.param)
    yield found
    found.close()


views = pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"])


def live_through(db: Database, model: type[Any], **values: Any) -> None:
    """Create, change and delete an item."""
    with db.transaction() as tx:
        tx.create(model, owner="ada", number=-7, **values)
    with db.transaction() as tx:
        tx.get_one(model, owner="ada", number=-7).colour = "blue"
    with db.transaction() as tx:
        tx.delete(tx.get_one(model, owner="ada", number=-7))


def check(changes: list[StreamChange[Any]], view: str, model: type[Any]) -> None:
    assert [change.kind for change in changes] == ["insert", "modify", "remove"]
    assert [change.key for change in changes] == [model.key(owner="ada", number=-7)] * 3
    new = [None if change.new is None else (change.new.colour, change.new.tail) for change in changes]
    old = [None if change.old is None else (change.old.colour, change.old.tail) for change in changes]
    red, blue = ("red", b"\x00\xff"), ("blue", b"\x00\xff")
    assert new == ([red, blue, None] if view.startswith("NEW") else [None] * 3)
    assert old == ([None, red, blue] if "OLD" in view else [None] * 3)
    assert not any(change.expired for change in changes)
    assert all(change.at is not None and change.event_id and change.sequence_number for change in changes)


@views
def test_a_stream_reports_the_life_of_an_item_in_the_shared_table(server: Server, view: str) -> None:
    table = f"{server.prefix}one"
    server.create(table, {"pk": "S", "sk": "S"}, view)
    with Database(f"dynamodb://{table}", endpoint=server.url) as db:
        live_through(db, Kite, code="unique, so that there are guards")
    answers = list(server.answers(table))
    changes = [change for answer in answers for change in stream_changes(answer, Kite)]
    check(changes, view, Kite)
    assert sum(len(answer["Records"]) for answer in answers) > 3


@views
def test_a_stream_reports_the_life_of_an_item_in_an_own_table(server: Server, view: str) -> None:
    table = f"{server.prefix}Kites"
    server.create(table, {"_id": "S", "_sk": "N"}, view)
    with Database(f"dynamodb://{server.prefix}one", endpoint=server.url, table_prefix=server.prefix) as db:
        live_through(db, OwnKite)
    answers = list(server.answers(table))
    changes = [
        change
        for answer in answers
        for change in stream_changes(answer, Kite, OwnKite, table_prefix=server.prefix, table=table)
    ]
    check(changes, view, OwnKite)


def test_a_stream_reports_a_derived_item_as_its_own_class(server: Server) -> None:
    table = f"{server.prefix}one"
    server.create(table, {"pk": "S", "sk": "S"}, "NEW_AND_OLD_IMAGES")
    with Database(f"dynamodb://{table}", endpoint=server.url) as db:
        live_through(db, Stunt, lines=4)
    changes = [change for answer in server.answers(table) for change in stream_changes(answer, Kite)]
    check(changes, "NEW_AND_OLD_IMAGES", Stunt)
    assert {change.model for change in changes} == {Stunt}
    first = changes[0].new
    assert isinstance(first, Stunt)
    assert (first.lines, first.knots) == (4, {b"a", b"\xfe"})
