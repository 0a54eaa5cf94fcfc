"""Upkeep: pointers are rebuilt, objects are moved, and those that no pointer names are deleted."""
