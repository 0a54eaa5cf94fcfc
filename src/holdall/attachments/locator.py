"""Blobs and `Attachable` owners as arguments of jobs: how they are fetched again."""

from __future__ import annotations

import json
from typing import Any

from holdall.attachments.blob.blob import Blob
from holdall.attachments.home import find_home
from holdall.attachments.owner.attachable import find_instance, load_class
from holdall.attachments.owner.resolution import find_class
from holdall.attachments.record import BlobRow
from holdall.core.context import Context
from holdall.jobs.locator import Fetch, Gone
from holdall.tables.record import fetch
from holdall.transactions.unit import Unit


async def _fetch_blob(context: Context, unit: Unit | None, id: str) -> Blob:
    row = await fetch(context.port, BlobRow((await find_home(context)).blob(id)))
    if not row.is_stored:
        raise Gone(f"blob {id}")
    return Blob.of(row)


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


def find_fetch(kind: str) -> Fetch | None:
    """The flow that fetches a blob or an owner."""
    return {"blob": _fetch_blob, "owner": _fetch_owner}.get(kind)
