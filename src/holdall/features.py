"""The features of a database, each declared in one place: its shells, setting, hooks, jobs, errors and commands.

A feature is a package and an entry here. Everything is named as ``module:name`` and loaded on first use, so opening a
database loads no feature. Imports only `core`; the databases, the worker and the command line import this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any, TypeVar

from holdall.core.context import Hook
from holdall.core.frozen import dataclass

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature, which lives in the room of its name and is available as ``db.<name>`` or ``db.<attribute>``.

    ``shells`` are its sync and its async class, created with a context. ``parser`` reads the setting of the feature's
    name: ``parser(value, source)``. ``hooks`` are functions that lower rooms call, by the names of their `Hook`.
    ``jobs`` are modules that every worker imports, because they declare Holdall's own jobs. ``commands`` are those of
    the command line. The feature's errors are in the file of its name in ``holdall.errors``.
    """

    name: str
    shells: tuple[str, str]
    parser: str = ""
    hooks: Mapping[str, str] = {}
    jobs: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    attribute: str = ""


FEATURES = (
    Feature("files", ("holdall.files.api:Files", "holdall.files.api:AsyncFiles")),
    Feature(
        "jobs",
        ("holdall.jobs.api:Jobs", "holdall.jobs.api:AsyncJobs"),
        hooks={
            "plan_job": "holdall.jobs.outbox:plan_job",
            "plan_copies": "holdall.jobs.mirror:enqueue_copies",
        },
        jobs=("holdall.jobs.mirror",),
        commands=("holdall.cli.worker:worker", "holdall.cli.jobs:jobs"),
    ),
    Feature(
        "artifacts",
        ("holdall.artifacts.api:Artifacts", "holdall.artifacts.api:AsyncArtifacts"),
        parser="holdall.artifacts.settings:parse_settings",
        jobs=("holdall.artifacts.rollout.job",),
        commands=("holdall.cli.artifacts.artifacts:artifacts", "holdall.cli.artifacts.alias:alias"),
    ),
    Feature(
        "attachments",
        ("holdall.attachments.api:Blobs", "holdall.attachments.api:AsyncBlobs"),
        parser="holdall.attachments.settings:parse_settings",
        hooks={"find_fetch": "holdall.attachments.locator:find_fetch"},
        jobs=(
            "holdall.attachments.upkeep.purge",
            "holdall.attachments.upkeep.sweep",
            "holdall.attachments.owner.attachable",
            "holdall.attachments.event",
            "holdall.attachments.owner.remainder",
            "holdall.attachments.picture.derivation",
        ),
        commands=("holdall.cli.blobs:blobs",),
        attribute="blobs",
    ),
    Feature(
        "archive",
        ("holdall.archive.api:ArchiveActions", "holdall.archive.api:AsyncArchiveActions"),
        commands=("holdall.cli.archive.archive:archive",),
    ),
)


def load(place: str) -> Any:
    """Load the object that ``module:name`` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def setting_parsers() -> dict[str, Callable[[object, str], object]]:
    """The functions that read the features' settings, by feature."""
    return {each.name: partial(_parse, each.parser) for each in FEATURES if each.parser}


def _parse(place: str, value: object, source: str) -> object:
    return load(place)(value, source)


def find_hook(hook: Hook[F], /) -> F:
    """The function that a feature provides for a hook; a test has the type checker compare their types."""
    return _load_hook(hook.name)  # type: ignore[no-any-return]


@cache
def _load_hook(name: str) -> Any:
    return next(load(each.hooks[name]) for each in FEATURES if name in each.hooks)


def declare_jobs() -> None:
    """Declare the jobs of all features in this process."""
    for each in FEATURES:
        for module in each.jobs:
            import_module(module)
