"""Exports tables as a stack of the AWS CDK in TypeScript, with the permissions that Holdall needs on them. Pure.

The constructs are those of CloudFormation, so the stack has exactly the resources of the template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdall.tables.export.code import Code, write_value
from holdall.tables.export.policy import Access
from holdall.tables.export.table import ExportedTable
from holdall.tables.export.template import template

_CLASSES = {"AWS::DynamoDB::Table": "dynamodb.CfnTable", "AWS::IAM::ManagedPolicy": "iam.CfnManagedPolicy"}

_HEAD = """\
import * as cdk from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import * as iam from "aws-cdk-lib/aws-iam";
import { Construct } from "constructs";

export class HoldallStack extends cdk.Stack {
  /** The policy to attach to the application's role. */
  readonly tableAccess: iam.CfnManagedPolicy;

  constructor(scope: Construct, id: string, props: cdk.StackProps = {}) {
"""


def write_cdk(tables: Sequence[ExportedTable], access: Access) -> str:
    """Return a stack of the tables, the database's first, and of a policy for their users. It keeps the tables when it
    is deleted."""
    made = template(tables, access)
    lines = ["super(scope, id, {", f"  description: {_text(made['Description'])},", "  ...props,", "});"]
    for name, resource in made["Resources"].items():
        lines += ["", *_construct(name, resource)]
    lines += [f"this.tableAccess = {_variable('TableAccess')};", ""]
    for name, output in made["Outputs"].items():
        value = {"description": output["Description"], "value": _expression(output["Value"])}
        lines += _new("cdk.CfnOutput", name, value)
    body = "".join(f"    {line}\n" if line else "\n" for line in lines)
    return f"{_HEAD}{body}  }}\n}}\n"


def _construct(name: str, resource: Mapping[str, Any]) -> Iterator[str]:
    first, *rest = _new(_CLASSES[resource["Type"]], name, _properties(resource["Properties"]))
    yield f"const {_variable(name)} = {first}"
    yield from rest
    if resource.get("DeletionPolicy") == "Retain":
        yield f"{_variable(name)}.applyRemovalPolicy(cdk.RemovalPolicy.RETAIN);"


def _new(kind: str, name: str, properties: Mapping[str, Any]) -> list[str]:
    *lines, last = write_value(properties, hcl=False)
    lines = [*lines, f"{last});"]
    return [f"new {kind}(this, {_text(name)}, {lines[0]}", *lines[1:]]


def _properties(value: Any) -> Any:
    """Return properties as the CDK names them. A policy document keeps its names."""
    if isinstance(value, Mapping):
        return {
            name[:1].lower() + name[1:]: _policy(member) if name == "PolicyDocument" else _properties(member)
            for name, member in value.items()
        }
    return [_properties(member) for member in value] if isinstance(value, list) else value


def _policy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _expression(value) or {name: _policy(member) for name, member in value.items()}
    return [_policy(member) for member in value] if isinstance(value, list) else value


def _expression(value: Mapping[str, Any]) -> Code | None:
    """Return a reference of CloudFormation as an expression; None if the value is not a reference."""
    match value:
        case {"Ref": str(name)}:
            return Code(f"{_variable(name)}.ref")
        case {"Fn::GetAtt": [str(name), "Arn"]}:
            return Code(f"{_variable(name)}.attrArn")
        case {"Fn::Sub": str(text)}:
            inner = re.sub(r"\$\{(\w+)\.Arn\}", lambda found: f"${{{_variable(found[1])}.attrArn}}", text)
            return Code(f"`{inner}`")
    return None


def _variable(name: str) -> str:
    name = name[:1].lower() + name[1:]
    return f"_{name}" if name[:1].isdigit() else name


def _text(text: str) -> str:
    return write_value(text, hcl=False)[0]
