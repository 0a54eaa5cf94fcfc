"""Where rclone's server does not do what S3 does: the one list, with reasons.

Each entry names a check of the contract by its sentence. The check is skipped with the reason given, and a test sees to
it that the server still deviates, so that nothing stays here longer than it is true.

It keeps objects as files in directories. So ``a`` cannot lie beside ``a/b``, and some texts cannot be names: what the
contract says of keys, listings and neighbours is not asked of it at all.
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
"""What it is asked about."""

_NO_HEADERS = "keeps no headers of what was uploaded in parts"
_IN_ORDER = "passes parts on in their order as they come: none may be left out or replaced"
_NO_SUCH_NAME = "has no objects whose names begin or end with a slash, or have two in a row"

DEVIATIONS: Mapping[str, str] = {
    "headers: metadata can be as large as the limit": "counts more than the metadata towards its 2 KB",
    "headers: an object uploaded in parts has its headers": _NO_HEADERS,
    "creation: an upload can be a creation": _NO_HEADERS,
    "copies: a copy has the bytes and the headers": "adds metadata of its own to a copy",
    "copies: a copy replaces an existing object": "adds metadata of its own to a copy",
    "copies: a copy of a missing object is refused and changes nothing": _NO_SUCH_NAME,
    "uploads: an existing object stays until the upload ends": "gives an upload another etag than the object has then",
    "uploads: numbers of parts may have gaps": _IN_ORDER,
    "uploads: a part of the same number is replaced": _IN_ORDER,
    "uploads: the parts of an upload are listed by number": "lists the part with which a page should begin after",
    "completion: an object consists of the named parts only": _IN_ORDER,
    "completion: an object cannot be made of a part that was replaced": _IN_ORDER,
    "completion: an object cannot be made of a part that was never sent": (
        "forgets an upload that could not be completed"
    ),
    "completion: a completion returns the stored object": _NO_HEADERS,
    "completion: no part is taken from an object that is missing or changed": _IN_ORDER,
    "urls: anyone can fetch the object of a url": _NO_SUCH_NAME,
    "urls: anyone can put exactly the bytes that a url is for": _NO_SUCH_NAME,
    "refusals: an upload ends with its parts in order each once": _IN_ORDER,
}
