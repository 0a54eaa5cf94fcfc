"""The permissions that Holdall's features need, as an IAM policy. Pure.

Tests compare these lists with the requests that the features send.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote

from holdall.core.frozen import dataclass
from holdall.core.nearest_name import suggest_name
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError, InvalidOptionsError

PolicyFeature: TypeAlias = Literal[
    "reads",
    "models",
    "bulk",
    "scan",
    "migrate",
    "jobs",
    "files",
    "attachments",
    "artifacts",
    "archive",
    "copy",
    "doctor",
    "plan",
    "create",
]
"""A feature with a policy of its own."""

_PLAN = ("DescribeTable", "DescribeTimeToLive")
_CREATE = (*_PLAN, "CreateTable", "UpdateTable", "UpdateTimeToLive")
_READS = ("DescribeTable", "GetItem", "BatchGetItem", "Query")
_MODELS = (*_READS, "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")
_BULK = (*_MODELS, "BatchWriteItem")

TABLE_ACTIONS: dict[PolicyFeature, tuple[str, ...]] = {
    "reads": _READS,
    "models": _MODELS,
    "bulk": _BULK,
    "scan": (*_READS, "Scan"),
    "migrate": (*_BULK, "Scan"),
    "jobs": _BULK,
    "files": (),
    "attachments": _BULK,
    "artifacts": _BULK,
    "archive": (*_BULK, "Scan"),
    "copy": (*_PLAN, *_READS, "Scan", "BatchWriteItem", "PutItem", "DeleteItem"),
    "doctor": (*_PLAN, *_READS, "Scan", "BatchWriteItem"),
    "plan": _PLAN,
    "create": _CREATE,
}
"""The actions of DynamoDB that each feature needs on the tables. A transaction needs those of its parts."""

_KEEP = ("GetObject", "PutObject", "DeleteObject", "ListBucket")
_LARGE = (*_KEEP, "AbortMultipartUpload", "ListMultipartUploadParts", "ListBucketMultipartUploads")
_TAGGED = (*_LARGE, "GetObjectTagging", "PutObjectTagging")

OBJECT_ACTIONS: dict[PolicyFeature, tuple[str, ...]] = {
    "files": _TAGGED,
    "attachments": _LARGE,
    "artifacts": _TAGGED,
    "archive": _KEEP,
    "copy": _TAGGED,
    "doctor": ("GetObject", "ListBucket"),
    "create": ("CreateBucket", "ListBucket"),
}
"""The actions of S3 that features need if there are buckets; those with files always have some."""

_OF_BUCKETS = {"CreateBucket", "ListBucket", "ListBucketMultipartUploads"}

ACTIONS = tuple(
    f"dynamodb:{action}"
    for action in sorted(
        {action for actions in TABLE_ACTIONS.values() for action in actions} - {*_CREATE[2:]}
    )
)
"""The actions of all features on a table, without those that create or change tables."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of a file service; ``prefix`` is what the keys of its objects begin with.

    ``kms_key`` is the key that encrypts them, if a policy can name it.
    """

    name: str
    prefix: str
    acl: bool
    kms_key: str | None
    encrypted: bool


@dataclass(frozen=True, slots=True)
class Access:
    """The actions on tables and on S3 that a policy allows, and the buckets that it names. ``partition`` is AWS's."""

    actions: tuple[str, ...] = ACTIONS
    object_actions: tuple[str, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    tables: tuple[str, ...] = ()
    partition: str = "aws"

    def write(self, tables: Sequence[Any], indexes: Sequence[Any]) -> dict[str, Any]:
        """Return the policy; ``tables`` are the ARNs of the tables, or references, and ``indexes`` those of indexes."""
        statements = [_allow(self.actions, [*tables, *self.tables])] if self.actions else []
        if "dynamodb:Query" in self.actions:
            statements.append(
                _allow(["dynamodb:Query"], [*indexes, *(f"{each}/index/*" for each in self.tables)])
            )
        whole = [action for action in self.object_actions if action in _OF_BUCKETS]
        single = [action for action in self.object_actions if action not in _OF_BUCKETS]
        for bucket in self.buckets:
            arn = f"arn:{self.partition}:s3:::{bucket.name}"
            acl = ["PutObjectAcl"] if bucket.acl and "PutObject" in single else []
            if single:
                statements.append(_allow(_of_s3([*single, *acl]), [f"{arn}/{bucket.prefix}*"]))
            statements.append(_allow(_of_s3(whole), [arn]))
            if single and bucket.kms_key is not None:
                key = bucket.kms_key
                key = key if key.startswith("arn:") else f"arn:{self.partition}:kms:*:*:key/{key}"
                statements.append(_allow(["kms:Decrypt", "kms:GenerateDataKey"], [key]))
        return {"Version": "2012-10-17", "Statement": statements}


def plan_access(features: Iterable[PolicyFeature], settings: Settings, account: str = "*") -> Access:
    """Return the access that the features need; `ConfigurationError` if that includes a bucket and there is none."""
    wanted = tuple(features)
    if account != "*" and not (len(account) == 12 and account.isascii() and account.isdigit()):
        raise InvalidOptionsError(
            f"account must be the 12 digits of an AWS account, not {account!r:.60}",
            hint="`aws sts get-caller-identity` prints them",
        )
    check_features(wanted)
    stored = sorted({action for each in wanted for action in OBJECT_ACTIONS.get(each, ())})
    found = (bucket_of(url) for _, url in settings.files)
    buckets = tuple(dict.fromkeys(each for each in found if each is not None)) if stored else ()
    needing = [each for each in wanted if each in OBJECT_ACTIONS and each != "create"]
    if needing and not buckets:
        raise ConfigurationError(
            f"the policy for {', '.join(needing)} needs a bucket, but no file service of this database is on S3",
            hint="name the bucket of the deployed application, as in HOLDALL_FILES=s3://BUCKET",
        )
    own = settings.table_of_feature("artifacts")
    uses_own = not {"artifacts", "copy", "doctor"}.isdisjoint(wanted)
    return Access(
        tuple(f"dynamodb:{each}" for each in sorted({a for each in wanted for a in TABLE_ACTIONS[each]})),
        tuple(stored),
        buckets,
        (table_arn(settings, own, account),) if own is not None and uses_own else (),
        _partition(settings),
    )


def check_features(features: Iterable[PolicyFeature]) -> None:
    """Refuse what is not a feature with a policy."""
    for each in features:
        if each not in TABLE_ACTIONS:
            raise InvalidOptionsError(
                f"there is no policy for {each!r:.60}",
                hint=suggest_name(each, TABLE_ACTIONS, "features"),
            )


def table_arn(settings: Settings, table: str, account: str = "*") -> str:
    """Return the ARN of a table; the region is any if the settings do not name it."""
    return f"arn:{_partition(settings)}:dynamodb:{settings.region or '*'}:{account}:table/{table}"


def _partition(settings: Settings) -> str:
    special = {"cn-": "aws-cn", "us-gov-": "aws-us-gov", "eusc-": "aws-eusc"}
    region = settings.region or ""
    return next((name for prefix, name in special.items() if region.startswith(prefix)), "aws")


def bucket_of(url: str) -> Bucket | None:
    """Return the bucket that the URL of a file service names; None if the service is not on S3."""
    kind, _, rest = url.partition(":")
    if kind != "s3":
        return None
    location, _, query = rest.partition("?")
    name, _, prefix = unquote(location.removeprefix("//")).partition("/")
    options = dict(parse_qsl(query))
    prefix, key = prefix.strip("/"), options.get("kms_key")
    encrypted = key is not None or "kms" in options.get("encryption", "")
    key = None if key is not None and "alias/" in key else key  # policies cannot name a key by an alias
    return Bucket(name, f"{prefix}/" if prefix else "", "acl" in options, key, encrypted)


def _of_s3(actions: Iterable[str]) -> list[str]:
    return [f"s3:{action}" for action in sorted(actions)]


def _allow(actions: Sequence[str], resources: Sequence[Any]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
