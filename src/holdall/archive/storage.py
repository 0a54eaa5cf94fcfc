"""Storing an item's object: at the documented key if that is free, otherwise at a key unique to its owner.

Why no object is ever replaced by other content: a put demands that the key is free, or that it holds the same content
of the same item. Every put has a different etag, and every deletion demands the etag that it means.

Why no deletion hits an object that another archiver is about to point to: an archiver deletes with the etag of its own
put. Once another archiver has put the same content there, that etag no longer exists. The pointer of the other archiver
is *shared*, and its object is left to the sweep.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

from holdall.archive.envelope import CODEC, Envelope
from holdall.archive.pointer import Pointer
from holdall.archive.template import KeyPlan
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.objects import ObjectHeaders, PutObject
from holdall.errors import ContentionError, PreconditionFailedError, UnsupportedConditionError
from holdall.files.transfer import find_object

_TRIES = 8
_LARGE = 64 * 1024


async def store(context: Context, service: str, keys: KeyPlan, envelope: Envelope, now: datetime) -> Pointer:
    """Store an envelope; return the pointer to it."""
    for key in keys.candidates:
        pointer = await _store_at(context, service, key, keys, envelope, now)
        if pointer is not None:
            return pointer
    raise ContentionError(f"the item cannot be archived: other items occupy every key for {keys.base}")


async def _store_at(
    context: Context, service: str, key: str, keys: KeyPlan, envelope: Envelope, now: datetime
) -> Pointer | None:
    """Store an envelope at a key, or at a key for its content if the owner already has other content there.

    None if the key belongs to another item.
    """
    match: str | None = None
    for _ in range(_TRIES):
        put_id = context.port.new_id()
        body = await _compress(context, envelope, put_id)
        put = PutObject(
            service,
            key,
            body,
            ObjectHeaders("application/json", metadata=_describe(keys, envelope, now)),
            if_absent=None if match else put_id,
            if_match=match,
        )
        try:
            info = await context.port.send(put)
            shared = match is not None
            pointer = Pointer(service, key, info.etag, envelope.digest, len(body), CODEC, now, shared)
            return replace(pointer, owner=keys.mark)
        except UnsupportedConditionError:
            if match is None:
                raise
            # this server does not support if_match: store at a key that no other put uses
            key, match = keys.other(sha256(put_id.encode()).hexdigest()), None
            continue
        except PreconditionFailedError:
            there = await find_object(context, service, key)
        if there is None:
            match = None
        elif there.headers.metadata.get("owner") != keys.owner:
            return None
        elif there.headers.metadata.get("sha256") == envelope.digest:
            match = there.etag
        else:
            key, match = keys.other(envelope.digest), None
    raise ContentionError(f"the object {key} changed during each of {_TRIES} attempts to write it")


async def _compress(context: Context, envelope: Envelope, put_id: str) -> bytes:
    """The object's bytes; a large text is compressed where it blocks no other work."""
    if len(envelope.text) < _LARGE:
        return envelope.compress(put_id)
    return await context.port.offload(envelope.compress, put_id)


def _describe(keys: KeyPlan, envelope: Envelope, now: datetime) -> dict[str, str]:
    return {
        "owner": keys.owner,
        "sha256": envelope.digest,
        "codec": CODEC,
        "archived_at": now.isoformat(timespec="seconds"),
    }
