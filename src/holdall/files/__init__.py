"""Files: bytes under keys, in a service on disk, in memory or in S3, with the same calls for each.

``db.files`` is the public interface. The flows behind it send the requests of `holdall.core.objects`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdall.core.object_url import DirectUpload, Download
    from holdall.core.objects import ListedObject, ObjectHeaders, ObjectInfo, SignedUrl
    from holdall.files.api import AsyncFiles, Files
    from holdall.files.handle import AsyncObjectHandle, ObjectHandle
    from holdall.files.mirror import MirrorReport

__all__ = [
    "AsyncFiles",
    "AsyncObjectHandle",
    "DirectUpload",
    "Download",
    "Files",
    "ListedObject",
    "MirrorReport",
    "ObjectHandle",
    "ObjectHeaders",
    "ObjectInfo",
    "SignedUrl",
]

_HOMES = {
    "AsyncFiles": "holdall.files.api",
    "Files": "holdall.files.api",
    "AsyncObjectHandle": "holdall.files.handle",
    "ObjectHandle": "holdall.files.handle",
    "MirrorReport": "holdall.files.mirror",
    **dict.fromkeys(("DirectUpload", "Download"), "holdall.core.object_url"),
    **dict.fromkeys(("ListedObject", "ObjectHeaders", "ObjectInfo", "SignedUrl"), "holdall.core.objects"),
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.files' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(home), name)
    globals()[name] = found
    return found
