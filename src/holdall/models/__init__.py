"""Models: typed classes whose instances are items.

Pure: a class becomes a frozen schema, an instance is values and marks. Nothing here does I/O, so models have no colour.
"""

from holdall.models.fields import Field, Key, SortKey, field
from holdall.models.handle import FieldHandle
from holdall.models.hydrator import Hydrator
from holdall.models.keys import KeyMaker, ModelKey
from holdall.models.model import Model

__all__ = ["Field", "FieldHandle", "Hydrator", "Key", "KeyMaker", "Model", "ModelKey", "SortKey", "field"]
