"""What every flow is given: its port and the settings."""

from __future__ import annotations

from dataclasses import dataclass

from holdall.core.port import Port
from holdall.core.settings import Settings

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    """The one argument that all flows share."""

    port: Port
    settings: Settings
