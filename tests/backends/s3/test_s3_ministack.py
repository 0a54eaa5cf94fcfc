"""The S3 service on a real server: other regions, virtual hosts, races with lost replies, and storage options.

The contract, which runs on the same server, tests each request.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from rig.servers import ENVIRONMENT, start_server
from s3_rig import md5_of, sha256_of
from wire_rig import COLOURS, Colour

from holdall.backends.aws.awaiting import AwaitingPace
from holdall.backends.aws.blocking import BlockingPace
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import Endpoint, resolve_endpoint
from holdall.backends.aws.exchange import Broken
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import Reply
from holdall.backends.aws.transport import Transport
from holdall.backends.s3 import S3Service
from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    DeleteObjects,
    DescribeService,
    GetObject,
    HeadObject,
    ListObjects,
    ListUploads,
    ObjectHeaders,
    PutObject,
    SignUrl,
    UploadPart,
)
from holdall.core.requests import Request
from holdall.errors import (
    ConfigurationError,
    HoldallError,
    OutcomeUnknown,
    PreconditionFailedError,
    StoreClosedError,
)

RACERS = 8


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


Opening = Callable[..., S3Service]


@pytest.fixture
def open_s3() -> Iterator[Opening]:
    """A function that opens services on ministack, by default in the test's own bucket."""
    services: list[S3Service] = []
    name = f"holdall-{uuid4().hex[:12]}"

    def open_service(
        bucket: str = name, *, region: str = "us-east-1", host: str | None = None, **options: Any
    ) -> S3Service:
        endpoint = resolve_endpoint("s3", endpoint=start_server("ministack"), region=region)
        if host is not None:
            endpoint = Endpoint(endpoint.scheme, host, endpoint.port, region)
        service = S3Service(bucket, endpoint, find_credentials(environment=ENVIRONMENT), **options)
        services.append(service)
        return service

    yield open_service
    for service in services:
        service.close()


def ask(colour: Colour, service: S3Service, *requests: Request[Any]) -> Any:
    """Send the requests and return the last reply."""
    if colour == "blocking":
        return [service.send_blocking(request) for request in requests][-1]

    async def flow() -> Any:
        return [await service.send_awaiting(request) for request in requests][-1]

    return asyncio.run(flow())


# --- buckets ---


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1"])
def test_a_bucket_can_be_created_in_any_region(open_s3: Opening, region: str) -> None:
    service = open_s3(region=region)
    assert not service.bucket_exists()
    service.create_bucket()
    service.create_bucket()
    assert service.bucket_exists()


def test_the_error_of_a_missing_bucket_names_it(colour: Colour, open_s3: Opening) -> None:
    for request in (PutObject("", "a", b"words"), HeadObject("", "a"), GetObject("", "a")):
        service = open_s3()
        named = rf"there is no bucket {service._delivery.place.bucket} at(?s:.*)create the bucket"
        with pytest.raises(ConfigurationError, match=named):
            ask(colour, service, request)


def test_a_bucket_in_another_region_is_found(colour: Colour, open_s3: Opening) -> None:
    open_s3(region="eu-west-1").create_bucket()
    service = open_s3(region="us-east-1")
    assert ask(colour, service, PutObject("", "a", b"words"), HeadObject("", "a")).size == 5
    elsewhere = open_s3(region="us-west-2")
    assert ask(colour, elsewhere, HeadObject("", "a")).size == 5
    assert open_s3(region="us-west-2").bucket_exists()


def test_a_bucket_can_be_reached_by_its_virtual_host(
    colour: Colour, open_s3: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo

    def local(host: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        return real("127.0.0.1" if name.endswith(".localhost") else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    by_path = open_s3()
    by_path.create_bucket()
    by_host = open_s3(host="localhost", style="virtual")
    found = ask(colour, by_host, PutObject("", "a/ü b", b"words"), GetObject("", "a/ü b"))
    assert found.body == b"words"
    assert ask(colour, by_path, GetObject("", "a/ü b")).body == b"words"
    page = ask(colour, by_host, ListObjects(""))
    assert [listed.key for listed in page.objects] == ["a/ü b"]


def test_a_service_with_a_prefix_sees_only_keys_with_that_prefix(colour: Colour, open_s3: Opening) -> None:
    whole = open_s3()
    whole.create_bucket()
    below = open_s3(prefix="/up/loads/")
    ask(colour, whole, PutObject("", "up/loadsmore", b"x"), PutObject("", "a", b"x"))
    ask(colour, below, PutObject("", "a", b"words"), BeginUpload("", "b"))
    assert [found.key for found in ask(colour, below, ListObjects("")).objects] == ["a"]
    assert [found.key for found in ask(colour, below, ListUploads(""))] == ["b"]
    assert ask(colour, whole, GetObject("", "up/loads/a")).body == b"words"


def test_a_service_describes_its_part_sizes_and_parallelism(colour: Colour, open_s3: Opening) -> None:
    traits = ask(
        colour, open_s3(part_size=6 * 1024**2, single_put=7 * 1024**2, parallel=3), DescribeService("")
    )
    assert (traits.single_put, traits.part_size, traits.parallel) == (7 * 1024**2, 6 * 1024**2, 3)
    assert ask(colour, open_s3(), DescribeService("")).parallel > 1


def test_a_closed_service_refuses_requests(colour: Colour, open_s3: Opening) -> None:
    service = open_s3()
    service.close()
    service.close()
    with pytest.raises(StoreClosedError):
        ask(colour, service, HeadObject("", "a"))


# --- objects ---


def test_storage_options_reach_the_server(colour: Colour, open_s3: Opening) -> None:
    open_s3().create_bucket()
    service = open_s3(encryption="AES256", storage_class="STANDARD_IA")
    url = ask(
        colour,
        service,
        PutObject("", "a", b"words", ObjectHeaders("text/plain")),
        SignUrl("", "a", "GET", 60),
    ).url
    reply = fetch("GET", url)
    assert reply.headers["x-amz-server-side-encryption"] == "AES256"
    assert reply.headers["x-amz-storage-class"] == "STANDARD_IA"
    assert reply.body == b"words"


def test_digests_of_a_put_are_returned_by_a_head(colour: Colour, open_s3: Opening) -> None:
    service = open_s3()
    service.create_bucket()
    put = PutObject("", "a", b"words", md5=md5_of(b"words"), sha256=sha256_of(b"words"))
    info = ask(colour, service, put, HeadObject("", "a"))
    assert (info.md5, info.sha256) == (md5_of(b"words"), sha256_of(b"words"))


def test_more_than_a_page_of_objects_is_listed_in_pages_and_deleted_at_once(open_s3: Opening) -> None:
    service = open_s3()
    service.create_bucket()
    keys = [f"{number:04}" for number in range(1003)]
    for key in keys:
        service.send_blocking(PutObject("", key, b""))
    first = service.send_blocking(ListObjects(""))
    assert (len(first.objects), first.next) == (1000, "0999")
    second = service.send_blocking(ListObjects("", after=first.next))
    assert ([found.key for found in second.objects], second.next) == (["1000", "1001", "1002"], None)
    assert service.send_blocking(DeleteObjects("", tuple(keys[:1000]))).failures == {}
    assert len(service.send_blocking(ListObjects("")).objects) == 3


class Fetched(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


def fetch(
    method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Fetched:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    connection.request(method, f"{parts.path}?{parts.query}", body, dict(headers or {}))
    reply = connection.getresponse()
    names = {name.lower(): text for name, text in reply.getheaders()}
    found = Fetched(reply.status, names, reply.read())
    connection.close()
    return found


def test_a_signed_url_serves_the_object_with_the_requested_headers(colour: Colour, open_s3: Opening) -> None:
    service = open_s3()
    service.create_bucket()
    served = ObjectHeaders("text/plain", 'attachment; filename="a b.txt"')
    url = ask(colour, service, PutObject("", "ü b", b"words"), SignUrl("", "ü b", "GET", 60, served)).url
    reply = fetch("GET", url)
    assert (reply.status, reply.body) == (200, b"words")
    assert reply.headers["content-type"] == "text/plain"
    assert reply.headers["content-disposition"] == 'attachment; filename="a b.txt"'
    assert fetch("GET", url.replace("X-Amz-Signature=", "X-Amz-Signature=0")).status == 403


def test_a_signed_url_accepts_only_the_bytes_that_it_was_signed_for(colour: Colour, open_s3: Opening) -> None:
    service = open_s3()
    service.create_bucket()
    signed = ask(
        colour,
        service,
        SignUrl("", "a", "PUT", 60, ObjectHeaders("text/plain"), size=5, md5=md5_of(b"words")),
    )
    assert fetch("PUT", signed.url, b"other", signed.headers).status == 400
    assert fetch("PUT", signed.url, b"words", {**signed.headers, "content-type": "text/html"}).status == 403
    assert fetch("PUT", signed.url, b"words", signed.headers).status == 200
    info = ask(colour, service, HeadObject("", "a"))
    assert (info.size, info.headers.content_type) == (5, "text/plain")


# --- concurrency ---


def test_threads_and_event_loops_share_a_service(open_s3: Opening) -> None:
    service = open_s3()
    service.create_bucket()
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            body = bytes([number]) * (1 + number * 100_000)
            colour: Colour = "blocking" if number % 2 else "awaiting"
            for turn in range(3):
                key = f"{number}/{turn}"
                assert ask(colour, service, PutObject("", key, body), GetObject("", key)).body == body
        except BaseException as error:  # noqa: BLE001 - reported below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


class LossyNetwork:
    """Loses some requests and some replies at random, and counts them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.lost = 0

    def fate(self, method: str) -> str:
        fate = (
            self._random.choice(["fine", "fine", "lost request", "lost reply"])
            if method != "HEAD"
            else "fine"
        )
        self.lost += fate != "fine"
        return fate


class LossyPace:
    """Exchanges over a lossy network, without pauses."""

    def __init__(self, network: LossyNetwork) -> None:
        super().__init__()
        self._network = network

    async def sleep(self, seconds: float) -> None:
        pass

    async def exchange(self, transport: Transport, within: Limit, method: str, *parcel: Any) -> Reply:
        fate = self._network.fate(method)
        if fate == "lost request":
            raise Broken("lost on the way")
        reply: Reply = await super().exchange(transport, within, method, *parcel)  # type: ignore[misc]
        if fate == "lost reply":
            raise Broken("lost on the way back")
        return reply


class LossyBlockingPace(LossyPace, BlockingPace):
    pass


class LossyAwaitingPace(LossyPace, AwaitingPace):
    pass


def make_lossy(service: S3Service, seed: int) -> LossyNetwork:
    network = LossyNetwork(seed)
    service._blocking, service._awaiting = LossyBlockingPace(network), LossyAwaitingPace(network)
    return network


def outcomes_of(services: list[S3Service], request_of: Callable[[int], Request[Any]]) -> list[Any]:
    """Send the requests at the same time, half of them async, and return their outcomes."""
    found: list[Any] = [None] * len(services)
    start = threading.Barrier(len(services))

    def race(number: int) -> None:
        start.wait()
        try:
            found[number] = ask(COLOURS[number % 2], services[number], request_of(number))
        except HoldallError as error:
            found[number] = error

    threads = [threading.Thread(target=race, args=(number,)) for number in range(len(services))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("seed", range(6))
def test_one_of_many_creations_succeeds_on_a_lossy_network(open_s3: Opening, seed: int) -> None:
    open_s3().create_bucket()
    services = [open_s3(conditional_puts=True) for _ in range(RACERS)]
    lost = [make_lossy(service, seed * 100 + number) for number, service in enumerate(services)]
    found = outcomes_of(
        services, lambda number: PutObject("", "a", b"from %d" % number, if_absent=f"put-{number}")
    )
    reader = open_s3()
    there = reader.send_blocking(GetObject("", "a"))
    winners = [number for number, outcome in enumerate(found) if not isinstance(outcome, HoldallError)]
    assert sum(losses.lost for losses in lost) > 0
    assert len(winners) == 1
    assert there.body == b"from %d" % winners[0]
    assert there.info.put_id == f"put-{winners[0]}"
    others = [outcome for outcome in found if isinstance(outcome, HoldallError)]
    assert all(isinstance(outcome, PreconditionFailedError) for outcome in others), others


@pytest.mark.parametrize("seed", range(6))
def test_one_of_many_replacements_succeeds_on_a_lossy_network(open_s3: Opening, seed: int) -> None:
    first = open_s3()
    first.create_bucket()
    etag = first.send_blocking(PutObject("", "a", b"first")).etag
    services = [open_s3(conditional_puts=True) for _ in range(RACERS)]
    lost = [make_lossy(service, seed * 100 + number) for number, service in enumerate(services)]
    found = outcomes_of(services, lambda number: PutObject("", "a", b"from %d" % number, if_match=etag))
    there = first.send_blocking(GetObject("", "a"))
    (winner,) = [number for number, outcome in enumerate(found) if not isinstance(outcome, HoldallError)]
    assert sum(losses.lost for losses in lost) > 0
    assert (there.body, there.info.put_id) == (b"from %d" % winner, found[winner].put_id)
    others = [outcome for outcome in found if isinstance(outcome, HoldallError)]
    assert all(isinstance(outcome, PreconditionFailedError | OutcomeUnknown) for outcome in others), others


@pytest.mark.parametrize("seed", range(3))
def test_one_of_many_processes_that_create_an_object_succeeds_on_a_lossy_network(
    open_s3: Opening, seed: int
) -> None:
    open_s3().create_bucket()
    service = open_s3(conditional_puts=True)
    racers = [_fork(partial(_create, service, seed, number)) for number in range(RACERS)]
    results = [_read_result(*racer) for racer in racers]
    assert sorted(results) == sorted([b"won", *[b"refused"] * (RACERS - 1)])
    there = open_s3().send_blocking(GetObject("", "a"))
    assert there.body == b"from %d" % results.index(b"won")


def _create(service: S3Service, seed: int, number: int) -> bytes:
    make_lossy(service, seed * 100 + number)
    try:
        service.send_blocking(PutObject("", "a", b"from %d" % number, if_absent=f"put-{number}"))
    except PreconditionFailedError:
        return b"refused"
    return b"won"


def _fork(act: Callable[[], bytes]) -> tuple[int, int]:
    """Fork a process that writes a result to a pipe; return its id, and the reading end of the pipe."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return process, reader
    code = 1
    try:
        os.write(writer, act())
        code = 0
    finally:
        os._exit(code)


def _read_result(process: int, reader: int) -> bytes:
    with os.fdopen(reader, "rb") as file:
        result = file.read()
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return result


@pytest.mark.parametrize("seed", range(6))
def test_one_of_many_uploads_that_create_an_object_succeeds_on_a_lossy_network(
    open_s3: Opening, seed: int
) -> None:
    main = open_s3()
    main.create_bucket()
    uploads = [main.send_blocking(BeginUpload("", "a")) for _ in range(RACERS)]
    parts = [
        main.send_blocking(UploadPart("", upload, 1, b"from %d" % number))
        for number, upload in enumerate(uploads)
    ]
    services = [open_s3(conditional_puts=True) for _ in range(RACERS)]
    for number, service in enumerate(services):
        make_lossy(service, seed * 100 + number)
    found = outcomes_of(
        services,
        lambda number: CompleteUpload("", uploads[number], (parts[number],), if_absent=f"put-{number}"),
    )
    winners = [number for number, outcome in enumerate(found) if not isinstance(outcome, HoldallError)]
    assert len(winners) == 1
    assert main.send_blocking(GetObject("", "a")).body == b"from %d" % winners[0]
    others = [outcome for outcome in found if isinstance(outcome, HoldallError)]
    assert all(isinstance(outcome, PreconditionFailedError | OutcomeUnknown) for outcome in others), others
