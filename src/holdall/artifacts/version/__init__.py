"""Versions: how LATEST is put and published, and how versions are read, deleted and purged."""
