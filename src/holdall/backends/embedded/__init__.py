"""The embedded engine: DynamoDB's data model on SQLite, in one file shared by several processes, or in memory."""

from __future__ import annotations

from holdall.backends.embedded.engine import EmbeddedBackend

__all__ = ["EmbeddedBackend"]
