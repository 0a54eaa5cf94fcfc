"""A disk that refuses a step of a change: the error states the outcome correctly, and no files are left over."""

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


class RefusedStep:
    """Refuses the step of this number; ``refused`` is its name, ``reached`` the number of the last step."""

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
def test_after_a_refused_step_the_object_is_unchanged_or_the_outcome_unknown(
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
        step = RefusedStep(number, code)
        try:
            with at_each_step(step):
                change.make(service, begun)
        except HoldallError as refusal:
            error = refusal
        found = read_version(root)
        if error is None:  # the change succeeded: it did not need the refused step
            assert found == change.after
        elif isinstance(error, OutcomeUnknown):
            assert found in (change.before, change.after)
        elif not change.name.startswith("delete"):  # a deletion cannot be undone
            assert isinstance(error, StoreError)
            assert isinstance(error, StoreFullError) or code == errno.EIO
            assert found == change.before
            left = files(root) ^ before
            assert not left or step.refused == "unlink", f"step {number}, {step.refused}, left {left}"
        service.close()
        if step.reached < number:
            assert error is None
            break
    else:
        raise AssertionError(f"{change} did not end within {MOST_STEPS} steps")
