"""Exports tables as a CloudFormation template, with the permissions that Holdall needs on them.

Pure. The text is JSON or simple YAML; CloudFormation accepts both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from holdall.core.frozen import dataclass
from holdall.core.schema import TableSchema, define_attributes, define_indexes, define_keys

Format: TypeAlias = Literal["json", "yaml"]
"""The format of a template."""

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


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """A table for a template. ``own`` is the ``table=`` of its models, None for the database's table."""

    schema: TableSchema
    ttl: str | None
    own: str | None = None


def template(tables: Sequence[ExportedTable]) -> dict[str, Any]:
    """Return a template of the tables, the database's first, and of a policy for their users. It keeps the tables when
    the stack is deleted."""
    resources = {_logical_name(table, tables): table for table in tables}
    which, them = _words(tables), "it" if len(tables) == 1 else "them"
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"The {which}, and a policy for applications that use {them} with Holdall",
        "Resources": {
            **{name: _resource(table) for name, table in resources.items()},
            "TableAccess": {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {
                    "Description": f"The permissions that Holdall needs on the {which}",
                    "PolicyDocument": _policy(list(resources)),
                },
            },
        },
        "Outputs": {
            **{key: output for name, table in resources.items() for key, output in _outputs(name, table)},
            "TableAccessPolicy": {
                "Description": "The policy to attach to the application's role",
                "Value": {"Ref": "TableAccess"},
            },
        },
    }


def _words(tables: Sequence[ExportedTable]) -> str:
    """Describe the tables in a few words, however many they are."""
    first, *more = tables
    if not more:
        return f"table {first.schema.name}"
    return f"table {first.schema.name} and {len(more)} tables of models"


def _logical_name(table: ExportedTable, tables: Sequence[ExportedTable]) -> str:
    """Return a resource's name: letters and digits, without the prefix, so that it is the same in every environment."""
    if table.own is None:
        return "Table"
    name = _camel(table.own)
    if not name or sum(name == _camel(other.own) for other in tables if other.own is not None) > 1:
        name += sha256(table.own.encode()).hexdigest()[:8]
    return f"{name}Table"


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name))


def _resource(table: ExportedTable) -> dict[str, Any]:
    return {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": _table(table.schema, table.ttl),
    }


def _outputs(name: str, table: ExportedTable) -> Iterator[tuple[str, dict[str, Any]]]:
    whose = "The table" if table.own is None else f"The table {table.own}"
    yield f"{name}Name", {"Description": f"{whose}'s name", "Value": {"Ref": name}}
    yield f"{name}Arn", {"Description": f"{whose}'s ARN", "Value": {"Fn::GetAtt": [name, "Arn"]}}


def _table(schema: TableSchema, ttl: str | None) -> dict[str, Any]:
    keys = [*schema.keys, *(key for index in schema.indexes for key in index.keys)]
    properties: dict[str, Any] = {
        "TableName": schema.name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": define_attributes(keys),
        "KeySchema": define_keys(schema),
    }
    properties |= define_indexes(schema)
    if ttl is not None:
        properties["TimeToLiveSpecification"] = {"AttributeName": ttl, "Enabled": True}
    return properties


def _policy(names: Sequence[str]) -> dict[str, Any]:
    tables: list[dict[str, Any]] = [{"Fn::GetAtt": [name, "Arn"]} for name in names]
    indexes: list[dict[str, Any]] = [{"Fn::Sub": f"${{{name}.Arn}}/index/*"} for name in names]
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": list(ACTIONS), "Resource": [*tables, *indexes]}],
    }


def render(document: Mapping[str, Any], format: Format) -> str:
    """Return the document as text that ends with a newline."""
    if format == "yaml":
        return yaml_text(document)
    return json.dumps(document, indent=2) + "\n"


# --- YAML -----------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z0-9_]+)*")
_ODD = re.compile(r"[^ -~]|[\"\\]")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def yaml_text(document: Mapping[str, Any]) -> str:
    """Return a document of mappings, lists, strings, numbers and booleans as YAML in block style."""
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
    """Return a scalar that every YAML reader reads as the same value: in quotes, unless it is a plain word."""
    if not isinstance(part, str):
        return json.dumps(part)
    if _PLAIN.fullmatch(part) and part.lower() not in _WORDS:
        return part
    escaped = _ODD.sub(lambda odd: f"\\U{ord(odd[0]):08X}", part)
    return f'"{escaped}"'
