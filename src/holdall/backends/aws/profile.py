"""Profiles: the shared files ``~/.aws/credentials`` and ``~/.aws/config``, read as AWS tools read them.

An error names the number of a line, but never quotes the line, which may contain a secret.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from holdall.errors import ConfigurationError

Settings: TypeAlias = Mapping[str, "str | Settings"]
"""Names in lower case; an indented block below a name is a nested mapping."""


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """One profile: its section of each file, the ``services`` section that it names, and notes on what is missing."""

    name: str
    credentials: Settings
    config: Settings
    services: Settings
    notes: tuple[str, ...]

    def get(self, name: str) -> str | None:
        """A setting from either file; the credentials file takes precedence."""
        value = self.credentials.get(name) or self.config.get(name)
        return value if isinstance(value, str) and value else None

    def find_setting(self, name: str, environment: Mapping[str, str]) -> str | None:
        """A setting from its environment variable (``AWS_NAME``), else from the files; None if it is empty."""
        return environment.get(f"AWS_{name.upper()}") or self.get(name)

    def find_nested(self, section: Settings, block: str, name: str) -> str | None:
        """A setting of an indented block."""
        settings = section.get(block)
        value = settings.get(name) if isinstance(settings, Mapping) else None
        return value if isinstance(value, str) and value else None

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, settings hidden)"


def read_profile(name: str | None, environment: Mapping[str, str]) -> Profile:
    """The profile of this name, or the environment's, or ``default``; only ``default`` may be missing."""
    named = name or environment.get("AWS_DEFAULT_PROFILE") or environment.get("AWS_PROFILE")
    wanted = named or "default"
    secrets_path = _path(environment, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    config_path = _path(environment, "AWS_CONFIG_FILE", "~/.aws/config")
    secrets, secrets_note = _sections(secrets_path)
    config, config_note = _sections(config_path)
    profiles, services = _sort_out(config)
    notes = (
        secrets_note or _absence(secrets_path, wanted, secrets),
        config_note or _absence(config_path, wanted, profiles),
    )
    if named and wanted not in secrets and wanted not in profiles:
        raise ConfigurationError(
            f"there is no AWS profile {wanted!r}: {'; '.join(note for note in notes if note)}",
            hint="check the name (argument profile, AWS_DEFAULT_PROFILE or AWS_PROFILE) and the files",
        )
    own = profiles.get(wanted, {})
    return Profile(
        wanted,
        secrets.get(wanted, {}),
        own,
        _services(wanted, own, services),
        tuple(note for note in notes if note),
    )


def _path(environment: Mapping[str, str], variable: str, usual: str) -> Path:
    text = environment.get(variable) or usual
    if "$" in text:
        from string import Template

        text = Template(text).safe_substitute(environment)
    home = environment.get("HOME")
    if home and (text == "~" or text.startswith("~/")):
        text = home + text[1:]
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises for an unknown user


def _absence(path: Path, name: str, sections: Mapping[str, Settings]) -> str:
    return "" if name in sections else f"{path} has no profile {name!r}"


def _sections(path: Path) -> tuple[dict[str, Settings], str]:
    """The sections of a file, and why there are none if it cannot be read."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}, f"{path} does not exist"
    except (OSError, ValueError) as error:
        return {}, f"{path} cannot be read ({getattr(error, 'strerror', None) or 'it is not a valid path'})"
    sections, wrong = _parse(content)
    if wrong:
        raise ConfigurationError(
            f"{path} is malformed: {wrong}", hint="write lines as [section] or name = value"
        )
    return sections, ""


def _parse(content: bytes) -> tuple[dict[str, Settings], str]:
    """The sections, or what is wrong; not raised here, because the parser's error, which quotes the line, would be
    chained."""
    from configparser import Error, RawConfigParser  # loaded only if there is a file

    parser = RawConfigParser()
    try:
        parser.read_string(content.decode("utf-8-sig"))
        found: dict[str, Settings] = {
            section: {name: _value(parser.get(section, name)) for name in parser.options(section)}
            for section in parser.sections()
        }
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return {}, f"line {line} is not UTF-8"
    except Error as error:
        return {}, _line(error)
    except ValueError:
        return {}, "an indented block has a line without ="
    return found, ""


def _line(error: Exception) -> str:
    lines = getattr(error, "errors", None)
    number = lines[0][0] if lines else getattr(error, "lineno", None)
    twice = "Duplicate" in type(error).__name__
    return f"line {number} {'repeats an earlier one' if twice else 'is neither [section] nor name = value'}"


def _value(text: str) -> str | Settings:
    if not text.startswith("\n"):
        return text
    block: dict[str, str | Settings] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals:
            raise ValueError
        block[name.strip()] = value.strip()
    return block


def _sort_out(sections: Mapping[str, Settings]) -> tuple[dict[str, Settings], dict[str, Settings]]:
    """The profiles and the services of a config file, by name."""
    from shlex import split

    profiles: dict[str, Settings] = {}
    services: dict[str, Settings] = {}
    for section, settings in sections.items():
        if section == "default":
            profiles[section] = settings
            continue
        try:
            kind, name = split(section)
        except ValueError:  # not two words, or a quote that does not end
            continue
        if kind == "profile":
            profiles[name] = settings
        elif kind == "services":
            services[name] = settings
    return profiles, services


def _services(profile: str, settings: Settings, services: Mapping[str, Settings]) -> Settings:
    name = settings.get("services")
    if not isinstance(name, str):
        return {}
    if name not in services:
        raise ConfigurationError(
            f"the AWS profile {profile!r} names the services section {name!r}, which is not in the config file",
            hint=f"add a section [services {name}], or remove the setting",
        )
    return services[name]
