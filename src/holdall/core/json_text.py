"""Compact JSON text, as requests and stored bodies have it. Pure.

`json.JSONEncoder` creates an encoder in C for every text; here one serves all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
_encode: Callable[..., Iterable[str]] = _encoder.iterencode
if (_make := getattr(json.encoder, "c_make_encoder", None)) is not None:
    _quote = json.encoder.encode_basestring
    _encode = _make(None, _encoder.default, _quote, None, ":", ",", False, False, True)


def encode_json(value: Any) -> str:
    """The value as JSON, without spaces, and with all characters that need no escape as they are."""
    return "".join(_encode(value, 0))
