"""Versions: what LATEST is, how it becomes a version, and how versions are read, deleted and purged."""
