"""Bulk writes: unconditional puts and deletes in batches, and changes to all items that a query or scan finds."""
