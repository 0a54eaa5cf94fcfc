"""The home of a database's artifacts: the table, the file service, and the keys in both. Determined once."""

from __future__ import annotations

from holdall.artifacts.name import LATEST
from holdall.artifacts.settings import artifact_settings
from holdall.core.context import Context, Kept
from holdall.core.expressions import BeginsWith, Between, Compare, KeyCondition, Path, Value
from holdall.core.frozen import dataclass
from holdall.core.requests import Query, TableDescription
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.values import Attribute, Item
from holdall.errors import ConfigurationError
from holdall.tables import flow
from holdall.tables.definition import create_table_text
from holdall.tables.layout import Address

FILES = "__files"
INCOMING = "__incoming"


@dataclass(frozen=True, slots=True)
class Home:
    """A table with string keys, and the part of a file service that holds the bytes."""

    table: str
    partition: str
    sort: str
    service: str
    prefix: str
    suffix: str

    def key(self, pk: str, sk: str) -> dict[str, Attribute]:
        """An item's key."""
        return {self.partition: {"S": pk}, self.sort: {"S": sk}}

    def address(self, pk: str, sk: str) -> Address:
        """The address of an item."""
        key = self.key(pk, sk)
        return Address(self.table, key, key)

    def address_of(self, item: Item) -> Address:
        """The address of an item that was read."""
        key = {self.partition: item[self.partition], self.sort: item[self.sort]}
        return Address(self.table, key, key)

    def query(self, pk: str, *, reverse: bool = False, limit: int | None = None, prefix: str = "") -> Query:
        """A strongly consistent query for a partition, or for its sort keys with a prefix."""
        sort = BeginsWith(Path((self.sort,)), Value({"S": prefix})) if prefix else None
        return Query(
            self.table,
            KeyCondition(self.partition, {"S": pk}, sort),
            reverse=reverse,
            limit=limit,
            consistent=True,
        )

    def query_versions(self, name: str, *, limit: int, before: str | None = None) -> Query:
        """A query for the rows of an artifact from LATEST down, or from below the version ``before``."""
        top = Compare("<=", Path((self.sort,)), Value({"S": LATEST}))
        if before is not None:
            top = Compare("<", Path((self.sort,)), Value({"S": before}))
        key = KeyCondition(self.partition, {"S": name}, top)
        return Query(self.table, key, reverse=True, limit=limit, consistent=True)

    def query_range(self, pk: str, first: str, last: str) -> Query:
        """A query for the items of a partition between two sort keys, both included."""
        between = Between(Path((self.sort,)), Value({"S": first}), Value({"S": last}))
        return Query(self.table, KeyCondition(self.partition, {"S": pk}, between), consistent=True)

    def sk_of(self, item: Item) -> str:
        """The sort key of an item."""
        return str(item[self.sort]["S"])

    def pk_of(self, item: Item) -> str:
        """The partition key of an item."""
        return str(item[self.partition]["S"])

    def object_key(self, name: str, sk: str) -> str:
        """The key of a version's bytes; empty segments, which names made by other programs may have, are dropped."""
        parts = [*self.prefix.split("/"), *name.split("/"), sk + self.suffix]
        return "/".join(part for part in parts if part)

    def file_key(self, sha256: str) -> str:
        """The key of a directory's file, by the digest of its content."""
        return self._below(FILES, sha256)

    def incoming_key(self, id: str) -> str:
        """The temporary key of bytes whose digest is not known until they end."""
        return self._below(INCOMING, id)

    def _below(self, *parts: str) -> str:
        return "/".join(part for part in (self.prefix, *parts) if part)


class KnownHome(Kept):
    """The home of artifacts, once it has been determined."""

    def __init__(self) -> None:
        self.home: Home | None = None


async def find_home(context: Context) -> Home:
    """Determine the home of artifacts; `ConfigurationError` if the table or the service does not fit."""
    known = context.state.of(KnownHome)
    if known.home is not None:
        return known.home
    settings = artifact_settings(context.settings)
    service = context.settings.choose_service(settings.service, "artifacts cannot be stored")
    if settings.table is None:
        layout = await flow.discover(context)
        if layout.mode != "A":
            raise ConfigurationError(
                f"table {layout.table} cannot hold artifacts, because its sort key is a number",
                hint='give artifacts their own table: artifacts=ArtifactSettings(table="versioned-artifacts")',
            )
        table, partition, sort = layout.table, layout.partition.name, layout.sort.name
    else:
        table, partition, sort = await _find_own_table(context, settings.table)
    known.home = Home(table, partition, sort, service, settings.prefix, settings.suffix)
    return known.home


async def ensure_table(context: Context) -> str:
    """Create the table for artifacts unless it exists, wait until it can be used, and return its name."""
    settings = artifact_settings(context.settings)
    if settings.table is None:
        return (await flow.create(context)).schema.name
    await flow.ensure_table(context, _plan_table(settings.table), None)
    return settings.table


async def _find_own_table(context: Context, name: str) -> tuple[str, str, str]:
    wanted = _plan_table(name)
    if context.settings.manage_table:
        description: TableDescription | None = await flow.ensure_table(context, wanted, None)
    else:
        description = await flow.find_table(context, name)
    if description is None:
        command = context.settings.command(f"artifacts --table {name} init")
        raise ConfigurationError(
            f"the table {name} for artifacts does not exist",
            hint=f"run {command}, or create it:\n{create_table_text(wanted)}",
        )
    found = description.schema
    if found.sort is None or {found.partition.type, found.sort.type} != {"S"}:
        raise ConfigurationError(
            f"table {name} cannot hold artifacts: it needs a string partition key and a string sort key",
            hint=f"the table should look like this:\n{create_table_text(wanted)}",
        )
    return name, found.partition.name, found.sort.name


def _plan_table(name: str) -> TableSchema:
    return TableSchema(name, KeyAttribute("pk", "S"), KeyAttribute("sk", "S"), ())
