"""Refusals that the services on disk and in memory share, some of them with S3's."""

from __future__ import annotations

from typing import Any

from holdall.core.objects import CopyPart, Part
from holdall.core.requests import Request
from holdall.errors import InvalidRequestError, ObjectNotFoundError, PreconditionFailedError


def refuse_request(request: Request[Any]) -> InvalidRequestError:
    """The error for a request that is not for a file service."""
    return InvalidRequestError(
        f"a file service cannot answer {type(request).__name__}", hint="send it to the database"
    )


def refuse_taken(key: str) -> PreconditionFailedError:
    """The error for a put that must not replace the object."""
    return PreconditionFailedError(f"the object {key!r} already exists")


def refuse_other(key: str) -> PreconditionFailedError:
    """The error for an object that is missing or has another etag."""
    return PreconditionFailedError(f"the object {key!r} does not have the expected etag")


def refuse_range(request: CopyPart, size: int) -> InvalidRequestError:
    """The error for a range that reaches beyond the end of its source, which has ``size`` bytes."""
    return InvalidRequestError(
        f"the object {request.source!r} has {size:,} bytes, so {request.size:,} bytes"
        f" from {request.start:,} on cannot be copied"
    )


def refuse_upload(id: str) -> ObjectNotFoundError:
    """The error for an upload that does not exist."""
    return ObjectNotFoundError(
        f"there is no upload {id!r:.60} for that key",
        hint="it was completed or aborted; start another",
    )


def refuse_part(key: str, part: Part, *, missing: bool) -> PreconditionFailedError:
    """The error for a part that an upload of the key does not have, or has with another etag."""
    return PreconditionFailedError(
        f"part {part.number} of the upload of {key!r} "
        + ("is missing" if missing else "was replaced by another upload of it"),
        hint="list the parts of the upload, and upload those that are missing",
    )
