"""Reports transactions, requests and jobs to OpenTelemetry and to the log: names, counts, codes and times.

Pure. It never reports an item, a key, a value, or the message of an error, which may contain them. It reports the
``code`` of a `HoldallError`, and the class of any other error.

**OpenTelemetry** is set up by the program, before or after it opens its databases. Until then, nothing of it is
imported here, and each check costs a tenth of a microsecond.

**The log** is ``logging.getLogger("holdall.…")``. Debug messages do not load the module `logging`: if the program has
not loaded it, it has no handler for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import modules
from types import TracebackType
from typing import Any, Self, TypeAlias

from holdall.errors import HoldallError

Attributes: TypeAlias = Mapping[str, Any]
"""The attributes of a span: texts, numbers, booleans, and lists of them."""

SCOPE = "holdall"
_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
_ATTEMPTS = (1, 2, 3, 4, 5, 8, 16)


def error_type(error: BaseException) -> str:
    """Return the type of an error, without its content: the code of a `HoldallError`, the class of any other."""
    if isinstance(error, HoldallError):
        return error.code
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


# --- the log ------------------------------------------------------------------------------------------------


def debug(room: str, message: str, *args: object) -> None:
    """Log a message of a room that helps to find problems."""
    logging = modules.get("logging")
    get_logger = getattr(logging, "getLogger", None)  # another thread may just be importing it
    if get_logger is not None:
        get_logger(f"{SCOPE}.{room}").debug(message, *args, stacklevel=3)


def warn(room: str, message: str, *args: object) -> None:
    """Log a warning of a room, which the operator should look at."""
    import logging  # loaded only if there is a warning

    logging.getLogger(f"{SCOPE}.{room}").warning(message, *args, stacklevel=3)


# --- OpenTelemetry ------------------------------------------------------------------------------------------


class Instruments:
    """The tracer and the meters of the program's OpenTelemetry; None for each part that is not set up."""

    def __init__(self, tracing: Any, metering: Any) -> None:
        version = getattr(modules.get("holdall"), "__version__", None)
        self.tracer: Any = None
        if tracing is not None:
            from opentelemetry import context, trace

            self.tracer = tracing.get_tracer(SCOPE, version)
            self.context, self.trace = context, trace
        self.duration = self.capacity = self.attempts = self.retries = None
        if metering is None:
            return
        meter = metering.get_meter(SCOPE, version)
        self.duration = _histogram(meter, "db.client.operation.duration", "s", _SECONDS)
        self.capacity = meter.create_counter("holdall.consumed_capacity", unit="{unit}")
        self.attempts = _histogram(meter, "holdall.transaction.attempts", "{attempt}", _ATTEMPTS)
        self.retries = meter.create_counter("holdall.transaction.retries", unit="{retry}")


def _histogram(meter: Any, name: str, unit: str, bounds: tuple[float, ...]) -> Any:
    try:
        return meter.create_histogram(name, unit=unit, explicit_bucket_boundaries_advisory=bounds)
    except TypeError:  # an older version does not accept the boundaries
        return meter.create_histogram(name, unit=unit)


def instruments() -> Instruments | None:
    """Return the instruments to report with; None if the program has not set up OpenTelemetry."""
    if "opentelemetry" not in modules:
        return None
    tracing = _provider("opentelemetry.trace", "_TRACER_PROVIDER", "get_tracer_provider")
    metering = _provider("opentelemetry.metrics._internal", "_METER_PROVIDER", "get_meter_provider")
    known = _known
    if tracing is known[0] and metering is known[1]:
        return known[2]
    return _renew(tracing, metering)


def _provider(module: str, kept: str, getter: str) -> Any:
    """Return the provider that the program has set, None if it has set none.

    OpenTelemetry's public function reads the environment at each call, which would cost more than everything else. It
    is called once, to load the provider that the environment names; afterwards, the provider is read from the module's
    variable, if this version has it.
    """
    found = modules.get(module)
    if found is None:
        return None
    names = found.__dict__
    provider = names.get(kept)
    if provider is None and (module not in _looked or kept not in names):
        ask = names.get(getter)
        if ask is not None:  # otherwise another thread is just importing the module
            provider = ask()
            _looked.add(module)
    return provider


_looked: set[str] = set()
_known: tuple[Any, Any, Instruments | None] = (None, None, None)


def _renew(tracing: Any, metering: Any) -> Instruments | None:
    global _known
    on = _is_real(tracing), _is_real(metering)
    made = Instruments(tracing if on[0] else None, metering if on[1] else None) if any(on) else None
    _known = tracing, metering, made
    return made


def _is_real(provider: Any) -> bool:
    """Whether a provider does anything: those of the API itself are only placeholders."""
    return provider is not None and not type(provider).__module__.startswith(
        ("opentelemetry.trace", "opentelemetry.metrics")
    )


class Span:
    """A span of time, for a ``with`` statement in sync or async code. This class reports nothing."""

    __slots__ = ()

    def set(self, name: str, value: Any) -> None:
        """Set an attribute of the span."""

    def event(self, name: str, attributes: Attributes) -> None:
        """Add an event to the span."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


_NOTHING = Span()


def span(name: str, attributes: Attributes | None = None) -> Span:
    """Return a span around the statements of a ``with``; it does nothing if the program has not set up tracing.

    Spans and requests inside it are its children. If an error leaves it, only the error's type is reported.
    """
    tools = instruments()
    return _NOTHING if tools is None else start_span(tools, name, attributes)


def start_span(tools: Instruments, name: str, attributes: Attributes | None, *, client: bool = False) -> Span:
    """Return a span like `span`, for a caller that already has the instruments.

    ``client``: the time is spent in another process, such as a server.
    """
    return _NOTHING if tools.tracer is None else _Recorded(tools, name, attributes, client)


class _Recorded(Span):
    """A span that is current from its beginning to its end, if both are in the same context.

    A web framework's generator may begin it in one thread and end it in another. The current span of that other thread
    is then left alone.
    """

    __slots__ = ("_attributes", "_client", "_name", "_span", "_token", "_tools")

    def __init__(self, tools: Instruments, name: str, attributes: Attributes | None, client: bool) -> None:
        self._tools = tools
        self._name = name
        self._attributes = attributes
        self._client = client
        self._span: Any = None
        self._token: Any = None

    def set(self, name: str, value: Any) -> None:
        self._span.set_attribute(name, value)

    def event(self, name: str, attributes: Attributes) -> None:
        self._span.add_event(name, attributes)

    def __enter__(self) -> Self:
        tools, kinds = self._tools, self._tools.trace.SpanKind
        kind = kinds.CLIENT if self._client else kinds.INTERNAL
        self._span = tools.tracer.start_span(self._name, kind=kind, attributes=self._attributes)
        self._token = tools.context.attach(tools.trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        api = self._tools.trace
        if error is not None:
            what = error_type(error)
            self._span.set_attribute("error.type", what)
            if isinstance(error, Exception):
                self._span.set_status(api.Status(api.StatusCode.ERROR, what))
        if api.get_current_span() is self._span:
            self._tools.context.detach(self._token)
        self._span.end()
