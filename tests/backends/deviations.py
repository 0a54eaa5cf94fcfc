"""What the local servers do otherwise than DynamoDB does; reviewed, each with its reason and as narrow as can be.

A `Deviation` excuses one kind of disagreement between the embedded engine and a server. It tells which disagreements
it stands for, so whatever it does not describe still fails a test; and it has an example that must go on showing it, so
that nothing stays here longer than it is true. Where both local servers agree with each other and not with us, we are
probably wrong; no entry here is of that kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from differential_outcome import Look, PageContent, exactly, numbers_by_value
from differential_pair import Adapt, Disagreement, keep
from differential_strategies import TABLE

from holdall.core.change import apply_update
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
    """A request that shows a deviation, and what to ask it of; ``earlier`` has been asked before."""

    request: Request[Any]
    schema: TableSchema
    stored: tuple[Item, ...] = ()
    earlier: tuple[Request[Any], ...] = ()


@dataclass(frozen=True)
class Deviation:
    """A server's own way, the disagreements that come of it, and one of them."""

    reason: str
    explains: Callable[[Disagreement], bool]
    example: Example


@dataclass(frozen=True)
class Server:
    """A server, and what is excused in it.

    ``look`` is how its items are compared, ``adapt`` how it is asked; ``judges`` says whether its refusals are
    strict enough to measure our checks by.
    """

    deviations: tuple[Deviation, ...] = ()
    look: Look = exactly
    adapt: Adapt = keep
    judges: bool = True

    def excuse(self, disagreement: Disagreement) -> Deviation | None:
        """The deviation that explains the disagreement, if one does."""
        return next((known for known in self.deviations if known.explains(disagreement)), None)


PLAIN = TableSchema(TABLE, KeyAttribute("pk"))
NUMBERED = TableSchema(TABLE, KeyAttribute("pk", "N"))
INDEXED = TableSchema(
    TABLE, KeyAttribute("pk"), None, (IndexSchema("by-x", KeyAttribute("x"), None, Projection("KEYS_ONLY")),)
)
KEY: Item = {"pk": {"S": "a"}}
ITEM: Item = {**KEY, "x": {"S": "x"}, "a": {"N": "1"}}


# --- what a request looked at -----------------------------------------------------------------------------


def _updates(seen: Disagreement) -> Iterator[UpdateItem]:
    actions = seen.request.actions if isinstance(seen.request, TransactWrite) else (seen.request,)
    yield from (action for action in actions if isinstance(action, UpdateItem))


def _conditions(seen: Disagreement) -> Iterator[tuple[Condition, tuple[Item, ...]]]:
    """The conditions of the request, each with the items it was evaluated on."""
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
    """Our side found, on meeting its item, that an update does not fit it."""
    if isinstance(seen.request, TransactWrite):
        canceled = seen.embedded.kind == "TransactionCanceledError"
        return canceled and any(code == "ValidationError" for code, _ in seen.embedded.content)
    return isinstance(seen.request, UpdateItem) and seen.embedded.refused


# --- DynamoDB Local ---------------------------------------------------------------------------------------


def _unfit_update_refuses_the_whole(seen: Disagreement) -> bool:
    return isinstance(seen.request, TransactWrite) and _finds_unfit(seen) and seen.server.refused


def _fallback_read_though_not_needed(seen: Disagreement) -> bool:
    sets = (step for update in _updates(seen) for step in update.update.actions if isinstance(step, Set))
    return (
        any(isinstance(fallback, Path) for step in sets for fallback in _fallbacks(step.value))
        and seen.server.refused
        and "refers to an attribute that does not exist" in seen.server.words
    )


def _equal_number_keys_taken_twice(seen: Disagreement) -> bool:
    if not (seen.embedded.refused and "name the same item" in seen.embedded.words and seen.server.ok):
        return False
    written = [repr([key[part.name] for part in seen.schema.keys]) for key in _keys(seen.request)]
    return len(set(written)) == len(written)


def _keys(request: BatchGet | TransactGet | BatchWrite | TransactWrite) -> Iterator[Item]:
    parts: tuple[Any, ...] = request.reads if isinstance(request, BatchGet | TransactGet) else request.actions
    yield from (part.item if isinstance(part, PutItem) else part.key for part in parts)


def _last_key_left_out_of_one_row(seen: Disagreement) -> bool:
    if not isinstance(seen.request, Query) or not (seen.embedded.ok and seen.server.ok):
        return False
    ours: list[PageContent] = seen.embedded.content
    return (
        len(ours) == 2 and ours[1].scanned == 0 and seen.server.content == [replace(ours[0], last_key=None)]
    )


def _scan_filters_on_what_the_index_lacks(seen: Disagreement) -> bool:
    said = seen.embedded.refused and "the filter uses" in seen.embedded.words
    return isinstance(seen.request, Scan) and said and seen.server.ok


def _path_into_a_key_in_a_transaction(seen: Disagreement) -> bool:
    said = seen.embedded.refused and "leads into" in seen.embedded.words
    return isinstance(seen.request, TransactWrite) and said and seen.server.ok


def _index_key_of_a_wrong_type_added(seen: Disagreement) -> bool:
    types = {part.name: part.type for index in seen.schema.indexes for part in index.keys}
    added = (step for update in _updates(seen) for step in update.update.actions if isinstance(step, Add))
    wrong = any(types.get(str(step.path.parts[0]), "N") != "N" for step in added)
    return wrong and not seen.embedded.ok and seen.server.ok


def _index_key_too_long_updated(seen: Disagreement) -> bool:
    said = "of index" in seen.embedded.words and "bytes; DynamoDB allows" in seen.embedded.words
    return isinstance(seen.request, UpdateItem) and seen.embedded.refused and said and seen.server.ok


def _literal_compared_one_level_deeper(seen: Disagreement) -> bool:
    literals = [
        operand.attribute
        for condition, _ in _conditions(seen)
        for node in _nodes(condition)
        for operand in _operands(node)
        if isinstance(operand, Value)
    ]
    return seen.embedded.refused and seen.server.ok and max(map(_depth, literals), default=0) == 32


def _depth(attribute: Mapping[str, Any]) -> int:
    """The lists and maps in which the innermost value lies."""
    inner = [*attribute.get("L", ()), *attribute.get("M", {}).values()]
    return 1 + max(map(_depth, inner), default=0) if attribute.keys() & {"L", "M"} else 0


def _nest(depth: int) -> dict[str, Any]:
    return {"L": [_nest(depth - 1)]} if depth else {"S": "x"}


DYNAMODB_LOCAL = Server(
    # keeps numbers inside lists and maps, and those that ADD creates, as they were written; DynamoDB in its own form
    look=numbers_by_value,
    deviations=(
        Deviation(
            "An update in a transaction that does not fit its item makes the whole call a ValidationException; "
            "DynamoDB cancels the transaction, with ValidationError among the reasons.",
            _unfit_update_refuses_the_whole,
            Example(
                TransactWrite((UpdateItem(TABLE, KEY, Update((Set(path("b"), path("c")),))),), "t"), PLAIN
            ),
        ),
        Deviation(
            "Reads the second operand of if_not_exists even when it is not needed, and complains when it is missing.",
            _fallback_read_though_not_needed,
            Example(
                UpdateItem(TABLE, KEY, Update((Set(path("b"), IfNotExists(path("a"), path("c"))),))),
                PLAIN,
                (ITEM,),
            ),
        ),
        Deviation(
            "Looks for duplicates in batches and transactions by the text of number keys: 1 and 1.0 pass as two items.",
            _equal_number_keys_taken_twice,
            Example(
                BatchGet(tuple(GetItem(TABLE, {"pk": {"N": text}}, True) for text in ("1", "1.0"))), NUMBERED
            ),
        ),
        Deviation(
            "Gives no last key where the key condition admits one row only, though the limit ended the page; the "
            "page that would follow is empty.",
            _last_key_left_out_of_one_row,
            Example(Query(TABLE, KeyCondition("pk", {"S": "a"}), limit=1), PLAIN, (KEY,)),
        ),
        Deviation(
            "Lets a scan of an index filter on attributes that the index does not hold, but no query; what is not "
            "held then counts as missing or not, whatever the table holds.",
            _scan_filters_on_what_the_index_lacks,
            Example(Scan(TABLE, "by-x", Exists(path("a"))), INDEXED, (ITEM,)),
        ),
        Deviation(
            "Lets conditions of a transaction look into the parts of a key attribute, but of no single write.",
            _path_into_a_key_in_a_transaction,
            Example(
                TransactWrite((ConditionCheck(TABLE, KEY, Not(Exists(path("pk", "a")))),), "t"), PLAIN, (KEY,)
            ),
        ),
        Deviation(
            "Lets ADD create an attribute that an index has as a key of another type; DynamoDB refuses it, and so does "
            "this server where SET does it.",
            _index_key_of_a_wrong_type_added,
            Example(UpdateItem(TABLE, KEY, Update((Add(path("x"), value(1)),))), INDEXED),
        ),
        Deviation(
            "Lets an update create an item whose key is too long for the index that it is a sort key of; a put is "
            "refused.",
            _index_key_too_long_updated,
            Example(
                UpdateItem(TABLE, {"pk": {"S": "k" * 1025}}, Update(())),
                replace(PLAIN, indexes=(IndexSchema("by-x", KeyAttribute("x"), KeyAttribute("pk")),)),
            ),
        ),
        Deviation(
            "Takes literals of 33 levels where they are only compared, and 32 like others where they are stored. We "
            "take 32 everywhere: nothing stored could equal more.",
            _literal_compared_one_level_deeper,
            Example(Scan(TABLE, filter=Compare("<>", path("a"), Value(_nest(32)))), PLAIN),
        ),
    ),
)


# --- ministack --------------------------------------------------------------------------------------------


def _with_canonical_keys(schema: TableSchema, asked: Any) -> Any:
    """Number keys in their one canonical form."""
    match asked:
        case BatchGet(reads) | TransactGet(reads):
            return replace(asked, reads=tuple(_with_canonical_keys(schema, read) for read in reads))
        case TransactWrite(actions) | BatchWrite(actions):
            return replace(asked, actions=tuple(_with_canonical_keys(schema, action) for action in actions))
        case PutItem(_, item):
            return replace(asked, item=_with_canonical_keys(schema, item))
        case Mapping():
            key = canonical_item({part.name: asked[part.name] for part in schema.keys})[0]
            return {**asked, **key}
        case Query(_, KeyCondition() as key):
            return replace(asked, key=replace(key, equals=canonical_attribute(key.equals)))
        case Scan():
            return asked
    return replace(asked, key=_with_canonical_keys(schema, asked.key))


def _equates_missing(seen: Disagreement) -> bool:
    return any(
        sum(_is_missing(operand, item) for operand in _operands(node)) >= 2
        for condition, items in _conditions(seen)
        for node in _nodes(condition)
        for item in items
    )


def _size_of_what_has_none(seen: Disagreement) -> bool:
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


def _sum_of_over_28_digits(seen: Disagreement) -> bool:
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


def _token_of_rewritten_numbers(seen: Disagreement) -> bool:
    if not isinstance(seen.request, TransactWrite):
        return False
    puts = [action.item for action in seen.request.actions if isinstance(action, PutItem)]
    rewritten = any(exactly(item) != exactly(canonical_item(item)[0]) for item in puts)
    return rewritten and seen.embedded.ok and seen.server.kind == "TokenReusedError"


def _prefix_of_a_wrong_type_refused(seen: Disagreement) -> bool:
    prefixes = (
        resolve(node.prefix, item)
        for condition, items in _conditions(seen)
        for node in _nodes(condition)
        if isinstance(node, BeginsWith) and isinstance(node.prefix, Path)
        for item in items
    )
    odd = any(found is not None and not found.keys() & {"S", "B"} for found in prefixes)
    return odd and seen.server.refused and "begins_with, operand type" in seen.server.words


def _finds_nothing_if_nothing_is_projected(seen: Disagreement) -> bool:
    if not isinstance(seen.request, TransactGet) or not (seen.embedded.ok and seen.server.ok):
        return False
    theirs: list[Item | None] = seen.server.content
    return [item or None for item in seen.embedded.content] == theirs


TWICE = TransactWrite((PutItem(TABLE, {**KEY, "a": {"N": "1.0"}}),), "t")

MINISTACK = Server(
    # takes 10 and 1e1 for different keys
    adapt=_with_canonical_keys,
    # refuses few of the things that DynamoDB refuses, so it says nothing about our checks
    judges=False,
    deviations=(
        Deviation(
            "Takes two operands that are both missing for equal; DynamoDB lets only <> hold.",
            _equates_missing,
            Example(PutItem(TABLE, KEY, Compare("=", path("b"), path("c"))), PLAIN),
        ),
        Deviation(
            "Gives numbers, booleans and null a size; in DynamoDB they have none, and nothing compares with it.",
            _size_of_what_has_none,
            Example(Scan(TABLE, filter=Compare(">=", Size(path("a")), value(0))), PLAIN, (ITEM,)),
        ),
        Deviation(
            "Lets many updates pass that do not fit their item, and leaves out what does not fit.",
            _unfit_update_passes,
            Example(UpdateItem(TABLE, KEY, Update((Add(path("b", "c"), value(1)),))), PLAIN),
        ),
        Deviation(
            "Adds and subtracts with 28 digits; numbers have 38.",
            _sum_of_over_28_digits,
            Example(
                UpdateItem(
                    TABLE, KEY, Update((Set(path("b"), Plus(value(10**30), value(1))),)), returns="new"
                ),
                PLAIN,
            ),
        ),
        Deviation(
            "Remembers a transaction with its numbers rewritten into their canonical form, so that the very same "
            "request, sent again with its token, counts as another if it had them in another form.",
            _token_of_rewritten_numbers,
            Example(TWICE, PLAIN, earlier=(TWICE,)),
        ),
        Deviation(
            "Refuses a prefix that is read from the item and is no text or bytes; DynamoDB takes it as not matching.",
            _prefix_of_a_wrong_type_refused,
            Example(Scan(TABLE, filter=BeginsWith(path("x"), path("a"))), PLAIN, (ITEM,)),
        ),
        Deviation(
            "An item of which a transactional read projects nothing is as one that is not there.",
            _finds_nothing_if_nothing_is_projected,
            Example(TransactGet((GetItem(TABLE, KEY, projection=(path("b"),)),)), PLAIN, (KEY,)),
        ),
    ),
)

SERVERS: Mapping[str, Server] = {"ministack": MINISTACK, "DynamoDB Local": DYNAMODB_LOCAL}
"""The servers that are known to deviate, by the names the suites give them; any other is taken at its word."""
