"""The settings of attachments: the format of signed ids and of variants' digests, and the path of files' URLs.

Pure. As an argument, the settings are an `AttachmentSettings`; in ``holdall.toml``, a table ``[attachments]``; in the
environment and in a URL's query, a text like ``signed_ids=rails&path=/files``.
"""

from __future__ import annotations

from typing import get_args

from holdall.attachments.blob.signed_id import Form
from holdall.attachments.picture.variant import DigestForm
from holdall.core.feature_settings import parse_feature
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
    return settings.of_feature(AttachmentSettings) or AttachmentSettings()


def parse_settings(value: object, source: str) -> AttachmentSettings:
    """Parse settings in any of their forms, and check them; ``source`` names where they came from."""
    settings = parse_feature(AttachmentSettings, value, source, example="signed_ids=rails&path=/files")
    for name, known in (("signed_ids", get_args(Form)), ("variation_digest", get_args(DigestForm))):
        if getattr(settings, name) not in known:
            raise ConfigurationError(
                f"{source}: {name} must be {' or '.join(map(repr, known))}, not {getattr(settings, name)!r:.60}"
            )
    if not isinstance(settings.path, str) or not settings.path.startswith("/") or settings.path.endswith("/"):
        raise ConfigurationError(
            f"{source}: path must begin with a slash and not end with one, but is {settings.path!r:.60}",
            hint="as in /attachments",
        )
    return settings
