"""Claims of objects' keys in the table, in both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdall import Database
from holdall.backends.s3 import S3Service
from holdall.tables.claim import TableClaims
from holdall.testing import Fault, FaultyBackend


@pytest.fixture
def db() -> Iterator[Database]:
    with Database("memory:") as db:
        yield db


def claims(db: Database, service: str = "main") -> TableClaims:
    return TableClaims(service, lambda: db._context, lambda: db.aio._context)


def test_a_claimed_key_belongs_to_one_id_until_it_is_released(db: Database) -> None:
    mine = claims(db)
    assert mine.claim_blocking("a/b", "one")
    assert mine.claim_blocking("a/b", "one")  # as after a lost reply
    assert not mine.claim_blocking("a/b", "two")
    assert mine.claim_blocking("a/c", "two")
    mine.release_blocking("a/b")
    assert mine.claim_blocking("a/b", "two")


def test_claims_of_different_services_are_independent(db: Database) -> None:
    assert claims(db, "main").claim_blocking("a", "one")
    assert claims(db, "other").claim_blocking("a", "two")


def test_both_colours_see_the_same_claims(db: Database) -> None:
    async def other() -> list[bool]:
        theirs = claims(db)
        found = [await theirs.claim_awaiting("a", "two")]
        await theirs.release_awaiting("a")
        return [*found, await theirs.claim_awaiting("a", "two")]

    assert claims(db).claim_blocking("a", "one")
    assert asyncio.run(other()) == [False, True]


def test_only_one_of_many_concurrent_claims_of_a_key_succeeds(db: Database) -> None:
    mine = claims(db)
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: mine.claim_blocking("a", f"id {number}"), range(8)))
    assert sum(won) == 1


def test_releasing_survives_a_lost_reply(db: Database) -> None:
    assert claims(db).claim_blocking("a", "one")
    faulty = FaultyBackend(db._backend)
    with Database("memory:", backend=faulty) as other:
        other.table.describe()
        theirs = claims(other)
        assert not theirs.claim_blocking("a", "two")
        faulty.inject(Fault.LOST_AFTER)
        with pytest.raises(Exception, match="lost on purpose"):
            theirs.release_blocking("a")
        theirs.release_blocking("a")
        assert theirs.claim_blocking("a", "two")


def test_an_s3_service_of_a_database_has_claims_in_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    url = "s3://bucket?region=us-east-1&endpoint=http://127.0.0.1:9"
    with Database("memory:", files={"bytes": url}) as db:
        service = db._services.service("bytes")
        assert isinstance(service, S3Service)
        found = service.claims
        assert found is not None
        assert found.claim_blocking("a", "one")
        assert not claims(db, "bytes").claim_blocking("a", "two")
        assert not asyncio.run(found.claim_awaiting("a", "two"))
