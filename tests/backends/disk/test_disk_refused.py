"""A disk that refuses a step of a change: the error tells the truth, and nothing is left of what failed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from disk_steps import CHANGES, NAME, Change, at_each_step, files, read_version

from holdall.backends.disk import DiskService
from holdall.core.objects import PutObject
from holdall.errors import HoldallError, OutcomeUnknown, StoreError, StoreFullError

pytestmark = pytest.mark.torture

MOST_STEPS = 200


class Refusing:
    """Refuses one step, ``refused``; ``reached`` is how many there were."""

    def __init__(self, number: int, code: int) -> None:
        self._number, self._code = number, code
        self.reached = 0
        self.refused = ""

    def __call__(self, count: int, name: str, real: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.reached = count
        if count == self._number:
            self.refused = name
            if name == "pwrite":
                file, body, offset = arguments
                real(file, body[: len(body) // 2], offset)
            raise OSError(self._code, os.strerror(self._code))


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC], ids=lambda code: errno.errorcode[code])
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_refused_step_leaves_what_was_there_or_tells_that_it_may_have_happened(
    tmp_path: Path, change: Change, code: int
) -> None:
    for number in range(1, MOST_STEPS):
        root = tmp_path / str(number)
        service = DiskService(root)
        if change.before is not None:
            service.send_blocking(PutObject(NAME, "dir/sub/key", change.before.body, change.before.headers))
        begun = change.prepare(service)
        before = files(root)
        error: BaseException | None = None
        refusing = Refusing(number, code)
        try:
            with at_each_step(refusing):
                change.make(service, begun)
        except HoldallError as refusal:
            error = refusal
        found = read_version(root)
        if error is None:  # it succeeded: what could not be done was not needed
            assert found == change.after
        elif isinstance(error, OutcomeUnknown):
            assert found in (change.before, change.after)
        elif not change.name.startswith("delete"):  # once it is seen to be gone, it cannot come back
            assert isinstance(error, StoreError)
            assert isinstance(error, StoreFullError) or code == errno.EIO
            assert found == change.before
            left = files(root) ^ before
            assert not left or refusing.refused == "unlink", f"step {number}, {refusing.refused}, left {left}"
        service.close()
        if refusing.reached < number:
            assert error is None
            break
    else:
        raise AssertionError(f"{change} never came to its end")
