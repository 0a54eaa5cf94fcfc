"""Templates: from values to HTML, with everything escaped, and the static files that pages refer to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from holdall.web.console.alias import list_arms
from holdall.web.console.file import has_thumbnail
from holdall.web.console.value_text import show_value
from holdall.web.console.visit import RefusedVisitError

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_NAMES = ("console.css", "console.js", "mark.svg")
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("holdall.web.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"size": format_size, "count": format_count, "moment": format_moment, "text": show_value}
    found.filters |= {
        "percent": format_percent,
        "duration": format_duration,
        "arms": list_arms,
        "dollars": format_dollars,
    }
    found.globals |= {"version_of": lambda name: _read_static(name)[1], "has_thumbnail": has_thumbnail}
    return found


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a page."""
    return _environment().get_template(template).render(values)


def format_count(number: int) -> str:
    """Return a number with its thousands separated."""
    return f"{number:,}"


def format_size(size: float) -> str:
    """Return a number of bytes in the unit that fits it."""
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:,.1f} {unit}"


def format_percent(share: float) -> str:
    """Return a share from 0 to 1 in per cent, with a decimal if it needs one."""
    return f"{share * 100:.1f}".removesuffix(".0") + "%"


def format_dollars(amount: float) -> str:
    """Return an amount of money; of less than a cent, down to a hundredth of one."""
    size = abs(amount)
    if 0 < size < 0.0001:
        return "< $0.0001"
    return f"{'-' if amount < 0 else ''}${size:,.{2 if size >= 0.01 or not size else 4}f}"


def format_duration(seconds: float) -> str:
    """Return a number of seconds in the largest unit that it has a whole number of."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds / length:g} {unit}{'' if seconds == length else 's'}"
    return f"{seconds:g} {'second' if seconds == 1 else 'seconds'}"


def format_moment(moment: datetime) -> str:
    """Return a time to the second, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@cache
def _read_static(name: str) -> tuple[bytes, str]:
    """Return the content of a static file, and its version."""
    content = files("holdall.web.console").joinpath("static", name).read_bytes()
    return content, sha256(content).hexdigest()[:16]


def serve_static(name: str) -> Response:
    """Return a static file. Its URL contains its version, so browsers may keep it."""
    if name not in _NAMES:
        raise RefusedVisitError(404, "There is no page at this address.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_read_static(name)[0], 200, headers, media_type=_TYPES[name.rpartition(".")[2]])
