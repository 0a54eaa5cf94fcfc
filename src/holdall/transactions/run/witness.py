"""The witness: reports to the log and to OpenTelemetry how a transaction went, but nothing about its data.

Pure. It reports the name of the function, the number of attempts, and the codes of errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdall.core.telemetry import debug, error_type, instruments, start_span, warn
from holdall.errors import AfterCommitError, ThrottledError, TransactionFailedError
from holdall.transactions.unit import Unit

_ROOM = "transactions"
_BLOCK = "in a with block"


class Witness:
    """Observes one transaction from its beginning, when the witness is created, to its end."""

    __slots__ = ("_name", "_span", "_tools")

    def __init__(self, function: str | None, *, read_only: bool) -> None:
        self._name = function or _BLOCK
        self._tools = instruments()
        self._span = None
        if self._tools is not None and self._tools.tracer is not None:
            attributes = {} if function is None else {"code.function.name": function}
            attributes["holdall.transaction.read_only"] = read_only  # type: ignore[assignment]
            self._span = start_span(self._tools, "holdall.transaction", attributes)
            self._span.__enter__()

    def note_retry(self, attempt: int, error: BaseException, pause: float) -> None:
        """Report that an attempt failed and another will follow."""
        what = error_type(error)
        tell = warn if isinstance(error, ThrottledError) else debug
        tell(
            _ROOM,
            "transaction %s: attempt %d failed with %s, the next begins in %.3f s",
            self._name,
            attempt,
            what,
            pause,
        )
        if self._span is not None:
            self._span.event("retry", {"holdall.transaction.attempt": attempt, "error.type": what})
        if self._tools is not None and self._tools.retries is not None:
            self._tools.retries.add(1, {"error.type": what})

    def note_end(self, units: Sequence[Unit], error: BaseException | None) -> None:
        """Report the end of a transaction; there is one unit per attempt, and the last one shows the outcome."""
        outcome = _outcome(units, error)
        if error is not None:
            self._log(outcome, len(units), error)
        if self._span is not None:
            self._span.set("holdall.transaction.attempts", len(units))
            self._span.set("holdall.transaction.outcome", outcome)
            self._span.__exit__(type(error) if error else None, error, None)
        if self._tools is not None and self._tools.attempts is not None:
            self._tools.attempts.record(len(units), {"holdall.transaction.outcome": outcome})

    def _log(self, outcome: str, attempts: int, error: BaseException) -> None:
        cause = error.__cause__ if isinstance(error, TransactionFailedError) and error.__cause__ else error
        what = error_type(cause)
        if outcome == "unknown":
            warn(_ROOM, "transaction %s: it is unknown whether it was committed (%s)", self._name, what)
        elif outcome == "committed":
            warn(
                _ROOM, "transaction %s: committed, but a step after the commit failed (%s)", self._name, what
            )
        else:
            tell = warn if isinstance(cause, ThrottledError) else debug
            tell(_ROOM, "transaction %s: gave up after attempt %d (%s)", self._name, attempts, what)


def _outcome(units: Sequence[Unit], error: BaseException | None) -> str:
    if error is None:
        return "committed"
    if not units or not units[-1].may_be_committed:
        return "failed"
    return "committed" if isinstance(error, AfterCommitError) else "unknown"
