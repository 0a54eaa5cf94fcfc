"""Words for people: artifacts in messages, lines and table cells; sizes, amounts of money and counts."""

from __future__ import annotations

import re
from math import floor, log10
from typing import TYPE_CHECKING

from holdall.cli.output import format_time, say, show_json

if TYPE_CHECKING:
    from holdall.artifacts import Artifact


def print_artifact(artifact: Artifact, done: str, as_json: bool) -> None:
    """Print the artifact that a command changed; ``done`` says what happened to it."""
    if as_json:
        show_json(artifact.describe())
    else:
        say(
            f"{what_is(artifact.name, artifact.version)} {done} {size_of(artifact)}, sha256 {artifact.sha256}"
        )


def artifact_row(artifact: Artifact, deleted: bool) -> tuple[str, ...]:
    """A row of a list; with ``deleted``, its last cell is the time of deletion."""
    moment = "" if artifact.update_at is None else format_time(artifact.update_at)
    cells = (
        artifact.version,
        size_of(artifact),
        moment,
        (artifact.sha256 or "")[:12],
        ", ".join(artifact.aliases),
    )
    if not deleted:
        return cells
    gone = artifact.deleted_at
    return (*cells, format_time(gone) if gone is not None else "yes" if artifact.is_deleted else "")


def artifact_words(artifact: Artifact) -> dict[str, str]:
    """Everything known about an artifact, by label."""
    words = {
        "name": artifact.name,
        "version": artifact.version,
        "size": size_of(artifact) + (", a directory" if artifact.manifest else ""),
        "sha256": artifact.sha256 or "unknown",
        "created": "unknown" if artifact.update_at is None else format_time(artifact.update_at),
    }
    if artifact.content_type is not None:
        words["type"] = artifact.content_type
    for kind, values in (("metadata", artifact.metadata), ("tag", artifact.tags)):
        words |= {f"{kind} {name}": value for name, value in (values or {}).items()}
    words["aliases"] = ", ".join(artifact.aliases) or "none"
    if artifact.is_deleted:
        words["deleted"] = "yes" if artifact.deleted_at is None else format_time(artifact.deleted_at)
    words["key"] = artifact.key or "unknown"
    words["revision"] = artifact.revision or "none"
    return words


def size_of(artifact: Artifact) -> str:
    """An artifact's size."""
    return "?" if artifact.size is None else format_size(artifact.size)


def serves(weights: dict[str, int] | None) -> str:
    """What an alias serves, in a few words: ``1``, or ``1 (80 %), 2 (20 %)``."""
    if not weights:
        return "nothing"
    if len(weights) == 1:
        return next(iter(weights))
    total = sum(weights.values())
    return ", ".join(f"{version} ({100 * weight / total:.4g} %)" for version, weight in weights.items())


def what_is(name: str, version: str | None) -> str:
    """A version of an artifact, or the artifact itself, in words."""
    if version is None:
        return f"artifact {name}"
    return f"LATEST of {name}" if version == "LATEST" else f"version {version} of {name}"


def format_size(size: int) -> str:
    """A number of bytes, for people to read."""
    if size < 1000:
        return f"{size} {'byte' if size == 1 else 'bytes'}"
    amount = float(size)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:,.1f} TB"


def format_money(dollars: float) -> str:
    """An amount in dollars, to the cent, or to two significant digits if it is smaller."""
    if dollars == 0:
        return "$0"
    digits = max(2, 1 - floor(log10(abs(dollars))))
    return f"{'-' if dollars < 0 else ''}${abs(dollars):,.{digits}f}"


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: ``1 item``, ``2 items``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_duration(seconds: float) -> str:
    """A duration in hours, minutes and seconds: ``0:01:30``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60:,}:{minutes % 60:02}:{rest:02}"


def parse_size(text: str) -> int | None:
    """A number of bytes as `format_size` writes it: ``500``, ``500kB``, ``1.5 GB``; None if it is not one."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMGT]?)B?", text.strip(), re.IGNORECASE | re.ASCII)
    return None if found is None else int(float(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " "))
