"""Expectations: what an artifact has to be for the caller's change to happen."""

from __future__ import annotations

from holdall.artifacts.home import Home, Pages
from holdall.artifacts.name import LATEST, display_version, encode_version_sk, number_of
from holdall.artifacts.record import VersionRow
from holdall.artifacts.version.content import object_sha256, revision_of
from holdall.artifacts.version.latest import Latest, is_in_line, look
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.errors import ArtifactChangedError, InvalidOptionsError


@dataclass(frozen=True, slots=True)
class Expected:
    """The digest and the revision that LATEST has to have, and the newest version; None: whatever it is."""

    sha256: str | None = None
    version: int | str | None = None
    revision: str | None = None

    def check_given(self) -> Expected:
        """Itself, if it can be expected of anything."""
        for option, value in (("expect_sha256", self.sha256), ("expect_revision", self.revision)):
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidOptionsError(f"{option} is {value!r:.60}, and has to be text")
        if self.version is not None and self.version not in (0, "0"):
            encode_version_sk(self.version)
        return self

    async def check(self, context: Context, home: Home, name: str, latest: Latest) -> str | None:
        """Refuse what is not so; returns the etag of the object that must still be there, None for any."""
        if (self.sha256, self.version, self.revision) == (None, None, None):
            return None
        if self.version is not None:
            _, newest = await newest_rows(context, home, name)
            self.check_version(name, newest)
        self.check_revision(name, latest)
        if self.sha256 is None and self.revision is None:
            return None
        info = await look(context, home, home.object_key(name, LATEST))
        if info is None or not latest.is_live:
            raise self.refusal(name, "there is no LATEST")
        if self.revision is not None and not is_in_line(latest, info):  # it is of what was there before
            raise self.refusal(name, "LATEST was replaced meanwhile")
        self.check_sha256(name, object_sha256(info))
        return info.etag

    def check_sha256(self, name: str, found: str | None) -> None:
        """Refuse another content."""
        if self.sha256 is not None and self.sha256 != found:
            raise self.refusal(name, f"LATEST has the sha256 {found}, not {self.sha256:.64}")

    def check_revision(self, name: str, latest: Latest) -> None:
        """Refuse another revision."""
        found = revision_of(latest.row, latest.head)
        if self.revision is not None and self.revision != found:
            raise self.refusal(name, f"LATEST has the revision {found}, not {self.revision:.40}")

    def check_version(self, name: str, newest: VersionRow | None) -> None:
        """Refuse when the newest version is another one; 0 stands for none."""
        if self.version is None:
            return
        wanted = None if self.version in (0, "0") else encode_version_sk(self.version)
        if wanted == LATEST:
            raise InvalidOptionsError(
                "expect_version is LATEST", hint="give the number of the newest version, or 0"
            )
        if wanted != (None if newest is None else newest.sk):
            shown = "there is none" if newest is None else f"it is {display_version(newest.sk)}"
            raise self.refusal(name, f"the newest version is not {self.version}: {shown}")

    @staticmethod
    def refusal(name: str, problem: str) -> ArtifactChangedError:
        """The error that says so."""
        return ArtifactChangedError(
            f"the artifact {name!r:.60} is not as expected: {problem}",
            hint="look at it again, and decide anew",
        )


async def newest_rows(context: Context, home: Home, name: str) -> tuple[VersionRow, VersionRow | None]:
    """The row of LATEST, and that of the newest version; anything else in the partition is skipped."""
    pages = Pages(context, home, VersionRow, home.query_versions(name, limit=2))
    latest = VersionRow.at(home, name, LATEST)
    while (rows := await pages.next()) is not None:
        for row in rows:
            if row.sk == LATEST:
                latest = row
            elif number_of(row.sk) is not None and row.is_version:
                return latest, row
        pages.widen(100)
    return latest, None
