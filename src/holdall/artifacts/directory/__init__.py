"""Directories as artifacts: a manifest, and files that are stored once, however many directories contain them."""
