"""A writer without conditions: it puts, publishes and points aliases as the package versioned does."""

from __future__ import annotations

from hashlib import sha256

from artifact_stage import Flow, Scene

from holdall.artifacts.home import KnownHome
from holdall.artifacts.name import encode_alias_pk
from holdall.artifacts.record import VersionRow, show_moment
from holdall.core.objects import CopyObject, HeadObject, ObjectHeaders, PutObject
from holdall.core.requests import PutItem
from holdall.errors import ObjectNotFoundError

__all__ = ["foreign_alias", "foreign_publish", "foreign_put"]


def foreign_put(name: str, body: bytes) -> Flow:
    """Write the object, then the row."""

    async def flow(scene: Scene) -> None:
        context = scene.context
        home = context.state.of(KnownHome).home
        assert home is not None
        digest = sha256(body).hexdigest()
        headers = ObjectHeaders(metadata={"artifact_name": name, "artifact_sha256": digest})
        info = await context.port.send(
            PutObject(home.service, home.object_key(name, "LATEST"), body, headers)
        )
        row = VersionRow.make(home, name, "LATEST", info.modified, digest).stored
        await context.port.send(PutItem(home.table, row))

    return flow


def foreign_publish(name: str) -> Flow:
    """Copy LATEST under a number that seems free, then write the row. Return None if the number is in use after all."""

    async def flow(scene: Scene) -> str | None:
        context = scene.context
        home = context.state.of(KnownHome).home
        assert home is not None
        rows = (await context.port.send(home.query(name, reverse=True, limit=2))).items
        latest, *others = rows
        sk = f"{int(home.sk_of(others[0])) + 1 if others else 1:06d}"
        key = home.object_key(name, sk)
        try:
            await context.port.send(HeadObject(home.service, key))
        except ObjectNotFoundError:
            copied = await context.port.send(CopyObject(home.service, home.object_key(name, "LATEST"), key))
            row = VersionRow.make(home, name, sk, copied.modified, latest["sha256"]["S"]).stored
            await context.port.send(PutItem(home.table, row))
            return sk
        return None

    return flow


def foreign_alias(name: str, alias: str, version: int) -> Flow:
    """Write the row of an alias without reading it first."""

    async def flow(scene: Scene) -> None:
        context = scene.context
        home = context.state.of(KnownHome).home
        assert home is not None
        row = {
            **home.key(encode_alias_pk(name), alias),
            "update_at": {"S": show_moment(context.port.now())},
            "version": {"S": f"{version:06d}"},
        }
        await context.port.send(PutItem(home.table, row))

    return flow
