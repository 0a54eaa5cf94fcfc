"""Holdall: the data layer for Python applications on DynamoDB and S3.

Most programs need only the names in this module. The modules below are public, too; everything else may change without
notice. Importing this package loads none of them: each name is loaded when it is first used.

- `holdall.errors`: every error.
- `holdall.archive`, `holdall.artifacts`, `holdall.attachments`, `holdall.files`, `holdall.jobs`, `holdall.maintenance`,
  `holdall.models`, `holdall.tables`, `holdall.transactions`, `holdall.worker`: the types that a database's methods take
  and return.
- `holdall.web`, `holdall.web.django`, `holdall.web.fastapi`, `holdall.web.flask`, `holdall.web.wsgi`,
  `holdall.scope`: transactions and files in web applications.
- `holdall.testing`: for your tests.
- `holdall.core`, `holdall.core.objects`: requests, expressions and values, for code below the models.
- `holdall.backends.dax`, `holdall.backends.disk`, `holdall.backends.embedded`, `holdall.backends.memory`: stores that
  you make yourself and pass to a database.
"""

# The docstring above is the only list of public modules: the reference and the tests read it.

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs more to import than this whole module
if TYPE_CHECKING:
    from typing import Any

    from holdall.archive import Archive
    from holdall.artifacts.settings import ArtifactSettings
    from holdall.async_database import AsyncDatabase
    from holdall.attachments import Accept, Attachable, Variant, has_many_attached, has_one_attached
    from holdall.database import Database
    from holdall.jobs import current_job, job
    from holdall.models import Index, Key, Model, ModelKey, SortKey, Template, col, computed, field
    from holdall.transactions import AsyncTransaction, Transaction
    from holdall.transactions.current import current_transaction

__version__ = "0.1.0"

__all__ = [
    "Accept",
    "Archive",
    "ArtifactSettings",
    "AsyncDatabase",
    "AsyncTransaction",
    "Attachable",
    "Database",
    "Index",
    "Key",
    "Model",
    "ModelKey",
    "SortKey",
    "Template",
    "Transaction",
    "Variant",
    "__version__",
    "col",
    "computed",
    "current_job",
    "current_transaction",
    "field",
    "has_many_attached",
    "has_one_attached",
    "job",
]

_HOMES = {
    **dict.fromkeys(
        ("Accept", "Attachable", "Variant", "has_many_attached", "has_one_attached"), "holdall.attachments"
    ),
    "Archive": "holdall.archive",
    "ArtifactSettings": "holdall.artifacts.settings",
    "AsyncDatabase": "holdall.async_database",
    "AsyncTransaction": "holdall.transactions",
    "Database": "holdall.database",
    "Index": "holdall.models",
    "Key": "holdall.models",
    "Model": "holdall.models",
    "ModelKey": "holdall.models",
    "SortKey": "holdall.models",
    "Template": "holdall.models",
    "Transaction": "holdall.transactions",
    "col": "holdall.models",
    "computed": "holdall.models",
    "current_job": "holdall.jobs",
    "current_transaction": "holdall.transactions.current",
    "field": "holdall.models",
    "job": "holdall.jobs",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
