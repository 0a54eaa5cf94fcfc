"""Replacing a certain object: only a put with the current etag succeeds, and all others are refused."""

from __future__ import annotations

from holdall.core.objects import ObjectHeaders
from holdall.errors import PreconditionFailedError
from holdall.testing.file_contract.check import RACERS, Service, check, full_part, refused


@check("conditional_replacements")
async def a_put_with_the_current_etag_replaces_the_object(service: Service) -> None:
    headers = ObjectHeaders("text/plain", metadata={"colour": "red"})
    first = await service.put(body=b"first")
    second = await service.put(body=b"second", headers=headers, if_match=first.etag)
    assert (second.size, second.headers) == (6, headers)
    found = await service.get()
    assert (found.body, found.info.etag, found.info.headers) == (b"second", second.etag, headers)
    third = await service.put(body=b"third", if_match=second.etag)
    assert ((await service.head()).etag, await service.body()) == (third.etag, b"third")


@check("conditional_replacements")
async def a_put_with_an_old_etag_replaces_nothing(service: Service) -> None:
    known = await service.put(body=b"known")
    headers = ObjectHeaders("text/css")
    there = await service.put(body=b"newer", headers=headers)
    with refused(PreconditionFailedError):
        await service.put(body=b"mine", if_match=known.etag)
    found = await service.get()
    assert (found.body, found.info.etag, found.info.headers) == (b"newer", there.etag, headers)


@check("conditional_replacements")
async def a_put_with_an_etag_does_not_create_a_missing_object(service: Service) -> None:
    known = await service.put(body=b"known")
    await service.delete()
    for name in ("a", "never/was"):
        with refused(PreconditionFailedError):
            await service.put(name, b"mine", if_match=known.etag)
    assert await service.names() == []


@check("conditional_replacements", "conditional_puts")
async def a_created_object_can_be_replaced_and_loses_its_id(service: Service) -> None:
    created = await service.put(body=b"first", if_absent="mine")
    await service.put(body=b"second", if_match=created.etag)
    assert await service.body() == b"second"
    assert (await service.head()).put_id != "mine"


@check("conditional_replacements")
async def of_many_replacements_at_once_one_wins(service: Service) -> None:
    etag = (await service.put(body=b"first")).etag
    bodies = [b"racer %d" % number for number in range(RACERS)]
    winner = await service.race(service.put(body=body, if_match=etag) for body in bodies)
    assert await service.body() == bodies[winner]


@check("conditional_replacements")
async def an_upload_with_the_current_etag_replaces_the_object(service: Service) -> None:
    etag = (await service.put(body=b"first")).etag
    upload, part = await service.begin_with(full_part())
    done = await service.complete(upload, part, if_match=etag)
    head = await service.head()
    assert (head.etag, head.size) == (done.etag, len(full_part()))


@check("conditional_replacements")
async def an_upload_with_an_old_etag_replaces_nothing(service: Service) -> None:
    etag = (await service.put(body=b"first")).etag
    upload, part = await service.begin_with(b"mine")
    there = await service.put(body=b"newer")
    with refused(PreconditionFailedError):
        await service.complete(upload, part, if_match=etag)
    found = await service.get()
    assert (found.body, found.info.etag) == (b"newer", there.etag)


@check("conditional_replacements")
async def an_upload_with_an_etag_does_not_create_a_missing_object(service: Service) -> None:
    etag = (await service.put(body=b"first")).etag
    await service.delete()
    for name in ("a", "never/was"):
        upload, part = await service.begin_with(b"mine", name)
        with refused(PreconditionFailedError):
            await service.complete(upload, part, if_match=etag)
    assert await service.names() == []


@check("conditional_replacements")
async def of_many_uploads_that_replace_one_wins(service: Service) -> None:
    etag = (await service.put(body=b"first")).etag
    uploads = [await service.begin_with(b"racer %d" % number) for number in range(RACERS)]
    flows = [service.complete(upload, part, if_match=etag) for upload, part in uploads]
    winner = await service.race(flows)
    assert await service.body() == b"racer %d" % winner


@check("conditional_replacements", "conditional_deletions")
async def of_replacements_and_deletions_at_once_one_kind_wins(service: Service) -> None:
    for race in ("a", "b", "c"):
        etag = (await service.put(race, b"first")).etag
        puts = [service.put(race, b"racer %d" % number, if_match=etag) for number in range(RACERS // 2)]
        deletions = [service.delete_match(race, etag) for _ in range(RACERS // 2)]
        outcomes = await service.port.gather([*puts, *deletions], limit=RACERS)
        losses = [outcome.error for outcome in outcomes if outcome.error is not None]
        assert all(isinstance(loss, PreconditionFailedError) for loss in losses), losses
        put = [number for number, outcome in enumerate(outcomes[: RACERS // 2]) if outcome.error is None]
        deleted = [outcome for outcome in outcomes[RACERS // 2 :] if outcome.error is None]
        assert (len(put), len(deleted)) in ((1, 0), (0, RACERS // 2))
        assert await service.body(race) == (b"racer %d" % put[0] if put else None)
