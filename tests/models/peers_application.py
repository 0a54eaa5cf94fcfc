"""A program that uses PynamoDB and dyntastic, on tables that it shares with our tests.

``interop_peers.py`` runs it in the environment that has both packages; ours has neither. Each line of input names a
function of this module and its arguments; each line of output has the result.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import os
import re
import sys
from datetime import date, datetime

from dyntastic import A, Dyntastic
from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    DiscriminatorAttribute,
    JSONAttribute,
    NumberAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.exceptions import PutError
from pynamodb.models import Model

PREFIX, HOST, REGION = sys.argv[1], os.environ["AWS_ENDPOINT_URL_DYNAMODB"], os.environ["AWS_REGION"]


class Visit(Model):
    """A model of PynamoDB."""

    class Meta:
        """Where it is stored."""

        table_name = f"{PREFIX}visits"
        host = HOST
        region = REGION
        billing_mode = "PAY_PER_REQUEST"

    user = UnicodeAttribute(hash_key=True)
    at = UTCDateTimeAttribute(range_key=True)
    expires = TTLAttribute(null=True)
    settings = JSONAttribute(null=True)
    admin = BooleanAttribute(default=False)
    legacy = NumberAttribute(default=0)
    photo = BinaryAttribute(legacy_encoding=True, null=True)
    sound = BinaryAttribute(legacy_encoding=False, null=True)
    tags = UnicodeSetAttribute(null=True)
    mine = NumberAttribute(default=0)
    theirs = NumberAttribute(default=0)
    version = VersionAttribute()


class Animal(Model):
    """A model of PynamoDB, whose derived models an attribute distinguishes."""

    class Meta:
        """Where it is stored."""

        table_name = f"{PREFIX}animals"
        host = HOST
        region = REGION
        billing_mode = "PAY_PER_REQUEST"

    id = NumberAttribute(hash_key=True)
    cls = DiscriminatorAttribute()


class Dog(Animal, discriminator="dog"):
    """An animal."""

    tricks = UnicodeSetAttribute(null=True)


class Note(Dyntastic):
    """A model of dyntastic."""

    __table_name__ = f"{PREFIX}notes"
    __table_host__ = HOST
    __table_region__ = REGION
    __hash_key__ = "id"

    id: str
    at: datetime
    day: date
    text: str | None = None
    places: list[dict[str, int]]


def create_tables():
    Visit.create_table(wait=True)
    Note.create_table()
    Animal.create_table(wait=True)


def save_visit(user, at, expires=None, content=None, **values):
    moment = None if expires is None else datetime.fromisoformat(expires)
    content = None if content is None else content.encode()
    at = datetime.fromisoformat(at)
    Visit(user=user, at=at, expires=moment, photo=content, sound=content, **values).save()


def get_visit(user, at):
    visit = Visit.get(user, datetime.fromisoformat(at))
    values = {name: getattr(visit, name) for name in Visit.get_attributes()}
    values |= {name: values[name] and values[name].decode() for name in ("photo", "sound")}
    return {**values, "tags": sorted(visit.tags or ())}


def change_visit(user, at, **values):
    visit = Visit.get(user, datetime.fromisoformat(at))
    for name, value in values.items():
        setattr(visit, name, value)
    visit.save()


def add_to_visit(user, at, times):
    """Read, change and replace the whole item; retry if its version has changed meanwhile."""
    refused = 0
    while times:
        visit = Visit.get(user, datetime.fromisoformat(at), consistent_read=True)
        visit.theirs += 1
        try:
            visit.save()
        except PutError:
            refused += 1
        else:
            times -= 1
    return refused


def delete_visit(user, at):
    Visit.get(user, datetime.fromisoformat(at)).delete()


def save_dog(id, tricks):
    Dog(id, tricks=set(tricks)).save()


def get_animal(id):
    found = Animal.get(id)
    return type(found).__name__, sorted(found.tricks)


def save_note(**values):
    Note(**values).save()


def get_note(id):
    note = Note.safe_get(id)
    return None if note is None else note.model_dump()


def add_to_note(id, times):
    """Read the number in the text and set the next one if the text is unchanged; retry if it is not."""
    refused = 0
    while times:
        note = Note.get(id, consistent_read=True)
        change, unchanged = A.text.set(str(int(note.text) + 1)), A.text == note.text
        try:
            note.update(change, condition=unchanged, require_condition=True, refresh=False)
        except Exception as error:
            if not re.search("ConditionalCheckFailed|TransactionConflict", str(error)):
                raise
            refused += 1
        else:
            times -= 1
    return refused


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"ok": globals()[asked["do"]](**asked["with"])}
        except Exception as error:  # noqa: BLE001 - the test must see every error
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=lambda value: value.isoformat()), flush=True)


if __name__ == "__main__":
    main()
