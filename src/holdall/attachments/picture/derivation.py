"""Derivation: the job that analyzes a new attachment's file and makes its variants.

The job is enqueued by the transaction that attaches the file, so it exists if and only if that committed. It is safe to
run twice: analysis has the same result, and a picture that was already made is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.content_type import is_previewable
from holdall.attachments.blob.flow import find, update_metadata
from holdall.attachments.picture.analysis import analyze, is_analyzable
from holdall.attachments.picture.variant import Variant, pack_variant, unpack_variant
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.media import PICTURE_TYPES
from holdall.core.telemetry import warn
from holdall.errors import (
    HoldallError,
    MediaError,
    MediaPackageMissingError,
    ObjectNotFoundError,
    RecordNotFound,
)
from holdall.jobs.attempt import current_job
from holdall.jobs.declaration import job

if TYPE_CHECKING:
    from holdall.attachments.owner.declaration import Declaration


@dataclass(frozen=True, slots=True)
class Derivation:
    """The work to do on a blob; ``is_urgent``: do it right after the commit, before the job."""

    blob_id: str
    analyze: bool
    variants: tuple[Variant, ...]
    is_urgent: bool

    def pack(self) -> list[Any]:
        """The derivation as an argument of the job."""
        return [self.blob_id, self.analyze, [pack_variant(each) for each in self.variants]]


def derive(
    declaration: Declaration, blob_id: str, content_type: str | None, is_analyzed: bool
) -> Derivation | None:
    """The work that a declaration asks for on a file of this type; None if there is nothing to do."""
    wants = declaration.analyze_at != "lazily" and not is_analyzed and is_analyzable(content_type)
    variants: tuple[Variant, ...] = ()
    if content_type in PICTURE_TYPES or is_previewable(content_type):
        variants = tuple(each for each in declaration.variants.values() if each.process != "lazily")
    if not wants and not variants:
        return None
    is_urgent = any(each.process == "immediately" for each in variants)
    return Derivation(blob_id, wants, variants, is_urgent)


@job("holdall.derive")
async def derive_all(*packed: list[Any]) -> None:
    """Do the work on blobs; if one fails, the others are still done."""
    wanted = [
        Derivation(blob_id, analyze, tuple(map(unpack_variant, variants)), False)
        for blob_id, analyze, variants in packed
    ]
    await carry_out(current_job().context, wanted)


async def carry_out(context: Context, derivations: Sequence[Derivation]) -> None:
    """Analyze blobs and make their variants. A missing blob is skipped, even if it is purged meanwhile.

    If a file's content causes an error, the error's code is stored in its blob's metadata as ``media_error``.
    """
    from holdall.attachments.picture.picture import representation

    errors: list[HoldallError] = []
    for each in derivations:
        try:
            blob: Blob = await find(context, each.blob_id)
            if each.analyze and not blob.is_analyzed:
                blob = await analyze(context, blob)
            for variant in each.variants:
                await representation(context, blob, variant)
        except RecordNotFound:
            continue
        except MediaError as error:  # retrying would not help
            with suppress(RecordNotFound):
                await update_metadata(context, each.blob_id, {"analyzed": True, "media_error": error.code})
        except MediaPackageMissingError as error:  # it can be done later, on a machine with the package
            warn("attachments", "analysis or variants of blob %s are incomplete: %s", each.blob_id, error)
        except HoldallError as error:
            if isinstance(error, ObjectNotFoundError) and await _is_gone(context, each.blob_id):
                continue  # it was purged meanwhile
            error.add_note(f"while processing blob {each.blob_id}")
            errors.append(error)
    if errors:
        raise errors[0]


async def _is_gone(context: Context, blob_id: str) -> bool:
    try:
        await find(context, blob_id)
    except RecordNotFound:
        return True
    return False
