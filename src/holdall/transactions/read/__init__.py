"""Reads: items by their keys, in a transaction or outside."""
