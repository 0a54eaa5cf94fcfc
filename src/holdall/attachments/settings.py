"""The settings of attachments: the format of signed ids and of variants' digests, and the path of files' URLs.

Pure. As an argument, the settings are an `AttachmentSettings`; in ``holdall.toml``, a table ``[attachments]``; in the
environment and in a URL's query, a text like ``signed_ids=rails&path=/files``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args
from urllib.parse import parse_qsl

from holdall.attachments.signed_id import Form
from holdall.attachments.variant import DigestForm
from holdall.core.frozen import dataclass
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class AttachmentSettings:
    """The format of signed ids and of variants' digests, and the path at which the web application serves files.

    ``signed_ids="rails"`` writes and reads signed ids like a Rails application whose ``secret_key_base`` is the
    database's ``secret``; ``variation_digest="rails"`` finds the variants that a Rails application made. ``path`` is
    the beginning of the URLs of files.
    """

    signed_ids: Form = "holdall"
    variation_digest: DigestForm = "canonical"
    path: str = "/attachments"


def attachment_settings(settings: Settings) -> AttachmentSettings:
    """The attachment settings of a database."""
    return settings.of_feature("attachments") or AttachmentSettings()


def parse_settings(value: object, source: str) -> AttachmentSettings:
    """Parse settings in any of their forms, and check them; ``source`` names where they came from."""
    if isinstance(value, str):
        value = dict(parse_qsl(value, keep_blank_values=True))
    if isinstance(value, Mapping):
        unknown = sorted(str(name) for name in value if name not in AttachmentSettings.__match_args__)
        if unknown or not value:
            raise ConfigurationError(
                f"{source} has an unknown setting: {', '.join(unknown)}" if unknown else f"{source} is empty",
                hint=f"the settings of attachments are {', '.join(AttachmentSettings.__match_args__)}",
            )
        value = AttachmentSettings(**value)
    if not isinstance(value, AttachmentSettings):
        raise ConfigurationError(
            f"{source} must be an AttachmentSettings, not {type(value).__name__}",
            hint='as in AttachmentSettings(signed_ids="rails")',
        )
    for name, known in (("signed_ids", get_args(Form)), ("variation_digest", get_args(DigestForm))):
        if getattr(value, name) not in known:
            raise ConfigurationError(
                f"{source}: {name} must be {' or '.join(map(repr, known))}, not {getattr(value, name)!r:.60}"
            )
    if not isinstance(value.path, str) or not value.path.startswith("/") or value.path.endswith("/"):
        raise ConfigurationError(
            f"{source}: path must begin with a slash and not end with one, and is {value.path!r:.60}",
            hint="as in /attachments",
        )
    return value
