"""Creating an owner with an attached file of 10 KB, through models over the wire, against boto3: CPU and requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from benchmarks import canned_server, s3_server
from benchmarks.harness import Figure
from benchmarks.relay import open_relay
from benchmarks.wire_client import Operation
from benchmarks.wire_race import Worker, one_processor, race

OURS, THEIRS = "attachment_ours:client", "attachment_peers:boto3"
FILES: dict[Operation, int] = {"attach": 1, "attach_many": 25}
ROUNDS = 20


def figures(workshop: Path) -> Iterator[Figure]:
    """CPU of an attachment, then the requests of one and of 25 on one owner, with the rate as a note."""
    with one_processor(), canned_server.serve_canned() as table, s3_server.serve_bucket() as bucket:
        endpoints = f"{table} {bucket}"
        with Worker(OURS, endpoints) as ours, Worker(THEIRS, endpoints) as theirs:
            for operation, files in FILES.items():
                result = race(ours, theirs, operation)
                details = (_words(files), "CPU", "against boto3")
                yield Figure("attachment_wire", details, result.ratio, 1 / 3, note=result.each(files))
        with (
            open_relay(table) as rows,
            open_relay(bucket) as bytes_,
            Worker(OURS, f"{rows.url} {bytes_.url}") as ours,
        ):
            for operation, files in FILES.items():
                ours.run(operation, 1)  # including requests that a process makes only once
                rows.take_methods()
                bytes_.take_methods()
                start = perf_counter()
                ours.run(operation, ROUNDS)
                seconds = perf_counter() - start
                count = len(rows.take_methods()) + len(bytes_.take_methods())
                each, bar = count / ROUNDS / files, 2 + 1 / min(files, 25)
                where = (_words(files), "requests for each file")
                note = f"{ROUNDS * files / seconds:,.0f} files/s, one owner after another"
                yield Figure("attachment_wire", where, each, bar, unit="", note=note)


def _words(files: int) -> str:
    return "an owner with a file" if files == 1 else f"an owner with {files} files"
