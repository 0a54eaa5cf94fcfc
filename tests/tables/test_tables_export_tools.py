"""The exports for Terraform and the CDK have the same tables as the CloudFormation template.

An HCL parser reads the text for Terraform; Terraform itself does not run. The CDK synthesises its stack.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rig.installation import NotHereError, install
from test_tables_export import MODELS

from holdall import Database
from holdall.core import IndexSchema, KeyAttribute, Projection
from holdall.core.schema import TableNeeds
from holdall.tables.export.code import quote_hcl
from holdall.tables.export.policy import ACTIONS

pytestmark = pytest.mark.torture

TOOLS = Path(__file__).parent / "export"


class Needs:
    """A model whose table has the given name and every kind of index."""

    def __init__(self, table: str) -> None:
        self.table = table

    def __table_needs__(self) -> TableNeeds:
        year, month = KeyAttribute("year", "N"), KeyAttribute("month", "N")
        half = Projection("INCLUDE", ('a "quoted" name', "${b}", "%{c}", "d\\", "é😀", *"efghijkl"))
        indexes = (
            IndexSchema("several", year, KeyAttribute("day"), half, False, (month,), (KeyAttribute("hour"),)),
            IndexSchema("by_day", KeyAttribute("id"), KeyAttribute("day"), half, local=True),
            IndexSchema("by_month", month, None, Projection("KEYS_ONLY")),
        )
        return TableNeeds(self.table, KeyAttribute("id"), KeyAttribute("at"), indexes, "gone", "Needs")


CASES: dict[str, dict[str, Any]] = {
    "A": {},
    "B": {"mode": "B"},
    "models": {"models": MODELS},
    "policy": {"models": MODELS, "policy": ["attachments", "jobs"]},
    "odd names": {"models": [Needs(name) for name in ("1st", "a-b.c", "a.b-c", "abC", "AbC", "---")]},
}


def export(format: str, case: str) -> str:
    options: dict[str, Any] = CASES[case]
    with Database(
        "memory:", table_name="app", table_prefix="test-", files="s3://bucket/a ${b}?acl=private"
    ) as db:
        return db.table.export(format=format, **options)  # type: ignore[arg-type]


def template(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(export("json", case))
    return found


def run(command: Sequence[str | Path], texts: Sequence[str], **environment: str) -> list[Any]:
    """Pass texts to a program and return its output."""
    done = subprocess.run(
        [*command],
        input=json.dumps(texts),
        capture_output=True,
        encoding="utf-8",
        env={"PATH": os.environ["PATH"], **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[Any] = json.loads(done.stdout)
    return found


# --- Terraform ---


@cache
def parse_hcl(texts: tuple[str, ...]) -> list[Any]:
    try:
        python = install(".venv-hcl")
    except NotHereError as error:
        pytest.skip(f"python-hcl2 cannot be installed here: {error}")
    program = "import hcl2, json, sys; print(json.dumps([hcl2.loads(text) for text in json.load(sys.stdin)]))"
    return [plain(parsed) for parsed in run([python, "-c", program], texts)]


def plain(part: Any) -> Any:
    """The parser's output, without the quotes and marks that it keeps."""
    if isinstance(part, dict):
        return {plain(name): plain(member) for name, member in part.items() if name != "__is_block__"}
    if isinstance(part, list):
        return [plain(member) for member in part]
    if isinstance(part, str) and part.startswith('"'):
        return json.loads(part.replace("$${", "${").replace("%%{", "%{"))
    return part


def table_of(resource: dict[str, Any]) -> dict[str, Any]:
    """The properties that CloudFormation would have for a table of Terraform."""
    hash_key = resource["hash_key"]
    keys = [(hash_key, "HASH"), *([(resource["range_key"], "RANGE")] if "range_key" in resource else [])]
    properties: dict[str, Any] = {
        "TableName": resource["name"],
        "BillingMode": resource["billing_mode"],
        "AttributeDefinitions": [
            {"AttributeName": each["name"], "AttributeType": each["type"]} for each in resource["attribute"]
        ],
        "KeySchema": key_schema(keys),
    }
    for index in resource.get("global_secondary_index", []):
        keys = [(key["attribute_name"], key["key_type"]) for key in index["key_schema"]]
        properties.setdefault("GlobalSecondaryIndexes", []).append(index_of(index, keys))
    for index in resource.get("local_secondary_index", []):
        keys = [(hash_key, "HASH"), (index["range_key"], "RANGE")]
        properties.setdefault("LocalSecondaryIndexes", []).append(index_of(index, keys))
    for ttl in resource.get("ttl", []):
        properties["TimeToLiveSpecification"] = {
            "AttributeName": ttl["attribute_name"],
            "Enabled": ttl["enabled"],
        }
    return properties


def index_of(index: dict[str, Any], keys: list[tuple[str, str]]) -> dict[str, Any]:
    names = {"NonKeyAttributes": index["non_key_attributes"]} if "non_key_attributes" in index else {}
    projection = {"ProjectionType": index["projection_type"], **names}
    return {"IndexName": index["name"], "KeySchema": key_schema(keys), "Projection": projection}


def key_schema(keys: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in keys]


@pytest.mark.parametrize("case", CASES)
def test_terraform_gets_the_tables_of_the_template(case: str) -> None:
    found = parse_hcl(tuple(export("terraform", each) for each in CASES))[list(CASES).index(case)]
    tables = {
        name: resource
        for each in found["resource"]
        for name, resource in each.get("aws_dynamodb_table", {}).items()
    }
    expected = [
        resource["Properties"]
        for resource in template(case)["Resources"].values()
        if resource["Type"] == "AWS::DynamoDB::Table"
    ]
    assert [table_of(table) for table in tables.values()] == expected
    assert all(table["lifecycle"] == [{"prevent_destroy": True}] for table in tables.values())
    assert len({name for each in found["output"] for name in each}) == 2 * len(tables) + 1


def test_terraform_gets_the_policy_of_the_template() -> None:
    text = export("terraform", "models")
    assert all(f'"{action}",' in text for action in ACTIONS)
    for name in ("table", "my_app_payouts_table", "numbers_table"):
        assert f"  aws_dynamodb_table.{name}.arn,\n" in text
        assert f'  "${{aws_dynamodb_table.{name}.arn}}/index/*",\n' in text


def test_terraform_does_not_evaluate_our_texts() -> None:
    assert quote_hcl('a${b}%{c}"\\\n') == '"a$${b}%%{c}\\"\\\\\\u000a"'


# --- CDK ---


@cache
def synthesise(texts: tuple[str, ...]) -> list[Any]:
    try:
        packages = install(".venv-cdk")
    except NotHereError as error:
        pytest.skip(f"aws-cdk-lib cannot be installed here: {error}")
    return run(["node", TOOLS / "synthesise.cjs"], texts, NODE_PATH=str(packages))


def as_template(part: Any) -> Any:
    """A part of a synthesised template, with each join that the CDK makes for a template literal as a substitution."""
    match part:
        case {"Fn::Join": ["", [{"Fn::GetAtt": [name, "Arn"]}, text]]}:
            return {"Fn::Sub": f"${{{name}.Arn}}{text}"}
        case dict():
            return {name: as_template(member) for name, member in part.items()}
        case list():
            return [as_template(member) for member in part]
    return part


@pytest.mark.parametrize("case", CASES)
def test_the_stack_of_the_cdk_is_synthesised_as_the_template(case: str) -> None:
    found = as_template(synthesise(tuple(export("cdk", each) for each in CASES))[list(CASES).index(case)])
    expected = template(case)
    for part in ("Description", "Resources", "Outputs"):
        assert found[part] == expected[part]
