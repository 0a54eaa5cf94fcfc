"""Exports tables, with the permissions that Holdall needs on them, for the tools that create them.

Pure. CloudFormation accepts JSON and YAML; Terraform and the AWS CDK have languages of their own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from holdall.tables.export.cdk import write_cdk
from holdall.tables.export.policy import Access, PolicyFeature, plan_access, table_arn
from holdall.tables.export.table import ExportedTable
from holdall.tables.export.template import template
from holdall.tables.export.terraform import write_terraform
from holdall.tables.export.yaml import yaml_text

__all__ = ["Access", "ExportedTable", "Format", "PolicyFeature", "plan_access", "table_arn", "write_export"]

Format: TypeAlias = Literal["json", "yaml", "terraform", "cdk"]
"""The format of an export: a template of CloudFormation as JSON or YAML, Terraform's language, or TypeScript (CDK)."""


def write_export(tables: Sequence[ExportedTable], access: Access, format: Format) -> str:
    """Return the tables, the database's first, as text that ends with a newline."""
    if format == "terraform":
        return write_terraform(tables, access)
    if format == "cdk":
        return write_cdk(tables, access)
    if format == "yaml":
        return yaml_text(template(tables, access))
    return json.dumps(template(tables, access), indent=2) + "\n"
