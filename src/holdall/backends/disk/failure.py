"""The operating system's errors in our words."""

from __future__ import annotations

import errno
from pathlib import Path

from holdall.errors import StoreError, StoreFullError, StoreNotWritableError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_WRITABLE = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
    *(errno.EEXIST, errno.ENAMETOOLONG),
}


def translate_error(error: OSError, root: Path, writes: bool) -> StoreError:
    """What to raise instead of an error that came from the root of a service."""
    why = error.strerror or str(error)
    if writes and error.errno in _FULL:
        return StoreFullError(
            f"no space is left for {root} ({why})", hint="make room and try again; nothing was kept"
        )
    if writes and error.errno in _NOT_WRITABLE:
        return StoreNotWritableError(
            f"{root} cannot be written: {why}",
            hint="check that it is a directory, that it and all in it are ours to write, and have no links in them",
        )
    return StoreError(f"{root} cannot be {'written' if writes else 'read'}: {why}")
