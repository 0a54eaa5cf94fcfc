"""A table as a CloudFormation template, with the permissions that Holdall needs on it.

Pure. The text is JSON, or YAML of the plainest kind: CloudFormation takes both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from holdall.core.schema import TableSchema
from holdall.tables.definition import attribute_definitions, index_definition, key_schema

__all__ = ["ACTIONS", "Format", "rendered", "template", "yaml_text"]

Format: TypeAlias = Literal["json", "yaml"]
"""How a template is written down."""

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
"""What the features do with a table. Transactions have no actions of their own: they need those of their parts, and
ConditionCheckItem."""


def template(schema: TableSchema, ttl: str | None) -> dict[str, Any]:
    """The table and a policy for whoever uses it. The table outlives its stack."""
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"The table {schema.name}, and what an application that uses it with Holdall may do with it",
        "Resources": {
            "Table": {
                "Type": "AWS::DynamoDB::Table",
                "DeletionPolicy": "Retain",
                "UpdateReplacePolicy": "Retain",
                "Properties": _table(schema, ttl),
            },
            "TableAccess": {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {
                    "Description": f"What Holdall does with the table {schema.name}",
                    "PolicyDocument": _policy(),
                },
            },
        },
        "Outputs": {
            "TableName": {"Description": "The table's name", "Value": {"Ref": "Table"}},
            "TableArn": {"Description": "The table's ARN", "Value": {"Fn::GetAtt": ["Table", "Arn"]}},
            "TableAccessPolicy": {
                "Description": "The policy to attach to the application's role",
                "Value": {"Ref": "TableAccess"},
            },
        },
    }


def _table(schema: TableSchema, ttl: str | None) -> dict[str, Any]:
    keys = [*schema.keys, *(key for index in schema.indexes for key in index.keys)]
    properties: dict[str, Any] = {
        "TableName": schema.name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attribute_definitions(keys),
        "KeySchema": key_schema(schema.keys),
    }
    if schema.indexes:
        properties["GlobalSecondaryIndexes"] = [index_definition(index) for index in schema.indexes]
    if ttl is not None:
        properties["TimeToLiveSpecification"] = {"AttributeName": ttl, "Enabled": True}
    return properties


def _policy() -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": list(ACTIONS),
                "Resource": [{"Fn::GetAtt": ["Table", "Arn"]}, {"Fn::Sub": "${Table.Arn}/index/*"}],
            }
        ],
    }


def rendered(document: Mapping[str, Any], format: Format) -> str:
    """The document as text that ends with a line's end."""
    if format == "yaml":
        return yaml_text(document)
    return json.dumps(document, indent=2) + "\n"


# --- YAML -----------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z0-9_]+)*")
_ODD = re.compile(r"[^ -~]|[\"\\]")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def yaml_text(document: Mapping[str, Any]) -> str:
    """A document of mappings, lists, strings, numbers and booleans as YAML, block by block."""
    return "".join(f"{line}\n" for line in _block(document))


def _block(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping) and part:
        for name, member in part.items():
            yield from _entry(f"{_scalar(name)}:", member)
    elif _is_list(part) and part:
        for member in part:
            first, *rest = _block(member)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(part)


def _entry(label: str, member: Any) -> Iterator[str]:
    if member and (isinstance(member, Mapping) or _is_list(member)):
        yield label
        yield from (f"  {line}" for line in _block(member))
    else:
        yield f"{label} {_scalar(member)}"


def _is_list(part: Any) -> bool:
    return isinstance(part, Sequence) and not isinstance(part, str)


def _scalar(part: Any) -> str:
    """Text that no YAML reader can take for anything else: in quotes, unless it is a plain word."""
    if not isinstance(part, str):
        return json.dumps(part)
    if _PLAIN.fullmatch(part) and part.lower() not in _WORDS:
        return part
    escaped = _ODD.sub(lambda odd: f"\\U{ord(odd[0]):08X}", part)
    return f'"{escaped}"'
