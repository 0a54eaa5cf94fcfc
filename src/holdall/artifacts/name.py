"""Names: what artifacts, versions and aliases may be called, and the keys that follow from it.

Pure. The keys are those of the package versioned: ``pk=<name>``, ``sk=LATEST`` or six digits; aliases under
``__<name>-alias``. What is ours is under ``__<name>-meta``. Names that others have made, and that could not be made
here, can still be read: `check_name` refuses what no item can be under, `check_new_name` what nobody should create.
"""

from __future__ import annotations

import re

from holdall.errors import InvalidAliasError, InvalidArtifactError

LATEST = "LATEST"
LAST_NUMBER = 999_999
"""The highest version: seven digits would sort among six."""

_DIGITS = 6
_LONGEST_NAME = 512
_LONGEST_ALIAS = 128
_NUMBER = re.compile(r"[0-9]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def encode_version_sk(version: int | str | None) -> str:
    """The sort key of a version: ``LATEST`` (also for None), or its number with six digits."""
    if version is None or version == LATEST:
        return LATEST
    number = version
    if isinstance(version, str):
        if not _NUMBER.fullmatch(version) or not version.isascii():
            raise _refuse_version(version)
        digits = version.lstrip("0")
        number = (
            int(digits) if 0 < len(digits) <= _DIGITS else 0
        )  # longer text is not a version, and not worth parsing
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= LAST_NUMBER:
        raise _refuse_version(version)
    return str(number).zfill(_DIGITS)


def _refuse_version(version: object) -> InvalidArtifactError:
    return InvalidArtifactError(
        f"{version!r:.60} is no version",
        hint=f"versions are LATEST, and the numbers from 1 to {LAST_NUMBER:,}",
    )


def encode_alias_pk(name: str) -> str:
    """The partition of an artifact's aliases."""
    return f"__{name}-alias"


def encode_meta_pk(name: str) -> str:
    """The partition of what we know of an artifact besides what versioned stores."""
    return f"__{name}-meta"


def display_version(sk: str) -> str:
    """A version as people write it: ``000005`` is 5."""
    return sk.lstrip("0") or sk[:1]


def number_of(sk: str) -> int | None:
    """The number of a version's sort key; None for LATEST, and for what is no version at all."""
    return int(sk) if len(sk) == _DIGITS and sk.isascii() and sk.isdigit() else None


def is_version(text: object) -> bool:
    """Whether a reference means a version, and not an alias: None, a number in any form, or LATEST."""
    if isinstance(text, str):
        return text == LATEST or (text.isascii() and text.isdigit())
    return text is None or isinstance(text, int)


def check_name(name: object) -> str:
    """The name, if any item can be under it."""
    if not isinstance(name, str):
        raise InvalidArtifactError(f"an artifact's name has to be text, and is a {type(name).__name__}")
    if not name:
        raise InvalidArtifactError("an artifact's name is empty")
    if _size(name) > _LONGEST_NAME:
        raise InvalidArtifactError(
            f"the artifact's name {name!r:.40} is over {_LONGEST_NAME} bytes, or has no form in UTF-8"
        )
    if name.startswith("__"):
        raise InvalidArtifactError(
            f"the artifact's name {name!r:.60} begins with __",
            hint="aliases and our own notes are under such names",
        )
    return name


def check_new_name(name: object) -> str:
    """The name, if an artifact may be made under it: in the table, in S3 and in a header it has to mean the same."""
    found = check_name(name)
    if _CONTROL.search(found) or "#" in found or "/" in found or "\\" in found:
        raise InvalidArtifactError(
            f"the artifact's name {found!r:.60} has a #, a slash or a control character in it",
            hint="use letters, digits, and - _ . between them",
        )
    if found in (".", "..") or found != found.strip():
        raise InvalidArtifactError(
            f"{found!r:.60} cannot be an artifact's name", hint="use letters, digits, and - _ . between them"
        )
    return found


def check_alias(alias: object) -> str:
    """The alias, if it cannot be taken for anything else."""
    if not isinstance(alias, str):
        raise InvalidAliasError(f"an alias has to be text, and is a {type(alias).__name__}")
    if not alias or _size(alias) > _LONGEST_ALIAS:
        raise InvalidAliasError(
            f"{alias!r:.40} cannot be an alias", hint=f"an alias has 1 to {_LONGEST_ALIAS} bytes of UTF-8"
        )
    if alias.upper() == LATEST or (alias[0].isdigit() and alias.isalnum() and not _has_letter(alias)):
        raise InvalidAliasError(
            f"the alias {alias!r:.60} looks like a version", hint="give it a name, such as prod or canary"
        )
    if _CONTROL.search(alias) or any(sign in alias for sign in "#/\\") or alias != alias.strip():
        raise InvalidAliasError(
            f"the alias {alias!r:.60} has a #, a slash, a control character, or a space at an end",
            hint="use letters, digits, and - _ . between them",
        )
    return alias


def check_alias_text(alias: object) -> None:
    """Refuse what no alias can be under, whoever made it."""
    if not isinstance(alias, str) or not 0 < _size(alias) <= _LONGEST_NAME:
        raise InvalidAliasError(f"{alias!r:.60} is no alias")


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in text)


def _size(text: str) -> int:
    """How long a text is in UTF-8; more than any name may be for one that has no such form."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return _LONGEST_NAME + 1
