"""Client tokens: a transaction that is sent again with its token within ten minutes is not carried out again.

A token is stored in the same SQLite transaction as the effects of its request: both exist or neither. With it is stored
a digest of what the request does, so that the same token with another request is refused. The digest is computed from a
text that is defined here and does not depend on Python's repr: JSON of the actions in their order, items and keys in
their stored form, expressions as lists of their nodes' classes, forms and operands.

The first byte of a digest is the version of that text.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from holdall.core.expressions import Node, Path, Value
from holdall.core.requests import TransactAction, TransactWrite, UpdateItem
from holdall.core.rules.validation import Checked
from holdall.errors import TokenReusedError

TOKEN_SECONDS = 600

_VERSION = b"\x01"
_dump = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def digest_actions(request: TransactWrite, found: Sequence[Checked]) -> bytes:
    """The digest of what a transaction does."""
    actions = [_action(action, each) for action, each in zip(request.actions, found, strict=True)]
    return _VERSION + blake2b(_dump(actions).encode(), digest_size=16).digest()


def is_done(connection: sqlite3.Connection, request: TransactWrite, digest: bytes, now: float) -> bool:
    """Whether the transaction was carried out before; `TokenReusedError` if it was another one with the token."""
    row = connection.execute(
        "SELECT digest, created FROM tokens WHERE token = ?", (request.token,)
    ).fetchone()
    if row is None or now - row[1] >= TOKEN_SECONDS:
        return False
    if row[0] != digest:
        raise TokenReusedError(
            "the client token was used for another transaction within the last ten minutes",
            hint="use a new token (port.new_id()) for each new transaction",
        )
    return True


def keep_token(connection: sqlite3.Connection, token: str, digest: bytes, now: float) -> None:
    """Record the token, inside the SQLite transaction that carries out the request."""
    connection.execute(
        "INSERT OR REPLACE INTO tokens (token, digest, created) VALUES (?, ?, ?)", (token, digest, now)
    )


def _action(action: TransactAction, found: Checked) -> Iterable[object]:
    update = action.update if isinstance(action, UpdateItem) else None
    expressions = [None if each is None else _node(each) for each in (action.condition, update)]
    return [type(action).__name__, action.table, found.kept, *expressions, action.item_on_failure]


def _node(node: Node) -> object:
    if isinstance(node, Value):
        return node.attribute
    if isinstance(node, Path):
        return node.parts
    return [type(node).__name__, node.form, *[_node(operand) for operand in node.operands]]
