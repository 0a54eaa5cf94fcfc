"""The permissions that Holdall needs, as an IAM policy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ACTIONS = (
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:Scan",
    "dynamodb:UpdateItem",
)
"""The IAM actions that Holdall needs on a table. Transactions need the actions of their parts and
ConditionCheckItem."""


def write_policy(tables: Sequence[Any], indexes: Sequence[Any]) -> dict[str, Any]:
    """Return the policy; ``tables`` are the ARNs of the tables, or references, and ``indexes`` those of indexes."""
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": list(ACTIONS), "Resource": [*tables, *indexes]}],
    }
