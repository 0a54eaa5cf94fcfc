"""A transaction inside the body of another: an error of the inner one is an error of the outer body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from transactions_rig import COLOURS, Colour, Driver, RecordedStore, Thing, open_driver, resolve

from holdall.errors import AfterCommitError, HoldallError, OutcomeUnknown, TransactionFailedError
from holdall.testing import Fault, FaultyBackend


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    found: Colour = request.param
    return found


@pytest.fixture
def driver(colour: Colour) -> Iterator[Driver]:
    with open_driver(colour, FaultyBackend(RecordedStore())) as opened:
        yield opened


class Outer:
    """A body in which another transaction runs."""

    def __init__(self, driver: Driver) -> None:
        self.handlers: list[str] = []
        self.bodies = 0
        self._driver = driver

    async def __call__(self, tx: Any) -> None:
        self.bodies += 1
        tx.create(Thing, name="outer")
        tx.after_commit(self.handlers.append, "committed")
        tx.after_failure(lambda error: self.handlers.append(type(error).__name__))
        await resolve(self._inner())

    def _inner(self) -> Any:
        if self._driver.colour == "blocking":
            return self._driver.db.run(self._body)

        async def body(tx: Any) -> None:
            self._body(tx)

        return self._driver.db.aio.run(body)

    def _body(self, tx: Any) -> None:
        raise NotImplementedError


class FailingHandler(Outer):
    """The inner transaction is committed, and its handler fails."""

    def _body(self, tx: Any) -> None:
        tx.create(Thing, name="inner")
        tx.after_commit(_fail)


def _fail() -> None:
    raise OSError("the disk is full")


class UnknownOutcome(Outer):
    """The outcome of the inner transaction is unknown."""

    def _body(self, tx: Any) -> None:
        tx.create(Thing, name="inner")
        faulty = self._driver.db._backend
        assert isinstance(faulty, FaultyBackend)
        faulty.inject(Fault.LOST_AFTER)


class Exhausted(Outer):
    """The inner transaction fails after its last attempt."""

    def _body(self, tx: Any) -> None:
        raise TransactionFailedError("exhausted")


@pytest.mark.parametrize(
    ("outer", "error", "committed"),
    [
        (FailingHandler, AfterCommitError, True),
        (UnknownOutcome, OutcomeUnknown, True),
        (Exhausted, TransactionFailedError, False),
    ],
)
@pytest.mark.parametrize("way", ["run", "run_block"])
def test_the_outer_transaction_fails_with_the_error_of_the_inner_one_and_is_not_written(
    driver: Driver, way: str, outer: type[Outer], error: type[HoldallError], committed: bool
) -> None:
    body = outer(driver)
    with pytest.raises(error):
        getattr(driver, way)(body)
    assert body.bodies == 1
    assert body.handlers == [error.__name__]
    assert driver.db.get(Thing, "outer") is None
    assert (driver.db.get(Thing, "inner") is not None) == committed
