"""The fixtures of the shipped plugin, in the test suite of a program, which pytest runs in a separate process."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

pytest_plugins = ["pytester"]

SHOP = '''
"""A program with a model, a job and sessions that expire."""

from datetime import datetime

import holdall
from holdall import Key, Model, has_one_attached

SENT = []

class Order(Model):
    number: Key[str]
    quantity: int = 1
    receipt = has_one_attached()

class Session(Model, ttl="expires"):
    token: Key[str]
    expires: datetime

@holdall.job("send-receipt", retries=3)
def send_receipt(number: str):
    SENT.append(number)

def place(db, number):
    def body(tx):
        tx.create(Order, number=number)
        tx.enqueue(send_receipt, number)
    db.run(body)
'''

STORE = """
import pytest
from shop import SENT, Order, place

@pytest.mark.parametrize("round", ["first", "second"])
def test_each_test_begins_with_an_empty_store(holdall_db, round):
    assert not holdall_db.scan(Order).exists()
    assert not holdall_db.files.exists("a")
    holdall_db.files.put("a", b"a")
    place(holdall_db, "1")

def test_jobs_run_when_the_test_drains_them(holdall_db):
    SENT.clear()
    place(holdall_db, "1")
    assert SENT == []
    assert holdall_db.worker().drain().succeeded == 1
    assert SENT == ["1"]

def test_urls_can_be_signed(holdall_db):
    with holdall_db.transaction() as tx:
        order = tx.create(Order, number="1")
        order.receipt.attach(b"paid", filename="receipt.txt")
    assert order.receipt.url().startswith("/attachments/")
    assert holdall_db.files.url("a")

def test_the_sync_and_the_async_fixture_share_one_store(holdall_db, async_holdall_db):
    import asyncio
    place(holdall_db, "1")
    assert asyncio.run(async_holdall_db.get(Order, "1")).quantity == 1
"""

SETTINGS = """
import pytest

@pytest.fixture
def holdall_settings():
    return {"files": {"photos": "memory:", "letters": "memory:"}, "table_name": "shop"}

def test_the_program_can_override_the_settings(holdall_db):
    assert holdall_db.table.name == "shop"
    holdall_db.files["letters"].put("a", b"a")
"""

CLOCK = """
from datetime import UTC, datetime, timedelta

import pytest
from holdall import Database
from holdall.errors import InvalidTokenError
from holdall.testing import Clock
from shop import SENT, Order, Session, place, send_receipt

def test_items_expire(holdall_db, holdall_clock):
    with holdall_db.transaction() as tx:
        tx.create(Session, token="t", expires=holdall_clock.now() + timedelta(minutes=5))
    holdall_clock.advance(299)
    assert holdall_db.get(Session, "t")
    holdall_clock.advance(2)
    assert holdall_db.get(Session, "t") is None

def test_jobs_become_due(holdall_db, holdall_clock):
    SENT.clear()
    holdall_db.jobs.enqueue(send_receipt, "1", delay=timedelta(days=1))
    assert holdall_db.worker().drain().started == 0
    holdall_clock.advance(timedelta(days=1))
    assert holdall_db.worker().drain().succeeded == 1

def test_the_lease_of_a_dead_worker_ends(holdall_db, holdall_clock):
    from holdall.core import run
    from holdall.jobs.lease import take

    holdall_db.jobs.enqueue(send_receipt, "1")
    run(take(holdall_db._context, holdall_db.jobs.list()[0], "a worker that died", 30.0))
    assert holdall_db.worker().drain().started == 0
    holdall_clock.advance(timedelta(minutes=5))
    assert holdall_db.worker().drain().succeeded == 1

def test_signed_urls_expire(holdall_db, holdall_clock):
    def sign():
        return holdall_db.files.url("a", expires=60).rpartition("/")[2]

    token = sign()
    holdall_clock.advance(59)
    assert holdall_db.files.verify_download(token).key == "a"
    holdall_clock.advance(2)
    with pytest.raises(InvalidTokenError):
        holdall_db.files.verify_download(token)

def test_signed_ids_expire(holdall_db, holdall_clock):
    blob = holdall_db.blobs.create_and_upload(b"a", filename="a.txt")
    signed = holdall_db.blobs.signed_id(blob, expires=60)
    assert holdall_db.blobs.find_signed(signed).id == blob.id
    holdall_clock.advance(61)
    assert holdall_db.blobs.find_signed(signed) is None

def test_the_clock_also_moves_databases_that_the_program_opened(holdall_clock, tmp_path):
    with Database(f"embedded:{tmp_path / 'app.db'}", files=f"file:{tmp_path / 'files'}") as db:
        holdall_clock.set(datetime(2030, 1, 1, tzinfo=UTC))
        assert db.port.now() == db.aio.port.now() == holdall_clock.now()

def test_a_time_without_a_time_zone_is_rejected(holdall_clock):
    with pytest.raises(ValueError, match="no time zone"):
        holdall_clock.set(datetime(2030, 1, 1))

def test_afterwards_time_is_real_again(holdall_db):
    assert abs(holdall_db.port.now() - datetime.now(UTC)) < timedelta(minutes=1)
    with Clock(datetime(2000, 1, 1, tzinfo=UTC)), Clock(datetime(2010, 1, 1, tzinfo=UTC)) as inner:
        assert holdall_db.port.now() == inner.now()
"""

FAULTS = """
import pytest
from holdall.errors import OutcomeUnknown, TransactionFailedError
from holdall.testing import Fault
from shop import Order, place

def test_a_transaction_survives_conflicts_and_throttling(holdall_db, holdall_faults, holdall_clock):
    place(holdall_db, "1")
    attempts = []

    @holdall_db.transactional
    def add(tx):
        attempts.append(1)
        tx.get_one(Order, "1").quantity += 1

    holdall_faults.inject(Fault.CONFLICT, Fault.THROTTLE, into="writes")
    before = holdall_clock.now()
    add()
    assert len(attempts) == 3
    assert holdall_db.get(Order, "1").quantity == 2
    assert holdall_clock.now() > before  # the pauses between attempts advanced the clock instead of waiting

def test_after_a_lost_reply_the_write_has_happened(holdall_db, holdall_faults):
    holdall_faults.inject(Fault.LOST_AFTER, into="writes")
    with pytest.raises(OutcomeUnknown):
        with holdall_db.transaction() as tx:
            tx.create(Order, number="1")
    assert holdall_db.get(Order, "1")
    assert holdall_faults.injected == {Fault.LOST_AFTER: 1}

def test_rates_can_simulate_an_outage(holdall_db, holdall_faults, holdall_clock):
    place(holdall_db, "1")
    holdall_faults.set_rates({Fault.UNAVAILABLE: 1.0})
    with pytest.raises(TransactionFailedError):
        holdall_db.run(lambda tx: tx.delete(Order.key("1")))
    holdall_faults.set_rates({})
    assert holdall_db.get(Order, "1")

def test_reads_have_no_conflicts(holdall_db, holdall_faults):
    place(holdall_db, "1")
    holdall_faults.inject(Fault.CONFLICT, into="reads")
    assert holdall_db.get(Order, "1")
"""

AWAITED = """
import pytest
from shop import SENT, Order, send_receipt

@pytest.fixture
def anyio_backend():
    return "asyncio"

{mark}
async def test_a_coroutine_can_use_the_fixture(async_holdall_db):
    SENT.clear()
    async with async_holdall_db.transaction() as tx:
        tx.create(Order, number="1")
        tx.enqueue(send_receipt, "1")
    assert (await async_holdall_db.get(Order, "1")).quantity == 1
    await async_holdall_db.worker().drain()
    assert SENT == ["1"]

{mark}
async def test_each_test_has_its_own_database(async_holdall_db):
    assert await async_holdall_db.get(Order, "1") is None
"""

WITHOUT_PLUGIN = (
    AWAITED.format(mark="")
    + """

import asyncio
from functools import wraps

def run_alone(function):
    @wraps(function)
    def test(*args, **kwargs):
        asyncio.run(function(*args, **kwargs))
    return test

test_a_coroutine_can_use_the_fixture = run_alone(test_a_coroutine_can_use_the_fixture)
test_each_test_has_its_own_database = run_alone(test_each_test_has_its_own_database)
"""
)


def test_the_suite_of_a_program_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        shop=SHOP, test_store=STORE, test_settings=SETTINGS, test_clock=CLOCK, test_faults=FAULTS
    )
    result = pytester.runpytest_subprocess("-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(passed=18)


@pytest.mark.parametrize("plugin", ["none", "anyio", "pytest_asyncio"])
def test_the_async_fixture_needs_no_particular_plugin(pytester: pytest.Pytester, plugin: str) -> None:
    if plugin != "none" and find_spec(plugin) is None:
        pytest.skip(f"{plugin} is not installed")
    mark = {"anyio": "@pytest.mark.anyio", "pytest_asyncio": "@pytest.mark.asyncio"}.get(plugin)
    pytester.makepyfile(shop=SHOP, test_suite=WITHOUT_PLUGIN if mark is None else AWAITED.format(mark=mark))
    disabled = [f"-pno:{other}" for other in ("anyio", "asyncio") if other not in plugin]
    if plugin == "pytest_asyncio":
        disabled += ["-o", "asyncio_default_fixture_loop_scope=function"]
    result = pytester.runpytest_subprocess("-q", "-W", "error", "-p", "no:cacheprovider", *disabled)
    result.assert_outcomes(passed=2)
