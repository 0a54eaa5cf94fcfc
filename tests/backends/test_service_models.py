"""Random operations on each service, compared with a dictionary that predicts their results."""

from __future__ import annotations

from service_model import model_test
from service_setups import make_s3_opening, open_disk_service, open_memory_service

TestMemory = model_test(open_memory_service, examples=20, steps=40)
TestDisk = model_test(open_disk_service, examples=15, steps=40)
TestS3 = model_test(make_s3_opening("model"), examples=10, steps=40)
