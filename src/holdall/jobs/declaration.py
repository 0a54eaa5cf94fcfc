"""Declaring jobs: ``@holdall.job("send-receipt")`` turns a function into a job, known by that name in this process.

Pure. A declared job can still be called like the function that it was. Only its name is stored, so the function may
move to another module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, TypeVarTuple, overload

from holdall.core.frozen import dataclass
from holdall.core.generator import refuse_generator_function
from holdall.core.internal import internal
from holdall.core.nearest_name import suggest_name
from holdall.core.option import check_switch
from holdall.errors import GeneratorRefused, InvalidOptionsError, JobDefinitionError

if TYPE_CHECKING:
    from datetime import timedelta

    from holdall.jobs.schedule import Schedule
    from holdall.transactions import AsyncTransaction, Transaction

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

DEFAULT_QUEUE = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}\Z")
_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_LONGEST = 366 * 24 * 3600.0
_MAX_BACKOFF = 3600.0


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How a job is run; times are in seconds.

    After a failure the job is tried ``retries`` more times: the first after about ``backoff`` seconds, then each time
    after twice as long, up to an hour. ``timeout`` limits one attempt. ``once_for`` is how long a key is remembered
    after the job succeeded; None remembers it only while the job waits. With ``transactional`` the function gets a
    transaction as its first argument, which commits together with the job's end. With ``process`` it runs in a separate
    process, for work that keeps the interpreter busy or may crash it.
    """

    queue: str = DEFAULT_QUEUE
    retries: int = 10
    backoff: float = 1.0
    timeout: float | None = None
    once_for: float | None = None
    transactional: bool = False
    process: bool = False

    def delay(self, attempts: int, random: float) -> float:
        """How long to wait after this many failed attempts; randomized, to spread jobs that failed together."""
        longest = min(_MAX_BACKOFF, self.backoff * 2.0 ** min(attempts - 1, 60))
        return longest * (0.5 + 0.5 * random)


class Job(Generic[*Ts]):
    """A declared job. ``tx.enqueue(send_receipt, order)`` leaves it to a worker; calling it runs the function now."""

    __slots__ = ("__dict__", "__weakref__", "function", "name", "options", "schedule")
    topics: tuple[str, ...] = ()
    """The events at which a feature enqueues it, as ``feature:event``."""

    @internal
    def __init__(
        self, name: str, function: Callable[..., Any], options: JobOptions, schedule: Schedule | None = None
    ) -> None:
        self.name = name
        self.function = function
        self.options = options
        self.schedule = schedule
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    @cached_property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return is_async_function(self.function)

    @property
    def place(self) -> str:
        """Where the function is defined."""
        function = self.function
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return f"{getattr(function, '__module__', '?')}.{name}"

    @internal
    def accepts(self, *arguments: *Ts) -> None:
        """Refuse arguments that the function cannot be called with."""
        least, most = self._arity
        if not least <= len(arguments) <= most:
            raise InvalidOptionsError(
                f"the job {self.name} takes {_describe_arity(least, most)}, not {len(arguments)}",
                hint=f"see {self.place}",
            )

    @cached_property
    def _arity(self) -> tuple[float, float]:
        """The least and the most arguments that the function takes besides the transaction."""
        from inspect import Parameter, signature

        try:
            parameters = signature(self.function).parameters.values()
        except ValueError:  # a function that is not written in Python may not have a signature
            return 0, math.inf
        places = [
            each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        for each in parameters:
            if each.kind is Parameter.KEYWORD_ONLY and each.default is Parameter.empty:
                raise JobDefinitionError(
                    f"the job {self.name} needs {each.name} by keyword, but jobs are called without keywords",
                    hint=f"see {self.place}",
                )
        least = sum(each.default is Parameter.empty for each in places)
        most = math.inf if any(each.kind is Parameter.VAR_POSITIONAL for each in parameters) else len(places)
        ours = 1 if self.options.transactional else 0
        if most < ours:
            raise JobDefinitionError(
                f"the job {self.name} is transactional, but its function has no parameter for the transaction",
                hint=f"add it as the first parameter of {self.place}",
            )
        return max(0, least - ours), most - ours

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run the function directly, as if it had not been declared."""
        return self.function(*args, **keywords)

    def __repr__(self) -> str:
        return f"<job {self.name}: {self.place}>"


_declared: dict[str, Job[*tuple[Any, ...]]] = {}


def declared_jobs() -> dict[str, Job[*tuple[Any, ...]]]:
    """The jobs that are declared in this process, by name."""
    return _declared


@overload
def job(
    name: str,
    *,
    transactional: Literal[False] = False,
    queue: str = ...,
    retries: int = ...,
    backoff: float = ...,
    timeout: float | None = ...,
    once_for: float | timedelta | None = ...,
    process: bool = ...,
    every: float | timedelta | None = ...,
    cron: str | None = ...,
) -> Callable[[Callable[[*Ts], Any]], Job[*Ts]]: ...
@overload
def job(
    name: str,
    *,
    transactional: Literal[True],
    queue: str = ...,
    retries: int = ...,
    backoff: float = ...,
    timeout: float | None = ...,
    once_for: float | timedelta | None = ...,
    every: float | timedelta | None = ...,
    cron: str | None = ...,
) -> Callable[[Callable[[Transaction, *Ts], Any] | Callable[[AsyncTransaction, *Ts], Any]], Job[*Ts]]: ...
def job(name: str, *, every: Any = None, cron: str | None = None, **options: Any) -> Any:
    """Decorator that declares a function as a job of that name.

    After a failure, up to ``retries`` more attempts follow: the first after about ``backoff`` seconds, each next one
    after twice as long. ``timeout`` limits one attempt, in seconds. ``queue`` is where the job waits, unless
    ``enqueue`` names another. ``once_for`` is how many seconds a key is remembered after success. With
    ``transactional=True`` the function gets a transaction as its first argument, which commits together with the job's
    end, so its writes happen exactly once. With ``process=True`` it runs in a separate process. ``every`` (seconds or a
    timedelta) or ``cron`` (five fields, in UTC) makes the job recur, once for all workers together.
    """
    if not isinstance(name, str) or not _NAME.match(name):
        raise JobDefinitionError(
            f"{name!r:.60} is not a valid name for a job",
            hint='use up to 100 letters, digits and _ . : -, as in @holdall.job("send-receipt")',
        )
    from holdall.jobs.schedule import schedule

    try:
        checked, times = _check_options(options), schedule(every=every, cron=cron)
    except InvalidOptionsError as error:
        raise JobDefinitionError(f"the job {name}: {error.message}", hint=error.hint) from None

    def decorate(function: Any) -> Any:
        check_function(name, function)
        made: Job[*tuple[Any, ...]] = Job(name, function, checked, times)
        made._arity  # noqa: B018 - refuses a function that a worker could not call
        _check_schedule(made)
        known = _declared.get(name)
        if known is not None and known.place != made.place:
            raise JobDefinitionError(
                f"two jobs are called {name}: {known.place} and {made.place}",
                hint="give each job its own name; stored jobs find their function by it",
            )
        _declared[name] = made
        return made

    return decorate


def is_async_function(function: Callable[..., Any]) -> bool:
    """Whether a function, or the ``__call__`` of an object, is a coroutine function."""
    from inspect import iscoroutinefunction

    return iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def check_function(name: str, function: object) -> None:
    """Refuse anything that a job cannot run."""
    if not callable(function):
        raise JobDefinitionError(f"the job {name} is declared on {function!r:.60}, which is not callable")
    try:
        refuse_generator_function(function, "a job")
    except GeneratorRefused as error:
        raise JobDefinitionError(f"the job {name}: {error.message}", hint=error.hint) from None


def _check_options(given: dict[str, Any]) -> JobOptions:
    """The options of a job; `InvalidOptionsError` says what is wrong with them."""
    unknown = sorted(given.keys() - set(JobOptions.__match_args__))
    if unknown:
        raise InvalidOptionsError(
            f"unknown options: {', '.join(unknown)}",
            hint=suggest_name(unknown[0], [*JobOptions.__match_args__, "every", "cron"], "options"),
        )
    if given.get("once_for") is not None:
        given = {**given, "once_for": seconds_of(given["once_for"], "once_for")}
    options = JobOptions(**given)
    check_queue(options.queue)
    if isinstance(options.retries, bool) or not isinstance(options.retries, int) or options.retries < 0:
        raise InvalidOptionsError(f"retries must be a whole number from 0 up, not {options.retries!r}")
    _check_seconds("backoff", options.backoff)
    if options.timeout is not None:
        _check_seconds("timeout", options.timeout)
    check_switch(options.transactional, "transactional")
    check_switch(options.process, "process")
    if options.transactional and options.process:
        raise InvalidOptionsError(
            "it cannot be both transactional and run in a separate process",
            hint="leave out transactional=True, open a database in the function and run a transaction there",
        )
    return options


def _check_seconds(option: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidOptionsError(f"{option} must be a number of seconds above 0, not {value!r}")


def _check_schedule(job: Job[*tuple[Any, ...]]) -> None:
    if job.schedule is None:
        return
    try:
        job.accepts()
    except InvalidOptionsError as error:
        raise JobDefinitionError(
            f"the job {job.name} recurs, so it is called without arguments: {error.message}"
        ) from None


def _describe_arity(least: float, most: float) -> str:
    if least == most:
        return "1 argument" if least == 1 else f"{least:g} arguments"
    return f"{least:g} or more arguments" if most == math.inf else f"{least:g} to {most:g} arguments"


def check_name(name: str) -> None:
    """Refuse a name that a job cannot have."""
    if not is_name(name):
        raise InvalidOptionsError(
            f"{name!r:.60} is not a valid name for a job", hint="use up to 100 letters, digits and _ . : -"
        )


def is_name(text: str) -> bool:
    """Whether a job can have this name."""
    return _NAME.match(text) is not None


def check_queue(queue: object) -> None:
    """Refuse a name that a queue cannot have."""
    if not isinstance(queue, str) or not _QUEUE.match(queue):
        raise InvalidOptionsError(
            f"{queue!r:.60} is not a valid name for a queue", hint="use up to 64 letters, digits and _ . -"
        )


def check_queues(queues: Iterable[str]) -> tuple[str, ...]:
    """The queues in their order, without duplicates."""
    if isinstance(queues, str):
        queues = (queues,)
    found = tuple(dict.fromkeys(queues))
    for queue in found:
        check_queue(queue)
    if not found:
        raise InvalidOptionsError("queues must not be empty", hint="name at least one queue")
    return found


def seconds_of(duration: object, what: str) -> float:
    """A duration, given as seconds or as a timedelta, in seconds."""
    seconds = duration if isinstance(duration, int | float) else getattr(duration, "total_seconds", bool)()
    if isinstance(seconds, bool) or not 0 <= seconds <= _LONGEST:
        raise InvalidOptionsError(
            f"{what} must be a number of seconds or a timedelta, from 0 to a year, not {duration!r:.60}"
        )
    return float(seconds)
