"""The IAM policy of features: the tables, indexes and buckets that it names, and requests that are refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from test_tables_export import MODELS

from holdall import AsyncDatabase, Database
from holdall.errors import ConfigurationError, InvalidOptionsError
from holdall.tables.export.policy import OBJECT_ACTIONS, TABLE_ACTIONS


def statements(db: Database, *features: Any, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(db.table.export_policy(features, **options))["Statement"]
    return found


def open_db(**settings: Any) -> Database:
    return Database("dynamodb://app?region=eu-west-1", table_prefix="test-", **settings)


def test_the_policy_names_the_table_and_allows_only_queries_on_its_indexes() -> None:
    with open_db() as db:
        table, indexes = statements(db, "reads", account="123456789012")
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/app"
    assert table["Resource"] == [arn]
    assert table["Action"] == sorted(f"dynamodb:{action}" for action in TABLE_ACTIONS["reads"])
    assert indexes == {"Effect": "Allow", "Action": ["dynamodb:Query"], "Resource": [f"{arn}/index/*"]}


def test_the_policy_names_the_tables_of_models() -> None:
    with open_db() as db:
        table, _ = statements(db, "models", models=MODELS)
    names = [arn.rpartition("/")[2] for arn in table["Resource"]]
    assert names == ["app", "test-my-app.payouts", "test-Numbers"]


def test_features_are_combined() -> None:
    with open_db() as db:
        table, _ = statements(db, "plan", "scan")
    wanted = {*TABLE_ACTIONS["plan"], *TABLE_ACTIONS["scan"]}
    assert table["Action"] == sorted(f"dynamodb:{action}" for action in wanted)


def test_a_policy_without_queries_does_not_name_the_indexes() -> None:
    with open_db() as db:
        assert len(statements(db, "plan")) == 1


def test_the_policy_names_each_bucket_with_its_prefix() -> None:
    files = {"default": "s3://one/a/b?region=eu-west-1", "second": "s3://two?acl=private", "here": "memory:"}
    with open_db(files=files) as db:
        found = statements(db, "files")
    assert [each["Resource"] for each in found] == [
        ["arn:aws:s3:::one/a/b/*"],
        ["arn:aws:s3:::one"],
        ["arn:aws:s3:::two/*"],
        ["arn:aws:s3:::two"],
    ]
    assert {*found[0]["Action"], *found[1]["Action"]} == {
        f"s3:{action}" for action in OBJECT_ACTIONS["files"]
    }
    assert {*found[2]["Action"]} - {*found[0]["Action"]} == {"s3:PutObjectAcl"}


@pytest.mark.parametrize(
    ("key", "arns"),
    [
        ("arn:aws:kms:eu-west-1:1:key/k", ["arn:aws:kms:eu-west-1:1:key/k"]),
        ("k", ["arn:aws:kms:*:*:key/k"]),
        ("alias/mine", []),
    ],
)
def test_the_policy_allows_the_key_that_encrypts_objects(key: str, arns: list[str]) -> None:
    with open_db(files=f"s3://one?encryption=aws:kms&kms_key={key}") as db:
        found = [each for each in statements(db, "files") if each["Action"][0].startswith("kms:")]
    assert [arn for each in found for arn in each["Resource"]] == arns


def test_the_policy_of_artifacts_names_their_own_table() -> None:
    with open_db(files="s3://one", artifacts="table=versioned") as db:
        table, indexes, *_ = statements(db, "artifacts")
        assert len(statements(db, "models")[0]["Resource"]) == 1
    arn = "arn:aws:dynamodb:eu-west-1:*:table/versioned"
    assert (table["Resource"][1:], indexes["Resource"][1:]) == ([arn], [f"{arn}/index/*"])


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("us-east-1", "aws")]
)
def test_arns_have_the_partition_of_the_region(region: str, partition: str) -> None:
    with Database(f"dynamodb://app?region={region}", files="s3://one") as db:
        found = statements(db, "archive")
    assert all(arn.startswith(f"arn:{partition}:") for each in found for arn in each["Resource"])


def test_a_policy_for_creating_tables_also_allows_creating_the_configured_buckets() -> None:
    with open_db() as db:
        assert len(statements(db, "create")) == 1
    with open_db(files="s3://one/a?acl=private&kms_key=k") as db:
        _, bucket = statements(db, "create")
        _, _, objects, whole, _ = statements(db, "create", "archive")
    arn = "arn:aws:s3:::one"
    assert bucket == {"Effect": "Allow", "Action": ["s3:CreateBucket", "s3:ListBucket"], "Resource": [arn]}
    assert whole == bucket
    assert objects["Resource"] == [f"{arn}/a/*"]


def test_the_exported_template_has_the_policy_of_the_features() -> None:
    with open_db(files="s3://one") as db:
        template = json.loads(db.table.export(policy=["archive"]))
        expected = statements(db, "archive")
    found = template["Resources"]["TableAccess"]["Properties"]["PolicyDocument"]["Statement"]
    assert [each["Action"] for each in found] == [each["Action"] for each in expected]
    assert found[2:] == expected[2:]


def test_the_policy_is_the_same_from_async_programs() -> None:
    async def compare() -> None:
        async with AsyncDatabase("memory:") as db:
            assert await db.table.export_policy(["jobs"]) == db.sync.table.export_policy(["jobs"])

    asyncio.run(compare())


def test_a_feature_with_files_needs_a_bucket() -> None:
    with Database("memory:") as db:
        with pytest.raises(
            ConfigurationError, match="policy for attachments needs a bucket, but no file service"
        ):
            db.table.export_policy(["models", "attachments"])
        with pytest.raises(ConfigurationError, match="needs a bucket"):
            db.table.export(policy=["files"])


def test_unknown_features_and_an_empty_list_are_refused() -> None:
    with Database("memory:") as db:
        with pytest.raises(InvalidOptionsError, match="there is no policy for 'model'") as caught:
            db.table.export_policy(["model"])  # type: ignore[list-item]
        assert caught.value.hint == "did you mean 'models'?"
        with pytest.raises(InvalidOptionsError, match="at least one feature"):
            db.table.export_policy([])
