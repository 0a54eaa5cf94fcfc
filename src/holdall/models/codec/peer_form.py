"""Peer forms: how other programs store values, for `field(stored=...)`.

Pure. `codec_as` returns the codec of a type whose values are stored in one of these forms:

=============  ========  ==========================================================================================
``stored=``    type      stored as
=============  ========  ==========================================================================================
``epoch``      datetime  N, whole seconds since 1970; PynamoDB's ``TTLAttribute``, DynamoDB's time to live
``epoch_ms``   datetime  N, whole milliseconds since 1970
``iso``        datetime  S, ``2026-01-31T09:30:00Z``, with a fraction only if there is one; pydantic and dyntastic
``iso_ms``     datetime  S, ``2026-01-31T09:30:00.000Z``; JavaScript's ``toISOString()``
``pynamodb``   datetime  S, ``2026-01-31T09:30:00.000000+0000``; PynamoDB's ``UTCDateTimeAttribute``
``json``       any       S, JSON; PynamoDB's ``JSONAttribute``
``number``     bool      N, 1 or 0; PynamoDB's former ``LegacyBooleanAttribute``
``base64``     bytes     B, the base64 text of the bytes; PynamoDB's ``BinaryAttribute(legacy_encoding=True)``
=============  ========  ==========================================================================================

Reading is tolerant: it also accepts the form in which Holdall stores the type otherwise, and other spellings of the
same time. Validation is not: a time without a zone is refused where the form has none, and a value comes back equal,
because validation cuts a time to the precision of its form.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeAlias, get_args

from holdall.core.frozen import dataclass
from holdall.core.numbers import canonical_number
from holdall.core.values import Attribute, encode
from holdall.errors import InvalidValueError, ModelDefinitionError
from holdall.models.codec.annotation import peel
from holdall.models.codec.codec import Codec
from holdall.models.codec.difference import difference, explain_change
from holdall.models.codec.pattern import Pattern
from holdall.models.codec.stored_form import show

PeerForm: TypeAlias = Literal["epoch", "epoch_ms", "iso", "iso_ms", "pynamodb", "json", "number", "base64"]
"""The forms in which other programs store values."""

UNORDERED = ("iso", "json", "base64")
"""The forms whose texts do not sort as the values do."""

FIXED_WIDTH = {"iso_ms": 24, "pynamodb": 31}
"""The forms whose texts all have the same length."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NULL: Attribute = {"NULL": True}
_UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, ArithmeticError)


def codec_as(annotation: Any, stored: PeerForm) -> Codec:
    """Return the codec of a type whose values other programs store in this form."""
    if stored not in get_args(PeerForm):
        forms = ", ".join(f'"{form}"' for form in get_args(PeerForm))
        raise ModelDefinitionError(f"stored={stored!r:.60} is not a stored form", hint=f"use one of {forms}")
    codec = Codec(annotation)
    if stored == "json":
        _build_json(codec)
    else:
        _build_simple(codec, stored, _SIMPLE[stored])
    codec.stored_as = stored
    return codec


@dataclass(frozen=True, slots=True)
class _Simple:
    """A form of one type: ``keep`` returns a value as it comes back, ``compare`` one to compare stored values with."""

    base: type
    kind: str
    keep: Callable[[Any], Any]
    compare: Callable[[Any], Any]
    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _build_simple(codec: Codec, stored: str, form: _Simple) -> None:
    if peel(codec.annotation).base is not form.base:
        raise ModelDefinitionError(
            f'stored="{stored}" is a form of {form.base.__name__}, not of {codec.annotation}',
            hint=f"declare the field as {form.base.__name__}, or leave out stored=",
        )
    admit, decode_own = codec.validate, codec.decode
    kind, write, read = form.kind, form.write, form.read

    def validate(value: Any) -> Any:
        value = admit(value)
        return value if value is None else form.keep(value)

    def comparable(value: Any) -> Any:
        value = admit(value)
        return value if value is None else form.compare(value)

    def encode_form(value: Any) -> Attribute:
        return _NULL if value is None else {kind: write(value)}

    def decode(attribute: Attribute) -> Any:
        try:
            value = read(attribute[kind])
        except _UNREADABLE:
            return decode_own(attribute)  # null, or as Holdall stores the type otherwise
        return admit(value)

    codec.pattern = None if codec.pattern is None else Pattern(kind, read)
    codec.validate, codec.comparable = validate, comparable
    codec.encode, codec.decode = encode_form, decode
    codec.quick = decode if codec.pattern is None else codec.pattern.compile()
    codec.encode_checked = lambda value: encode_form(validate(value))
    codec._kind = kind


# --- times ------------------------------------------------------------------------------------------------


def _in_utc(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise InvalidValueError(
            f"a time without a zone has no stored form (got {show(moment)})", hint="use datetime.now(UTC)"
        )
    try:
        return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    except OverflowError:
        raise InvalidValueError(f"{moment} is outside the years 1 to 9999 in UTC") from None


def _cut_to_seconds(moment: datetime) -> datetime:
    return _in_utc(moment).replace(microsecond=0)


def _cut_to_milliseconds(moment: datetime) -> datetime:
    moment = _in_utc(moment)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _count(moment: datetime, digits: int) -> str:
    """The time since 1970, in seconds (``digits`` 6) or milliseconds (3): the microseconds as decimals, if any."""
    past = moment - _EPOCH
    micros = (past.days * 86400 + past.seconds) * 1_000_000 + past.microseconds
    whole, rest = divmod(micros, 10**digits)
    return str(whole) if not rest else canonical_number(f"{micros}E-{digits}")


def _read_seconds(text: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(Decimal(text) * 1_000_000))


def _read_milliseconds(text: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(Decimal(text) * 1000))


def _normalize(moment: datetime) -> datetime:
    return moment if moment.utcoffset() is None else _in_utc(moment)


def _write_iso(moment: datetime) -> str:
    return datetime.isoformat(_normalize(moment)).replace("+00:00", "Z")


def _write_milliseconds(moment: datetime) -> str:
    text = datetime.isoformat(_in_utc(moment).replace(tzinfo=None), timespec="milliseconds") + "Z"
    # to compare with: between two that can be stored
    return text + "~" if moment.microsecond % 1000 else text


def _write_pynamodb(moment: datetime) -> str:
    return datetime.isoformat(_in_utc(moment).replace(tzinfo=None), timespec="microseconds") + "+0000"


def _read_pynamodb(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.fromisoformat(text.zfill(31))  # years before 1000 were not padded on every system
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _same(value: Any) -> Any:
    return value


def _write_flag(flag: bool) -> str:
    return "1" if flag else "0"


def _read_flag(text: str) -> bool:
    return Decimal(text) != 0


def _write_base64(content: bytes) -> str:
    return b64encode(b64encode(content)).decode("ascii")


def _read_base64(text: str) -> bytes:
    return b64decode(b64decode(text), validate=True)


_SIMPLE = {
    "epoch": _Simple(
        datetime, "N", _cut_to_seconds, _in_utc, lambda moment: _count(moment, 6), _read_seconds
    ),
    "epoch_ms": _Simple(
        datetime, "N", _cut_to_milliseconds, _in_utc, lambda moment: _count(moment, 3), _read_milliseconds
    ),
    "iso": _Simple(datetime, "S", _normalize, _normalize, _write_iso, datetime.fromisoformat),
    "iso_ms": _Simple(
        datetime, "S", _cut_to_milliseconds, _in_utc, _write_milliseconds, datetime.fromisoformat
    ),
    "pynamodb": _Simple(datetime, "S", _in_utc, _in_utc, _write_pynamodb, _read_pynamodb),
    "number": _Simple(bool, "N", _same, _same, _write_flag, _read_flag),
    "base64": _Simple(bytes, "B", _same, _same, _write_base64, _read_base64),
}


# --- JSON -------------------------------------------------------------------------------------------------


def _build_json(codec: Codec) -> None:
    adapter = codec._adapter

    def write(value: Any) -> Attribute:
        try:
            text = json.dumps(_plain_json(adapter.dump(value)), allow_nan=False)
        except InvalidValueError:
            raise
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidValueError(f"it cannot be written as JSON: {error}") from None
        return encode(text)

    def decode(attribute: Attribute) -> Any:
        try:
            value = json.loads(attribute["S"], strict=False)
        except _UNREADABLE:
            if "NULL" in attribute:
                value = None
            else:
                raise InvalidValueError(f"Input should be JSON (stored as {show(attribute)})") from None
        return adapter.loose(value)

    def encode_json(value: Any) -> Attribute:
        attribute = write(value)
        if (found := difference(value, decode(attribute))) is not None:
            raise explain_change(found)
        return attribute

    def validate(value: Any) -> Any:
        value = adapter.strict(value)
        encode_json(value)
        return value

    codec.number, codec.is_time, codec.pattern = None, False, None
    codec.validate = codec.comparable = validate
    codec.encode, codec.decode, codec.quick = encode_json, decode, decode
    codec.encode_checked = lambda value: encode_json(adapter.strict(value))
    codec._kind = "S"


def _plain_json(value: Any) -> Any:
    """The value as lists, dicts and scalars of JSON; sets in a fixed order."""
    if value is None or value.__class__ in (str, bool, int, float):
        return value
    if isinstance(value, Mapping):
        return {_name(key): _plain_json(member) for key, member in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(map(_plain_json, value), key=json.dumps)
    if isinstance(value, list | tuple):
        return [_plain_json(member) for member in value]
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


def _name(key: Any) -> str:
    name = _plain_json(key)
    return name if isinstance(name, str) else json.dumps(name)
