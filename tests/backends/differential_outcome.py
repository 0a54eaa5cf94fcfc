"""The outcome of a request on one backend, in a form that can be compared with its outcome on another backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeAlias

from holdall.core.numbers import canonical_number
from holdall.core.requests import BatchGetReply, GetReply, Page, Query, Request, Scan, WriteReply
from holdall.core.values import Attribute, Item
from holdall.errors import (
    ConditionFailedError,
    ConfigurationError,
    HoldallError,
    IndexNotFoundError,
    InvalidRequestError,
    TransactionCanceledError,
)

__all__ = [
    "Normalize",
    "Outcome",
    "PageContent",
    "Send",
    "sort_sets",
    "normalize_numbers",
    "get_outcome",
    "pages",
]

Send: TypeAlias = Callable[[Request[Any]], Any]
"""A function that sends a request to a backend and returns the reply."""

Normalize: TypeAlias = Callable[[Item], dict[str, Attribute]]
"""A function that returns an item in the form in which it is compared."""

MOST_PAGES = 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """``ok`` or the kind of error, and the content of the reply or the error. The message is not compared."""

    kind: str
    content: Any = None
    message: str = field(default="", compare=False)

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.kind == "ok"

    @property
    def refused(self) -> bool:
        """Whether the request itself was invalid."""
        return self.kind == "invalid"


@dataclass(frozen=True, slots=True)
class PageContent:
    """A page without its consumed capacity."""

    items: list[dict[str, Attribute]]
    count: int
    scanned: int
    last_key: Item | None


def get_outcome(send: Send, request: Request[Any], normalize: Normalize) -> Outcome:
    """Send the request and record its outcome; for a query or scan, that of this page and all later ones.

    A backend decides which rows are in which segment of a scan, so several segments are compared as a whole.
    """
    try:
        if isinstance(request, Scan) and request.segments > 1:
            return Outcome("ok", [_read_all_segments(send, request, normalize)])
        if isinstance(request, Query | Scan):
            return Outcome("ok", [_page(page, normalize) for page in pages(send, request)])
        return Outcome("ok", _content(send(request), normalize))
    except HoldallError as error:
        return Outcome(_kind(error), _describe_error(error, normalize), error.message)


def pages(send: Send, request: Query | Scan) -> Iterator[Page]:
    """Read the requested page and all later ones."""
    for _ in range(MOST_PAGES):
        page: Page = send(request)
        yield page
        if page.last_key is None:
            return
        request = replace(request, start_after=page.last_key)
    raise AssertionError(f"more than {MOST_PAGES} pages for a few items: {request}")


def _read_all_segments(send: Send, request: Scan, normalize: Normalize) -> PageContent:
    """Read the rows of all segments, or of none if there are too many segments to read."""
    send(request)
    if request.segments > MOST_PAGES:
        return PageContent([], 0, 0, None)
    parts = (replace(request, segment=number, start_after=None) for number in range(request.segments))
    several = [page for part in parts for page in pages(send, part)]
    rows = sorted((normalize(item) for page in several for item in page.items), key=repr)
    return PageContent(rows, sum(p.count for p in several), sum(p.scanned for p in several), None)


def _page(page: Page, normalize: Normalize) -> PageContent:
    last = None if page.last_key is None else normalize(page.last_key)
    return PageContent([normalize(item) for item in page.items], page.count, page.scanned, last)


def _content(reply: Any, normalize: Normalize) -> Any:
    match reply:
        case GetReply(item) | WriteReply(item):
            return None if item is None else normalize(item)
        case BatchGetReply(found):
            return [None if item is None else normalize(item) for item in found]
    return None


def _kind(error: HoldallError) -> str:
    if isinstance(error, InvalidRequestError | ConfigurationError | IndexNotFoundError):
        return "invalid"  # a server has a single error code for all of these
    return type(error).__name__


def _describe_error(error: HoldallError, normalize: Normalize) -> Any:
    match error:
        case ConditionFailedError():
            return None if error.item is None else normalize(error.item)
        case TransactionCanceledError():
            return [
                (reason.code, None if reason.item is None else normalize(reason.item))
                for reason in error.reasons
            ]
    return None


# --- normalized items -------------------------------------------------------------------------------------


def sort_sets(item: Item) -> dict[str, Attribute]:
    """Sort the members of sets, and change nothing else, not even the text of a number."""
    return {name: _order(attribute, str) for name, attribute in sorted(item.items())}


def normalize_numbers(item: Item) -> dict[str, Attribute]:
    """Like `sort_sets`, but also write each number in its canonical form."""
    return {name: _order(attribute, canonical_number) for name, attribute in sorted(item.items())}


def _order(attribute: Attribute, number: Callable[[str], str]) -> Attribute:
    ((kind, content),) = attribute.items()
    if kind == "M":
        return {"M": {name: _order(member, number) for name, member in sorted(content.items())}}
    if kind == "L":
        return {"L": [_order(member, number) for member in content]}
    if kind == "N":
        return {"N": number(content)}
    if kind == "NS":
        return {"NS": sorted(map(number, content), key=Decimal)}
    return {kind: sorted(content)} if kind in ("SS", "BS") else attribute
