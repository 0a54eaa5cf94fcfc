"""Directories as artifacts: a manifest, and files that are stored once whoever has them."""
