"""Exports: the items of a model in one file."""
