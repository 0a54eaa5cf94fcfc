"""Upkeep: blobs are listed, checked, repaired and deleted."""
