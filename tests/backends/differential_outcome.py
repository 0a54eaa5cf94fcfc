"""What a backend made of a request, in a form that can be compared with what another made of it."""

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

__all__ = ["Look", "Outcome", "PageContent", "Send", "exactly", "numbers_by_value", "outcome", "pages"]

Send: TypeAlias = Callable[[Request[Any]], Any]
"""A backend's way to answer a request."""

Look: TypeAlias = Callable[[Item], dict[str, Attribute]]
"""An item in the form in which it is compared."""

MOST_PAGES = 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """``ok`` or the kind of error, and what came with it; the words are for the reader only."""

    kind: str
    content: Any = None
    words: str = field(default="", compare=False)

    @property
    def ok(self) -> bool:
        """Whether the request was carried out."""
        return self.kind == "ok"

    @property
    def refused(self) -> bool:
        """Whether the request itself was found wrong."""
        return self.kind == "invalid"


@dataclass(frozen=True, slots=True)
class PageContent:
    """A page without what it cost."""

    items: list[dict[str, Attribute]]
    count: int
    scanned: int
    last_key: Item | None


def outcome(send: Send, request: Request[Any], look: Look) -> Outcome:
    """What the backend makes of the request; of a query or scan, all pages from there on.

    Which rows are in which segment of a scan is the backend's to say: of several, only the whole is looked at.
    """
    try:
        if isinstance(request, Scan) and request.segments > 1:
            return Outcome("ok", [_whole(send, request, look)])
        if isinstance(request, Query | Scan):
            return Outcome("ok", [_page(page, look) for page in pages(send, request)])
        return Outcome("ok", _content(send(request), look))
    except HoldallError as error:
        return Outcome(_kind(error), _account(error, look), error.message)


def pages(send: Send, request: Query | Scan) -> Iterator[Page]:
    """All pages from the first asked for on."""
    for _ in range(MOST_PAGES):
        page: Page = send(request)
        yield page
        if page.last_key is None:
            return
        request = replace(request, start_after=page.last_key)
    raise AssertionError(f"over {MOST_PAGES} pages for a handful of items: {request}")


def _whole(send: Send, request: Scan, look: Look) -> PageContent:
    """The rows of all segments, or of none where there are too many segments to ask."""
    send(request)
    if request.segments > MOST_PAGES:
        return PageContent([], 0, 0, None)
    parts = (replace(request, segment=number, start_after=None) for number in range(request.segments))
    several = [page for part in parts for page in pages(send, part)]
    rows = sorted((look(item) for page in several for item in page.items), key=repr)
    return PageContent(rows, sum(p.count for p in several), sum(p.scanned for p in several), None)


def _page(page: Page, look: Look) -> PageContent:
    last = None if page.last_key is None else look(page.last_key)
    return PageContent([look(item) for item in page.items], page.count, page.scanned, last)


def _content(reply: Any, look: Look) -> Any:
    match reply:
        case GetReply(item) | WriteReply(item):
            return None if item is None else look(item)
        case BatchGetReply(found):
            return [None if item is None else look(item) for item in found]
    return None


def _kind(error: HoldallError) -> str:
    if isinstance(error, InvalidRequestError | ConfigurationError | IndexNotFoundError):
        return "invalid"  # a server has but one name for all of these
    return type(error).__name__


def _account(error: HoldallError, look: Look) -> Any:
    match error:
        case ConditionFailedError():
            return None if error.item is None else look(error.item)
        case TransactionCanceledError():
            return [
                (reason.code, None if reason.item is None else look(reason.item)) for reason in error.reasons
            ]
    return None


# --- items that compare -----------------------------------------------------------------------------------


def exactly(item: Item) -> dict[str, Attribute]:
    """The item as it came, the texts of its numbers too; only sets are put into one order."""
    return {name: _order(attribute, str) for name, attribute in sorted(item.items())}


def numbers_by_value(item: Item) -> dict[str, Attribute]:
    """Like `exactly`, but numbers count by their value, however they are written."""
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
