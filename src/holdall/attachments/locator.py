"""Blobs and `Attachable` owners as arguments of jobs: how they are written, and how they are fetched again."""

from __future__ import annotations

import json
from typing import Any

from holdall.attachments.attachable import Attachable, find_instance, load_class, owner_of_instance, place_of
from holdall.attachments.blob import Blob
from holdall.attachments.home import home_of
from holdall.attachments.resolution import find_class
from holdall.attachments.stored import read_blobs
from holdall.core.context import Context
from holdall.jobs.locator import Gone, Locator, register
from holdall.transactions.unit import Unit


async def _fetch_blob(context: Context, unit: Unit | None, id: str) -> Blob:
    (row,) = (await read_blobs(context, await home_of(context), [id])).values()
    if not row.is_stored:
        raise Gone(f"blob {id}")
    return Blob.of(row)


def _format_owner(owner: Attachable) -> str:
    known = owner_of_instance(owner)
    return json.dumps([known.record_type, place_of(type(owner)), known.record_id])


async def _fetch_owner(context: Context, unit: Unit | None, text: str) -> Any:
    record_type, place, id = json.loads(text)
    try:
        kind = load_class(place)
    except (ImportError, AttributeError):  # the class has been moved since
        kind = find_class(context, record_type)
    found = await find_instance(context, kind, id)
    if found is None:
        raise Gone(f"{record_type} {id}")
    return found


register("blob", Locator(Blob, lambda blob: str(blob.id), _fetch_blob))
register("owner", Locator(Attachable, _format_owner, _fetch_owner))
