"""Where rclone's server deviates from S3, with reasons.

Each entry names a check of the contract by its sentence. The check is skipped for the stated reason. A test runs it
nevertheless, and fails once the server passes it, so that the entry is removed.

The server stores objects as files in directories. So ``a`` and ``a/b`` cannot both exist, and some texts cannot be
names: the checks of keys, listings and neighbours are not run on it at all.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DEVIATIONS", "SUBJECTS"]

SUBJECTS = (
    "objects",
    "headers",
    "digests",
    "creation",
    "copies",
    "uploads",
    "completion",
    "urls",
    "refusals",
)
"""The subjects of the contract whose checks are run on it."""

_NO_HEADERS = "does not store the headers of an object that is uploaded in parts"
_IN_ORDER = "requires all parts in order: none can be left out or replaced"
_NO_SUCH_NAME = "does not support names that begin or end with a slash or contain two in a row"
_OWN_METADATA = "adds metadata of its own to a copy"

DEVIATIONS: Mapping[str, str] = {
    "headers: metadata can be as large as the limit": "counts more than the metadata towards its limit of 2 KB",
    "headers: an object uploaded in parts has its headers": _NO_HEADERS,
    "creation: an upload can be a creation": _NO_HEADERS,
    "copies: a copy has the bytes and the headers": _OWN_METADATA,
    "copies: a copy replaces an existing object": _OWN_METADATA,
    "copies: a copy of a missing object is refused and changes nothing": _NO_SUCH_NAME,
    "uploads: an existing object stays until the upload ends": (
        "returns another etag for the completion of an upload than the object has afterwards"
    ),
    "uploads: numbers of parts may have gaps": _IN_ORDER,
    "uploads: a part of the same number is replaced": _IN_ORDER,
    "uploads: the parts of an upload are listed by number": (
        "includes the part after which a page of parts should begin"
    ),
    "completion: an object consists of the named parts only": _IN_ORDER,
    "completion: an object cannot be made of a part that was replaced": _IN_ORDER,
    "completion: an object cannot be made of a part that was never sent": (
        "discards an upload whose completion failed"
    ),
    "completion: a completion returns the stored object": _NO_HEADERS,
    "completion: no part is taken from an object that is missing or changed": _IN_ORDER,
    "urls: anyone can fetch the object of a url": _NO_SUCH_NAME,
    "urls: anyone can put exactly the bytes that a url is for": _NO_SUCH_NAME,
    "refusals: an upload ends with its parts in order each once": _IN_ORDER,
}
