"""Backups of an embedded database with its files."""
