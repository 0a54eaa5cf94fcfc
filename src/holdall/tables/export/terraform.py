"""Exports tables as Terraform's configuration, with the permissions that Holdall needs on them. Pure.

The keys of global indexes are blocks, which the AWS provider accepts from version 6.29 on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from holdall.core.schema import IndexSchema, define_attributes, define_keys
from holdall.tables.export.code import Code, quote_hcl, write_value
from holdall.tables.export.policy import Access
from holdall.tables.export.table import ExportedTable, describe_tables, name_resources


def write_terraform(tables: Sequence[ExportedTable], access: Access) -> str:
    """Return a configuration of the tables, the database's first, and of a policy for their users. Terraform refuses to
    destroy the tables."""
    named = _name_tables(tables)
    arns = {name: f"aws_dynamodb_table.{name}.arn" for name in named}
    policy = access.write(
        [Code(arn) for arn in arns.values()], [Code(f'"${{{arn}}}/index/*"') for arn in arns.values()]
    )
    first, *lines = write_value(policy, hcl=True)
    providers = _arguments({"aws": {"source": "hashicorp/aws", "version": ">= 6.29"}})
    parts = [
        _block("terraform", [], _block("required_providers", [], providers)),
        *(_block("resource", ["aws_dynamodb_table", name], _table(table)) for name, table in named.items()),
        _block(
            "resource",
            ["aws_iam_policy", "table_access"],
            [
                *_arguments(
                    {
                        "name_prefix": f"{tables[0].schema.name[:80]}-",
                        "description": f"The permissions that Holdall needs on the {describe_tables(tables)}",
                    }
                ),
                f"policy = jsonencode({first}",
                *lines[:-1],
                f"{lines[-1]})",
            ],
        ),
        *(part for name, table in named.items() for part in _outputs(name, table)),
        _output(
            "table_access_policy",
            "The policy to attach to the application's role",
            "aws_iam_policy.table_access.arn",
        ),
    ]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts)


def _name_tables(tables: Sequence[ExportedTable]) -> dict[str, ExportedTable]:
    """Return the tables by their names in Terraform, in snake case unless two would have the same."""
    named = name_resources(tables)
    snakes = {name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in named}
    times = Counter(snakes.values())
    chosen = {name: snake if times[snake] == 1 else name for name, snake in snakes.items()}
    return {re.sub(r"\A(?=\d)", "_", chosen[name]): table for name, table in named.items()}


def _table(table: ExportedTable) -> Iterator[str]:
    schema = table.schema
    keys = {"hash_key": schema.partition.name} | ({"range_key": schema.sort.name} if schema.sort else {})
    yield from _arguments({"name": schema.name, "billing_mode": "PAY_PER_REQUEST", **keys})
    every = [*schema.keys, *(key for index in schema.indexes for key in index.keys)]
    for each in define_attributes(every):
        attribute = {"name": each["AttributeName"], "type": each["AttributeType"]}
        yield from ("", *_block("attribute", [], _arguments(attribute)))
    for index in schema.indexes:
        kind = "local_secondary_index" if index.local else "global_secondary_index"
        yield from ("", *_block(kind, [], _index(index)))
    if table.ttl is not None:
        yield from ("", *_block("ttl", [], _arguments({"attribute_name": table.ttl, "enabled": True})))
    yield from ("", *_block("lifecycle", [], ["prevent_destroy = true"]))


def _index(index: IndexSchema) -> Iterator[str]:
    arguments: dict[str, Any] = {"name": index.name}
    if index.local and index.sort is not None:
        arguments["range_key"] = index.sort.name
    arguments["projection_type"] = index.projection.kind
    yield from _arguments(arguments)
    if index.projection.names:
        first, *lines = write_value(list(index.projection.names), hcl=True)
        yield from (f"non_key_attributes = {first}", *lines)
    for key in () if index.local else define_keys(index):
        part = {"attribute_name": key["AttributeName"], "key_type": key["KeyType"]}
        yield from ("", *_block("key_schema", [], _arguments(part)))


def _outputs(name: str, table: ExportedTable) -> Iterator[list[str]]:
    for part in ("name", "arn"):
        description = f"{table.words}'s {part if part == 'name' else 'ARN'}"
        yield _output(f"{name}_{part}", description, f"aws_dynamodb_table.{name}.{part}")


def _output(name: str, description: str, value: str) -> list[str]:
    return _block("output", [name], _arguments({"description": description, "value": Code(value)}))


def _block(kind: str, labels: Sequence[str], body: Iterator[str] | Sequence[str]) -> list[str]:
    head = " ".join([kind, *map(quote_hcl, labels), "{"])
    return [head, *(f"  {line}" if line else "" for line in body), "}"]


def _arguments(arguments: dict[str, Any]) -> list[str]:
    """Return arguments of one line each, with their values below each other."""
    width = max(map(len, arguments))
    return [f"{name:{width}} = {write_value(value, hcl=True)[0]}" for name, value in arguments.items()]
