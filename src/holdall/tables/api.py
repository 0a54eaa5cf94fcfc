"""``db.table``, sync and async: two shells over the same flows."""

from __future__ import annotations

from holdall.core.shell import Namespace, awaiting, blocking
from holdall.tables import flow


class _Table(Namespace):
    @property
    def name(self) -> str:
        """The table's name."""
        return self._context.settings.table_name


class Table(_Table):
    """The table of a `holdall.Database`: ``db.table``."""

    create = blocking(flow.create)
    remove_index = blocking(flow.remove_index)
    exists = blocking(flow.exists)
    delete = blocking(flow.delete)
    describe = blocking(flow.describe)
    layout = blocking(flow.discover)
    plan = blocking(flow.plan)
    export = blocking(flow.export)
    export_policy = blocking(flow.export_policy)


class AsyncTable(_Table):
    """The table of a `holdall.AsyncDatabase`: ``db.table``."""

    create = awaiting(flow.create)
    remove_index = awaiting(flow.remove_index)
    exists = awaiting(flow.exists)
    delete = awaiting(flow.delete)
    describe = awaiting(flow.describe)
    layout = awaiting(flow.discover)
    plan = awaiting(flow.plan)
    export = awaiting(flow.export)
    export_policy = awaiting(flow.export_policy)
