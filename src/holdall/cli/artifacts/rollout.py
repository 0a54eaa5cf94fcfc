"""``holdall alias rollout``: move an alias from one version to another in stages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.artifacts.place import (
    alias_arguments,
    allow_protected_option,
    app_option,
    because,
    change_options,
    open_artifacts,
    open_for_change,
    place_options,
)
from holdall.cli.output import format_time, json_option, say, show_json, show_pairs
from holdall.cli.suggestion import suggest_version
from holdall.cli.times import duration

if TYPE_CHECKING:
    from holdall.artifacts import Rollout


def _stages(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> list[tuple[int, timedelta | None]]:
    """Stages as users type them: ``5:1h``, or ``50`` to wait for approval."""
    found = []
    for text in texts:
        percent, colon, time = text.partition(":")
        if not (percent.isascii() and percent.isdigit()) or (colon and not time):
            raise click.BadParameter(f"{text!r} is not a stage; write 5:1h, or 50 to wait for approval")
        found.append((int(percent), duration(context, parameter, time or None)))
    return found


@click.group()
@place_options
def rollout() -> None:
    """Move an alias to another version in stages.

    Each stage gives the new version a larger share of the traffic. A worker starts each stage when it is due. Any other
    change to the alias ends the rollout.
    """


@rollout.command()
@alias_arguments
@click.argument("version", shell_complete=suggest_version)
@click.option(
    "--stage",
    "stages",
    metavar="PERCENT[:DURATION]",
    multiple=True,
    required=True,
    callback=_stages,
    help="The share of VERSION in per cent, and for how long: 5:1h. A stage without a duration lasts until you "
    "advance it. After the last stage, VERSION gets 100 per cent.",
)
@click.option(
    "--approve", is_flag=True, help="Wait for approval after every stage, even if it has a duration."
)
@change_options
@json_option
@place_options
def start(
    name: str,
    alias: str,
    version: str,
    stages: list[tuple[int, timedelta | None]],
    modules: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Start a rollout of VERSION; its first stage begins now."""
    with open_for_change(modules) as db:
        found = db.artifacts.start_rollout(name, alias, version, stages, **options)
    _print_rollout(found, as_json)


@rollout.command()
@alias_arguments
@json_option
@place_options
def show(name: str, alias: str, as_json: bool) -> None:
    """Show the current rollout of an alias, or its last one."""
    with open_artifacts() as db:
        found = db.artifacts.rollout(name, alias)
    if as_json:
        show_json(found.describe())
    else:
        show_pairs(_words(found))


@rollout.command()
@alias_arguments
@change_options
@json_option
@place_options
def advance(name: str, alias: str, modules: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Start the next stage now.

    This approves a stage that waits, ends the current stage early, or retries after a failure.
    """
    with open_for_change(modules) as db:
        found = db.artifacts.advance_rollout(name, alias, **options)
    _print_rollout(found, as_json)


@rollout.command()
@alias_arguments
@json_option
@place_options
def pause(name: str, alias: str, as_json: bool) -> None:
    """Pause a rollout at its current stage."""
    with open_for_change() as db:
        found = db.artifacts.pause_rollout(name, alias)
    _print_rollout(found, as_json)


@rollout.command()
@alias_arguments
@json_option
@place_options
def resume(name: str, alias: str, as_json: bool) -> None:
    """Resume a paused rollout, with the time that its stage had left."""
    with open_for_change() as db:
        found = db.artifacts.resume_rollout(name, alias)
    _print_rollout(found, as_json)


@rollout.command()
@alias_arguments
@allow_protected_option
@because
@app_option
@json_option
@place_options
def abort(name: str, alias: str, modules: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """End a rollout; the alias serves again what it served before."""
    with open_for_change(modules) as db:
        found = db.artifacts.abort_rollout(name, alias, **options)
    _print_rollout(found, as_json)


# --- showing ----------------------------------------------------------------------------------------------


def _print_rollout(rollout: Rollout, as_json: bool) -> None:
    if as_json:
        show_json(rollout.describe())
        return
    served = 0 if rollout.state == "aborted" else rollout.percent
    say(
        f"rollout of version {rollout.version} to {rollout.alias} of {rollout.name} is {rollout.state}: "
        f"the version gets {served} %{_until(rollout)}"
    )


def _until(rollout: Rollout) -> str:
    if rollout.due is not None:
        return f" until {format_time(rollout.due)}"
    return " until you advance the rollout" if rollout.state == "waiting" else ""


def _words(rollout: Rollout) -> dict[str, str]:
    words = {
        "artifact": rollout.name,
        "alias": rollout.alias,
        "from": rollout.base,
        "to": rollout.version,
        "state": rollout.state,
        "stage": f"{rollout.stage + 1} of {len(rollout.stages)}: {rollout.percent} %",
        "stages": ", ".join(_stage(percent, seconds) for percent, seconds in rollout.stages),
        "started": format_time(rollout.started_at),
    }
    if rollout.due is not None:
        words["next"] = format_time(rollout.due)
    if rollout.left is not None:
        words["left"] = _duration(rollout.left)
    for each in ("by", "reason", "problem"):
        text = getattr(rollout, each)
        if text is not None:
            words[each] = text
    words["revision"] = rollout.revision
    return words


def _stage(percent: int, seconds: float | None) -> str:
    if percent == 100:
        return "100 %"
    return f"{percent} % " + ("until advanced" if seconds is None else f"for {_duration(seconds)}")


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
