"""Aliases: the versions they serve, their histories, and rollbacks."""
