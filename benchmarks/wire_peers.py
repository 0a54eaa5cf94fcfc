"""The peers as clients of the canned server, each used as its documentation shows.

This runs in the peers' environment. A peer is imported only when a client is opened: Holdall's environment lacks it.
"""

from __future__ import annotations

from datetime import datetime
from importlib import import_module
from typing import Any
from uuid import uuid4

from benchmarks import model_items
from benchmarks.wire_client import REGION, Client
from benchmarks.wire_items import COUNT, TABLE, document, key, key_document, values

_DOCUMENTS = [document(number) for number in range(COUNT)]
_VALUES = [values(number) for number in range(COUNT)]
_PARTITION = key(0)["pk"]

_UNCHANGED = {
    "ConditionExpression": "#version = :expected",
    "ExpressionAttributeNames": {"#version": "version"},
}
_SET = {
    "UpdateExpression": "SET #product = :product, #version = :version",
    "ConditionExpression": "#version = :expected",
    "ExpressionAttributeNames": {"#product": "product", "#version": "version"},
}


# --- boto3 ----------------------------------------------------------------------------------------------


def _boto3_client(endpoint: str) -> Any:
    return import_module("boto3").client("dynamodb", region_name=REGION, endpoint_url=endpoint)


def boto3_raw(endpoint: str) -> Client:
    """boto3's client; raw attributes in and out."""
    client = _boto3_client(endpoint)

    def put(number: int) -> Any:
        return client.put_item(
            TableName=TABLE,
            Item=_DOCUMENTS[number % COUNT],
            ExpressionAttributeValues={":expected": {"N": str(number)}},
            **_UNCHANGED,
        )

    def update_arguments(number: int) -> dict[str, Any]:
        texts = {
            ":product": {"S": "Tea"},
            ":version": {"N": str(number + 1)},
            ":expected": {"N": str(number)},
        }
        return {
            "TableName": TABLE,
            "Key": key_document(number),
            "ExpressionAttributeValues": texts,
            **_SET,
        }

    def transact(number: int) -> Any:
        put = {
            "TableName": TABLE,
            "Item": _DOCUMENTS[(number + 1) % COUNT],
            "ConditionExpression": "attribute_not_exists(#pk)",
            "ExpressionAttributeNames": {"#pk": "pk"},
        }
        actions = [{"Update": update_arguments(number)}, {"Put": put}]
        return client.transact_write_items(TransactItems=actions, ClientRequestToken=str(uuid4()))

    def query(number: int) -> Any:
        return client.query(
            TableName=TABLE,
            KeyConditionExpression="#pk = :pk",
            ExpressionAttributeNames={"#pk": "pk"},
            ExpressionAttributeValues={":pk": {"S": _PARTITION}},
        )["Items"]

    return Client(
        {
            "get": lambda number: client.get_item(TableName=TABLE, Key=key_document(number))["Item"],
            "put": put,
            "update": lambda number: client.update_item(**update_arguments(number)),
            "transact": transact,
            "query": query,
        }
    )


def boto3_values(endpoint: str) -> Client:
    """boto3's client for reads, with its TypeDeserializer to Python values."""
    raw = boto3_raw(endpoint)
    deserialize = import_module("boto3.dynamodb.types").TypeDeserializer().deserialize

    def get(number: int) -> Any:
        return {name: deserialize(part) for name, part in raw.operations["get"](number).items()}

    def query(number: int) -> Any:
        items = raw.operations["query"](number)
        return [{name: deserialize(part) for name, part in item.items()} for item in items]

    return Client({"get": get, "query": query})


def boto3_orders(endpoint: str) -> Client:
    """boto3's client on the models' orders: decodes to Python values, and updates on the condition of what it read."""
    client = _boto3_client(endpoint)
    deserialize = import_module("boto3.dynamodb.types").TypeDeserializer().deserialize
    partition = model_items.key_document(0)["pk"]
    read_all = model_items.FIELDS

    def row(item: Any) -> tuple[Any, ...]:
        order = {name: deserialize(part) for name, part in item.items()}
        return tuple([order.get(name) for name in read_all])

    def read(number: int) -> tuple[Any, ...]:
        key = model_items.key_document(number % model_items.COUNT)
        return row(client.get_item(TableName=model_items.TABLE, Key=key, ConsistentRead=True)["Item"])

    def query(number: int) -> list[tuple[Any, ...]]:
        page = client.query(
            TableName=model_items.TABLE,
            KeyConditionExpression="#pk = :pk",
            ExpressionAttributeNames={"#pk": "pk"},
            ExpressionAttributeValues={":pk": partition},
            ConsistentRead=True,
        )
        return [row(item) for item in page["Items"]]

    def update(number: int, quantity: Any, change: int) -> dict[str, Any]:
        return {
            "TableName": model_items.TABLE,
            "Key": model_items.key_document(number % model_items.COUNT),
            "UpdateExpression": "SET #quantity = :new",
            "ConditionExpression": "#quantity = :old",
            "ExpressionAttributeNames": {"#quantity": "quantity"},
            "ExpressionAttributeValues": {
                ":new": {"N": str(quantity + change)},
                ":old": {"N": str(quantity)},
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    quantity = read_all.index("quantity")

    def change(number: int) -> None:
        source, target = read(number)[quantity], read(number + 1)[quantity]
        actions = [{"Update": update(number, source, -1)}, {"Update": update(number + 1, target, 1)}]
        client.transact_write_items(TransactItems=actions, ClientRequestToken=str(uuid4()))

    return Client({"get": read, "query": query, "change": change}, plain=_as_read_by_models)


def _as_read_by_models(read: Any) -> Any:
    """Convert numbers and times to Python's types; the deserializer leaves them as Decimal and text."""
    if isinstance(read, list):
        return [_as_read_by_models(row) for row in read]
    if not isinstance(read, tuple):
        return read
    order = dict(zip(model_items.FIELDS, read, strict=True))
    placed_at = datetime.strptime(order["placed_at"], "%Y-%m-%dT%H:%M:%S.%f%z")
    changes = {"quantity": int(order["quantity"]), "price": float(order["price"]), "placed_at": placed_at}
    return tuple((order | changes).values())


# --- PynamoDB -------------------------------------------------------------------------------------------


def pynamodb(endpoint: str) -> Client:
    """PynamoDB; models in and out."""
    attributes = import_module("pynamodb.attributes")
    transaction = import_module("pynamodb.transactions").TransactWrite
    connection = import_module("pynamodb.connection").Connection(region=REGION, host=endpoint)

    address = type(
        "Address",
        (attributes.MapAttribute,),
        {"street": attributes.UnicodeAttribute(), "city": attributes.UnicodeAttribute()},
    )
    order: Any = type(
        "Order",
        (import_module("pynamodb.models").Model,),
        {
            "Meta": type("Meta", (), {"table_name": TABLE, "region": REGION, "host": endpoint}),
            "pk": attributes.UnicodeAttribute(hash_key=True),
            "sk": attributes.UnicodeAttribute(range_key=True),
            "version": attributes.NumberAttribute(),
            "product": attributes.UnicodeAttribute(),
            "price": attributes.NumberAttribute(),
            "paid": attributes.BooleanAttribute(),
            "status": attributes.UnicodeAttribute(),
            "note": attributes.UnicodeAttribute(),
            "tags": attributes.UnicodeSetAttribute(),
            "address": address(),
        },
    )

    def changes(number: int) -> dict[str, Any]:
        return {
            "actions": [order.product.set("Tea"), order.version.set(number + 1)],
            "condition": order.version == number,
        }

    def transact(number: int) -> None:
        with transaction(connection=connection, client_request_token=str(uuid4())) as transacting:
            transacting.update(order(**key(number)), **changes(number))
            transacting.save(order(**_VALUES[(number + 1) % COUNT]), condition=order.pk.does_not_exist())

    def plain(read: Any) -> Any:
        if isinstance(read, list):
            return [plain(model) for model in read]
        return {**read.attribute_values, "address": read.address.attribute_values}

    return Client(
        {
            "get": lambda number: order.get(**{"hash_key": _PARTITION, "range_key": key(number)["sk"]}),
            "put": lambda number: order(**_VALUES[number % COUNT]).save(condition=order.version == number),
            "update": lambda number: order(**key(number)).update(**changes(number)),
            "transact": transact,
            "query": lambda number: list(order.query(_PARTITION)),
        },
        plain,
    )


# --- pydynox --------------------------------------------------------------------------------------------


def _pydynox_put(number: int) -> dict[str, Any]:
    return {
        "condition_expression": "#version = :expected",
        "expression_attribute_names": {"#version": "version"},
        "expression_attribute_values": {":expected": number},
    }


def _pydynox_update(number: int) -> dict[str, Any]:
    return {
        "update_expression": "SET #product = :product, #version = :version",
        "condition_expression": "#version = :expected",
        "expression_attribute_names": {"#product": "product", "#version": "version"},
        "expression_attribute_values": {":product": "Tea", ":version": number + 1, ":expected": number},
    }


def _pydynox_transaction(number: int) -> list[dict[str, Any]]:
    return [
        {"type": "update", "table": TABLE, "key": key(number), **_pydynox_update(number)},
        {
            "type": "put",
            "table": TABLE,
            "item": _VALUES[(number + 1) % COUNT],
            "condition_expression": "attribute_not_exists(#pk)",
            "expression_attribute_names": {"#pk": "pk"},
        },
    ]


_PYDYNOX_QUERY: dict[str, Any] = {
    "key_condition_expression": "#pk = :pk",
    "expression_attribute_names": {"#pk": "pk"},
    "expression_attribute_values": {":pk": _PARTITION},
}


def _pydynox_client(endpoint: str) -> Any:
    keys = {"access_key": "test", "secret_key": "test"}
    return import_module("pydynox").DynamoDBClient(region=REGION, endpoint_url=endpoint, **keys)


def pydynox(endpoint: str) -> Client:
    """pydynox, sync; Python values in and out."""
    client = _pydynox_client(endpoint)
    return Client(
        {
            "get": lambda number: client.sync_get_item(TABLE, key(number)),
            "put": lambda number: client.sync_put_item(
                TABLE, _VALUES[number % COUNT], **_pydynox_put(number)
            ),
            "update": lambda number: client.sync_update_item(TABLE, key(number), **_pydynox_update(number)),
            "transact": lambda number: client.sync_transact_write(_pydynox_transaction(number)),
            "query": lambda number: list(client.sync_query(TABLE, **_PYDYNOX_QUERY)),
        }
    )


async def pydynox_awaiting(endpoint: str) -> Client:
    """pydynox, async; Python values in and out."""
    client = _pydynox_client(endpoint)

    async def query(number: int) -> list[Any]:
        return [item async for item in client.query(TABLE, **_PYDYNOX_QUERY)]

    return Client(
        {
            "get": lambda number: client.get_item(TABLE, key(number)),
            "put": lambda number: client.put_item(TABLE, _VALUES[number % COUNT], **_pydynox_put(number)),
            "update": lambda number: client.update_item(TABLE, key(number), **_pydynox_update(number)),
            "transact": lambda number: client.transact_write(_pydynox_transaction(number)),
            "query": query,
        }
    )


# --- aiodynamo ------------------------------------------------------------------------------------------


async def aiodynamo(endpoint: str) -> Client:
    """aiodynamo on aiohttp; Python values in and out."""
    session = import_module("aiohttp").ClientSession()
    expressions = import_module("aiodynamo.expressions")
    operations = import_module("aiodynamo.operations")
    field, hash_key = expressions.F, expressions.HashKey
    client = import_module("aiodynamo.client").Client(
        import_module("aiodynamo.http.aiohttp").AIOHTTP(session),
        import_module("aiodynamo.credentials").Credentials.auto(),
        REGION,
        import_module("yarl").URL(endpoint),
    )

    def changes(number: int) -> Any:
        return field("product").set("Tea") & field("version").set(number + 1)

    def put(number: int) -> Any:
        unchanged = field("version").equals(number)
        return client.put_item(TABLE, _VALUES[number % COUNT], condition=unchanged)

    def update(number: int) -> Any:
        unchanged = field("version").equals(number)
        return client.update_item(TABLE, key(number), changes(number), condition=unchanged)

    def transact(number: int) -> Any:
        unchanged = field("version").equals(number)
        actions = [
            operations.Update(TABLE, key(number), changes(number), unchanged),
            operations.Put(TABLE, _VALUES[(number + 1) % COUNT], field("pk").does_not_exist()),
        ]
        return client.transact_write_items(actions, request_token=str(uuid4()))

    async def query(number: int) -> Any:
        return (await client.query_single_page(TABLE, hash_key("pk", _PARTITION))).items

    return Client(
        {
            "get": lambda number: client.get_item(TABLE, key(number)),
            "put": put,
            "update": update,
            "transact": transact,
            "query": query,
        },
        close=session.close,
    )
