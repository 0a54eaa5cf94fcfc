"""Where the local servers deviate from DynamoDB. Each entry is reviewed, has a reason, and is as narrow as possible.

A `Deviation` excuses one kind of disagreement between the embedded engine and a server. It recognizes the
disagreements that it excuses, so any other disagreement still fails a test. Its example must still show the deviation:
once the server is fixed, a test asks for the entry to be removed. If both local servers agreed with each other and
disagreed with us, we would probably be wrong; no entry is of that kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from differential_outcome import Normalize, PageContent, normalize_numbers, sort_sets
from differential_pair import Adapt, Disagreement, keep
from differential_strategies import TABLE

from holdall.core.expressions import (
    Add,
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Exists,
    IfNotExists,
    In,
    KeyCondition,
    ListAppend,
    Minus,
    Not,
    Operand,
    Or,
    Path,
    Plus,
    Set,
    SetValue,
    Size,
    Update,
    Value,
    path,
    value,
)
from holdall.core.expressions.application import apply_update
from holdall.core.expressions.evaluation import resolve
from holdall.core.measure import canonical_item
from holdall.core.requests import (
    BatchGet,
    BatchWrite,
    ConditionCheck,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    TransactAction,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.key import canonical_attribute
from holdall.core.schema import IndexSchema, KeyAttribute, Projection, TableSchema
from holdall.core.values import Item
from holdall.errors import InvalidExpressionError

__all__ = ["SERVERS", "Deviation", "Example", "Server"]


@dataclass(frozen=True)
class Example:
    """A request that shows a deviation, the table and its items, and the requests to send before it (``earlier``)."""

    request: Request[Any]
    schema: TableSchema
    stored: tuple[Item, ...] = ()
    earlier: tuple[Request[Any], ...] = ()


@dataclass(frozen=True)
class Deviation:
    """How a server deviates, a function that recognizes the resulting disagreements, and an example."""

    reason: str
    explains: Callable[[Disagreement], bool]
    example: Example


@dataclass(frozen=True)
class Server:
    """A server and its known deviations.

    ``normalize`` prepares its items for a comparison, and ``adapt`` prepares the requests. ``is_strict`` means that
    it refuses enough invalid requests for us to compare our checks with it.
    """

    deviations: tuple[Deviation, ...] = ()
    normalize: Normalize = sort_sets
    adapt: Adapt = keep
    is_strict: bool = True

    def excuse(self, disagreement: Disagreement) -> Deviation | None:
        """Return the deviation that explains the disagreement, if there is one."""
        return next((known for known in self.deviations if known.explains(disagreement)), None)


PLAIN = TableSchema(TABLE, KeyAttribute("pk"))
NUMBERED = TableSchema(TABLE, KeyAttribute("pk", "N"))
INDEXED = TableSchema(
    TABLE, KeyAttribute("pk"), None, (IndexSchema("by-x", KeyAttribute("x"), None, Projection("KEYS_ONLY")),)
)
KEY: Item = {"pk": {"S": "a"}}
ITEM: Item = {**KEY, "x": {"S": "x"}, "a": {"N": "1"}}


# --- parts of a request -----------------------------------------------------------------------------------


def _updates(seen: Disagreement) -> Iterator[UpdateItem]:
    actions = seen.request.actions if isinstance(seen.request, TransactWrite) else (seen.request,)
    yield from (action for action in actions if isinstance(action, UpdateItem))


def _conditions(seen: Disagreement) -> Iterator[tuple[Condition, tuple[Item, ...]]]:
    """The conditions of the request, each with the items that it was evaluated on."""
    request = seen.request
    if isinstance(request, Query | Scan):
        if request.filter is not None:
            yield request.filter, seen.stored
        return
    for action in request.actions if isinstance(request, TransactWrite) else (request,):
        condition: Condition | None = getattr(action, "condition", None)
        if condition is not None:
            yield condition, (_find_stored(seen, action),)


def _find_stored(seen: Disagreement, action: TransactAction) -> Item:
    key = canonical_item(action.item if isinstance(action, PutItem) else action.key)[0]
    for item in seen.stored:
        if all(item[part.name] == key[part.name] for part in seen.schema.keys):
            return item
    return {}


def _nodes(condition: Condition) -> Iterator[Condition]:
    yield condition
    if isinstance(condition, And | Or):
        for part in condition.conditions:
            yield from _nodes(part)
    elif isinstance(condition, Not):
        yield from _nodes(condition.condition)


def _operands(node: Condition) -> tuple[Operand, ...]:
    match node:
        case Compare(_, left, right):
            return left, right
        case In(operand, options):
            return operand, *options
        case Contains(subject, member):
            return subject, member
        case Between(operand, low, high):
            return operand, low, high
    return ()


def _is_missing(operand: Operand, item: Item) -> bool:
    if isinstance(operand, Size):
        found = resolve(operand.path, item)
        return found is None or not found.keys() & {"S", "B", "L", "M", "SS", "NS", "BS"}
    return isinstance(operand, Path) and resolve(operand, item) is None


def _fallbacks(new: SetValue) -> Iterator[object]:
    match new:
        case IfNotExists(_, fallback):
            yield fallback
            yield from _fallbacks(fallback)
        case Plus(one, other) | Minus(one, other) | ListAppend(one, other):
            yield from _fallbacks(one)
            yield from _fallbacks(other)


def _finds_unfit(seen: Disagreement) -> bool:
    """Whether the embedded engine refused an update because it does not fit its item."""
    if isinstance(seen.request, TransactWrite):
        canceled = seen.embedded.kind == "TransactionCanceledError"
        return canceled and any(code == "ValidationError" for code, _ in seen.embedded.content)
    return isinstance(seen.request, UpdateItem) and seen.embedded.refused


# --- DynamoDB Local ---------------------------------------------------------------------------------------


def _unfit_update_refuses_transaction(seen: Disagreement) -> bool:
    return isinstance(seen.request, TransactWrite) and _finds_unfit(seen) and seen.server.refused


def _reads_unneeded_fallback(seen: Disagreement) -> bool:
    sets = (step for update in _updates(seen) for step in update.update.actions if isinstance(step, Set))
    return (
        any(isinstance(fallback, Path) for step in sets for fallback in _fallbacks(step.value))
        and seen.server.refused
        and "refers to an attribute that does not exist" in seen.server.message
    )


def _accepts_equal_number_keys(seen: Disagreement) -> bool:
    if not (seen.embedded.refused and "name the same item" in seen.embedded.message and seen.server.ok):
        return False
    written = [repr([key[part.name] for part in seen.schema.keys]) for key in _keys(seen.request)]
    return len(set(written)) == len(written)


def _keys(request: BatchGet | TransactGet | BatchWrite | TransactWrite) -> Iterator[Item]:
    parts: tuple[Any, ...] = request.reads if isinstance(request, BatchGet | TransactGet) else request.actions
    yield from (part.item if isinstance(part, PutItem) else part.key for part in parts)


def _omits_last_key_of_single_row(seen: Disagreement) -> bool:
    if not isinstance(seen.request, Query) or not (seen.embedded.ok and seen.server.ok):
        return False
    ours: list[PageContent] = seen.embedded.content
    return (
        len(ours) == 2 and ours[1].scanned == 0 and seen.server.content == [replace(ours[0], last_key=None)]
    )


def _scan_filters_on_unprojected_attribute(seen: Disagreement) -> bool:
    refused = seen.embedded.refused and "the filter uses" in seen.embedded.message
    return isinstance(seen.request, Scan) and refused and seen.server.ok


def _accepts_path_into_key_in_transaction(seen: Disagreement) -> bool:
    refused = seen.embedded.refused and "leads into" in seen.embedded.message
    return isinstance(seen.request, TransactWrite) and refused and seen.server.ok


def _adds_index_key_of_wrong_type(seen: Disagreement) -> bool:
    types = {part.name: part.type for index in seen.schema.indexes for part in index.keys}
    added = (step for update in _updates(seen) for step in update.update.actions if isinstance(step, Add))
    wrong = any(types.get(str(step.path.parts[0]), "N") != "N" for step in added)
    return wrong and not seen.embedded.ok and seen.server.ok


def _updates_too_long_index_key(seen: Disagreement) -> bool:
    too_long = "of index" in seen.embedded.message and "bytes; DynamoDB allows" in seen.embedded.message
    return isinstance(seen.request, UpdateItem) and seen.embedded.refused and too_long and seen.server.ok


def _accepts_deeper_literal_in_comparison(seen: Disagreement) -> bool:
    literals = [
        operand.attribute
        for condition, _ in _conditions(seen)
        for node in _nodes(condition)
        for operand in _operands(node)
        if isinstance(operand, Value)
    ]
    return seen.embedded.refused and seen.server.ok and max(map(_depth, literals), default=0) == 32


def _depth(attribute: Mapping[str, Any]) -> int:
    """The number of lists and maps around the innermost value."""
    inner = [*attribute.get("L", ()), *attribute.get("M", {}).values()]
    return 1 + max(map(_depth, inner), default=0) if attribute.keys() & {"L", "M"} else 0


def _nest(depth: int) -> dict[str, Any]:
    return {"L": [_nest(depth - 1)]} if depth else {"S": "x"}


DYNAMODB_LOCAL = Server(
    # numbers inside lists and maps, and those that ADD creates, keep their text; DynamoDB stores the canonical form
    normalize=normalize_numbers,
    deviations=(
        Deviation(
            "Answers a transaction with a ValidationException if an update does not fit its item; DynamoDB cancels "
            "the transaction with ValidationError among the reasons.",
            _unfit_update_refuses_transaction,
            Example(
                TransactWrite((UpdateItem(TABLE, KEY, Update((Set(path("b"), path("c")),))),), "t"), PLAIN
            ),
        ),
        Deviation(
            "Reads the second operand of if_not_exists even when it is not needed, and refuses the update if that "
            "operand is missing.",
            _reads_unneeded_fallback,
            Example(
                UpdateItem(TABLE, KEY, Update((Set(path("b"), IfNotExists(path("a"), path("c"))),))),
                PLAIN,
                (ITEM,),
            ),
        ),
        Deviation(
            "Compares number keys as text to find duplicates in batches and transactions: it accepts 1 and 1.0 as "
            "two items.",
            _accepts_equal_number_keys,
            Example(
                BatchGet(tuple(GetItem(TABLE, {"pk": {"N": text}}, True) for text in ("1", "1.0"))), NUMBERED
            ),
        ),
        Deviation(
            "Returns no last key if the key condition can match one row only, although the limit ended the page; in "
            "DynamoDB an empty page follows.",
            _omits_last_key_of_single_row,
            Example(Query(TABLE, KeyCondition("pk", {"S": "a"}), limit=1), PLAIN, (KEY,)),
        ),
        Deviation(
            "Accepts a filter on attributes that the index does not project in a scan, though not in a query; the "
            "filter may or may not treat them as missing, whatever the table holds.",
            _scan_filters_on_unprojected_attribute,
            Example(Scan(TABLE, "by-x", Exists(path("a"))), INDEXED, (ITEM,)),
        ),
        Deviation(
            "Accepts paths into a key attribute in the conditions of a transaction, though not in those of a single "
            "write.",
            _accepts_path_into_key_in_transaction,
            Example(
                TransactWrite((ConditionCheck(TABLE, KEY, Not(Exists(path("pk", "a")))),), "t"), PLAIN, (KEY,)
            ),
        ),
        Deviation(
            "Lets ADD create an attribute of another type than the index key of that name; DynamoDB refuses this, "
            "and this server refuses the same with SET.",
            _adds_index_key_of_wrong_type,
            Example(UpdateItem(TABLE, KEY, Update((Add(path("x"), value(1)),))), INDEXED),
        ),
        Deviation(
            "Lets an update create an item whose key is too long to be the sort key of an index; it refuses to put "
            "the same item.",
            _updates_too_long_index_key,
            Example(
                UpdateItem(TABLE, {"pk": {"S": "k" * 1025}}, Update(())),
                replace(PLAIN, indexes=(IndexSchema("by-x", KeyAttribute("x"), KeyAttribute("pk")),)),
            ),
        ),
        Deviation(
            "Accepts literals with 33 levels if they are only compared, and with 32 if they are stored. We accept "
            "32 everywhere: no stored value could equal a deeper one.",
            _accepts_deeper_literal_in_comparison,
            Example(Scan(TABLE, filter=Compare("<>", path("a"), Value(_nest(32)))), PLAIN),
        ),
    ),
)


# --- ministack --------------------------------------------------------------------------------------------


def _make_keys_canonical(schema: TableSchema, part: Any) -> Any:
    """Write number keys in their canonical form."""
    match part:
        case BatchGet(reads) | TransactGet(reads):
            return replace(part, reads=tuple(_make_keys_canonical(schema, read) for read in reads))
        case TransactWrite(actions) | BatchWrite(actions):
            return replace(part, actions=tuple(_make_keys_canonical(schema, action) for action in actions))
        case PutItem(_, item):
            return replace(part, item=_make_keys_canonical(schema, item))
        case Mapping():
            key = canonical_item({attribute.name: part[attribute.name] for attribute in schema.keys})[0]
            return {**part, **key}
        case Query(_, KeyCondition() as key):
            return replace(part, key=replace(key, equals=canonical_attribute(key.equals)))
        case Scan():
            return part
    return replace(part, key=_make_keys_canonical(schema, part.key))


def _equates_missing(seen: Disagreement) -> bool:
    return any(
        sum(_is_missing(operand, item) for operand in _operands(node)) >= 2
        for condition, items in _conditions(seen)
        for node in _nodes(condition)
        for item in items
    )


def _measures_value_without_size(seen: Disagreement) -> bool:
    measured = (
        resolve(operand.path, item)
        for condition, items in _conditions(seen)
        for node in _nodes(condition)
        for operand in _operands(node)
        if isinstance(operand, Size)
        for item in items
    )
    return any(found is not None and found.keys() & {"N", "BOOL", "NULL"} for found in measured)


def _unfit_update_passes(seen: Disagreement) -> bool:
    if isinstance(seen.request, TransactWrite) and not seen.server.ok:
        codes = [code for code, _ in seen.server.content or ()]
        return _finds_unfit(seen) and "ValidationError" not in codes
    return _finds_unfit(seen) and seen.server.ok


def _rounds_sum_to_28_digits(seen: Disagreement) -> bool:
    for update in _updates(seen):
        try:
            after = apply_update(update.update, _find_stored(seen, update) or canonical_item(update.key)[0])
        except InvalidExpressionError:
            continue
        for step in update.update.actions:
            summed = isinstance(step, Add) or (isinstance(step, Set) and isinstance(step.value, Plus | Minus))
            text = (resolve(step.path, after) or {}).get("N", "0") if summed else "0"
            if len(text.strip("-0.").replace(".", "")) > 28:
                return True
    return False


def _compares_rewritten_numbers_with_token(seen: Disagreement) -> bool:
    if not isinstance(seen.request, TransactWrite):
        return False
    puts = [action.item for action in seen.request.actions if isinstance(action, PutItem)]
    rewritten = any(sort_sets(item) != sort_sets(canonical_item(item)[0]) for item in puts)
    return rewritten and seen.embedded.ok and seen.server.kind == "TokenReusedError"


def _refuses_prefix_of_wrong_type(seen: Disagreement) -> bool:
    prefixes = (
        resolve(node.prefix, item)
        for condition, items in _conditions(seen)
        for node in _nodes(condition)
        if isinstance(node, BeginsWith) and isinstance(node.prefix, Path)
        for item in items
    )
    odd = any(found is not None and not found.keys() & {"S", "B"} for found in prefixes)
    return odd and seen.server.refused and "begins_with, operand type" in seen.server.message


def _misses_item_without_projected_attributes(seen: Disagreement) -> bool:
    if not isinstance(seen.request, TransactGet) or not (seen.embedded.ok and seen.server.ok):
        return False
    theirs: list[Item | None] = seen.server.content
    return [item or None for item in seen.embedded.content] == theirs


TWICE = TransactWrite((PutItem(TABLE, {**KEY, "a": {"N": "1.0"}}),), "t")

MINISTACK = Server(
    # it treats 10 and 1e1 as different keys
    adapt=_make_keys_canonical,
    # it accepts many requests that DynamoDB refuses, so our checks cannot be compared with it
    is_strict=False,
    deviations=(
        Deviation(
            "Treats two missing operands as equal; in DynamoDB they are unequal.",
            _equates_missing,
            Example(PutItem(TABLE, KEY, Compare("=", path("b"), path("c"))), PLAIN),
        ),
        Deviation(
            "Returns a size for numbers, booleans and null; in DynamoDB they have none, and it counts as missing.",
            _measures_value_without_size,
            Example(Scan(TABLE, filter=Compare(">=", Size(path("a")), value(0))), PLAIN, (ITEM,)),
        ),
        Deviation(
            "Accepts many updates that do not fit their item, and skips the parts that do not fit.",
            _unfit_update_passes,
            Example(UpdateItem(TABLE, KEY, Update((Add(path("b", "c"), value(1)),))), PLAIN),
        ),
        Deviation(
            "Adds and subtracts with 28 digits; DynamoDB uses 38.",
            _rounds_sum_to_28_digits,
            Example(
                UpdateItem(
                    TABLE, KEY, Update((Set(path("b"), Plus(value(10**30), value(1))),)), returns="new"
                ),
                PLAIN,
            ),
        ),
        Deviation(
            "Stores a transaction's token with the numbers in canonical form; if the request had them in another "
            "form, it treats the same request with the same token as a different one.",
            _compares_rewritten_numbers_with_token,
            Example(TWICE, PLAIN, earlier=(TWICE,)),
        ),
        Deviation(
            "Refuses begins_with if the prefix is an attribute that is neither a string nor binary; in DynamoDB it "
            "does not match.",
            _refuses_prefix_of_wrong_type,
            Example(Scan(TABLE, filter=BeginsWith(path("x"), path("a"))), PLAIN, (ITEM,)),
        ),
        Deviation(
            "Reports an item as missing if a transactional read projects none of its attributes.",
            _misses_item_without_projected_attributes,
            Example(TransactGet((GetItem(TABLE, KEY, projection=(path("b"),)),)), PLAIN, (KEY,)),
        ),
    ),
)

SERVERS: Mapping[str, Server] = {"ministack": MINISTACK, "DynamoDB Local": DYNAMODB_LOCAL}
"""The servers with known deviations, by their names in the suites; any other server is expected to have none."""
