"""Entries: the items of a transaction, each in its role, and the steps that they add to the commit. Pure."""
