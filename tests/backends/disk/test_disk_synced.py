"""Which files a change syncs before it is acknowledged, and in which order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from disk_steps import run_script, strace_missing, trace_command

pytestmark = pytest.mark.torture

SYNC = re.compile(r" fsync\(\d+<([^>]*)>\) += 0")
PRINTED = re.compile(r' write\(1<[^>]*>, "(begin|ack)')
TAKES_PLACE = re.compile(r" (?:rename\w*|link\w*)\(.*\"key\"")
ATTRIBUTES = re.compile(r" link\w*\(.*\"key~")
REMOVED = re.compile(r" unlink\w*\(.*\"key\"")
MADE = re.compile(r' mkdir\w*\(\d+<([^>]*)>, "([^"]*)"')


def changes(tmp_path: Path, kind: str) -> list[list[str]]:
    """Return the system calls of each change, from its beginning to its acknowledgement."""
    reason = strace_missing()
    if reason is not None:
        pytest.skip(reason)
    trace = tmp_path / "trace"
    calls = "trace=write,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat"
    lines = run_script("disk_writer.py", tmp_path / "root", kind, prefix=trace_command(trace, calls))
    assert lines == ["begin", "ack"] * 3
    found: list[list[str]] = []
    under_way = False
    for line in trace.read_text().splitlines():
        printed = PRINTED.search(line)
        if printed is not None:
            under_way = printed[1] == "begin"
            if under_way:
                found.append([])
        elif under_way:
            found[-1].append(line)
    assert len(found) == 3
    return found


def place_of(calls: list[str], pattern: re.Pattern[str]) -> int:
    (place,) = [place for place, call in enumerate(calls) if pattern.search(call)]
    return place


def find_syncs(calls: list[str], name: str) -> list[int]:
    """Return the positions of the syncs of files and directories whose paths contain ``name``."""
    return [
        place
        for place, call in enumerate(calls)
        if (found := SYNC.search(call)) is not None and name in found[1]
    ]


@pytest.mark.parametrize("kind", ["put", "create", "upload"])
def test_bytes_and_attributes_are_synced_before_they_are_visible_and_the_directory_before_the_reply(
    tmp_path: Path, kind: str
) -> None:
    for number, calls in enumerate(changes(tmp_path, kind)):
        taken = place_of(calls, TAKES_PLACE)
        bytes_synced = find_syncs(calls[:taken], "/data" if kind == "upload" else "_/temporary/")
        notes_synced = find_syncs(calls[:taken], ".json")
        assert set(bytes_synced) - set(notes_synced), "the bytes were visible before they were synced"
        assert notes_synced, "the attributes were visible before they were synced"
        assert notes_synced[0] < place_of(calls, ATTRIBUTES) < taken
        assert find_syncs(calls[taken:], f"dir%20{number}="), (
            "the change was acknowledged before its directory was synced"
        )


@pytest.mark.parametrize("kind", ["put", "create", "upload"])
def test_a_new_directory_is_synced_before_it_contains_an_object(tmp_path: Path, kind: str) -> None:
    made = 0
    for calls in changes(tmp_path, kind):
        taken = place_of(calls, TAKES_PLACE)
        for place, call in enumerate(calls):
            found = MADE.search(call)
            if found is not None and "temporary" not in found[1] + found[2] and place < taken:
                made += 1
                assert find_syncs(calls[place:taken], found[1]), f"{found[2]} was not synced"
    assert made >= 3


def test_a_deletion_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    for number, calls in enumerate(changes(tmp_path, "delete")):
        assert find_syncs(calls[place_of(calls, REMOVED) :], f"dir%20{number}=")


def test_the_bytes_of_an_upload_are_synced_once(tmp_path: Path) -> None:
    for calls in changes(tmp_path, "upload"):
        assert len(find_syncs(calls, "/data")) == 1
