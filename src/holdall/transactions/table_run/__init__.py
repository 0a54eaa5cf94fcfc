"""Runs over all items of a table: their segments, checkpoints and pace."""
