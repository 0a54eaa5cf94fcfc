"""Packs: many small items in one object."""
