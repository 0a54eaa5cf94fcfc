"""Checking a database: its configuration, tables, items and files, and repairing what can be repaired."""
