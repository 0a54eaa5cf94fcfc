"""The options with which a class declares a field: ``note: str = field(hidden=True)``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from holdall.core.frozen import dataclass
from holdall.core.nearest_name import suggest_name
from holdall.errors import ModelDefinitionError

if TYPE_CHECKING:
    from holdall.models.codec.peer_form import PeerForm


class _Absent:
    """The absence of a value, as opposed to None."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()


@dataclass(frozen=True, slots=True)
class FieldOptions:
    """The arguments of `field`, kept until the class is defined; ``computed`` are those of `computed`."""

    default: Any = ABSENT
    default_factory: Callable[[], Any] | None = None
    read_only: bool = False
    name: str | None = None
    unique: bool = False
    description: str | None = None
    aliases: Sequence[str] = ()
    stored: PeerForm | None = None
    version: bool = False
    now: Literal["create", "update"] | None = None
    hidden: bool = False
    casing: Literal["lower", "upper"] | None = None
    computed: tuple[Callable[[Any], Any], tuple[str, ...]] | None = None


@overload
def field(
    *,
    now: Literal["create", "update"],
    name: str | None = None,
    description: str | None = None,
    aliases: Sequence[str] = (),
    stored: PeerForm | None = None,
    init: Literal[False] = False,  # for type checkers alone: the field is not an argument of the class
) -> Any: ...
@overload
def field(
    *,
    default: Any = ABSENT,
    default_factory: Callable[[], Any] | None = None,
    read_only: bool = False,
    name: str | None = None,
    unique: bool = False,
    description: str | None = None,
    aliases: Sequence[str] = (),
    stored: PeerForm | None = None,
    version: bool = False,
    hidden: bool = False,
    casing: Literal["lower", "upper"] | None = None,
) -> Any: ...
def field(
    *,
    default: Any = ABSENT,
    default_factory: Callable[[], Any] | None = None,
    read_only: bool = False,
    name: str | None = None,
    unique: bool = False,
    description: str | None = None,
    aliases: Sequence[str] = (),
    stored: PeerForm | None = None,
    version: bool = False,
    now: Literal["create", "update"] | None = None,
    hidden: bool = False,
    casing: Literal["lower", "upper"] | None = None,
    **others: Any,
) -> Any:
    """Declare the options of a field.

    ``default`` is copied for every item, ``default_factory`` is called for every item. ``read_only``: the field cannot
    be changed once the item is created, not even by a put. ``name`` is the name of the stored attribute, if it differs
    from the field's. ``unique``: no two items of the model can have the same value. ``description`` appears in the JSON
    schema. ``aliases`` are former names of the attribute, under which older items are still read. ``stored`` is the
    form in which other programs store the value: a datetime as ``"epoch"`` (seconds since 1970), ``"epoch_ms"``
    (milliseconds), ``"iso"`` (as pydantic writes it), ``"iso_ms"`` (as JavaScript does) or ``"pynamodb"``, a bool as a
    ``"number"``, bytes as ``"base64"``, any value as ``"json"``. ``version``: the field counts the item's writes, as
    PynamoDB's ``VersionAttribute`` does, and a write of an item that was read requires that the stored version is still
    the same: ``version: int = field(default=0, version=True)``. ``now``: Holdall sets the field to the time of the
    commit that creates the item (``"create"``), or of each commit that writes it (``"update"``). ``hidden``: the value
    does not appear in ``to_dict()``, JSON, ``repr`` and errors. ``casing``: text is changed to lower or upper case
    before it is stored or compared.
    """
    given = locals()
    for option in given.pop("others"):
        raise ModelDefinitionError(
            f"field() has no option {option!r}",
            hint=suggest_name(option, field.__kwdefaults__ or (), "options"),
        )
    return FieldOptions(**given)
