"""The commit: what a client read and wants, as one atomic conditional write; its refusal explained; tried again.

Models and features share it. A model's unit of work emits steps straight into a `Change`; features speak through typed
records (`holdall.tables.record`).
"""
