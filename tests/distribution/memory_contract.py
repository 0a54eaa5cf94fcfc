"""Run the contracts of stores and services in memory, on any Python that Holdall claims to support.

It needs only the standard library. If pydantic is installed, it also uses a model. It prints the number of checks that
passed.
"""

from __future__ import annotations

from importlib.util import find_spec

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.testing import checks, run_check, run_service_check, service_checks


def main() -> int:
    """Run all checks; return their number."""
    passed = 0
    for colour in ("blocking", "awaiting"):
        for check in checks():
            store = EmbeddedBackend(None)
            run_check(check, store, colour)
            store.close()
            passed += 1
        for object_check in service_checks():
            if "served_urls" not in object_check.requires:  # those need a server
                service = MemoryService(secret=["a secret for this check"], base_url="http://files")
                run_service_check(object_check, service, colour)
                service.close()
                passed += 1
    if find_spec("pydantic") is not None:
        use_a_model()
        passed += 1
    return passed


def use_a_model() -> None:
    """Write and read an item."""
    from holdall import Database, Key, Model

    class Order(Model):
        number: Key[str]
        lines: list[int]

    with Database("memory:") as db:
        db.run(lambda tx: tx.create(Order, number="1", lines=[1, 2]))
        assert db.get_one(Order, "1").lines == [1, 2]


if __name__ == "__main__":
    print(main())
