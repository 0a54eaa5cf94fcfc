"""Random operations on each service, against a dictionary that says what must come of each."""

from __future__ import annotations

from service_model import model_test
from service_ways import in_a_bucket, in_memory, on_disk

TestMemory = model_test(in_memory, examples=20, steps=40)
TestDisk = model_test(on_disk, examples=15, steps=40)
TestS3 = model_test(in_a_bucket("model"), examples=10, steps=40)
