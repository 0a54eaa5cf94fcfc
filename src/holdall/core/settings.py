"""Settings: their names, their sources, and which source takes precedence.

Pure; `holdall.backends.configuration` reads the environment and the file. An argument takes precedence over the URL's
query, the query over the environment (``HOLDALL_NAME``), and the environment over ``holdall.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias, TypedDict, TypeVar, cast

from holdall.core.frozen import dataclass
from holdall.core.nearest_name import suggest_name
from holdall.core.rules.schema import check_index_name, check_table_name
from holdall.errors import ConfigurationError

Durability: TypeAlias = Literal["full", "normal"]
"""``full``: a commit is on disk before it is acknowledged. ``normal``: a commit survives the death of the
process, but a power failure can undo the latest ones. The store stays consistent either way."""

SingleWrites: TypeAlias = Literal["auto", "token"]
"""``auto``: a single write is sent as a single write. ``token``: it is sent as a transaction with one action, so that
its outcome is known even if the reply is lost; this costs twice the write capacity."""

Tracebacks: TypeAlias = Literal["short", "full"]
"""``short``: the traceback of an error that Holdall raises ends at the method that the caller called. ``full``: it also
shows Holdall's internal frames. Errors raised by the caller's own code always keep all their frames."""

T = TypeVar("T")
Scheme: TypeAlias = Literal["embedded", "memory", "dynamodb"]
"""The kinds of database, named by the scheme of their URLs."""

DEFAULT_URL = "embedded:holdall.db"
FORMS = {"embedded": "embedded:PATH", "memory": "memory:", "dynamodb": "dynamodb://TABLE"}

_CHOICES = {
    "durability": ("full", "normal"),
    "single_writes": ("auto", "token"),
    "tracebacks": ("short", "full"),
}
_SWITCHES = {"manage_table"}
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_ENVIRONMENT = "HOLDALL_"
_SHORTEST_SECRET = 16
DEFAULT_SERVICE = "default"
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_FILE_FORMS = ("file:", "s3://", "memory:", "mirror:")
_PREFIX = re.compile(r"[A-Za-z0-9_.-]{0,252}")
CLUSTER = re.compile(r"daxs?://[^/?#@\s]+")


class SettingArguments(TypedDict, total=False):
    """The settings that can be keyword arguments of a database; None means not given."""

    durability: Durability | None
    table_name: str | None
    partition_key: str | None
    sort_key: str | None
    namespace: str | None
    separator: str | None
    index_name: str | None
    index_partition_key: str | None
    index_sort_key: str | None
    manage_table: bool | None
    region: str | None
    endpoint: str | None
    profile: str | None
    single_writes: SingleWrites | None
    connect_timeout: float | None
    read_timeout: float | None
    total_timeout: float | None
    max_attempts: int | None
    max_connections: int | None
    table_prefix: str | None
    secret: str | Sequence[str] | None
    default_service: str | None
    tracebacks: Tracebacks | None


NAMES = frozenset(SettingArguments.__annotations__) | {"reads", "files"}
"""All settings except the URL; as arguments, ``reads`` and ``files`` can also be backends."""
_NUMBERS: dict[str, tuple[type[int] | type[float], float, float]] = {
    "connect_timeout": (float, 0.001, 3600),
    "read_timeout": (float, 0.001, 3600),
    "total_timeout": (float, 0.001, 240),  # after five minutes, a purge of an artifact is considered dead
    "max_attempts": (int, 1, 1000),
    "max_connections": (int, 1, 10000),
}
"""The type of each setting that is a number, and its bounds."""
_OF_AWS = frozenset({"region", "endpoint", "profile", "single_writes", "secret", "reads", *_NUMBERS})
_ELSEWHERE: dict[str, frozenset[str]] = {
    "embedded": _OF_AWS,
    "memory": _OF_AWS,
    "dynamodb": frozenset({"durability", "table_name", "secret"}),
}
"""The settings that a URL of each scheme cannot have: they do not apply, or are set elsewhere."""


_OF_THE_TABLE = (
    *("table_name", "partition_key", "sort_key", "namespace", "separator", "table_prefix"),
    *("index_name", "index_partition_key", "index_sort_key", "region", "endpoint", "profile"),
)
"""The settings that name the table and describe its layout; all are text."""


class Secrets(tuple[str, ...]):
    """The secrets for tokens and URLs: the first signs, the others only verify older signatures. Never shown."""

    def __repr__(self) -> str:
        return f"<{len(self)} secrets>"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a database, combined from all sources.

    ``path`` is the file of an embedded store, otherwise None. Some settings apply only to one kind of store:
    ``durability`` to a file; ``region``, ``endpoint``, ``profile``, ``single_writes`` and ``reads``, the endpoint of a
    DAX cluster, to DynamoDB; ``connect_timeout`` and the four after it to DynamoDB and S3, where None means the
    service's default. A key attribute's name that is None was not set: it is taken from an existing table, and a new
    table gets a default. ``secret`` signs tokens and URLs. ``files`` are the file services by name, and
    ``default_service`` is used where none is named. ``tracebacks`` decides whether the tracebacks of Holdall's errors
    show its internal frames. ``features`` are the settings of the features, by name.
    """

    url: str
    scheme: Scheme
    path: str | None = None
    durability: Durability = "full"
    table_name: str = "holdall"
    partition_key: str | None = None
    sort_key: str | None = None
    namespace: str = "ActiveStorage"
    separator: str = "#"
    index_name: str = "active_storage_index"
    index_partition_key: str | None = None
    index_sort_key: str | None = None
    manage_table: bool = True
    region: str | None = None
    endpoint: str | None = None
    profile: str | None = None
    single_writes: SingleWrites = "auto"
    connect_timeout: float | None = None
    read_timeout: float | None = None
    total_timeout: float | None = None
    max_attempts: int | None = None
    max_connections: int | None = None
    table_prefix: str = ""
    secret: Secrets = Secrets()
    reads: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    default_service: str | None = None
    tracebacks: Tracebacks = "short"
    features: tuple[tuple[str, object], ...] = ()

    @property
    def is_remote(self) -> bool:
        """Whether a server holds the tables: it answers requests in parallel, and charges for each."""
        return self.scheme == "dynamodb"

    @property
    def is_lasting(self) -> bool:
        """Whether another database with the same settings has the same tables, now and later."""
        return self.scheme != "memory"

    def choose_service(self, name: str | None, failure: str) -> str:
        """Return the file service with this name or, without one, the default; if there is none, raise ``failure``."""
        service = name or self.default_service
        if service is None:
            raise ConfigurationError(
                f"{failure}: the database has no file service",
                hint='open the database with files="s3://bucket" or files="file:PATH"',
            )
        return service

    def command(self, words: str) -> str:
        """Return a ``holdall`` command for this database, so that users can copy it from a hint and run it."""
        from shlex import quote as quote_word

        url = self._whole_url()
        return f"`holdall {words}`" if url == DEFAULT_URL else f"`holdall --url {quote_word(url)} {words}`"

    def of_feature(self, kind: type[T]) -> T | None:
        """Return the settings of a feature, which have a class of their own; None if there are none."""
        return next((each for _, each in self.features if isinstance(each, kind)), None)

    def table_of_feature(self, name: str) -> str | None:
        """Return the name of the table that the settings of a feature give to it alone; None if there is none."""
        return getattr(dict(self.features).get(name), "table", None)

    def _whole_url(self) -> str:
        """Return the URL with the settings that concern the table, none of which is a secret."""
        from urllib.parse import quote

        alone = resolve({"url": self.url}, {}, {}, dict.fromkeys(dict(self.features), lambda *_: None))
        added = {
            name: getattr(self, name) for name in _OF_THE_TABLE if getattr(self, name) != getattr(alone, name)
        }
        query = "&".join(f"{name}={quote(value, ':/')}" for name, value in added.items() if value)
        return self.url + (f"{'&' if '?' in self.url else '?'}{query}" if query else "")


Parsers: TypeAlias = Mapping[str, Callable[[object, str], object]]
"""For each feature's setting, a function that parses a value, given also the name of its source."""


def resolve(
    arguments: Mapping[str, object],
    environment: Mapping[str, str],
    file: Mapping[str, object],
    features: Parsers = MappingProxyType({}),
) -> Settings:
    """Combine the settings from all sources; raise `ConfigurationError` for an unknown name or an invalid value."""
    names = NAMES | features.keys()
    known = {"url", *names}
    _check_names(arguments, known, "the call")
    _check_names(file, known, "holdall.toml")
    query: Mapping[str, str] = {}

    def find(name: str) -> object:
        """Find a setting in the first source that has it; None if no source has it."""
        variable = _ENVIRONMENT + name.upper()
        for source, value in (
            (f"argument {name}", arguments.get(name)),
            (f"{name} in the URL", query.get(name)),
            (f"environment variable {variable}", environment.get(variable)),
            (f"{name} in holdall.toml", file.get(name)),
        ):
            if value is not None:
                return features.get(name, partial(_check, name))(value, source)
        return None

    url = cast("str | None", find("url")) or DEFAULT_URL
    scheme, location, query = _parts(url)
    _check_names(query, names - _ELSEWHERE[scheme], "the URL's query", names)
    if scheme == "dynamodb":
        query = {**query, "table_name": location}
    given = {name: value for name in sorted(NAMES) if (value := find(name)) is not None}
    given.setdefault("manage_table", scheme != "dynamodb")
    given.setdefault("files", _usual_files(scheme, location))
    own = {name: value for name in features if (value := find(name)) is not None}
    given["features"] = tuple(own.items())
    settings = Settings(url, scheme, location if scheme == "embedded" else None, **given)  # type: ignore[arg-type]
    _check_values(settings)
    return settings


def _parts(url: str) -> tuple[Scheme, str, dict[str, str]]:
    """Split a URL into its scheme, its path or table, and its query."""
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in FORMS:
        raise ConfigurationError(
            f"{_show_url(url)} is not a database URL", hint=f"use one of: {', '.join(FORMS.values())}"
        )
    location, _, query_text = rest.partition("?")
    if scheme == "dynamodb":
        slashes, location = location[:2], location[2:]
        if slashes != "//" or not location or "/" in location or "@" in location:
            raise ConfigurationError(
                f"{_show_url(url)} must have the form {FORMS[scheme]}",
                hint="for example dynamodb://my-app?region=eu-central-1; credentials are never part of the URL",
            )
    elif (scheme == "memory") == bool(location):
        raise ConfigurationError(f"{_show_url(url)} must have the form {FORMS[scheme]}")
    if "%" not in location and not query_text:
        return cast("Scheme", scheme), location, {}
    from urllib.parse import parse_qsl, unquote  # slow to load, and most URLs need neither

    return cast("Scheme", scheme), unquote(location), dict(parse_qsl(query_text, keep_blank_values=True))


def _show_url(url: str) -> str:
    """Return the URL for a message, without a user name or password before an @."""
    return repr(re.sub(r"//[^/?]*@", "//...@", url))


def _check(name: str, value: object, source: str) -> object:
    if name in _SWITCHES:
        return _switch(value, source)
    if name == "secret":
        return parse_secrets(value, source)
    if name == "files":
        return _files(value, source)
    if name in _NUMBERS:
        return number_setting(name, value, source)
    if not isinstance(value, str):
        raise ConfigurationError(f"{source} must be text, not {type(value).__name__}")
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        raise ConfigurationError(f"{source} must be {' or '.join(choices)}, not {value!r}")
    if not value:
        raise ConfigurationError(f"{source} is empty", hint="set a value, or remove the setting")
    return value


def parse_secrets(value: object, source: str) -> Secrets:
    """Parse one secret or a list of secrets. In the environment, several are separated by white space."""
    if isinstance(value, str):
        value = value.split() if source.startswith("environment") else [value]
    given = value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise ConfigurationError(f"{source} must be text or a list of texts, not {type(value).__name__}")
    if not given or any(len(each) < _SHORTEST_SECRET for each in given):
        raise ConfigurationError(
            f"{source} is too short",
            hint=f"use at least {_SHORTEST_SECRET} random characters for each secret",
        )
    return Secrets(given)


def _files(value: object, source: str) -> tuple[tuple[str, str], ...]:
    """Parse the file services: a table of names and URLs, or one URL for the service ``default``."""
    named = {DEFAULT_SERVICE: value} if isinstance(value, str) else value
    if not isinstance(named, Mapping):
        raise ConfigurationError(
            f"{source} must be a URL or a table of names and URLs, not {type(value).__name__}"
        )
    for name, url in named.items():
        if not isinstance(name, str) or not _SERVICE.fullmatch(name):
            raise ConfigurationError(
                f"{source} has an invalid service name: {name!r:.60}",
                hint="use up to 100 letters, digits and _ . -",
            )
        if not isinstance(url, str) or not url.startswith(_FILE_FORMS):
            shown = _show_url(url) if isinstance(url, str) else type(url).__name__
            raise ConfigurationError(
                f"{source}: the service {name} must be the URL of a file service, not {shown}",
                hint="use file:PATH, s3://BUCKET/PREFIX?region=..., memory: or mirror:PRIMARY,MIRROR",
            )
    return tuple(named.items())


def _usual_files(scheme: Scheme, location: str) -> tuple[tuple[str, str], ...]:
    """Return the default file services: a directory next to an embedded store, memory for one in memory, else none."""
    if scheme == "memory":
        return ((DEFAULT_SERVICE, "memory:"),)
    if scheme == "dynamodb":
        return ()
    from urllib.parse import quote

    return ((DEFAULT_SERVICE, f"file:{quote(location.removesuffix('.db'))}-files"),)


def _switch(value: object, source: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    shown = repr(value) if isinstance(value, str) else type(value).__name__
    raise ConfigurationError(f"{source} must be true or false, not {shown}")


def number_setting(name: str, value: object, source: str) -> float:
    """Parse a numeric setting, also from text; raise `ConfigurationError` if it is not a number in its range."""
    kind, least, most = _NUMBERS[name]
    number: float | None = None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = kind(value) if isinstance(value, str) or kind(value) == value else None
        except (ValueError, OverflowError):
            number = None
    if number is None or not least <= number <= most:
        what = "a whole number" if kind is int else "a number of seconds"
        raise ConfigurationError(f"{source} must be {what} from {least:g} to {most:,.0f}, not {value!r:.40}")
    return number


def _check_values(settings: Settings) -> None:
    """Check what depends on several settings."""
    check_table_name(settings.table_name)
    check_index_name(settings.index_name)
    if not _PREFIX.fullmatch(settings.table_prefix):
        raise ConfigurationError(
            f"table_prefix is {settings.table_prefix!r:.300}, which cannot begin the name of a table",
            hint="use up to 252 of the characters A-Z a-z 0-9 _ - .",
        )
    if settings.reads is not None and not CLUSTER.fullmatch(settings.reads):
        raise ConfigurationError(
            f"the setting reads must be the endpoint of a DAX cluster, not {_show_url(settings.reads)}",
            hint="use daxs://HOST, or dax://HOST:PORT without encryption; pass another backend as the argument reads=",
        )
    if settings.separator in settings.namespace:
        raise ConfigurationError(
            f"the namespace {settings.namespace!r} contains the separator {settings.separator!r}",
            hint="Holdall splits keys at the separator: choose another separator or another namespace",
        )


def _check_names(
    given: Mapping[str, object], known: Set[str], where: str, anywhere: Set[str] = frozenset()
) -> None:
    unknown = sorted(given.keys() - known)
    if not unknown:
        return
    elsewhere = all(name in anywhere for name in unknown)
    problem = "has settings that do not apply to this kind of URL" if elsewhere else "has unknown settings"
    raise ConfigurationError(
        f"{where} {problem}: {', '.join(unknown)}",
        hint=suggest_name("" if elsewhere else unknown[0], sorted(known), "settings"),
    )
