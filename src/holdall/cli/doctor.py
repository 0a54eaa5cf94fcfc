"""``holdall doctor``: find out what is wrong with a database, and repair it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from holdall.cli.confirmation import confirm
from holdall.cli.module import load_models, models_option
from holdall.cli.options import rate_option, segments_option
from holdall.cli.output import Refusal, json_option, say, show, show_json, show_table
from holdall.cli.phrase import format_count, format_size
from holdall.cli.progress import run_progress
from holdall.cli.session import command_text, open_database, url_option

if TYPE_CHECKING:
    from holdall import Database
    from holdall.maintenance import DoctorReport
    from holdall.tables import PolicyFeature


def _check_names(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> Any:
    from holdall.maintenance import CheckName

    known = get_args(CheckName)
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is not a check; the checks are {', '.join(known)}")
    return names or None


@click.command()
@models_option()
@click.option(
    "--only", multiple=True, metavar="CHECK", callback=_check_names, help="Make only this check; repeatable."
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="FEATURE",
    help="Check only the permissions of this feature, named as for table policy; repeatable.",
)
@click.option("--repair", is_flag=True, help="Repair what can be repaired, after showing what that is.")
@click.option("--yes", is_flag=True, help="Repair without asking.")
@segments_option(1, "a table to read")
@rate_option("items to read")
@click.option("--no-figures", is_flag=True, help="Do not store the number and size of each model's items.")
@json_option
@url_option
def doctor(
    names: tuple[str, ...],
    features: tuple[PolicyFeature, ...],
    repair: bool,
    yes: bool,
    no_figures: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Check a database: its configuration, tables, items and files.

    Name your models with --models; without them, their tables and items are not checked. Nothing is changed, except
    that the number and size of each model's items are stored for the console. The database can be in use.

    The exit status is 1 if something is wrong. With --repair, the faults are listed, and those that can be repaired
    are repaired once you confirm; each only if it is still as it was found. Nothing that may be needed is deleted.
    """
    if yes and not repair:
        raise click.UsageError("--yes is only for --repair")
    if repair and as_json and not yes:
        raise click.UsageError("--repair with --json cannot ask; add --yes if you are sure")
    options |= {"models": load_models(names), "features": features or None, "store_figures": not no_figures}
    with open_database() as db:
        report = _examine(db, options)
        if repair and any(each.repair for each in report.findings):
            if not yes:
                _show_findings(report)
                count = sum(bool(each.repair) for each in report.findings)
                say(f"{format_count(count, 'fault')} can be repaired; other faults are left alone")
                confirm("Repair?", "nothing was repaired", "nothing was repaired")
            report = _examine(db, {**options, "repair": True})
    if as_json:
        facts = [{**each._asdict(), "counted_at": each.counted_at.isoformat()} for each in report.figures]
        found = [each._asdict() for each in report.findings]
        counts = {"found": report.found, "repaired": report.repaired, "scanned": report.scanned}
        untried = [each._asdict() for each in report.untried]
        show_json(
            {"healthy": report.is_healthy, **counts, "findings": found, "models": facts, "untried": untried}
        )
    else:
        _show_figures(report)
        _show_findings(report)
        _show_untried(report)
    if not report.is_healthy:
        left = report.found - report.repaired
        hint = None
        if not repair and any(each.repair for each in report.findings):
            words = "".join(f" --models {name}" for name in names)
            hint = f"run {command_text(f'doctor --repair{words}')} to repair what can be repaired"
        outcome = "found" if report.found == left else "not repaired"
        raise Refusal(f"{format_count(left, 'fault')} {'was' if left == 1 else 'were'} {outcome}", hint)
    healthy = f"{format_count(report.repaired, 'fault')} repaired" if report.repaired else "nothing is wrong"
    say(f"{format_count(report.scanned, 'item')} read: {healthy}")


def _examine(db: Database, options: dict[str, Any]) -> DoctorReport:
    with run_progress("doctor", None, _phrase) as progress:
        return db.doctor(progress=progress, **options)


def _phrase(report: DoctorReport) -> str:
    return format_count(report.found, "finding")


def _show_figures(report: DoctorReport) -> None:
    if report.figures:
        rows = [(each.model, f"{each.items:,}", format_size(each.bytes)) for each in report.figures]
        show_table(("MODEL", "ITEMS", "SIZE"), rows)
        show("\n")


def _show_untried(report: DoctorReport) -> None:
    """A line for all actions that were not tried for the same reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for action, subject, reason in report.untried:
        reasons.setdefault((subject, reason), []).append(action)
    for (subject, reason), actions in reasons.items():
        verb = "was" if len(actions) == 1 else "were"
        say(f"{', '.join(actions)} on {subject} {verb} not tried: {reason}")


def _show_findings(report: DoctorReport) -> None:
    if not report.findings:
        return
    rows = []
    for each in report.findings:
        done = f"done: {each.repair}" if each.repaired else each.repair or "–"
        fault = each.message.replace("\n  ", "; ")
        rows.append((each.severity, each.check, each.subject, fault, done))
    show_table(("SEVERITY", "CHECK", "SUBJECT", "FAULT", "REPAIR"), rows)
    if report.found > len(rows):
        show(f"… and {report.found - len(rows):,} more\n")
