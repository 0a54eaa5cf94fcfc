"""Variants as values: which picture is to be made of another, and the digest by which it is found again.

Pure. The digest is that of a canonical text, so the order in which transformations are written does not matter;
``variation_digest="rails"`` takes Rails' digest of them exactly as they are written.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha1
from typing import Any, Literal, TypeAlias

from holdall.attachments.content_type import WEB_IMAGES, extension_of, type_by_name
from holdall.attachments.filename import Filename
from holdall.attachments.marshal import Symbol, dump
from holdall.errors import InvalidOptionsError

DigestForm: TypeAlias = Literal["canonical", "rails"]
Moment: TypeAlias = Literal["immediately", "later", "lazily"]
"""When work on a new attachment is done: before its transaction commits, by a job, or when it is first needed."""


class Variant:
    """A picture to be made of another: ``Variant(resize_to_limit=(100, 100), format="webp")``.

    ``resize_to_limit`` only makes it smaller, ``resize_to_fit`` also larger, ``resize_to_fill`` fills the size and cuts
    off the rest, ``resize_and_pad`` fills it with a margin; a side that is None follows from the other. ``crop`` is
    (left, top, width, height), ``rotate`` clockwise degrees. ``format`` (or ``convert``) is a file's extension; without
    one, pictures that browsers show keep theirs, and others become PNG. ``process`` says when a named variant is made.
    """

    __slots__ = ("process", "transformations")

    def __init__(self, *, process: Moment = "lazily", **transformations: Any) -> None:
        self.process = check_moment("process", process)
        for name, value in transformations.items():
            if name not in _CHECKS:
                raise InvalidOptionsError(
                    f"there is no transformation {name}", hint=f"there are {', '.join(_CHECKS)}"
                )
            if not _CHECKS[name](value):
                raise InvalidOptionsError(f"{name} cannot be {value!r:.80}")
        if not transformations:
            raise InvalidOptionsError(
                "a variant without a transformation is the picture itself",
                hint="say what it is to be: Variant(resize_to_limit=(100, 100))",
            )
        self.transformations: Mapping[str, Any] = transformations

    @property
    def format(self) -> str | None:
        """The extension of the picture to be made; None if that follows from the picture it is made of."""
        given = self.transformations.get("format") or self.transformations.get("convert")
        return None if given is None else str(given)

    def digest(self, form: DigestForm = "canonical") -> str:
        """What the variant is stored under: 28 characters."""
        if form == "rails":
            data = dump(self.transformations)
        else:
            data = json.dumps(_plain(self.transformations), sort_keys=True, separators=(",", ":")).encode()
        return b64encode(sha1(data, usedforsecurity=False).digest()).decode()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variant):
            return NotImplemented
        return self.process == other.process and _plain(self.transformations) == _plain(other.transformations)

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        return f"Variant({', '.join(f'{name}={value!r}' for name, value in self.transformations.items())})"


def complete_variant(variant: Variant, content_type: str | None, filename: Filename) -> Variant:
    """A variant for a picture of this type and name: with a format, if it has none."""
    if variant.format is not None:
        return variant
    format = "png"
    if content_type in WEB_IMAGES:
        extension = filename.extension.lower()
        fits = type_by_name(f".{extension}") == content_type
        format = extension if fits else extension_of(content_type) or format
    return Variant(process=variant.process, **{"format": format, **variant.transformations})


def pack_variant(variant: Variant) -> dict[str, Any]:
    """The transformations as JSON, in their order."""
    return {name: _pack(value) for name, value in variant.transformations.items()}


def unpack_variant(packed: Mapping[str, Any]) -> Variant:
    """The variant of packed transformations; `InvalidOptionsError` if one is not allowed."""
    return Variant(**{name: _unpack(value) for name, value in packed.items() if name != "process"})


def check_moment(option: str, given: Any) -> Moment:
    """The moment, unless it is none."""
    if given in ("immediately", "later", "lazily"):
        return given  # type: ignore[no-any-return]
    raise InvalidOptionsError(f"{option} is {given!r:.80}", hint="it is immediately, later or lazily")


def _pack(value: Any) -> Any:
    """A value as JSON; a symbol stays one."""
    if isinstance(value, Symbol):
        return {"symbol": str(value)}
    if isinstance(value, Mapping):
        return {name: _pack(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_pack(each) for each in value]
    return value


def _unpack(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.keys() == {"symbol"}:
            return Symbol(value["symbol"])
        return {name: _unpack(each) for name, each in value.items()}
    return [_unpack(each) for each in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """A value with tuples as lists, as a canonical text has it."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value


def _is_side(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_size(value: Any) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str) or not 2 <= len(value) <= 3:
        return False
    width, height, *options = value
    sides = [each for each in (width, height) if each is not None]
    return bool(sides) and all(map(_is_side, sides)) and all(isinstance(each, Mapping) for each in options)


def _is_box(value: Any) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 4:
        return False
    left, top, width, height = value
    return (
        all(type(each) is int and each >= 0 for each in (left, top)) and _is_side(width) and _is_side(height)
    )


def _is_format(value: Any) -> bool:
    return isinstance(value, str) and (type_by_name(f".{value}") or "").startswith("image/")


_CHECKS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("resize_to_limit", "resize_to_fit", "resize_to_fill", "resize_and_pad"), _is_size),
    "crop": _is_box,
    "rotate": lambda value: type(value) in (int, float),
    "format": _is_format,
    "convert": _is_format,
    "quality": lambda value: type(value) is int and 1 <= value <= 100,
    "strip": lambda value: type(value) is bool,
}
