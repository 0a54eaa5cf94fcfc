"""The check of permissions: which actions that features need are denied on the tables and file services.

The actions are those of the policies (`holdall.tables.export.policy`). Each is tried (`trial`), or listed as not tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdall.artifacts.settings import artifact_settings
from holdall.core.objects import DescribeService
from holdall.errors import (
    AccessDeniedError,
    ConfigurationError,
    EndpointError,
    HoldallError,
    ServiceUnavailableError,
)
from holdall.maintenance.doctor.report import UntriedAction
from holdall.maintenance.doctor.trial import (
    UNTRIED,
    Trial,
    plan_index_trial,
    plan_listing_trial,
    plan_service_trials,
    plan_table_trials,
)
from holdall.maintenance.doctor.work import Work
from holdall.tables.demand import needs_of, plan_tables
from holdall.tables.export.policy import OBJECT_ACTIONS, TABLE_ACTIONS, PolicyFeature, bucket_of
from holdall.tables.flow import fetch_table

_DENIALS = {None, "AccessDenied", "AccessDeniedException", "NotAuthorized", "UnauthorizedAccess"}
_NAMED = re.compile(r"not authorized to perform: ([a-z0-9]+:[A-Za-z]+)")
_ELSEWHERE = {"jobs", "files", "attachments", "artifacts"}
"""The features whose items are not in the tables of models."""

_OF_ENCRYPTED = {"kms:Decrypt": "s3:GetObject", "kms:GenerateDataKey": "s3:PutObject"}
"""What is needed on the key of a bucket, and the action that needs it."""

_REMARKS = {
    "s3:ListBucket": ", so S3 reports a missing object as forbidden",
    "kms": " on the key that encrypts its data",
}


async def check_permissions(work: Work, features: Sequence[PolicyFeature]) -> frozenset[str]:
    """Report what is denied of what the features need, and return the tables that cannot be scanned."""
    unreadable = set()
    for table, users in _list_tables(work, features):
        if not await _check_table(work, table, users):
            unreadable.add(table)
    for service in work.services:
        await _check_service(work, service, features)
    return frozenset(unreadable)


def is_denial(error: AccessDeniedError) -> bool:
    """Whether the credentials are accepted, but do not permit the request."""
    return error.service_code in _DENIALS or str(error.service_code).startswith("KMS.")


async def report_undescribed(work: Work, table: str) -> None:
    """Report that the permission to describe a table is missing: nothing works without it."""
    needs = _list_needs(TABLE_ACTIONS, "dynamodb", TABLE_ACTIONS)
    action = "dynamodb:DescribeTable"
    await _Resource(work, f"table {table}", needs).deny(action, needs[action])


def _list_tables(
    work: Work, features: Sequence[PolicyFeature]
) -> Iterable[tuple[str, Sequence[PolicyFeature]]]:
    """The tables, each with the features that use it."""
    settings = work.context.settings
    own = artifact_settings(settings).table
    yield settings.table_name, [each for each in features if own is None or each != "artifacts"]
    try:
        wanted = plan_tables(settings, needs_of(work.models))
    except ConfigurationError:  # another check reports it
        wanted = ()
    for table in wanted:
        if table.own is not None:
            yield table.name, [each for each in features if each not in _ELSEWHERE]
    if own is not None:
        yield own, [each for each in features if each in ("artifacts", "copy", "doctor")]


async def _check_table(work: Work, table: str, features: Sequence[PolicyFeature]) -> bool:
    """Try what the features need on a table and its indexes; returns whether the table can be scanned."""
    needs = _list_needs(features, "dynamodb", TABLE_ACTIONS)
    resource = _Resource(work, f"table {table}", needs)
    try:
        found = await fetch_table(work.context, table)
    except AccessDeniedError:
        await resource.deny("dynamodb:DescribeTable", features)
        resource.leave(needs, "Holdall describes a table before it sends anything else")
        return False
    if found is None:
        return True  # another check reports it
    port = work.context.port
    for trial in plan_table_trials(found.schema, port.new_id(), port.new_id()):
        await resource.attempt(trial)
    for index in found.schema.indexes:
        part = _Resource(work, f"index {index.name} of table {table}", needs)
        await part.attempt(plan_index_trial(found.schema, index, port.new_id()))
    for action, reason in UNTRIED.items():
        resource.leave([action], reason)
    return "dynamodb:Scan" not in resource.denied


async def _check_service(work: Work, service: str, features: Sequence[PolicyFeature]) -> None:
    """Try what the features need in a file service."""
    try:
        traits = await work.context.port.send(DescribeService(service))
    except ConfigurationError:
        return  # another check reports it
    if traits.mirrors:
        return  # each of its services is checked
    needs = _list_needs(features, "s3", OBJECT_ACTIONS)
    url = work.services[service]
    bucket = None if url is None else bucket_of(url)
    if url is not None and bucket is None:
        needs.pop("s3:CreateBucket", None)  # a directory or memory
    if bucket is not None and bucket.acl and "s3:PutObject" in needs:
        needs["s3:PutObjectAcl"] = needs["s3:PutObject"]
    if bucket is not None and bucket.encrypted:
        needs |= {action: needs[part] for action, part in _OF_ENCRYPTED.items() if part in needs}
    place = f" ({traits.place})" if traits.place else ""
    resource = _Resource(work, f"file service {service}{place}", needs)
    if service in work.silent:
        resource.leave(needs, "the service cannot be used")
        return
    listed = await resource.attempt(plan_listing_trial(service))
    known = listed.objects[0].key if listed is not None and listed.objects else None
    for trial in plan_service_trials(service, known, work.context.port.new_id()):
        await resource.attempt(trial)
    if known is None:
        resource.leave(["kms:Decrypt"], "no object is known that could be read")
    for action, reason in UNTRIED.items():
        resource.leave([action], reason)


def _list_needs(
    features: Iterable[PolicyFeature], prefix: str, actions: Mapping[PolicyFeature, tuple[str, ...]]
) -> dict[str, list[PolicyFeature]]:
    """The actions, each with the features that need it."""
    found: dict[str, list[PolicyFeature]] = {}
    for feature in dict.fromkeys(features):
        for action in dict.fromkeys(actions.get(feature, ())):
            found.setdefault(f"{prefix}:{action}", []).append(feature)
    return found


class _Resource:
    """A table, an index or a file service, and the actions that features need on it."""

    def __init__(self, work: Work, subject: str, needs: Mapping[str, Sequence[PolicyFeature]]) -> None:
        self._work = work
        self._subject = subject
        self._needs = needs
        self._down: str | None = None
        self.denied: set[str] = set()

    async def attempt(self, trial: Trial) -> Any:
        """Try an action, if a feature needs it, and report a denial; returns the reply, None if there is none."""
        action = trial.action
        if action not in self._needs:
            return None
        if self._down is not None:
            self.leave([action], self._down)
            return None
        try:
            return await self._work.context.port.send(trial.request)
        except AccessDeniedError as error:
            await self._judge(trial, error)
        except trial.refusals:
            pass
        except HoldallError as error:
            self.leave([action], error.message)
            if isinstance(error, ServiceUnavailableError | EndpointError):
                self._down = error.message  # it was tried for long enough
        return None

    async def _judge(self, trial: Trial, error: AccessDeniedError) -> None:
        """Find out which action was denied: some requests need several, and AWS names the one if it can."""
        action, code = trial.action, str(error.service_code)
        named = _NAMED.search(error.message)
        missing = next((each for each in trial.also if each in self.denied), None)
        if not is_denial(error):
            self._down = error.message
            self.leave([action], error.message)
        elif named is not None and named[1] != action:
            await self.deny(named[1], self._needs[action])
            self.leave([action], f"the request needs {named[1]}, too")
        elif named is None and code.startswith("KMS."):
            await self._find(
                f"KMS refuses to use the key that encrypts its data ({code})", self._needs[action]
            )
            self.leave([action], "the request needs the key")
        elif named is None and missing is not None:
            self.leave([action], f"the request needs {missing}, too")
        else:
            await self.deny(action, self._needs[action])

    async def deny(self, action: str, features: Sequence[PolicyFeature]) -> None:
        """Report that an action is denied which these features need, unless it was reported before."""
        if action not in self.denied:
            self.denied.add(action)
            remark = _REMARKS.get(action.partition(":")[0]) or _REMARKS.get(action, "")
            await self._find(f"{action} is denied{remark}", features)

    async def _find(self, message: str, features: Sequence[PolicyFeature]) -> None:
        *most, last = features
        users = f"{', '.join(most)} and {last} need it" if most else f"{last} needs it"
        await self._work.find("permissions", "error", self._subject, f"{message}; {users}")

    def leave(self, actions: Iterable[str], reason: str) -> None:
        """List actions as not tried, if features need them and their denial was not reported."""
        for action in actions:
            if action in self._needs and action not in self.denied:
                self._work.untried.append(UntriedAction(action, self._subject, reason))
