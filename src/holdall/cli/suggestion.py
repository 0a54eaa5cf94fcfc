"""What the shell suggests for arguments: models, artifacts, their versions and aliases, and queues.

A suggestion is a help, so if anything goes wrong here (no table, no credentials, a module with an error), or if it
takes too long, only what was found before is suggested, and nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from holdall.cli.session import open_database

if TYPE_CHECKING:
    from holdall import Database

Suggest: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

_MOST = 200
_PATIENCE = 2.0
"""Seconds after which a database that does not answer is given up."""


def _suggest(find: Callable[[Database, dict[str, Any], str], Iterable[str]]) -> Suggest:
    """A function for ``shell_complete`` from one that finds texts in a database, by the arguments before it."""

    def suggest(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
        """Return what begins with the text that was typed."""
        found: list[str] = []

        def search() -> None:
            with suppress(Exception), context, open_database(missing="empty") as db:
                texts = (text for text in find(db, context.params, start) if text.startswith(start))
                found.extend(text for text in islice(texts, _MOST) if text.isprintable())

        with redirect_stdout(None), redirect_stderr(None):  # a module of the user may print
            thread = Thread(target=search, daemon=True)
            thread.start()
            thread.join(_PATIENCE)
        return [*found]

    return suggest


def _list_models(db: Database, given: dict[str, Any], start: str) -> Iterable[str]:
    """The models of a module, once its name is typed up to the colon."""
    from holdall.cli.module import load_module
    from holdall.models import find_models

    place, colon, _ = start.partition(":")
    if colon:
        module = load_module(place)
        yield from (f"{place}:{model.__qualname__}" for model in find_models(vars(module), module.__name__))


def _list_versions(db: Database, given: dict[str, Any], start: str) -> Iterable[str]:
    return (str(found.version) for found in db.artifacts.versions(given["name"]))


def _list_aliases(db: Database, given: dict[str, Any], start: str) -> Iterable[str]:
    return (found.alias for found in db.artifacts.aliases(given["name"]))


def _list_references(db: Database, given: dict[str, Any], start: str) -> Iterable[str]:
    yield from _list_aliases(db, given, start)
    yield from _list_versions(db, given, start)


suggest_model = _suggest(_list_models)
suggest_artifact = _suggest(lambda db, given, start: db.artifacts.names(start))
suggest_version = _suggest(_list_versions)
suggest_alias = _suggest(_list_aliases)
suggest_reference = _suggest(_list_references)
suggest_queue = _suggest(lambda db, given, start: db.jobs.queues())
