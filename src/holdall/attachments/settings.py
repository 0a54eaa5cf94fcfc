"""How attachments speak to the outside: the form of signed ids and of variants' digests, and where they are served.

Pure. As an argument it is an `AttachmentSettings`; in ``holdall.toml`` a table ``[attachments]``; in the environment
and in a URL's query a text like ``signed_ids=rails&path=/files``.
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
    """The form of signed ids and of variants' digests, and where the web application serves files.

    ``signed_ids="rails"`` writes and reads signed ids as a Rails application does whose ``secret_key_base`` is the
    database's ``secret``; ``variation_digest="rails"`` finds the variants that it made. ``path`` is the first part of
    the URLs of files.
    """

    signed_ids: Form = "holdall"
    variation_digest: DigestForm = "canonical"
    path: str = "/attachments"


def attachment_settings(settings: Settings) -> AttachmentSettings:
    """How a database's attachments speak to the outside."""
    return settings.of_feature("attachments") or AttachmentSettings()


def parse_settings(value: object, source: str) -> AttachmentSettings:
    """The settings in any of their forms, checked; ``source`` is where they came from."""
    if isinstance(value, str):
        value = dict(parse_qsl(value, keep_blank_values=True))
    if isinstance(value, Mapping):
        unknown = sorted(str(name) for name in value if name not in AttachmentSettings.__match_args__)
        if unknown or not value:
            raise ConfigurationError(
                f"{source} names {', '.join(unknown) or 'nothing'}, which attachments do not have as a setting",
                hint=f"the settings are: {', '.join(AttachmentSettings.__match_args__)}",
            )
        value = AttachmentSettings(**value)
    if not isinstance(value, AttachmentSettings):
        raise ConfigurationError(
            f"{source} is a {type(value).__name__}", hint='give AttachmentSettings(signed_ids="rails")'
        )
    for name, known in (("signed_ids", get_args(Form)), ("variation_digest", get_args(DigestForm))):
        if getattr(value, name) not in known:
            raise ConfigurationError(
                f"{source}: {name} is {getattr(value, name)!r:.60}", hint=f"it is {' or '.join(known)}"
            )
    if not isinstance(value.path, str) or not value.path.startswith("/") or value.path.endswith("/"):
        raise ConfigurationError(f"{source}: path is {value.path!r:.60}", hint="as in /attachments")
    return value
