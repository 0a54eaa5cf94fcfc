"""Flows that run a transaction from beginning to end: with retries, or just once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from holdall.core.context import Carry, Context
from holdall.core.port import Port, Turn
from holdall.errors import AfterCommitError, ContentionError
from holdall.tables.commit.change import Participant
from holdall.tables.commit.flow import abandon, abandon_all
from holdall.tables.commit.retry import RunOptions, backoff, final_error, is_retryable, latest_begin
from holdall.transactions.commit import commit
from holdall.transactions.current import enter_transaction, exit_transaction, is_retry
from holdall.transactions.run.witness import Witness
from holdall.transactions.unit import Unit


async def run_transaction(
    context: Context,
    begin: Callable[[Unit], Any],
    call: Callable[[Any], Any],
    options: RunOptions,
    repeatable: Callable[[], bool] | None = None,
) -> Any:
    """Run a function in a transaction until it commits, until another attempt cannot help, or until none is left.

    ``begin`` makes a sync or async transaction of a unit, and ``call`` calls the user's function with it.
    ``repeatable``, if given, is called before another attempt: it returns whether the function may be called again.
    """
    units: list[Unit] = []
    contender = Contender(context.port)
    name = getattr(call, "__qualname__", type(call).__name__)
    witness = Witness(name, read_only=options.read_only)
    try:
        result = await _attempt(context, begin, call, options, units, repeatable, witness, contender)
    except BaseException as error:
        witness.note_end(units, error)
        raise
    else:
        witness.note_end(units, None)
        return result
    finally:
        contender.leave()
        for unit in units:
            unit.forget()


async def _attempt(
    context: Context,
    begin: Callable[[Unit], Any],
    call: Callable[[Any], Any],
    options: RunOptions,
    units: list[Unit],
    repeatable: Callable[[], bool] | None,
    witness: Witness,
    contender: Contender,
) -> Any:
    """Make one attempt after the other, each with its own unit, which is added to ``units``."""
    port = context.port
    started = contender.since
    carry = Carry()
    failed: list[Unit] = []
    while True:
        attempts = len(failed) + 1
        insist = attempts > 1 or is_retry()
        unit = Unit(read_only=options.read_only, strict=options.strict, insist=insist, carry=carry)
        units.append(unit)
        contender.attach(unit)
        tx = begin(unit)
        outer = enter_transaction(tx)
        try:
            try:
                result = await port.call(call, tx)
                await commit(context, unit, tx)
            finally:
                exit_transaction(tx, outer)
        except BaseException as error:
            unit.close()
            if unit.may_be_committed:  # not repeated or cleaned up, because its writes may be in use
                if isinstance(error, AfterCommitError):
                    error.result = result
                await port.finish(abandon(port, _list_prepared(failed), error))
                raise
            unit.give_back()
            failed.append(unit)
            pause = port.random() * backoff(options, attempts - 1)
            begins = port.now() + timedelta(seconds=pause)
            end: BaseException | None = error
            if is_retryable(error):
                allowed = options if repeatable is None or repeatable() else _ONCE
                end = final_error(allowed, attempts, started, begins, error)
            if end is not None:
                contender.leave()
                await port.finish(_give_up(context, failed, end))
                if end is error:
                    raise
                raise end from error
            witness.note_retry(attempts, error, pause)
            cause = error
        else:
            if failed:
                await port.finish(_tidy(context, failed, result))
            return result
        try:
            await _pause(context, contender, options, failed, cause, pause)
        finally:
            del cause  # it refers to this frame, and the cycle would keep its items until garbage collection


async def _pause(
    context: Context,
    contender: Contender,
    options: RunOptions,
    failed: Sequence[Unit],
    cause: BaseException,
    seconds: float,
) -> None:
    """Wait before another attempt; raise if it would begin too late."""
    try:
        await contender.pause(cause, seconds, latest_begin(options, contender.since))
    except BaseException as error:  # interrupted or cancelled between two attempts
        contender.leave()
        await context.port.finish(abandon(context.port, _list_prepared(failed), error))
        raise
    late = final_error(options, len(failed), contender.since, context.port.now(), cause)
    if late is not None:
        contender.leave()
        await context.port.finish(_give_up(context, failed, late))
        raise late from cause


async def leave(context: Context, unit: Unit, tx: Any, error: BaseException | None) -> None:
    """End a ``with`` block: commit if it succeeded, otherwise clean up. There is only one attempt.

    An error raised in the block belongs to the caller, and is not raised here.
    """
    witness = tx._witness
    try:
        await _end_block(context, unit, tx, error)
    except BaseException as problem:
        if witness is not None:
            witness.note_end([unit], problem)
        raise
    else:
        if witness is not None:
            witness.note_end([unit], error)
    finally:
        unit.forget()


async def _end_block(context: Context, unit: Unit, tx: Any, error: BaseException | None) -> None:
    if error is not None:
        unit.close()
        unit.give_back()
        await context.port.finish(_give_up(context, [unit], error))
        return
    try:
        await commit(context, unit, tx)
    except BaseException as problem:
        unit.close()
        if unit.may_be_committed:
            raise
        unit.give_back()
        now = context.port.now()
        end = final_error(_ONCE, 1, now, now, problem) if is_retryable(problem) else problem
        assert end is not None
        await context.port.finish(_give_up(context, [unit], end))
        if end is problem:
            raise
        raise end from problem


_ONCE = RunOptions(retries=0)


async def _give_up(context: Context, failed: Sequence[Unit], error: BaseException) -> None:
    """End a run that failed: abandon what was prepared, and call the last attempt's failure handlers with the error."""
    await abandon(context.port, _list_prepared(failed), error)
    if isinstance(error, Exception):
        for handler in failed[-1].on_failure:
            try:
                await context.port.call(handler, error)
            except Exception as another:  # noqa: BLE001 - the first error is the one to raise
                error.add_note(f"a failure handler failed as well: {another!r}")


async def _tidy(context: Context, units: Sequence[Unit], result: Any) -> None:
    """Let the participants of earlier attempts clean up after one that committed."""
    errors = await abandon_all(context.port, _list_prepared(units))
    if errors:
        raise AfterCommitError(
            f"the transaction is committed, but cleaning up after earlier attempts failed: {errors[0]!r}",
            errors=errors,
            result=result,
        ) from errors[0]


def _list_prepared(units: Sequence[Unit]) -> list[Participant]:
    return [participant for unit in units for participant in unit.prepared]


class Contender:
    """The turns of one run.

    After contention, a run waits for its turn before its next attempt, so that only one contender in a process tries at
    a time and the others waste no attempts. No run waits before its first attempt, or inside an attempt. The turn
    passes on when the write is done, or when another attempt cannot help. A run that fails again during its turn keeps
    the turn while it waits: it then contends with another process, and more contenders from this process would only
    make that worse.
    """

    __slots__ = ("_alone", "_port", "_turn", "since")

    def __init__(self, port: Port) -> None:
        self.since = port.now()
        self._port = port
        self._turn: Turn | None = None
        # inside a later attempt of another run, which may hold the turn and ends only after this one
        self._alone = is_retry()

    def attach(self, unit: Unit) -> None:
        """Pass the turn on as soon as this attempt is committed, before the caller's handlers run."""
        if self._turn is not None:
            unit.on_commit.append(self._turn.end)

    async def pause(self, error: BaseException, seconds: float, latest: datetime) -> None:
        """Wait before another attempt: for ``seconds``, then, after contention, for this run's turn."""
        names: frozenset[str] = frozenset()
        if isinstance(error, ContentionError) and not self._alone:
            names = frozenset(error.items)
        if self._turn is not None and self._turn.names != names:
            self.leave()
        await self._port.sleep(seconds)
        if names and (self._turn is None or self._turn.over):
            left = (latest - self._port.now()).total_seconds()
            self._turn = await self._port.take_turn(names, self.since, left)

    def leave(self) -> None:
        """Let the other contenders continue."""
        if self._turn is not None:
            self._turn.end()
            self._turn = None
