"""Expectations: the state that an artifact must have for the caller's change to happen."""

from __future__ import annotations

from holdall.artifacts.home import Home
from holdall.artifacts.name import LATEST, display_version, encode_version_sk, number_of
from holdall.artifacts.record import VersionRow
from holdall.artifacts.version.content import object_sha256, revision_of
from holdall.artifacts.version.latest import Latest, is_in_line, read_latest
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.errors import ArtifactChangedError, InvalidOptionsError
from holdall.files.transfer import find_object


@dataclass(frozen=True, slots=True)
class Expected:
    """The digest and revision that LATEST must have, and the newest version; None accepts any."""

    sha256: str | None = None
    version: int | str | None = None
    revision: str | None = None

    def check_given(self) -> Expected:
        """Return the expectations; `InvalidOptionsError` if they cannot be met by any artifact."""
        for option, value in (("expect_sha256", self.sha256), ("expect_revision", self.revision)):
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidOptionsError(f"{option} must be a non-empty string, not {value!r:.60}")
        if self.version is not None and self.version not in (0, "0"):
            encode_version_sk(self.version)
        return self

    async def check(
        self, context: Context, home: Home, name: str, latest: Latest | None = None
    ) -> str | None:
        """Raise `ArtifactChangedError` if an expectation is not met; return the etag the object must have, or None.

        If anything is expected, LATEST is read unless the caller has read it.
        """
        if self == Expected():
            return None
        if latest is None:
            latest = await read_latest(context, home, name)
        if self.version is not None:
            _, newest = await read_newest_rows(context, home, name)
            self.check_version(name, newest)
        self.check_revision(name, latest)
        if self.sha256 is None and self.revision is None:
            return None
        info = await find_object(context, home.service, home.object_key(name, LATEST))
        if info is None or not latest.is_live:
            raise self.refusal(name, "it has no LATEST")
        # if they differ, the row's revision belongs to the previous object
        if self.revision is not None and not is_in_line(latest, info):
            raise self.refusal(name, "another process has replaced LATEST")
        self.check_sha256(name, object_sha256(info))
        return info.etag

    def check_sha256(self, name: str, found: str | None) -> None:
        """Raise if LATEST has other content."""
        if self.sha256 is not None and self.sha256 != found:
            raise self.refusal(name, f"LATEST has the SHA-256 {found}, not {self.sha256:.64}")

    def check_revision(self, name: str, latest: Latest) -> None:
        """Raise if LATEST has another revision."""
        if self.revision is None:
            return
        found = revision_of(latest.row, latest.head)
        if self.revision != found:
            raise self.refusal(name, f"LATEST has revision {found}, not {self.revision:.40}")

    def check_version(self, name: str, newest: VersionRow | None) -> None:
        """Raise if the newest version is another one; 0 means that there is none."""
        if self.version is None:
            return
        wanted = None if self.version in (0, "0") else encode_version_sk(self.version)
        if wanted == LATEST:
            raise InvalidOptionsError(
                "expect_version cannot be LATEST",
                hint="pass the number of the newest version, or 0 if there is none yet",
            )
        if wanted != (None if newest is None else newest.sk):
            shown = "there is no version yet" if newest is None else f"it is {display_version(newest.sk)}"
            raise self.refusal(name, f"the newest version is not {self.version}; {shown}")

    @staticmethod
    def refusal(name: str, problem: str) -> ArtifactChangedError:
        """The error for an expectation that is not met."""
        return ArtifactChangedError(
            f"the artifact {name!r:.60} is not as expected: {problem}",
            hint="it has changed since you read it: read it again, then decide",
        )


async def read_newest_rows(context: Context, home: Home, name: str) -> tuple[VersionRow, VersionRow | None]:
    """Read the rows of LATEST and of the newest version; anything else in the partition is skipped."""
    query = home.query_versions(name, limit=2)
    latest = VersionRow.at(home, name, LATEST)
    while True:
        page = await context.port.send(query)
        for item in page.items:
            row = VersionRow(home.address_of(item), item)
            if row.sk == LATEST:
                latest = row
            elif number_of(row.sk) is not None and row.is_version:
                return latest, row
        if page.last_key is None:
            return latest, None
        query = replace(query, limit=100, start_after=page.last_key)
