"""The DynamoDB backend over our own wire."""

from __future__ import annotations

from holdall.backends.aws.backend import AwsBackend
from holdall.backends.aws.connection import target_of
from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.limit import Limits
from holdall.backends.aws.transport import Transport
from holdall.backends.dynamodb.delivery import Delivery
from holdall.backends.dynamodb.flow import DynamoFlow
from holdall.core.settings import SingleWrites

LIMITS = Limits(connect_timeout=5.0, read_timeout=30.0, total_timeout=60.0)
"""The limits without settings."""


class DynamoBackend(AwsBackend):
    """Tables of one DynamoDB endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        source: CredentialSource,
        *,
        single_writes: SingleWrites = "auto",
        limits: Limits = LIMITS,
    ) -> None:
        self._transport = Transport(target_of(endpoint.scheme, endpoint.host, endpoint.port, limits))
        delivery = Delivery(endpoint, source, self._transport, limits)
        super().__init__(DynamoFlow(delivery, single_writes, limits.total_timeout).answer, "database")

    def close(self) -> None:
        """Close the kept connections."""
        super().close()
        self._transport.close()
