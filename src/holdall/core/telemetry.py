"""What is told of transactions, requests and jobs to OpenTelemetry and to the log: names, counts, codes and times.

Pure. Never an item, a key, a value, or an error's message, which may have them in it; of an error its ``code`` is told,
of a foreign one its class.

**OpenTelemetry** is for the program to set up. Nothing of it is imported here before the program has done so, before or
after it opened its databases; until then each look costs a tenth of a microsecond.

**The log** is ``logging.getLogger("holdall.…")``. The module is not loaded for the sake of a debugging message: where
it is not, nobody listens.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import modules
from types import TracebackType
from typing import Any, Self, TypeAlias

from holdall.errors import HoldallError

Attributes: TypeAlias = Mapping[str, Any]
"""What is said of a span: texts, numbers, truths, and lists of them."""

SCOPE = "holdall"
_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
_ATTEMPTS = (1, 2, 3, 4, 5, 8, 16)


def error_type(error: BaseException) -> str:
    """An error without what it is about: its code if it is ours, else its class."""
    if isinstance(error, HoldallError):
        return error.code
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


# --- the log ------------------------------------------------------------------------------------------------


def debug(room: str, message: str, *args: object) -> None:
    """Tell the log of a room something that is of interest to whoever looks for a problem."""
    logging = modules.get("logging")
    get_logger = getattr(logging, "getLogger", None)  # it may just be being imported
    if get_logger is not None:
        get_logger(f"{SCOPE}.{room}").debug(message, *args, stacklevel=3)


def warn(room: str, message: str, *args: object) -> None:
    """Tell the log of a room something that somebody should look at."""
    import logging  # only where there is something to say

    logging.getLogger(f"{SCOPE}.{room}").warning(message, *args, stacklevel=3)


# --- OpenTelemetry ------------------------------------------------------------------------------------------


class Instruments:
    """What the program's OpenTelemetry gives us to tell it things with; None for each part that is not set up."""

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
    except TypeError:  # an older one takes no advice
        return meter.create_histogram(name, unit=unit)


def instruments() -> Instruments | None:
    """What to tell things with; None while the program has not set up OpenTelemetry."""
    if "opentelemetry" not in modules:
        return None
    tracing = _provider("opentelemetry.trace", "_TRACER_PROVIDER", "get_tracer_provider")
    metering = _provider("opentelemetry.metrics._internal", "_METER_PROVIDER", "get_meter_provider")
    known = _known
    if tracing is known[0] and metering is known[1]:
        return known[2]
    return _renew(tracing, metering)


def _provider(module: str, kept: str, getter: str) -> Any:
    """The provider that the program has set, None when there is none.

    The public function looks into the environment each time, which costs more than all the rest. So it is called once,
    to have what the environment names loaded; then, where it keeps the provider as we know it, we look there.
    """
    found = modules.get(module)
    if found is None:
        return None
    names = found.__dict__
    provider = names.get(kept)
    if provider is None and (module not in _looked or kept not in names):
        ask = names.get(getter)
        if ask is not None:  # else it is just being imported
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
    """Whether a provider does anything: those of the API itself only stand in for one."""
    return provider is not None and not type(provider).__module__.startswith(
        ("opentelemetry.trace", "opentelemetry.metrics")
    )


class Span:
    """Something that takes a while, for a ``with`` statement in either colour. This one is told to nobody."""

    __slots__ = ()

    def set(self, name: str, value: Any) -> None:
        """Say one thing more of it."""

    def event(self, name: str, attributes: Attributes) -> None:
        """Something happened meanwhile."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


_NOTHING = Span()


def span(name: str, attributes: Attributes | None = None, *, client: bool = False) -> Span:
    """A span around the statements of a ``with``; nothing at all where the program has not set up tracing.

    Spans and requests inside of it are its children. An error that leaves it is told by its type alone. ``client``: it
    is another process that takes the time.
    """
    tools = instruments()
    return _NOTHING if tools is None else start_span(tools, name, attributes, client=client)


def start_span(tools: Instruments, name: str, attributes: Attributes | None, *, client: bool = False) -> Span:
    """`span`, for one who has the instruments."""
    return _NOTHING if tools.tracer is None else _Recorded(tools, name, attributes, client)


class _Recorded(Span):
    """A span that is current from its beginning to its end, as far as the two are in one context.

    A generator of a web framework may begin it in one thread and end it in another. Then what is current there is left
    alone.
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
