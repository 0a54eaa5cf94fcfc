"""How DynamoDB counts the size of a transaction, and of the names and values in its expressions.

Pure. DynamoDB counts what a transaction sends: the items that it puts, the keys of the other items, and of all
expressions the text, the names at every use, and the values. Stored items do not count. (DynamoDB Local reports its
count when it refuses a request; a test compares ours with it.) An exact count has to render the expressions, so it is
made only for transactions whose upper bound is above the limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdall.core.expressions.renderer import render
from holdall.core.expressions.shape import Expression
from holdall.core.measure import attribute_size, item_size, name_size
from holdall.core.requests import PutItem, TransactAction, TransactWrite, UpdateItem
from holdall.core.values import Attribute
from holdall.errors import TransactionTooLarge

MAX_TRANSACTION = 4 * 1024 * 1024
MAX_SUBSTITUTIONS = 2 * 1024 * 1024

_ALIASES = re.compile("#[0-9]+")


def check_payload(request: TransactWrite) -> None:
    """Raise `TransactionTooLarge` if a transaction is larger than 4 MB."""
    size = sum(map(payload_size, request.actions))
    if size > MAX_TRANSACTION:
        raise TransactionTooLarge(
            f"the transaction has {size:,} bytes of items, keys and expressions; DynamoDB allows {MAX_TRANSACTION:,}",
            hint="split the work into several transactions; the values in conditions count too",
        )


def check_substitutions(write: TransactAction) -> None:
    """Raise `TransactionTooLarge` if a write's expressions have more than 2 MB of names and values."""
    names, values = _substitutions(render(expressions_of(write)))
    size = sum(len(alias) + name_size(name) for alias, name in names.items())
    size += sum(len(alias) + attribute_size(attribute) for alias, attribute in values.items())
    if size > MAX_SUBSTITUTIONS:
        raise TransactionTooLarge(
            f"the expressions of a {type(write).__name__} on table {write.table} have {size:,} bytes of names and "
            f"values; DynamoDB allows {MAX_SUBSTITUTIONS:,}",
            hint="compare fewer or shorter values, such as a version number instead of a long text",
        )


def payload_size(action: TransactAction) -> int:
    """Return how many bytes an action counts in its transaction."""
    parameters = render(expressions_of(action))
    names, values = _substitutions(parameters)
    size = item_size(action.item if isinstance(action, PutItem) else action.key)
    size += sum(map(attribute_size, values.values()))
    for text in parameters.values():
        if isinstance(text, str):
            size += len(text) + sum(name_size(names[alias]) for alias in _ALIASES.findall(text))
    return size


def expressions_of(action: TransactAction) -> dict[str, Expression]:
    """Return the expressions of a write by the names of their parameters."""
    expressions: dict[str, Expression] = {}
    if action.condition is not None:
        expressions["ConditionExpression"] = action.condition
    if isinstance(action, UpdateItem) and action.update.actions:
        expressions["UpdateExpression"] = action.update
    return expressions


def _substitutions(parameters: Mapping[str, Any]) -> tuple[Mapping[str, str], Mapping[str, Attribute]]:
    return parameters.get("ExpressionAttributeNames", {}), parameters.get("ExpressionAttributeValues", {})
