"""Running a function until it commits: which errors are retried, how long the waits are, and when retries end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rig.behaviour import Db, awaiting, everywhere, in_memory
from rig.behaviour_models import Order, arrange, expect_contention, expect_failure, meanwhile

from holdall import AsyncTransaction
from holdall.errors import (
    AfterCommitError,
    ContentionError,
    InvalidOptionsError,
    OutcomeUnknown,
    ThrottledError,
    TransactionClosedError,
    TransactionFailedError,
    TransactionTimeoutError,
)
from holdall.testing import Fault


class Again(Exception):
    """An error of the application that requests another attempt."""

    retryable = True


def make_failing_body(calls: list[int], error: Exception, times: int = 1000) -> Callable[..., Any]:
    """Return a body that fails this many times, and records its calls."""

    async def body(tx: AsyncTransaction) -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            raise error
        return "done"

    return body


# --- counts -----------------------------------------------------------------------------------------------


@everywhere
async def test_contention_is_retried_until_the_commit_succeeds(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=0))
    seen = []

    async def count(tx: AsyncTransaction) -> int:
        order = await tx.get_one(Order, "a")
        seen.append(order.quantity)
        if len(seen) <= 3:
            await meanwhile(db, order.key, quantity=order.quantity + 10)
        order.quantity += 1
        return order.quantity

    assert await db.run(count) == 31
    assert seen == [0, 10, 20, 30]


@everywhere
async def test_endless_contention_fails_after_the_retries_and_writes_nothing(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=0))
    attempts = []

    async def count(tx: AsyncTransaction) -> None:
        order = await tx.get_one(Order, "a")
        attempts.append(1)
        await meanwhile(db, order.key, quantity=order.quantity + 10)
        order.quantity += 1

    with pytest.raises(TransactionFailedError, match="4") as caught:
        await db.run(count, retries=3)
    assert len(attempts) == caught.value.attempts == 4
    assert (await db.get_one(Order, "a")).quantity == 40


@in_memory
@pytest.mark.parametrize("retries", [0, 1, 5])
async def test_the_number_of_retries_can_be_set(db: Db, retries: int) -> None:
    calls: list[int] = []
    with pytest.raises(TransactionFailedError) as caught:
        await db.run(make_failing_body(calls, Again()), retries=retries)
    assert len(calls) == caught.value.attempts == retries + 1
    assert isinstance(caught.value.__cause__, Again)


@in_memory
async def test_the_error_has_the_last_cause(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=0))

    async def count(tx: AsyncTransaction) -> None:
        order = await tx.get_one(Order, "a")
        await meanwhile(db, order.key, quantity=order.quantity + 10)
        order.quantity += 1

    with pytest.raises(TransactionFailedError) as caught:
        await db.run(count, retries=2)
    cause = caught.value.__cause__
    assert isinstance(cause, ContentionError)
    assert str(cause) == "Order(id='a').quantity is 30, expected 20"


@in_memory
async def test_a_with_block_is_one_attempt(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            order.quantity += 1
            await meanwhile(db, order.key, quantity=7)
    assert caught.value.attempts == 1
    assert "db.run" in str(caught.value)
    assert db.clock.waits == []


# --- waits ------------------------------------------------------------------------------------------------


@in_memory
@pytest.mark.parametrize(
    ("options", "longest"),
    [
        ({"retries": 4, "initial_backoff": 0.1, "max_backoff": 0.5}, [0.1, 0.2, 0.4, 0.5]),
        ({}, [0.025, 0.05, 0.1]),
        ({"retries": 3, "initial_backoff": 2, "max_backoff": 1}, [1, 1, 1]),
        ({"retries": 2, "initial_backoff": 0}, [0, 0]),
        ({"retries": 10}, [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1, 1, 1, 1]),
        ({"retries": 0}, []),
    ],
    ids=repr,
)
@pytest.mark.parametrize("chance", [0.0, 0.25, 1.0])
async def test_waits_double_up_to_a_maximum_and_a_random_part_of_each_is_waited(
    db: Db, options: dict[str, Any], longest: list[float], chance: float
) -> None:
    db.clock.chance = chance
    with pytest.raises(TransactionFailedError):
        await db.run(make_failing_body([], Again()), **options)
    assert db.clock.waits == pytest.approx([chance * seconds for seconds in longest])


# --- retryable errors -------------------------------------------------------------------------------------


@in_memory
async def test_an_application_error_of_a_retryable_class_is_retried(db: Db) -> None:
    calls: list[int] = []
    assert await db.run(make_failing_body(calls, Again(), times=2)) == "done"
    assert len(calls) == 3


@in_memory
async def test_a_single_error_can_be_marked_as_retryable(db: Db) -> None:
    error = ValueError("not now")
    error.retryable = True  # type: ignore[attr-defined]
    calls: list[int] = []
    assert await db.run(make_failing_body(calls, error, times=1)) == "done"
    assert len(calls) == 2


class Named(Exception):
    name = code = "ConditionalCheckFailedException"


class Never(Exception):
    retryable = False


@in_memory
@pytest.mark.parametrize("error", [ValueError("no"), Never(), Named(), LookupError()], ids=repr)
async def test_any_other_error_is_raised_unchanged_without_a_retry(db: Db, error: Exception) -> None:
    calls: list[int] = []
    with pytest.raises(type(error)) as caught:
        await db.run(make_failing_body(calls, error))
    assert caught.value is error
    assert len(calls) == 1


@in_memory
async def test_a_group_is_retried_if_all_its_errors_are_retryable(db: Db) -> None:
    calls: list[int] = []
    group = ExceptionGroup("two", [Again(), ExceptionGroup("one", [Again()])])
    assert await db.run(make_failing_body(calls, group, times=1)) == "done"
    mixed = ExceptionGroup("two", [Again(), ValueError()])
    calls.clear()
    with pytest.raises(ExceptionGroup) as caught:
        await db.run(make_failing_body(calls, mixed))
    assert caught.value is mixed
    assert len(calls) == 1


@awaiting
async def test_a_base_exception_is_never_retried(db: Db) -> None:
    class Stop(BaseException):
        retryable = True

    calls = []

    async def body(tx: AsyncTransaction) -> None:
        calls.append(1)
        raise Stop

    with pytest.raises(Stop):
        await db.run(body)
    assert len(calls) == 1


@everywhere
@pytest.mark.parametrize("fault", [Fault.THROTTLE, Fault.UNAVAILABLE])
@pytest.mark.parametrize("beside", [False, True], ids=["single write", "transaction"])
async def test_a_commit_that_the_service_refuses_temporarily_is_retried(
    db: Db, fault: Fault, beside: bool
) -> None:
    await arrange(db, Order(id="a", quantity=1))
    calls = []

    async def count(tx: AsyncTransaction) -> None:
        calls.append(1)
        order = await tx.get_one(Order, "a")
        order.quantity += 1
        if beside:
            tx.create(Order, id="b")
        if len(calls) == 1:
            db.faults.inject(fault)

    await db.run(count)
    assert len(calls) == 2
    assert (await db.get_one(Order, "a")).quantity == 2


@in_memory
async def test_a_read_that_the_service_refuses_temporarily_is_retried(db: Db) -> None:
    await arrange(db, Order(id="a"))
    db.faults.inject(Fault.THROTTLE)

    async def look(tx: AsyncTransaction) -> int:
        return (await tx.get_one(Order, "a")).quantity

    assert await db.run(look) == 1
    db.faults.inject(*[Fault.THROTTLE] * 4)
    with pytest.raises(TransactionFailedError) as caught:
        await db.run(look)
    assert isinstance(caught.value.__cause__, ThrottledError)


@everywhere
@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
async def test_an_unknown_outcome_is_never_retried(db: Db, fault: Fault) -> None:
    await arrange(db, Order(id="a", quantity=1))
    calls = []

    async def count(tx: AsyncTransaction) -> None:
        calls.append(1)
        (await tx.get_one(Order, "a")).quantity += 1
        db.faults.inject(fault)

    with pytest.raises(OutcomeUnknown):
        await db.run(count)
    assert len(calls) == 1
    assert (await db.get_one(Order, "a")).quantity == (2 if fault is Fault.LOST_AFTER else 1)


# --- timeout ----------------------------------------------------------------------------------------------


@in_memory
async def test_no_attempt_begins_after_the_timeout(db: Db) -> None:
    db.clock.chance = 1.0
    begun: list[float] = []
    start = db.clock.now()

    async def body(tx: AsyncTransaction) -> None:
        begun.append((db.clock.now() - start).total_seconds())
        raise Again

    with pytest.raises(TransactionTimeoutError) as caught:
        await db.run(body, retries=100, initial_backoff=0.4, max_backoff=10, timeout=1.0)
    assert begun[0] == 0
    assert max(begun) <= 1.0
    assert caught.value.attempts == len(begun)
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value.__cause__, Again)


@in_memory
async def test_a_body_that_exceeds_the_timeout_is_not_retried(db: Db) -> None:
    calls = []

    async def body(tx: AsyncTransaction) -> None:
        calls.append(1)
        db.clock.forward(2)
        raise Again

    with pytest.raises(TransactionTimeoutError, match="within 1 seconds"):
        await db.run(body, timeout=1)
    assert len(calls) == 1
    assert db.clock.waits == []


@in_memory
async def test_retries_can_end_before_the_timeout(db: Db) -> None:
    with pytest.raises(TransactionFailedError) as caught:
        await db.run(make_failing_body([], Again()), timeout=1000)
    assert not isinstance(caught.value, TimeoutError)


# --- nested runs ------------------------------------------------------------------------------------------


@everywhere
async def test_an_inner_run_is_an_independent_transaction_and_runs_again_with_the_outer(db: Db) -> None:
    inner_runs = []

    async def inner(tx: AsyncTransaction) -> None:
        inner_runs.append(1)
        tx.create(Order, id=f"inner {len(inner_runs)}")

    async def outer(tx: AsyncTransaction) -> None:
        await db.run(inner)
        tx.create(Order, id="outer")
        if len(inner_runs) < 3:
            raise Again

    await db.run(outer)
    keys = [Order.key(id) for id in ("inner 1", "inner 2", "inner 3", "outer")]
    assert all(await db.get_all(keys))


@in_memory
async def test_an_inner_run_stays_committed_when_the_outer_fails(db: Db) -> None:
    async def inner(tx: AsyncTransaction) -> None:
        tx.create(Order, id="inner")

    async def outer(tx: AsyncTransaction) -> None:
        tx.create(Order, id="outer")
        await db.run(inner)
        raise ValueError

    with pytest.raises(ValueError):
        await db.run(outer)
    assert await db.get(Order, "inner") is not None
    assert await db.get(Order, "outer") is None


@in_memory
async def test_an_inner_run_that_failed_is_not_retried_by_the_outer(db: Db) -> None:
    calls: list[int] = []
    outer_calls = []

    async def outer(tx: AsyncTransaction) -> None:
        outer_calls.append(1)
        await db.run(make_failing_body(calls, Again()), retries=1)

    with pytest.raises(TransactionFailedError) as caught:
        await db.run(outer)
    assert (len(calls), len(outer_calls)) == (2, 1)
    assert caught.value.attempts == 2


@in_memory
async def test_a_failing_handler_of_an_inner_run_is_an_error_of_the_outer_body(db: Db) -> None:
    """The inner transaction is committed, the outer one is not, and its failure handlers get the error."""
    received: list[Exception] = []

    async def inner(tx: AsyncTransaction) -> None:
        tx.create(Order, id="inner")
        tx.after_commit(lambda: 1 / 0)

    async def outer(tx: AsyncTransaction) -> None:
        tx.create(Order, id="outer")
        tx.after_failure(received.append)
        await db.run(inner)

    with pytest.raises(AfterCommitError) as caught:
        await db.run(outer)
    assert received == [caught.value]
    assert await db.get(Order, "inner") is not None
    assert await db.get(Order, "outer") is None


@in_memory
async def test_an_unknown_outcome_of_an_inner_run_is_an_error_of_the_outer_body(db: Db) -> None:
    received: list[Exception] = []

    async def inner(tx: AsyncTransaction) -> None:
        tx.create(Order, id="inner")
        db.faults.inject(Fault.LOST_AFTER)

    async def outer(tx: AsyncTransaction) -> None:
        tx.after_failure(received.append)
        await db.get(Order, "any key: the first use finds the table")
        await db.run(inner)

    with pytest.raises(OutcomeUnknown) as caught:
        await db.run(outer)
    assert received == [caught.value]


# --- calling ----------------------------------------------------------------------------------------------


@in_memory
async def test_run_passes_arguments_and_returns_the_result(db: Db) -> None:
    async def body(tx: AsyncTransaction, *args: Any) -> tuple[Any, ...]:
        return args

    assert await db.run(body, 1, "two", retries=0) == (1, "two")


@in_memory
async def test_a_transactional_function_hides_its_transaction(db: Db) -> None:
    @db.transactional
    async def create_order(tx: AsyncTransaction, id: str, *, quantity: int = 1) -> str:
        """Create an order."""
        tx.create(Order, id=id, quantity=quantity)
        return id

    @db.transactional(retries=1)
    async def fail(tx: AsyncTransaction, calls: list[int]) -> None:
        calls.append(1)
        raise Again

    assert await create_order("a", quantity=3) == "a"
    assert (await db.get_one(Order, "a")).quantity == 3
    assert create_order.__name__ == "create_order"
    assert create_order.__doc__ == "Create an order."
    calls: list[int] = []
    with pytest.raises(TransactionFailedError):
        await fail(calls)
    assert len(calls) == 2


@in_memory
@pytest.mark.parametrize(
    "options",
    [
        {"retries": -1},
        {"retries": 1.5},
        {"retries": "3"},
        {"retries": True},
        {"initial_backoff": -0.1},
        {"initial_backoff": "1"},
        {"initial_backoff": float("nan")},
        {"max_backoff": float("inf")},
        {"max_backoff": -1},
        {"max_backoff": None},
        {"timeout": -1},
        {"timeout": "1"},
        {"timeout": False},
        {"read_only": 1},
        {"read_only": None},
        {"strict": "yes"},
        {"initialBackoff": 1},
        {"cache": True},
    ],
    ids=repr,
)
async def test_invalid_options_are_refused_before_the_first_call(db: Db, options: dict[str, Any]) -> None:
    calls: list[int] = []
    body = make_failing_body(calls, Again())
    (name,) = options
    with pytest.raises(InvalidOptionsError, match=name):
        await db.run(body, **options)
    with pytest.raises(InvalidOptionsError, match=name):
        db.transactional(**options)
    assert calls == []


@in_memory
@pytest.mark.parametrize("function", [None, "body", 5, []], ids=repr)
async def test_only_functions_can_be_run(db: Db, function: Any) -> None:
    with pytest.raises(InvalidOptionsError, match="is not callable"):
        await db.run(function)


@in_memory
async def test_a_transaction_cannot_be_used_after_its_end(db: Db) -> None:
    kept: list[AsyncTransaction] = []

    async def keep(tx: AsyncTransaction) -> None:
        kept.append(tx)

    await db.run(keep)
    async with db.transaction() as tx:
        kept.append(tx)
    with expect_failure(ValueError):
        async with db.transaction() as tx:
            kept.append(tx)
            raise ValueError
    for tx in kept:
        for use in (
            lambda tx: tx.create(Order, id="a"),
            lambda tx: tx.delete(Order.key("a")),
            lambda tx: tx.update(Order, {"id": "a", "quantity": 1}, {"quantity": 2}),
            lambda tx: tx.create_or_put(Order, {"id": "a"}, {}),
            lambda tx: tx.after_commit(print),
            lambda tx: tx.after_failure(print),
        ):
            with pytest.raises(TransactionClosedError):
                use(tx)
        with pytest.raises(TransactionClosedError):
            await tx.get(Order, "a")
    assert db.list_sent() == []
