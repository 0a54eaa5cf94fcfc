"""Variants as values: which picture to make from another, and the digest by which it is found again.

Pure. The digest is that of a canonical text: the position of settings such as ``quality`` does not matter, the order of
operations such as ``crop`` and ``rotate`` does. ``variation_digest="rails"`` computes Rails' digest of the
transformations exactly as they are written.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha1
from math import prod
from re import fullmatch
from typing import Any, Literal, TypeAlias

from holdall.attachments.blob.content_type import WEB_IMAGES, extension_of, type_by_name
from holdall.attachments.blob.filename import Filename
from holdall.attachments.picture.marshal import Symbol, dump
from holdall.core.internal import internal
from holdall.core.media import LIMITS, PICTURE_FORMATS
from holdall.errors import InvalidOptionsError

DigestForm: TypeAlias = Literal["canonical", "rails"]
Moment: TypeAlias = Literal["immediately", "later", "lazily"]
"""When work on a new attachment is done: before its transaction commits, by a job, or when it is first needed."""


class Variant:
    """A picture to make from another: ``Variant(resize_to_limit=(100, 100), format="webp")``.

    A size is (width, height); if one side is None, it follows from the other. ``resize_to_limit`` only makes the
    picture smaller; ``resize_to_fit`` also makes it larger. ``resize_to_fill`` fills the size and crops what does not
    fit; ``resize_and_pad`` fills it with a margin. The last two accept ``{"gravity": "north"}`` after the size, and
    ``resize_and_pad`` also ``"background"``. ``crop`` is (left, top, width, height); ``rotate`` is clockwise degrees;
    ``strip`` removes the metadata that cameras write. ``format`` (or ``convert``) is a file extension; without it,
    pictures that all browsers show keep their format, and others become PNG. ``process`` decides when a named variant
    is made: ``"immediately"`` (before the commit), ``"later"`` (by a job) or ``"lazily"`` (when it is first requested).
    """

    __slots__ = ("process", "transformations")

    def __init__(self, /, *, process: Moment = "lazily", **transformations: Any) -> None:
        self.process = check_moment("process", process)
        for name, value in transformations.items():
            if name not in _CHECKS:
                raise InvalidOptionsError(
                    f"{name!r:.60} is not a transformation",
                    hint=f"known transformations: {', '.join(_CHECKS)}",
                )
            if not _CHECKS[name](value):
                raise InvalidOptionsError(f"the transformation {name} cannot be {value!r:.80}")
        if not transformations:
            raise InvalidOptionsError(
                "a variant needs at least one transformation",
                hint="as in Variant(resize_to_limit=(100, 100))",
            )
        self.transformations: Mapping[str, Any] = transformations

    @property
    def format(self) -> str | None:
        """The file extension of the new picture; None if it follows from the source."""
        given = self.transformations.get("format") or self.transformations.get("convert")
        return None if given is None else str(given)

    @property
    def _operations(self) -> tuple[str, ...]:
        """The names of what is done to the picture, in order; settings of its file have no place in it."""
        return tuple(name for name in self.transformations if name not in _FILE_SETTINGS)

    @internal
    def digest(self, form: DigestForm = "canonical") -> str:
        """The digest under which the variant is stored: 28 characters."""
        if form == "rails":
            data = dump(self.transformations)
        else:
            plain = _plain(self.transformations)
            if list(self._operations) != sorted(self._operations):
                plain["order"] = self._operations
            data = json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()
        return b64encode(sha1(data, usedforsecurity=False).digest()).decode()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variant):
            return NotImplemented
        return (self.process, self._operations, _plain(self.transformations)) == (
            other.process,
            other._operations,
            _plain(other.transformations),
        )

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        return f"Variant({', '.join(f'{name}={value!r}' for name, value in self.transformations.items())})"


def complete_variant(variant: Variant, content_type: str | None, filename: Filename) -> Variant:
    """Complete a variant for a picture of this type and name: add a format if it has none."""
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
    """The variant from packed transformations; `InvalidOptionsError` if one of them is not allowed."""
    if not isinstance(packed, Mapping):
        raise InvalidOptionsError(f"{packed!r:.80} is not a variant")
    return Variant(**{name: _unpack(value) for name, value in packed.items() if name != "process"})


def check_moment(option: str, given: Any) -> Moment:
    """Return the moment; `InvalidOptionsError` if it is not one."""
    if given in ("immediately", "later", "lazily"):
        return given  # type: ignore[no-any-return]
    raise InvalidOptionsError(f'{option} must be "immediately", "later" or "lazily", not {given!r:.80}')


def _pack(value: Any) -> Any:
    """A value as JSON, from which a symbol can be restored."""
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
    """A value with tuples as lists, for the canonical text."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value


def _is_side(value: Any) -> bool:
    return type(value) is int and 0 < value <= LONGEST_SIDE


def _is_size(value: Any, options: Mapping[str, Callable[[Any], bool]] = {}) -> bool:
    if not _is_list(value) or not 2 <= len(value) <= 3:
        return False
    width, height, *given = value
    sides = [each for each in (width, height) if each is not None]
    if not sides or not all(map(_is_side, sides)) or prod(sides) > LIMITS.pixels:
        return False
    return all(
        isinstance(each, Mapping) and all(name in options and options[name](each[name]) for name in each)
        for each in given
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_gravity(value: Any) -> bool:
    return isinstance(value, str) and value.lower().replace("-", "").replace("_", "") in _GRAVITIES


def _is_crop(value: Any) -> bool:
    # libvips' names for gravity, as Rails uses them
    return isinstance(value, str) and value in ("centre", "low", "high")


def _is_colour(value: Any) -> bool:
    if isinstance(value, str):
        return (
            fullmatch("#([0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})|[a-zA-Z]{1,30}", value) is not None
        )
    return (
        _is_list(value)
        and len(value) in (3, 4)
        and all(type(each) is int and 0 <= each <= 255 for each in value)
    )


def _is_box(value: Any) -> bool:
    if not _is_list(value) or len(value) != 4:
        return False
    left, top, width, height = value
    places = all(type(each) is int and 0 <= each <= LONGEST_SIDE for each in (left, top))
    return places and _is_side(width) and _is_side(height)


def _is_angle(value: Any) -> bool:
    return type(value) in (int, float) and -3600 <= value <= 3600


def _is_format(value: Any) -> bool:
    return isinstance(value, str) and value.lower() in PICTURE_FORMATS


LONGEST_SIDE = 20_000
_GRAVITIES = {"center", "centre", "north", "south", "east", "west"}
_GRAVITIES |= {"northeast", "northwest", "southeast", "southwest"}

_FILE_SETTINGS = ("format", "convert", "quality", "strip")

_CHECKS: dict[str, Callable[[Any], bool]] = {
    "resize_to_limit": _is_size,
    "resize_to_fit": _is_size,
    "resize_to_fill": lambda value: _is_size(value, {"gravity": _is_gravity, "crop": _is_crop}),
    "resize_and_pad": lambda value: _is_size(value, {"gravity": _is_gravity, "background": _is_colour}),
    "crop": _is_box,
    "rotate": _is_angle,
    "format": _is_format,
    "convert": _is_format,
    "quality": lambda value: type(value) is int and 1 <= value <= 100,
    "strip": lambda value: type(value) is bool,
}
"""The check for each transformation's value: values also come from URLs, which outlive the code that signed them."""
