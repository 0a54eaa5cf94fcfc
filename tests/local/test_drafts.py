"""Drafts: they are written beside their target and resumed where an earlier download ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdall.core.digests import Digests
from holdall.errors import InvalidOptionsError
from holdall.local.draft import Draft, drop_draft, hash_draft, open_draft, place_draft, write_draft

MARK = "0123456789abcdef"


def begin(path: Path, *, resume: bool = True) -> Draft:
    draft = Draft(path, MARK)
    open_draft(draft, resume)
    return draft


def test_two_downloads_that_resume_at_once_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "it"
    first = begin(path)
    write_draft(first, b"begin")
    first.file.flush()
    second = begin(path)
    assert second.done == 5
    write_draft(second, b"ning")
    write_draft(first, b"ning")
    place_draft(first)
    drop_draft(second, keep=True)
    assert path.read_bytes() == b"beginning"


def test_a_resumed_draft_is_hashed_and_continued(tmp_path: Path) -> None:
    earlier = begin(tmp_path / "it")
    write_draft(earlier, b"abc")
    drop_draft(earlier, keep=True)
    draft, digests, expected = begin(tmp_path / "it"), Digests(["md5"]), Digests(["md5"])
    hash_draft(draft, digests, 0, 2)
    hash_draft(draft, digests, 2, 1)
    write_draft(draft, b"def", digests)
    place_draft(draft)
    expected.update(b"abcdef")
    assert (tmp_path / "it").read_bytes() == b"abcdef"
    assert digests.md5 == expected.md5


@pytest.mark.parametrize("resume", [True, False])
def test_a_draft_never_follows_a_symbolic_link(tmp_path: Path, resume: bool) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / f".it.{MARK}.part").symlink_to(victim)
    with pytest.raises(OSError):
        begin(tmp_path / "it", resume=resume)
    assert victim.read_bytes() == b"mine"


def test_an_impossible_place_is_refused_and_dropping_the_draft_is_harmless(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "it", Path("/")):
        draft = Draft(path, MARK)
        with pytest.raises(InvalidOptionsError):
            open_draft(draft, False)
        drop_draft(draft)
    assert list(tmp_path.iterdir()) == []


class FullDisk:
    """A file on a full disk: closing it fails."""

    def close(self) -> None:
        raise OSError(28, "no space left on device")


def test_dropping_a_draft_raises_nothing_so_that_the_first_error_is_seen(tmp_path: Path) -> None:
    draft = begin(tmp_path / "it", resume=False)
    draft.file.close()
    draft.file = FullDisk()
    drop_draft(draft)
    assert list(tmp_path.iterdir()) == []
