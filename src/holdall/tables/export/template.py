"""Exports tables as a CloudFormation template, with the permissions that Holdall needs on them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdall.core.schema import define_table
from holdall.tables.export.policy import Access
from holdall.tables.export.table import ExportedTable, describe_tables, name_resources


def template(tables: Sequence[ExportedTable], access: Access) -> dict[str, Any]:
    """Return a template of the tables, the database's first, and of a policy for their users. It keeps the tables when
    the stack is deleted."""
    resources = name_resources(tables)
    which, them = describe_tables(tables), "it" if len(tables) == 1 else "them"
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"The {which}, and a policy for applications that use {them} with Holdall",
        "Resources": {
            **{name: _resource(table) for name, table in resources.items()},
            "TableAccess": {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {
                    "Description": f"The permissions that Holdall needs on the {which}",
                    "PolicyDocument": access.write(
                        [{"Fn::GetAtt": [name, "Arn"]} for name in resources],
                        [{"Fn::Sub": f"${{{name}.Arn}}/index/*"} for name in resources],
                    ),
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


def _resource(table: ExportedTable) -> dict[str, Any]:
    properties = define_table(table.schema)
    if table.ttl is not None:
        properties["TimeToLiveSpecification"] = {"AttributeName": table.ttl, "Enabled": True}
    return {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": properties,
    }


def _outputs(name: str, table: ExportedTable) -> Iterator[tuple[str, dict[str, Any]]]:
    yield f"{name}Name", {"Description": f"{table.words}'s name", "Value": {"Ref": name}}
    yield f"{name}Arn", {"Description": f"{table.words}'s ARN", "Value": {"Fn::GetAtt": [name, "Arn"]}}
