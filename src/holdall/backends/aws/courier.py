"""The courier for AWS services: it signs, sends, waits and sends again, and reports exactly how a call ended.

Sync and async code share it: it awaits only its `Pace`. A `Service` brings the rest: how a call becomes a signed
request, what a reply means, and where to send it. The first attempt is a straight line; a `Course` exists only after a
failure.

Whether a call is sent again after a lost reply, and how it then ends, follows from its `Manner`:

- ``repeat``: reads, and writes that a repetition does not change. The last answer counts.
- ``settle``: a write that a repetition cannot do twice, but whose last answer may be about an earlier send. If a reply
  was lost, any failure is `Unsettled`, and the caller must find out.
- ``once``: never sent again once it may have been carried out; then it is `Unsettled` too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC
from time import time
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypeVar

from holdall.backends.aws.connection import Unsent
from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.exchange import Broken, Garbled
from holdall.backends.aws.limit import Limit, Limits
from holdall.backends.aws.message import Reply
from holdall.backends.aws.signer import Credentials
from holdall.backends.aws.transport import Transport
from holdall.core.telemetry import warn
from holdall.errors import EndpointError, HoldallError, MalformedReplyError, ServiceUnavailableError

T = TypeVar("T")

Manner: TypeAlias = Literal["repeat", "settle", "once"]
Remedy: TypeAlias = Literal[
    "unsent", "throttle", "conflict", "again", "server", "expired", "skew", "region", "unannounced", "final"
]
"""What may be done about a failure: wait and send again (the first five), renew the credentials, correct the clock, use
another region, send the body unannounced, or nothing. Only after ``server`` is the fate of the request unknown; every
other answer means that nothing was done."""

Parcel: TypeAlias = tuple[Any, ...]
"""A signed request, as the arguments of `holdall.backends.aws.exchange.exchange` after the limit."""

_PASSING = frozenset({"unsent", "throttle", "conflict", "again", "server"})

BASE_SECONDS = 0.05
LONGEST_PAUSE = 5.0
FIRST_CONTACT = 2.0
"""Seconds during which connections to a service are attempted that has never answered: its address may be wrong."""


class Pace(Protocol):
    """How sync or async code waits: everything that sending needs from the outside."""

    async def sleep(self, seconds: float) -> None:
        """Wait; return early if the caller is cancelled."""

    def limit(self, seconds: float) -> Limit:
        """The limit of a call that begins now."""

    async def alone(self, work: Callable[[], Awaitable[T]], seconds: float = ...) -> T:
        """Do the work while no other caller does; `EndpointError` after waiting that many seconds."""

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks."""

    async def choose(
        self, blocking: Callable[..., T], awaiting: Callable[..., Awaitable[T]], *args: Any
    ) -> T:
        """Call the sync or the async function."""

    async def credentials(self, source: CredentialSource, within: Limit) -> Credentials:
        """The credentials to sign with, if the source must look them up."""

    def exchange(self, transport: Transport, within: Limit, *parcel: Any) -> Coroutine[Any, Any, Reply]:
        """Send a parcel over one of the transport's connections; `Unsent` or `Broken` if no reply came."""

    def now(self) -> float:
        """The time of a monotonic clock, in seconds."""

    def random(self) -> float:
        """A random number from 0 up to 1."""


class Call(Protocol):
    """One call of a service's API."""

    @property
    def operation(self) -> str:
        """Its name."""


C = TypeVar("C", bound=Call)
C_contra = TypeVar("C_contra", bound=Call, contravariant=True)
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


class Failure(Exception):
    """The service answered with an error.

    ``detail`` is what its remedy needs: the reply's Date header to set the clock, the other place of a bucket.
    ``probe`` is a call whose failure explains this one.
    """

    def __init__(self, error: HoldallError, remedy: Remedy, *, detail: Any = None, probe: Any = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.remedy = remedy
        self.detail = detail
        self.probe = probe


class Service(Protocol[C_contra, A_co]):
    """A service at one address: what a courier needs to know about it."""

    name: str
    transport: Transport
    url: str
    """Where it is, for messages."""

    def render(self, call: C_contra, credentials: Credentials, now: float) -> Parcel:
        """The call as a request, signed at that time (in seconds since 1970)."""

    def judge(self, call: C_contra, reply: Reply, credentials: Credentials) -> A_co:
        """The answer in a reply; `Failure` if it is an error or makes no sense."""

    def mend(self, failure: Failure) -> Self | None:
        """Correct a failure in a way that only this service knows, and return the service to use from now on: this one,
        or the one at another address; None if it cannot be corrected."""


class Course:
    """What has happened to one call since it failed for the first time."""

    def __init__(self, began: float, limit: Limit) -> None:
        self.began = began
        self.limit = limit
        self.attempts = 0
        self.unknown = False
        self.mended: set[Remedy] = set()


class Unsettled(Exception):
    """An earlier send may have been carried out, and the last answer does not show whether it was.

    ``pause`` is how long to wait before the call could be sent again on its ``course``; None if it cannot.
    """

    def __init__(
        self,
        error: Exception,
        remedy: Remedy = "final",
        course: Course | None = None,
        pause: float | None = None,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.remedy = remedy
        self.course = course
        self.pause = pause


class Courier(Generic[C, A]):
    """Delivers the calls of one service, with the credentials of one source."""

    def __init__(self, service: Service[C, A], source: CredentialSource, limits: Limits) -> None:
        self.service = service
        self._source = source
        self._limits = limits
        self._skew = 0.0
        self._has_answered = False

    async def deliver(
        self, pace: Pace, call: C, manner: Manner = "repeat", course: Course | None = None
    ) -> A:
        """The service's answer to the call; one of our errors if there is none, or `Unsettled`, depending on its
        manner.

        With a ``course`` it is part of an earlier call, whose time and attempts it uses.
        """
        began, limit = (
            (pace.now(), pace.limit(self._limits.total_timeout))
            if course is None
            else (course.began, course.limit)
        )
        while True:
            service = self.service  # another call may have found it at another address
            credentials = None
            try:
                credentials = self._source.peek() or await pace.credentials(self._source, limit)
                parcel = service.render(call, credentials, time() + self._skew)
                reply = await pace.exchange(service.transport, limit, *parcel)
                self._has_answered = True
                return service.judge(call, reply, credentials)
            except (Failure, Unsent, Broken) as caught:
                trouble = caught
            except Exception as error:
                # for example, because the credentials to send it again can no longer be found
                if course is not None and course.unknown and manner != "repeat":
                    raise Unsettled(error, course=course) from error
                raise
            course = course or Course(began, limit)
            course.attempts += 1
            failure = _explain(service, call, trouble)
            if failure.probe is not None and credentials is not None:
                failure = await self._investigate(pace, service, failure, credentials, limit)
            course.unknown |= failure.remedy == "server"
            limit.has_left = course.unknown
            if self._mend(service, failure, course, credentials):
                continue
            pause = self._pause(pace, failure, course)
            if course.unknown and (manner == "once" or (manner == "settle" and pause is None)):
                raise Unsettled(failure.error, failure.remedy, course, pause)
            if pause is None:
                raise failure.error
            if failure.remedy == "throttle":
                message = "%s was throttled on attempt %d; trying again in %.3f s"
                warn(service.name, message, call.operation, course.attempts, pause)
            await pace.sleep(pause)

    async def find_credentials(self, pace: Pace) -> tuple[Credentials, float]:
        """The credentials to sign something that is not sent, and the time to sign it with."""
        try:
            limit = pace.limit(self._limits.total_timeout)
            credentials = self._source.peek() or await pace.credentials(self._source, limit)
        except Unsent as error:
            raise _explain_unsent(self.service, error) from error
        return credentials, time() + self._skew

    async def _investigate(
        self, pace: Pace, service: Service[C, A], failure: Failure, credentials: Credentials, limit: Limit
    ) -> Failure:
        """The failure of the probe, which explains more; the first one if the probe succeeds."""
        probe = failure.probe
        parcel = service.render(probe, credentials, time() + self._skew)
        try:
            service.judge(probe, await pace.exchange(service.transport, limit, *parcel), credentials)
        except (Failure, Unsent, Broken) as caught:
            return _explain(service, probe, caught)
        return failure

    def _mend(
        self, service: Service[C, A], failure: Failure, course: Course, credentials: Credentials | None
    ) -> bool:
        """Whether the failure was corrected, so that the call can be sent again at once; each remedy is used once."""
        remedy = failure.remedy
        if remedy in course.mended:
            return False
        course.mended.add(remedy)
        if remedy == "expired" and credentials is not None:
            self._source.renew(credentials)
            return True
        if remedy == "skew":
            self._set_clock(failure.detail)
            return True
        mended = service.mend(failure)
        if mended is None:
            return False
        if mended is not service and self.service is service:  # otherwise another call has just replaced it
            self.service = mended
            service.transport.close()
        return True

    def _set_clock(self, date: str) -> None:
        """From now on, sign with the server's time, if the Date header of its reply is valid."""
        from email.utils import parsedate_to_datetime

        try:
            theirs = parsedate_to_datetime(date)
        except (TypeError, ValueError):
            return
        self._skew = (theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)).timestamp() - time()

    def _pause(self, pace: Pace, failure: Failure, course: Course) -> float | None:
        """How long to wait before sending again; None if that cannot help, or no time or attempt is left."""
        if failure.remedy not in _PASSING or course.attempts >= self._limits.max_attempts:
            return None
        pause = pace.random() * min(LONGEST_PAUSE, BASE_SECONDS * 2 ** (course.attempts - 1))
        # large bodies extend the limit, but not the time for attempts
        spent, most = pace.now() + pause - course.began, self._limits.total_timeout
        if failure.remedy == "unsent" and not self._has_answered:
            most = min(most, FIRST_CONTACT)
        return pause if spent < most and pause < course.limit.left else None


def _explain(service: Service[Any, Any], call: Call, trouble: Failure | Unsent | Broken) -> Failure:
    if isinstance(trouble, Failure):
        return trouble
    if isinstance(trouble, Unsent):
        return Failure(_explain_unsent(service, trouble), "final" if trouble.lasting else "unsent")
    if isinstance(trouble, Garbled):
        garbled = MalformedReplyError(
            f"{call.operation}: the reply is garbled ({trouble})", hint="check the endpoint and any proxy"
        )
        return Failure(garbled, "server")
    return Failure(ServiceUnavailableError(f"{call.operation}: the reply was lost ({trouble})"), "server")


def _explain_unsent(service: Service[Any, Any], trouble: Unsent) -> EndpointError:
    return EndpointError(f"{service.url} cannot be reached: {trouble}", hint=trouble.hint)
