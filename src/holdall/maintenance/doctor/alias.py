"""The check of aliases: against the versions that they serve, the notes of these, their history and their rollouts.

An alias, its history and the notes of its versions change together. So if the alias is the same before and after a
look at one of the others, the two should agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from holdall.artifacts.alias.alias import Alias
from holdall.artifacts.alias.flow import note_service
from holdall.artifacts.alias.state import AliasState, read_aliases, read_state
from holdall.artifacts.home import Home
from holdall.artifacts.name import LATEST, display_version, encode_meta_pk
from holdall.artifacts.record import (
    FIELDS,
    AliasNote,
    Head,
    Note,
    RolloutRecord,
    VersionNote,
    VersionRow,
)
from holdall.artifacts.rollout.job import next_stage
from holdall.artifacts.rollout.move import enqueue_turn, see_rollout
from holdall.artifacts.rollout.rollout import rollout_of
from holdall.jobs.argument import format_arguments
from holdall.maintenance.doctor.job import is_enqueued
from holdall.maintenance.doctor.work import Work
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import RecordPages, fetch, fetch_all

_LONG_AGO = timedelta(hours=1)


class AliasCheck:
    """Looks at the aliases of one artifact."""

    def __init__(self, work: Work, home: Home, name: str) -> None:
        self._work = work
        self._port = work.context.port
        self._home = home
        self._name = name

    async def check(self) -> None:
        """Look at all of them."""
        aliases = await read_aliases(self._work.context, self._home, self._name)
        for alias in aliases:
            await self._check_versions(alias)
        await self._check_notes(aliases)
        pages = self._list(AliasNote, AliasNote.prefix)
        names = {alias.alias for alias in aliases}
        while (notes := await pages.next_page()) is not None:
            names |= {note.sk.removeprefix(AliasNote.prefix) for note in notes}
        for name in sorted(names):
            await self._check_history(name)
        rollouts = self._list(RolloutRecord, RolloutRecord.prefix)
        while (found := await rollouts.next_page()) is not None:
            for record in found:
                alias_name = record.sk.removeprefix(RolloutRecord.prefix)
                subject = f"rollout of {alias_name} of {self._name}"
                await self._work.examine(
                    "artifacts", subject, self._check_rollout(subject, alias_name, record)
                )

    def _list(self, kind: type[Any], prefix: str) -> RecordPages[Any]:
        query = self._home.query(encode_meta_pk(self._name), prefix=prefix, limit=100)
        return RecordPages(self._port, kind, query, self._home.address_of)

    def _subject(self, alias: str) -> str:
        return f"alias {alias} of {self._name}"

    # --- versions -------------------------------------------------------------------------------------------

    async def _check_versions(self, alias: Alias) -> None:
        """Find versions that an alias serves, and that are missing or deleted."""
        rows = [VersionRow.at(self._home, self._name, sk) for sk, _ in alias.arms]
        for row in await fetch_all(self._port, rows):
            if row.is_live:
                continue
            now = (await read_state(self._work.context, self._home, self._name, alias.alias)).value()
            if now is None or now.arms != alias.arms:
                continue  # it was changed meanwhile
            what = "is deleted" if row.is_version else "does not exist"
            message = f"it serves version {display_version(row.sk)}, which {what}"
            await self._work.find("artifacts", "error", self._subject(alias.alias), message)

    # --- notes ----------------------------------------------------------------------------------------------

    async def _check_notes(self, aliases: Sequence[Alias]) -> None:
        """Compare which aliases serve a version with what its note records."""
        served: dict[str, set[str]] = {}
        for each in aliases:
            for sk, _ in each.arms:
                served.setdefault(sk, set()).add(each.alias)
        notes: list[Note] = [await fetch(self._port, Head.of(self._home, self._name))]
        pages = self._list(VersionNote, VersionNote.prefix)
        while True:
            for note in notes:
                sk = LATEST if isinstance(note, Head) else note.sk.removeprefix(VersionNote.prefix)
                for alias in sorted(served.pop(sk, set()) ^ {*note.served_by}):
                    await self._check_note(sk, alias)
            found = await pages.next_page()
            if found is None:
                break
            notes = found
        for sk, names in served.items():  # their versions have no note
            for alias in sorted(names):
                await self._check_note(sk, alias)

    async def _check_note(self, sk: str, alias: str) -> None:
        context, home = self._work.context, self._home
        before = await read_state(context, home, self._name, alias)
        note, row = await fetch(
            self._port, Note.at(home, self._name, sk), VersionRow.at(home, self._name, sk)
        )
        serves, is_noted = sk in dict(before.arms), alias in note.served_by
        if serves == is_noted or (serves and not row.is_live) or await self._has_changed(before):
            return

        async def mend() -> bool:
            change = Change(context)
            right = Note.served_by.add([alias]) if serves else Note.served_by.discard([alias])
            note_service(change, note, right, expect=[note.same(Note.served_by, Note.referred)])
            change.require(before.row, before.row.same(*FIELDS))
            return await commit_once(change) is None

        words = "is not recorded as" if serves else "is recorded as"
        message = f"version {display_version(sk)} {words} served by it"
        await self._work.find(
            "artifacts", "notice", self._subject(alias), message, "correct the version's note", mend
        )

    async def _has_changed(self, before: AliasState) -> bool:
        after = await read_state(self._work.context, self._home, self._name, before.alias)
        return (after.row.item, after.note.item) != (before.row.item, before.note.item)

    # --- histories ------------------------------------------------------------------------------------------

    async def _check_history(self, alias: str) -> None:
        """Find an alias whose changes are counted wrong: a change needs a number that no other change has."""
        before = await read_state(self._work.context, self._home, self._name, alias)
        query = self._home.query(
            encode_meta_pk(self._name), reverse=True, limit=1, prefix=f"history#{alias}#"
        )
        changes = (await self._port.send(query)).items
        last = int(self._home.sk_of(changes[0]).rpartition("#")[2]) if changes else 0
        note = before.note
        if last == note.changes or await self._has_changed(before):
            return
        if last < note.changes:
            message = f"its history ends with change {last}, but it was changed {note.changes} times"
            await self._work.find("artifacts", "notice", self._subject(alias), message)
            return

        async def mend() -> bool:
            change = Change(self._work.context)
            tag = () if note.is_stored else (AliasNote.tag(),)
            same = note.same(AliasNote.revision, AliasNote.changes)
            change.update(note, AliasNote.changes.set(last), *tag, expect=[same])
            return await commit_once(change) is None

        message = f"its history has change {last}, but its note counts {note.changes}, so the alias cannot be changed"
        await self._work.find(
            "artifacts", "error", self._subject(alias), message, "count the changes of its history", mend
        )

    # --- rollouts -------------------------------------------------------------------------------------------

    async def _check_rollout(self, subject: str, alias: str, record: RolloutRecord) -> None:
        """Find a rollout that no job continues."""
        rollout, context = rollout_of(self._name, alias, record), self._work.context
        if rollout.state != "running" or rollout.update_at > self._port.now() - _LONG_AGO:
            return
        arguments = (rollout.name, rollout.alias, rollout.id, rollout.turn)
        if await is_enqueued(self._work, next_stage, containing=format_arguments(arguments)):
            return
        seen = await see_rollout(context, self._home, self._name, alias)
        if seen.rollout.revision != rollout.revision or not seen.current:
            return  # it went on, or its alias was changed, which ends it

        mend = partial(enqueue_turn, context, rollout)
        message = (
            "it is running, but the job that begins its next stage does not exist or has failed for good"
        )
        await self._work.find("artifacts", "error", subject, message, "enqueue the job again", mend)
