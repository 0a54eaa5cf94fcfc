"""Files: bytes under keys, in services on disk, in memory or in S3; one way to put and get them.

Flows over the requests of `holdall.core.objects`; ``db.files`` is their shell.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdall.files.api import AsyncFiles, Files
    from holdall.files.handle import AsyncObjectHandle, ObjectHandle

__all__ = ["AsyncFiles", "AsyncObjectHandle", "Files", "ObjectHandle"]

_HOMES = {"AsyncFiles": "api", "Files": "api", "AsyncObjectHandle": "handle", "ObjectHandle": "handle"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.files' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"holdall.files.{home}"), name)
    globals()[name] = found
    return found
