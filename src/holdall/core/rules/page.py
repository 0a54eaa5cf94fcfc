"""The rules for queries and scans: keys, ranges, filters, projections, pages and segments.

Pure. Raises the `InvalidRequestError` family and `IndexNotFoundError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from holdall.core.comparison import equal
from holdall.core.expressions import BeginsWith, Between, Compare, KeyCondition, Path, Value
from holdall.core.expressions.evaluation import holds
from holdall.core.measure import canonical_item
from holdall.core.requests import Query, Scan
from holdall.core.rules.expression import check_condition, check_paths, paths_of
from holdall.core.rules.key import (
    MAX_PARTITION_KEY,
    MAX_SORT_KEY,
    canonical_attribute,
    check_key_attribute,
    check_keys,
    check_scalar_keys,
)
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import Item
from holdall.errors import InvalidExpressionError, InvalidKeyError, InvalidRequestError

MAX_SEGMENTS = 1_000_000


def check_projection(schema: TableSchema, projection: tuple[Path, ...]) -> None:
    """Check that the paths are well-formed, do not overlap, and do not lead into a key."""
    check_paths(projection, "projection")
    check_scalar_keys(schema, projection)


def check_page(schema: TableSchema, request: Query | Scan) -> None:
    """Check everything about a query or scan that does not depend on stored items."""
    index = None if request.index is None else schema.index(request.index)
    if index is not None and request.consistent and not index.local:
        raise InvalidRequestError(
            f"index {index.name} is global and cannot be read with strong consistency",
            hint="remove consistent=True, or read the table or a local index",
        )
    if request.limit is not None and (type(request.limit) is not int or request.limit < 1):
        raise InvalidRequestError(f"limit must be a whole number of at least 1, not {request.limit!r}")
    keyed = schema if index is None else index
    if isinstance(request, Query):
        check_key_condition(schema, keyed, request.key)
    elif request.segments not in range(1, MAX_SEGMENTS + 1) or request.segment not in range(request.segments):
        raise InvalidRequestError(
            f"there is no segment {request.segment!r} of {request.segments!r} segments",
            hint=f"segments must be from 1 to {MAX_SEGMENTS:,}, and segment from 0 to segments - 1",
        )
    if request.projection:
        check_projection(schema, request.projection)
        _check_projected(schema, index, request.projection, "projection")
    if request.filter is not None:
        check_condition(request.filter)
        used = tuple(paths_of(request.filter))
        _check_projected(schema, index, used, "filter")
        if isinstance(request, Query):
            _check_no_keys(keyed, used)
        check_scalar_keys(schema, used)
    if request.start_after is not None:
        _check_start(schema, index, request.start_after)
        if isinstance(request, Query):
            _check_start_inside(request.key, request.start_after)


def check_key_condition(schema: TableSchema, keyed: TableSchema | IndexSchema, key: KeyCondition) -> None:
    """Check that a query's key condition uses the key attributes, with values of their types."""
    sort = keyed.sort
    if key.also or (isinstance(keyed, IndexSchema) and keyed.more_partition):
        sort = _check_equalities(schema, keyed, key)
    else:
        if key.partition != keyed.partition.name:
            raise InvalidKeyError(
                f"{key.partition} is not the partition key of {keyed.name}",
                hint=f"the partition key is {keyed.partition.name}",
            )
        check_key_attribute(
            schema, keyed, keyed.partition, canonical_attribute(key.equals), MAX_PARTITION_KEY
        )
    if key.sort is None:
        return
    subject, *operands = key.sort.operands
    ranged = isinstance(key.sort, Compare | Between | BeginsWith)
    if sort is None or subject != Path((sort.name,)) or not ranged:
        raise InvalidKeyError(
            f"{subject if ranged else type(key.sort).__name__} is not the sort key of {keyed.name}",
            hint="pass conditions on other attributes as filter=",
        )
    check_condition(key.sort)
    if isinstance(key.sort, Compare) and key.sort.comparator == "<>":
        raise InvalidExpressionError(
            "a sort key cannot be queried with <>", hint="filter the rows in your code"
        )
    if isinstance(key.sort, BeginsWith) and sort.type == "N":
        raise InvalidExpressionError(f"{sort.name} is a number; begins_with needs text or bytes")
    for operand in operands:
        if not isinstance(operand, Value):
            raise InvalidExpressionError(
                f"a key condition can compare only with values, not with {type(operand).__name__}"
            )
        check_key_attribute(schema, keyed, sort, canonical_attribute(operand.attribute), MAX_SORT_KEY)


def _check_equalities(
    schema: TableSchema, keyed: TableSchema | IndexSchema, key: KeyCondition
) -> KeyAttribute | None:
    """Check the values of a key of several attributes; return the attribute that may have a range, if one is left."""
    names, partitions = [name for name, _ in key.equalities], keyed.partitions
    if names[: len(partitions)] != [part.name for part in partitions]:
        raise InvalidKeyError(
            f"{', '.join(names)} is not the partition key of {keyed.name}",
            hint=f"the partition key is {', '.join(part.name for part in partitions)}",
        )
    if names != [part.name for part in keyed.keys[: len(names)]]:
        raise InvalidKeyError(
            f"{', '.join(names)} is not the beginning of the key of {keyed.name}",
            hint=f"the key is {', '.join(part.name for part in keyed.keys)}",
        )
    for position, (part, (_, equals)) in enumerate(zip(keyed.keys, key.equalities, strict=False)):
        limit = MAX_PARTITION_KEY if position < len(partitions) else MAX_SORT_KEY
        check_key_attribute(schema, keyed, part, canonical_attribute(equals), limit)
    return keyed.keys[len(names)] if len(names) < len(keyed.keys) else None


def _check_projected(schema: TableSchema, index: IndexSchema | None, used: Iterable[Path], what: str) -> None:
    if index is None or (held := schema.projected(index)) is None:
        return
    missing = sorted({str(path.parts[0]) for path in used} - held)
    if missing:
        raise InvalidExpressionError(
            f"the {what} uses {', '.join(missing)}, which index {index.name} does not hold",
            hint="project the attribute into the index, or read the items from the table",
        )


def _check_no_keys(keyed: TableSchema | IndexSchema, used: Iterable[Path]) -> None:
    keys = {part.name for part in keyed.keys}
    for path in used:
        if path.parts[0] in keys:
            raise InvalidExpressionError(
                f"{path.parts[0]} is a key of {keyed.name} and cannot be filtered on",
                hint="put it into the key condition",
            )


def _check_start(schema: TableSchema, index: IndexSchema | None, start: Item) -> None:
    names = {part.name for part in chain(schema.keys, () if index is None else index.keys)}
    if start.keys() != names:
        raise InvalidKeyError(
            f"start_after must have the attributes {', '.join(sorted(names))}, "
            f"not {', '.join(sorted(start)) or 'none'}",
            hint="pass the last_key of a page",
        )
    kept, _ = canonical_item(start)
    check_keys(schema, schema, kept)
    if index is not None:
        check_keys(schema, index, kept)


def _check_start_inside(key: KeyCondition, start: Item) -> None:
    inside = all(equal(start[name], equals) for name, equals in key.equalities)
    if not inside or (key.sort is not None and not holds(key.sort, start)):
        raise InvalidKeyError(
            "start_after is outside the range of the key condition",
            hint="pass the last_key of a page of the same query",
        )
