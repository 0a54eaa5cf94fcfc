"""The flow of a check: the configuration first, then every table in one pass, then what each feature checks itself.

Nothing is held in memory but the findings and the items of one page of each segment. Other programs may write
meanwhile, so anything that looks wrong is read again before it is reported, and a repair is conditional on what was
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, get_args

from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.errors import AccessDeniedError, HoldallError, InvalidOptionsError
from holdall.maintenance.doctor.artifact import check_artifacts, find_artifacts
from holdall.maintenance.doctor.configuration import check_services, check_tables, find_layout, reach_table
from holdall.maintenance.doctor.feature import (
    attempt,
    check_archive,
    find_orphaned_blobs,
    find_orphaned_objects,
    list_archived,
)
from holdall.maintenance.doctor.figure import Figures, store_figures
from holdall.maintenance.doctor.object import find_artifact_objects
from holdall.maintenance.doctor.permission import check_permissions
from holdall.maintenance.doctor.report import CheckName, DoctorReport
from holdall.maintenance.doctor.table import TableCheck
from holdall.maintenance.doctor.work import Work
from holdall.models.model import Model
from holdall.tables.demand import needs_of
from holdall.tables.export.policy import TABLE_ACTIONS, PolicyFeature, check_features
from holdall.tables.layout import Layout
from holdall.transactions.binding import Binding, bind
from holdall.transactions.table_run.flow import check_run_options

CHECKS: tuple[CheckName, ...] = get_args(CheckName)


class DoctorArguments(TypedDict, total=False):
    """The options of a check."""

    models: Sequence[type[Model]]
    only: Sequence[CheckName] | None
    features: Sequence[PolicyFeature] | None
    repair: bool
    store_figures: bool
    segments: int
    rate: float | None
    progress: Callable[[DoctorReport], Any] | None


async def examine(
    context: Context,
    services: Mapping[str, str | None],
    *,
    models: Sequence[type[Model]] = (),
    only: Sequence[CheckName] | None = None,
    features: Sequence[PolicyFeature] | None = None,
    repair: bool = False,
    store_figures: bool = True,
    segments: int = 1,
    rate: float | None = None,
    progress: Callable[[DoctorReport], Any] | None = None,
) -> DoctorReport:
    """Check a database; see `holdall.Database.doctor`."""
    wanted = _choose(only)
    needing = _choose_features(features, wanted)
    needs_of(models)  # refuses what is not a model
    check_run_options(segments, rate, progress)
    work = Work(context, models, services, repair=repair, segments=segments, rate=rate, progress=progress)
    if "configuration" in wanted:
        await check_services(work)
    if not await reach_table(work):
        return work.report()
    layout = await find_layout(work)
    unreadable = await check_permissions(work, needing) if "permissions" in wanted else frozenset()
    if "tables" in wanted:
        await check_tables(work)
    bindings = [each for each in await _bind_models(work, wanted) if each.table not in unreadable]
    if context.settings.table_name in unreadable:
        layout = None
    artifacts = await find_artifacts(work, layout) if wanted & {"artifacts", "orphans"} else None
    if artifacts is not None and artifacts.table in unreadable:
        artifacts = None
    await _read_tables(work, layout, bindings, artifacts, wanted, keep=store_figures)
    if layout is not None:
        await _check_features(work, artifacts, wanted)
    await work.show()
    return work.report()


def _choose(only: Any) -> frozenset[CheckName]:
    if only is None:
        return frozenset(CHECKS)
    if isinstance(only, str) or not only or not set(only) <= set(CHECKS):
        raise InvalidOptionsError(
            f"only must be a list of checks, not {only!r:.80}", hint=f"the checks are {', '.join(CHECKS)}"
        )
    return frozenset(only)


def _choose_features(
    features: Sequence[PolicyFeature] | None, wanted: frozenset[CheckName]
) -> Sequence[PolicyFeature]:
    """The features whose permissions are checked; those of this check belong to them if it reads tables."""
    if features is None:
        return [each for each in TABLE_ACTIONS if each != "create"]
    if isinstance(features, str) or not features:
        raise InvalidOptionsError(
            f"features must be a list of features, not {features!r:.80}", hint='as in ["models", "jobs"]'
        )
    check_features(features)
    reads = wanted - {"configuration", "permissions"}
    return [*features, "doctor"] if reads and "doctor" not in features else features


async def _bind_models(work: Work, wanted: frozenset[CheckName]) -> list[Binding]:
    """Where the items of the models are; a model that cannot be used at all is a finding."""
    found = []
    for model in work.models:
        if any(base in work.models for base in model.__mro__[1:]):
            continue  # it is examined together with the model that it derives from
        try:
            found.append(await bind(work.context, model._schema))
        except HoldallError as error:
            known = isinstance(error, AccessDeniedError) and "permissions" in wanted
            if "tables" not in wanted and not known:
                await work.find("configuration", "error", model._schema.name, error.message)
    return found


async def _read_tables(
    work: Work,
    layout: Layout | None,
    bindings: Sequence[Binding],
    artifacts: Home | None,
    wanted: frozenset[CheckName],
    *,
    keep: bool,
) -> None:
    """Read every table once, and let each check look at each page."""
    figures = Figures(bindings)
    tables = [binding.table for binding in bindings]
    if layout is not None and wanted & {"jobs", "blobs", "orphans"}:
        tables.append(layout.table)
    if artifacts is not None and "artifacts" in wanted:
        tables.append(artifacts.table)
    for table in dict.fromkeys(sorted(tables, key=lambda name: layout is None or name != layout.table)):
        own = layout if layout is not None and table == layout.table else None
        home = artifacts if artifacts is not None and table == artifacts.table else None
        await TableCheck(work, bindings, own, home, table, wanted).read(figures)
    if "items" in wanted:
        work.figures = figures.list(work.context.port.now())
        if keep and layout is not None:
            await store_figures(work, layout)


async def _check_features(work: Work, artifacts: Home | None, wanted: frozenset[CheckName]) -> None:
    """Make the checks that features bring themselves."""
    if artifacts is not None and artifacts.service not in work.silent:
        if "artifacts" in wanted:
            await attempt(work, "artifacts", "artifacts", check_artifacts(work, artifacts))
        if "orphans" in wanted:
            await attempt(work, "orphans", "artifacts", find_artifact_objects(work, artifacts))
        await work.show()
    for model in list_archived(work):
        name = model._schema.name
        if "archive" in wanted:
            await attempt(work, "archive", name, check_archive(work, model))
        if "orphans" in wanted:
            await attempt(work, "orphans", name, find_orphaned_objects(work, model))
        await work.show()
    if "orphans" in wanted:
        await attempt(work, "orphans", "blobs", find_orphaned_blobs(work))
