"""``holdall alias``: which versions of an artifact are served, to whom and since when; rollbacks and rollouts."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.artifacts.place import (
    alias_arguments,
    change_options,
    open_artifacts,
    open_for_change,
    place_options,
)
from holdall.cli.artifacts.rollout import rollout
from holdall.cli.options import limit_option
from holdall.cli.output import format_time, json_option, say, show, show_json, show_pairs, show_table
from holdall.cli.phrase import serves
from holdall.cli.suggestion import suggest_artifact, suggest_version
from holdall.cli.times import moment

if TYPE_CHECKING:
    from holdall.artifacts import Alias, AliasChange

_BAR = 30


@click.group()
@place_options
def alias() -> None:
    """Choose which versions of an artifact are served.

    An alias is a name, such as prod, that serves one version, or splits traffic between several. Every change is
    recorded in its history and can be rolled back.
    """


def _weights(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> dict[int | str, int] | None:
    """The weight of each version, as in ``1=50,2=30,3=20``."""
    if text is None:
        return None
    found: dict[int | str, int] = {}
    for pair in text.split(","):
        version, equals, weight = (part.strip() for part in pair.partition("="))
        if not version or not equals or not (weight.isascii() and weight.isdigit()):
            raise click.BadParameter(f"{text!r} must have the form 1=50,2=30,3=20")
        if version in found:
            raise click.BadParameter(f"version {version} is given twice")
        found[version] = int(weight)
    return found


@alias.command("set")
@alias_arguments
@click.argument("version", required=False, shell_complete=suggest_version)
@click.option("--secondary", metavar="VERSION", help="Another version, which gets a share of the traffic.")
@click.option("--weight", type=int, help="The share of the --secondary version, in per cent: 0 to 99.")
@click.option(
    "--weights",
    callback=_weights,
    metavar="V=N,...",
    help="All versions with their weights, instead of VERSION: 1=50,2=30,3=20.",
)
@click.option(
    "--protected/--unprotected",
    default=None,
    help="Protect the alias: later changes then need --allow-protected. Or lift that protection.",
)
@change_options
@json_option
@place_options
def set_(
    name: str,
    alias: str,
    version: str | None,
    secondary: str | None,
    weight: int | None,
    modules: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Make an alias serve a version, or split its traffic.

    A version is a number or LATEST. With --secondary and --weight, the secondary version gets that share, in per cent,
    and VERSION gets the rest. With --weights, any number of versions share the traffic.
    """
    if (version is None) == (options["weights"] is None):
        raise click.UsageError("name what the alias serves: either a VERSION or --weights")
    if (secondary is None) != (weight is None):
        raise click.UsageError("--secondary and --weight must be given together")
    with open_for_change(modules) as db:
        found = db.artifacts.put_alias(name, alias, version, secondary, weight, **options)
    _print_alias(found, as_json)


@alias.command("show")
@alias_arguments
@click.option("--at", callback=moment, metavar="TIME", help="Show the alias as it was at this time.")
@json_option
@place_options
def show_alias(name: str, alias: str, at: datetime | None, as_json: bool) -> None:
    """Show what an alias serves, or served at a given time."""
    with open_artifacts() as db:
        found = db.artifacts.alias(name, alias, at=at)
    if as_json:
        show_json(found.describe())
        return
    words = {
        "artifact": name,
        "alias": alias,
        "serves": _serves(found),
        "since": format_time(found.update_at),
    }
    if at is None:
        words["protected"] = "yes" if found.protected else "no"
        words["revision"] = found.revision or "none"
    show_pairs(words)


@alias.command("list")
@click.argument("name", shell_complete=suggest_artifact)
@json_option
@place_options
def list_(name: str, as_json: bool) -> None:
    """List the aliases of an artifact."""
    with open_artifacts() as db:
        found = db.artifacts.aliases(name)
    if as_json:
        show_json({"aliases": [each.describe() for each in found]})
    elif not found:
        say(f"{name} has no aliases")
    else:
        rows = [
            (each.alias, _serves(each), format_time(each.update_at), "yes" if each.protected else "no")
            for each in found
        ]
        show_table(("alias", "serves", "since", "protected"), rows)


@alias.command()
@alias_arguments
@limit_option("changes")
@json_option
@place_options
def history(name: str, alias: str, limit: int, as_json: bool) -> None:
    """List the changes of an alias, newest first. This works for deleted aliases, too."""
    with open_artifacts() as db:
        found = db.artifacts.alias_history(name, alias, limit=limit + 1)
    listed, more = found[:limit], len(found) > limit
    if as_json:
        show_json({"changes": [each.describe() for each in listed], "more": more})
        return
    if not listed:
        say(f"{alias} of {name} has no history")
        return
    heads = ("change", "at", "what", "serves", "by", "reason")
    show_table(heads, [_row(each) for each in listed])
    if more:
        say(f"there are more than {limit:,}; raise --limit to see them")


@alias.command()
@alias_arguments
@click.option(
    "--to",
    type=click.IntRange(1),
    metavar="CHANGE",
    help="Return to what it served after this change (see history).",
)
@click.option(
    "--to-version", metavar="VERSION", help="Return to this version, which must once have been served alone."
)
@change_options
@json_option
@place_options
def rollback(name: str, alias: str, modules: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Undo the last change of an alias.

    It serves again what it served before, including any traffic split. A rollout counts as one change, whether it is
    finished or still running. A second rollback undoes the change before that. The versions to be served again must
    still exist. A protected alias stays protected.
    """
    if options["to"] is not None and options["to_version"] is not None:
        raise click.UsageError("--to and --to-version were both given; pass one or the other")
    with open_for_change(modules) as db:
        found = db.artifacts.rollback_alias(name, alias, **options)
    _print_alias(found, as_json)


@alias.command()
@alias_arguments
@change_options
@place_options
def delete(name: str, alias: str, modules: tuple[str, ...], **options: Any) -> None:
    """Delete an alias. Its history and protection remain, and `holdall alias rollback` brings it back."""
    with open_for_change(modules) as db:
        deleted = db.artifacts.delete_alias(name, alias, **options)
    if deleted:
        say(f"alias {alias} of {name} deleted")
    else:
        say(f"{name} has no alias {alias}: nothing to delete")


@alias.command()
@alias_arguments
@click.option(
    "--key",
    "keys",
    metavar="TEXT",
    multiple=True,
    help="A stable key to pick a version for, like a user's ID; can be given several times.",
)
@click.option(
    "--salt",
    metavar="TEXT",
    help="Distribute keys differently; by default, the salt is the alias's name.",
)
@click.option(
    "--count",
    type=click.IntRange(1, 10_000_000),
    help="Pick this many times at random, and count the results.",
)
@json_option
@place_options
def resolve(
    name: str, alias: str, keys: tuple[str, ...], salt: str | None, count: int | None, as_json: bool
) -> None:
    """Pick a version to serve, as an application would.

    The same --key always gets the same version; without a key, one is picked at random by weight. Nothing is written.
    With --count, a chart shows how often each version was picked.
    """
    if count is not None and keys:
        raise click.UsageError("--count picks at random and --key does not; pass one or the other")
    with open_artifacts() as db:
        found = db.artifacts.alias(name, alias)
    if count is not None:
        _count(found, count, as_json)
        return
    picks = [(key, found.resolve(key, salt=salt)) for key in keys or (None,)]
    if as_json:
        show_json({"picks": [{"key": key, "version": version} for key, version in picks]})
    elif len(picks) == 1:
        show(f"{picks[0][1]}\n")
    else:
        show_table(("key", "version"), [(key or "", version) for key, version in picks])


alias.add_command(rollout)


# --- showing ----------------------------------------------------------------------------------------------


def _print_alias(alias: Alias, as_json: bool) -> None:
    if as_json:
        show_json(alias.describe())
    else:
        say(f"alias {alias.alias} of {alias.name} serves {_serves(alias)}")


def _serves(alias: Alias) -> str:
    return serves(alias.describe()["weights"])


def _row(change: AliasChange) -> tuple[str, ...]:
    what = change.action if change.of is None else f"{change.action} to {change.of}"
    if change.protected is not None:
        what += ", protected" if change.protected else ", unprotected"
    return (
        str(change.number),
        format_time(change.at),
        what,
        serves(change.weights),
        change.by or "",
        change.reason or "",
    )


def _count(alias: Alias, count: int, as_json: bool) -> None:
    """Pick many times, and show how often each version was picked."""
    drawn = Counter(alias.resolve() for _ in range(count))
    picks = {version: drawn[version] for version in alias.versions}
    if as_json:
        show_json({"count": count, "picks": picks, "shares": alias.shares})
        return
    width = max(map(len, picks))
    most = max(picks.values())
    for version, number in picks.items():
        bar = "█" * round(_BAR * number / most)
        show(f"{version:<{width}}  {bar:<{_BAR}}  {number / count:6.1%}  {number:,}\n")
