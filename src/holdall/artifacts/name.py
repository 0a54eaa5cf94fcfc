"""Names: the rules for the names of artifacts, versions and aliases, and the keys made from them.

Pure. The keys are those of the package versioned: ``pk=<name>``, ``sk=LATEST`` or six digits; aliases under
``__<name>-alias``. Holdall's own items are under ``__<name>-meta``. Names that other programs made, and that Holdall
would not create, can still be read: `check_name` rejects names that no item can have, `check_new_name` names that
should not be created.
"""

from __future__ import annotations

import re

from holdall.errors import InvalidAliasError, InvalidArtifactError

LATEST = "LATEST"
LAST_NUMBER = 999_999
"""The highest version: seven digits would not sort after six."""

_DIGITS = 6
_LONGEST_NAME = 512
_LONGEST_ALIAS = 128
_NUMBER = re.compile(r"[0-9]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def encode_version_sk(version: int | str | None) -> str:
    """Return the sort key of a version: ``LATEST`` (also for None), or its number with six digits."""
    if version is None or version == LATEST:
        return LATEST
    number = version
    if isinstance(version, str):
        if not _NUMBER.fullmatch(version) or not version.isascii():
            raise _refuse_version(version)
        digits = version.lstrip("0")
        # a longer text cannot be a version, so don't parse it
        number = int(digits) if 0 < len(digits) <= _DIGITS else 0
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= LAST_NUMBER:
        raise _refuse_version(version)
    return str(number).zfill(_DIGITS)


def _refuse_version(version: object) -> InvalidArtifactError:
    return InvalidArtifactError(
        f"{version!r:.60} is not a version",
        hint=f"a version is LATEST or a number from 1 to {LAST_NUMBER:,}",
    )


def encode_alias_pk(name: str) -> str:
    """Return the partition key of an artifact's aliases."""
    return f"__{name}-alias"


def encode_meta_pk(name: str) -> str:
    """The partition key of Holdall's own items about an artifact."""
    return f"__{name}-meta"


def display_version(sk: str) -> str:
    """A version as users write it: 5 for ``000005``."""
    return sk.lstrip("0") or sk[:1]


def number_of(sk: str) -> int | None:
    """The number of a version's sort key; None for LATEST, and for a key that is not a version's."""
    return int(sk) if len(sk) == _DIGITS and sk.isascii() and sk.isdigit() else None


def is_version(text: object) -> bool:
    """Whether a reference is a version, not an alias: None, a number in any form, or LATEST."""
    if isinstance(text, str):
        return text == LATEST or (text.isascii() and text.isdigit())
    return text is None or isinstance(text, int)


def check_name(name: object) -> str:
    """Return the name of an artifact; `InvalidArtifactError` if no item can have it."""
    if not isinstance(name, str):
        raise InvalidArtifactError(f"the name of an artifact must be a string, not {type(name).__name__}")
    if not name:
        raise InvalidArtifactError("the name of an artifact must not be empty")
    if _size(name) > _LONGEST_NAME:
        raise InvalidArtifactError(
            f"the artifact name {name!r:.40} is longer than {_LONGEST_NAME} bytes, or cannot be encoded in UTF-8"
        )
    if name.startswith("__"):
        raise InvalidArtifactError(
            f"the artifact name {name!r:.60} begins with __",
            hint="choose another name: Holdall uses names that begin with __ itself",
        )
    return name


def check_new_name(name: object) -> str:
    """Return the name of a new artifact; `InvalidArtifactError` if it would cause trouble in S3 or in a header."""
    found = check_name(name)
    if _CONTROL.search(found) or "#" in found or "/" in found or "\\" in found:
        raise InvalidArtifactError(
            f"the artifact name {found!r:.60} contains a #, a slash, a backslash or a control character",
            hint="use letters and digits, with - _ . between them",
        )
    if found in (".", "..") or found != found.strip():
        raise InvalidArtifactError(
            f"{found!r:.60} cannot be the name of an artifact: it is only dots, or begins or ends with a space",
            hint="use letters and digits, with - _ . between them",
        )
    return found


def check_alias(alias: object) -> str:
    """Return the alias; `InvalidAliasError` if it cannot be one, or could be mistaken for a version."""
    if not isinstance(alias, str):
        raise InvalidAliasError(f"an alias must be a string, not {type(alias).__name__}")
    if not alias or _size(alias) > _LONGEST_ALIAS:
        raise InvalidAliasError(
            f"{alias!r:.40} cannot be an alias: an alias must have 1 to {_LONGEST_ALIAS} bytes in UTF-8"
        )
    if alias.upper() == LATEST or (
        alias[0].isdigit() and alias.isalnum() and not any(map(str.isalpha, alias))
    ):
        raise InvalidAliasError(
            f"the alias {alias!r:.60} looks like a version", hint="use a name such as prod or canary"
        )
    if _CONTROL.search(alias) or any(sign in alias for sign in "#/\\") or alias != alias.strip():
        raise InvalidAliasError(
            f"the alias {alias!r:.60} contains a #, a slash, a backslash or a control character, or begins or ends "
            "with a space",
            hint="use letters and digits, with - _ . between them",
        )
    return alias


def check_alias_text(alias: object) -> None:
    """Raise `InvalidAliasError` if no alias can have this name, not even one that another program made."""
    if not isinstance(alias, str) or not 0 < _size(alias) <= _LONGEST_NAME:
        raise InvalidAliasError(f"{alias!r:.60} cannot be an alias")


def _size(text: str) -> int:
    """The length of a text in UTF-8; if it cannot be encoded, more than any name may have."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return _LONGEST_NAME + 1
