"""The console's pages of stored files: the lists, and the page of one file."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from console_rig import Customer, Visitor, make_picture, make_visitor, open_visitor

from holdall import Database, Variant
from holdall.attachments import Blob


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database("memory:", files=f"file:{tmp_path}", secret="a secret of some length") as found:
        yield found


@pytest.fixture
def visitor(db: Database) -> Visitor:
    return open_visitor(db)


def attach(db: Database, content: bytes = b"text", filename: str = "a.txt") -> tuple[Customer, Blob]:
    """Create a customer with one file."""
    with db.transaction() as tx:
        item = tx.create(Customer, email=f"{filename}@example.com")
        item.files.attach(content, filename=filename)
    (found,) = db.blobs.list("ConsoleCustomer", item.id)
    return item, found.blob


def test_a_database_without_files_has_an_empty_page(visitor: Visitor) -> None:
    assert "No files<" in visitor.get("/blobs").text


def test_all_files_are_listed_with_their_references(visitor: Visitor, db: Database) -> None:
    _, attached = attach(db)
    loose = db.blobs.create_and_upload(make_picture((64, 48)), filename="loose.png")
    page = visitor.get("/blobs").text
    for blob in (attached, loose):
        assert f"/blobs/blob?id={blob.id}" in page
    assert "1 reference<" in page
    assert "unattached" in page
    assert f"/files/{loose.id}?view=1" in page
    assert f"/files/{attached.id}?view=1" not in page


def test_files_are_listed_page_by_page(visitor: Visitor, db: Database) -> None:
    ids = {db.blobs.create_and_upload(b"x", filename=f"{number}.txt").id for number in range(60)}
    page = visitor.get("/blobs").text
    address = unescape(page.split('rel="next"')[0].rpartition('href="/console')[2].partition('"')[0])
    rest = visitor.get(address).text
    assert [sum(f"blob?id={id}" in text for id in ids) for text in (page, rest)] == [48, 12]
    assert 'rel="next"' not in rest
    assert "First page" in rest


def test_the_files_of_one_owner_are_listed(visitor: Visitor, db: Database) -> None:
    item, blob = attach(db)
    _, other = attach(db, filename="b.txt")
    page = visitor.get(f"/blobs?type=ConsoleCustomer&owner={item.id}").text
    assert f"blob?id={blob.id}" in page
    assert f"blob?id={other.id}" not in page
    assert "Files of this owner" in page


def test_the_files_of_one_owner_are_listed_page_by_page(visitor: Visitor, db: Database) -> None:
    ids = []
    for number in range(60):
        blob = db.blobs.create_and_upload(b"x", filename=f"{number}.txt")
        db.blobs.attach(blob, record_type="Other", record_id="a/b", name="files")
        ids.append(blob.id)
    page = visitor.get("/blobs?type=Other&owner=a/b").text
    address = unescape(page.split('rel="next"')[0].rpartition('href="/console')[2].partition('"')[0])
    rest = visitor.get(address).text
    assert [sum(f"blob?id={id}" in text for id in ids) for text in (page, rest)] == [48, 12]
    assert 'rel="next"' not in rest
    assert 'href="/console/blobs?type=Other&amp;owner=a%2Fb"' in rest
    for odd in ("x", "/", "x/y", "%00/%00"):
        assert visitor.get(f"/blobs?type=Other&owner=a/b&after={odd}").status_code == 200


def test_a_page_shows_the_first_of_many_references_and_files(visitor: Visitor, db: Database) -> None:
    item, blob = attach(db)
    for number in range(60):
        db.blobs.attach(blob, record_type="Other", record_id=f"{number}", name="files")
    page = visitor.get(f"/blobs/blob?id={blob.id}").text
    assert "There are more than these 50; the file counts 61." in page
    address = f"/models/console_rig:Customer/item?key-id={item.id}"
    assert "All files of this item" not in visitor.get(address).text
    for number in range(24):
        db.blobs.attach(
            db.blobs.create_and_upload(b"x", filename=f"{number}.txt"),
            record_type="ConsoleCustomer",
            record_id=str(item.id),
            name="files",
        )
    page = visitor.get(address).text
    assert "more than 24 files" in page
    assert page.count("/blobs/blob?id=") == 24
    assert f"/blobs?type=ConsoleCustomer&amp;owner={item.id}" in page


def test_a_file_is_shown_with_its_references_and_pictures(visitor: Visitor, db: Database) -> None:
    item, blob = attach(db, make_picture((64, 48)), "dot.png")
    small = db.blobs.variant(blob, Variant(resize_to_limit=(10, 10)))
    page = visitor.get(f"/blobs/blob?id={blob.id}").text
    assert f"/models/console_rig%3ACustomer/item?key-id={item.id}" in page
    assert f"/blobs?type=ConsoleCustomer&amp;owner={item.id}" in page
    assert "1 picture made of this file" in page
    assert f"/files/{small.id}?view=1" in page
    assert blob.checksum is not None
    assert blob.checksum.replace("+", "&#43;") in page or blob.checksum in page
    assert f'href="/console/files/{blob.id}" download' in page


def test_references_link_to_items_and_to_the_original_of_a_variant(visitor: Visitor, db: Database) -> None:
    _, blob = attach(db, make_picture((64, 48)), "dot.png")
    small = db.blobs.variant(blob, Variant(resize_to_limit=(10, 10)))
    page = visitor.get(f"/blobs/blob?id={small.id}").text
    assert "Variant of" in page
    assert f'href="/console/blobs/blob?id={blob.id}"' in page
    for type, id in (("Unknown::Class", "7"), ("ConsoleCustomer", "deleted")):
        db.blobs.attach(blob, record_type=type, record_id=id, name="files")
    page = visitor.get(f"/blobs/blob?id={blob.id}").text
    assert "Unknown::Class" in page
    assert page.count("/item?key-id=") == 1, "only one owner exists and is an item of a model"


def test_viewing_files_stores_nothing(db: Database) -> None:
    _, blob = attach(db, make_picture((64, 48)), "dot.png")
    before = len(db.blobs.scan().blobs)
    visitor = open_visitor(db, read_only=False)
    for path in ("/blobs", f"/blobs/blob?id={blob.id}", f"/files/{blob.id}?view=1"):
        assert visitor.get(path).status_code == 200
    assert len(db.blobs.scan().blobs) == before


def test_only_a_console_that_may_write_makes_thumbnails_of_files_that_browsers_cannot_show(
    db: Database,
) -> None:
    blob = db.blobs.create_and_upload(b"%PDF-1.4", filename="contract.pdf", content_type="application/pdf")
    for read_only in (True, False):
        page = open_visitor(db, read_only=read_only).get("/blobs").text
        assert (f"/files/{blob.id}/thumbnail" in page) == (blob.is_representable and not read_only)
        assert '<span class="extension">pdf</span>' in page


def test_files_need_a_session(db: Database) -> None:
    for path in ("/blobs", "/blobs/blob?id=x"):
        assert make_visitor(db).get(path).headers["location"] == "/console/sign-in"


@pytest.mark.parametrize("query", ["", "?id=none", "?id=%23", "?id=a%2Fb", "?id=%00"])
def test_an_invalid_id_is_rejected(visitor: Visitor, query: str) -> None:
    assert visitor.get(f"/blobs/blob{query}").status_code in (404, 422)
    assert visitor.get(f"/blobs{query.replace('id', 'after')}").status_code in (200, 422)
