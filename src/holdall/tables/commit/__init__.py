"""The commit: one atomic, conditional write of a change, with an explanation if it is refused, and retries.

Models and features share it. A transaction's unit adds steps directly to a `Change`; features use typed records
(`holdall.tables.record`).
"""
