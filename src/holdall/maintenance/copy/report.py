"""What a copy has done: for each table and each file service, what was read, copied, left alone and verified. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple


class CopiedPart(NamedTuple):
    """What a copy has done with a table or a file service, or (with ``dry_run``) would do.

    ``name`` is the table or service in the source, ``target`` the one in the target. ``scanned`` items or objects were
    read. Of those, ``copied`` were written, ``unchanged`` are as an earlier pass copied them, ``same`` were already in
    the target, ``differing`` were changed in the target and left alone, ``failed`` could not be copied, and
    ``left_out`` are not copied: expired items, and the figures of models that a check has counted. ``gone`` are no
    longer in the source, but still in the target; ``deleted`` were deleted from the target.

    ``copied_bytes`` is the size of what was written, ``write_units`` an estimate of what DynamoDB bills for it.
    ``paused`` jobs arrived paused, ``leased`` of them were held by a worker. After verification, ``verified`` is how
    many are equal on both sides, ``missing`` how many the target lost, ``altered`` how many have other content there,
    and ``newer`` how many changed in the source since they were copied; ``checked`` were read for it, on both sides
    together. Each tuple has the first few.
    """

    kind: Literal["table", "files"]
    name: str
    target: str
    scanned: int = 0
    copied: int = 0
    unchanged: int = 0
    same: int = 0
    differing: int = 0
    failed: int = 0
    left_out: int = 0
    gone: int = 0
    deleted: int = 0
    copied_bytes: int = 0
    write_units: int = 0
    paused: int = 0
    leased: int = 0
    verified: int | None = None
    missing: int = 0
    altered: int = 0
    newer: int = 0
    checked: int = 0
    differences: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    leased_jobs: tuple[str, ...] = ()


class CopyReport(NamedTuple):
    """What a copy has done so far, part by part. ``manifest`` is the file that the next pass continues with.

    ``expected`` is about how many items and objects the whole copy reads, for a function that is passed as
    ``progress``; without one, it is None. ``read`` is how many of them were read.
    """

    parts: tuple[CopiedPart, ...]
    dry_run: bool
    manifest: str | None
    expected: int | None = None

    @property
    def scanned(self) -> int:
        """How many items and objects of the source were read to copy them."""
        return sum(part.scanned for part in self.parts)

    @property
    def read(self) -> int:
        """How many items and objects were read, also to verify the copy."""
        return sum(part.scanned + part.checked for part in self.parts)

    @property
    def copied(self) -> int:
        """How many items and objects were written."""
        return sum(part.copied for part in self.parts)

    @property
    def is_complete(self) -> bool:
        """Whether everything that was found in the source is in the target, as far as this copy has looked."""
        return not any(part.failed or part.differing or part.missing or part.altered for part in self.parts)

    @property
    def is_current(self) -> bool:
        """Whether the copy is complete, and verification found nothing that changed in the source since."""
        return self.is_complete and not any(part.newer or part.gone for part in self.parts)
